"""The resolved configuration, as the core reads it: profiles with ordered plugins and weights.

A document (`KubeSchedulerConfiguration`) is resolved to this by `resolve.py`; nothing is
defaulted later.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from decklog.core.rules import V1_36, Parity

DEFAULT_PROFILE: Final = "decklog"
POINTS: Final = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileConfig:
    """One profile: for each extension point the plugins in order; weights of score; arguments."""

    scheduler_name: str = DEFAULT_PROFILE
    percentage_of_nodes_to_score: int | None = None
    """None: the global value."""
    points: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    weights: Mapping[str, int] = field(default_factory=dict)
    args: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Plugin name → its arguments after defaulting, as in the document (camelCase keys)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfig:
    """All that deciding depends on beside events and ticks. Its hash goes into every tick."""

    seed: int = 0
    percentage_of_nodes_to_score: int = 100
    """0: adaptive."""
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    unschedulable_flush_seconds: int = 300
    profiles: tuple[ProfileConfig, ...] = ()
    extenders: tuple[Mapping[str, Any], ...] = ()
    parity: Parity = V1_36

    def profile(self, scheduler_name: str) -> ProfileConfig | None:
        for profile in self.profiles:
            if profile.scheduler_name == scheduler_name:
                return profile
        return None
