"""A profile as the cycle walks it: its plugins, grouped by what can change their answers."""

from dataclasses import dataclass, field
from typing import Any, Final

from decklog.core.framework.interface import FilterPlugin, NormalizeScore, Reads, ScorePlugin
from decklog.core.framework.points import Profile, reads_of
from decklog.core.reasons import ReasonTable

SAMPLE_MIN: Final = 100
"""Feasible nodes that are looked for at least when nodes are sampled (kube-scheduler's)."""
SAMPLE_PERCENTAGE_MIN: Final = 5


@dataclass(frozen=True, slots=True, eq=False)
class PlannedFilter:
    position: int
    plugin: FilterPlugin
    reads: Reads

    @property
    def name(self) -> str:
        return self.plugin.name


@dataclass(frozen=True, slots=True, eq=False)
class PlannedScore:
    position: int
    plugin: ScorePlugin
    weight: int
    reads: Reads
    normalizer: NormalizeScore | None

    @property
    def name(self) -> str:
        return self.plugin.name


@dataclass(slots=True, eq=False)
class Plan:
    """What does not read CLUSTER is kept per pod class; the rest is asked in every cycle."""

    profile: Profile
    reasons: ReasonTable = field(init=False)
    static_filters: tuple[PlannedFilter, ...] = field(init=False)
    resource_filters: tuple[PlannedFilter, ...] = field(init=False)
    cluster_filters: tuple[PlannedFilter, ...] = field(init=False)
    scores: tuple[PlannedScore, ...] = field(init=False)
    kept: frozenset[str] = field(init=False)
    """Plugins whose PreFilter and PreScore answers hold for every pod of the class."""

    def __post_init__(self) -> None:
        profile = self.profile
        self.reasons = ReasonTable(profile.filter)
        filters = [
            PlannedFilter(position, plugin, reads_of(plugin))
            for position, plugin in enumerate(profile.filter)
        ]
        self.cluster_filters = tuple(f for f in filters if Reads.CLUSTER in f.reads)
        own = [f for f in filters if Reads.CLUSTER not in f.reads]
        self.resource_filters = tuple(f for f in own if Reads.RESOURCES in f.reads)
        self.static_filters = tuple(f for f in own if Reads.RESOURCES not in f.reads)
        self.scores = tuple(
            PlannedScore(position, plugin, weight, reads_of(plugin), _normalizer(plugin))
            for position, (plugin, weight) in enumerate(
                zip(profile.score, profile.weights, strict=True)
            )
        )
        self.kept = frozenset(
            plugin.name
            for plugin in (*profile.pre_filter, *profile.pre_score)
            if Reads.CLUSTER not in reads_of(plugin)
        )


def _normalizer(plugin: Any) -> NormalizeScore | None:
    return plugin if callable(getattr(plugin, "normalize", None)) else None


def feasible_nodes_to_find(node_count: int, percentage: int) -> int:
    """Return how many feasible nodes are enough; percentage 0 is adaptive."""
    if node_count < SAMPLE_MIN:
        return node_count
    if percentage == 0:
        percentage = max(SAMPLE_PERCENTAGE_MIN, 50 - node_count // 125)
    return max(node_count * percentage // 100, SAMPLE_MIN)
