"""The extension points, as plugins implement them.

A plugin sees all nodes at once: `nodes` is a table with one entry per row (`core/columns.py`),
`filter` returns a reason code per row, `score` an amount per row. Rows that hold no node (a free
row, or a ghost's) are answered like any other; the caller ignores them.

A plugin implements the protocols of the points it has; `points.py` finds them by the methods.
Plugins hold their arguments and nothing that changes: what a cycle computes goes into its
`CycleState`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from decklog.core.columns import NodeColumns
from decklog.core.framework.status import Status
from decklog.objects.pod import Pod

ReasonCodes = npt.NDArray[np.uint16]
"""One code per row: an index into the plugin's `statuses`. 0 (`PASS`) is Success."""
Scores = npt.NDArray[np.int64]
"""One score per row; 0 … 100 once it is normalised."""
Rows = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

PASS: Final = 0
SCORE_MAX: Final = 100


class Reads(Flag):
    """What a plugin's verdict on a node depends on, beside the pod's class and its arguments.

    The cycle keeps verdicts and scores per pod class, and asks again only for rows in which
    something that the plugin reads has changed. A plugin that says nothing reads everything,
    and is asked about all rows in every cycle.
    """

    STATIC = auto()
    """Labels, taints, unschedulable, images, declared features, the node's name."""
    RESOURCES = auto()
    """Allocatable, requested, pod count, used ports."""
    CLUSTER = auto()
    """Anything else: other nodes, pods of other nodes, other objects."""


EVERYTHING: Final = Reads.STATIC | Reads.RESOURCES | Reads.CLUSTER


@dataclass(slots=True)
class CycleState:
    """What a cycle's plugins share: written by PreFilter and PreScore, read by the later points."""

    values: dict[str, Any] = field(default_factory=dict)
    skip_filter: set[str] = field(default_factory=set)
    skip_score: set[str] = field(default_factory=set)
    cluster: "ClusterView | None" = None


class ClusterView(Protocol):
    """Read access to objects other than nodes and pods, for plugins."""

    @property
    def version(self) -> int:
        """Raised by every change of any of these objects."""
        ...

    def objects(self, kind: str) -> Mapping[str, Any]:
        """Return the objects of a kind by `namespace/name` (or name)."""
        ...


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """`node_names` None: all nodes."""

    node_names: frozenset[str] | None = None


class Plugin(Protocol):
    @property
    def name(self) -> str: ...


class PreEnqueuePlugin(Plugin, Protocol):
    def pre_enqueue(self, pod: Pod) -> Status: ...


class PreFilterPlugin(Plugin, Protocol):
    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeColumns
    ) -> tuple[PreFilterResult | None, Status]: ...


class FilterPlugin(Plugin, Protocol):
    @property
    def statuses(self) -> Sequence[Status]:
        """What the codes mean. It may grow while codes are interned; it never changes an entry."""
        ...

    def filter(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> ReasonCodes:
        """Return a code per row of `nodes`, in a new array; writes into none it was given."""
        ...


class PreFilterExtensions(Plugin, Protocol):
    """For plugins whose PreFilter state depends on pods: what one pod more or less changes.

    The state may be shared with a copy of itself: a plugin replaces what it keeps in it, and
    changes nothing in place. `row` is the node's in `nodes`, which is the whole table.
    """

    def add_pod(
        self, state: CycleState, pod: Pod, other: Pod, row: int, nodes: NodeColumns
    ) -> None: ...

    def remove_pod(
        self, state: CycleState, pod: Pod, other: Pod, row: int, nodes: NodeColumns
    ) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A node that the pod would fit if the victims were gone."""

    node: str
    victims: tuple[Pod, ...]
    """The most important first; at least one."""
    pdb_violations: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PostFilterResult:
    """`nominate` None: the nomination stays as it is; empty: it is cleared."""

    nominate: str | None = None
    victims: Sequence[Pod] = ()
    pdb_violations: int = 0
    candidate_count: int = 0
    tie_count: int = 0
    nominations_cleared: Sequence[Pod] = ()
    candidates: Sequence[Candidate] = ()
    """All that were found, the chosen one among them."""


class PostFilterPlugin(Plugin, Protocol):
    def post_filter(
        self, state: CycleState, pod: Pod, nodes: NodeColumns, verdict: "FilterVerdict"
    ) -> tuple[PostFilterResult | None, Status]: ...


class FilterVerdict(Protocol):
    """What filtering said, for PostFilter: per row, and for the nodes that have no status.

    And what it would say if a node had other pods, without anything being changed.
    """

    @property
    def codes(self) -> npt.NDArray[np.uint8]:
        """Status code (`Code`) per row."""
        ...

    @property
    def salt(self) -> int:
        """Seed, pod and attempt, mixed: what stands in for chance."""
        ...

    def status(self, row: int) -> Status: ...
    def nominated(self, row: int) -> Sequence[Pod]:
        """Return the pods that are nominated on the node, in order of nomination."""
        ...

    def what_if(self, row: int) -> "WhatIf": ...
    def without_lower(self, rows: Rows) -> "WithoutLower":
        """Return what filters would say if all pods of lower priority were gone."""
        ...

    def memo(self) -> dict[int, Any] | None:
        """Return what was noted of rows for equal pods, as far as it still holds; to be added to.

        None: verdicts depend on more than the pod's class and what is on the row.
        """
        ...


class WhatIf(Protocol):
    """One node as it would be if pods came or went."""

    @property
    def pods(self) -> Sequence[Pod]: ...
    def add(self, pod: Pod) -> None: ...
    def remove(self, pod: Pod) -> None: ...
    def status(self) -> Status:
        """Return what the filters would say, nominated pods considered."""
        ...


@dataclass(frozen=True, slots=True)
class WithoutLower:
    """By entry of the rows that were asked about."""

    lower_count: npt.NDArray[np.int64]
    """Pods of lower priority."""
    reason: npt.NDArray[np.int32]
    """Index into `statuses` of what rejects the pod all the same; 0: only a trial can tell."""
    statuses: Sequence[Status]


class PreScorePlugin(Plugin, Protocol):
    def pre_score(
        self, state: CycleState, pod: Pod, nodes: NodeColumns, feasible: Mask
    ) -> Status: ...


class ScorePlugin(Plugin, Protocol):
    def score(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> Scores:
        """Return a raw score per row, in a new array."""
        ...


class NormalizeScore(Plugin, Protocol):
    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        """Bring the feasible nodes' raw scores into 0 … 100; `scores` holds feasible rows only."""
        ...


class ReservePlugin(Plugin, Protocol):
    def reserve(self, state: CycleState, pod: Pod, node: str) -> tuple[Mapping[str, Any], Status]:
        """Return the plan: plain data, recorded with the assume, and all that undoing gets."""
        ...

    def unreserve(self, pod: Pod, node: str, plan: Mapping[str, Any]) -> Sequence[str]:
        """Undo the plan and return what cannot be undone. Must not fail; may be called twice."""
        ...


class PermitPlugin(Plugin, Protocol):
    def permit(self, state: CycleState, pod: Pod, node: str) -> tuple[Status, int]:
        """Return a status and, with code Wait, for how long at most (ms)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEvent:
    """A kind of change that may make a rejected pod schedulable (`core/framework/events.py`)."""

    resource: str
    action: int
    hint: Callable[[Pod, Any, Any], bool] | None = None
    """(waiting pod, old, new) → whether to queue it. None: always."""


class EnqueueExtensions(Plugin, Protocol):
    def events_to_register(self) -> Sequence[ClusterEvent]: ...
