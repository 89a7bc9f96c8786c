"""What an attempt at a pod comes to: plain data, from which decisions are written."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from decklog.core.framework.interface import PostFilterResult
from decklog.events.facts import NodeScore, Rejection

UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The pod is assumed on the node."""

    node: str
    feasible_count: int
    evaluated_count: int
    tie_count: int
    rejected: tuple[Rejection, ...]
    """By filter order, code and reasons; each with one node as example."""
    top: tuple[NodeScore, ...]
    """The best five, best first; the one node without scores if there was only one to take."""
    plan: Mapping[str, Any] = field(default_factory=dict)
    waits: tuple[tuple[str, int], ...] = ()
    """(Permit plugin, ms) of each that wants the pod to wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The pod was not placed; the texts are `diagnosis.py`'s to write."""

    reason: str = UNSCHEDULABLE
    error: str = ""
    """The whole message, where the attempt did not end in a FitError."""
    node_count: int = 0
    rejected: tuple[Rejection, ...] = ()
    absent: tuple[str, ...] = ()
    """Reasons that count for every node without a status of its own."""
    absent_count: int = 0
    pre_filter_message: str = ""
    post_filter_message: str = ""
    unschedulable_plugins: tuple[str, ...] = ()
    pending_plugins: tuple[str, ...] = ()
    nominate: str | None = ""
    """None: the nomination stays as it is; empty: it is cleared."""
    victims: PostFilterResult | None = None
    """What PostFilter found, if it made room."""


Outcome = Placed | Failed
