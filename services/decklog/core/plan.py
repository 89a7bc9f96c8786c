"""A profile as the cycle walks it: its plugins, grouped by what can change their answers."""

from dataclasses import dataclass, field
from typing import Any, Final

from decklog.core.framework.interface import (
    FilterPlugin,
    NormalizeScore,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    Reads,
    ScorePlugin,
)
from decklog.core.framework.points import Profile, reads_of
from decklog.core.reasons import ReasonTable

SAMPLE_MIN: Final = 100
"""Feasible nodes that are looked for at least when nodes are sampled (kube-scheduler's)."""
SAMPLE_PERCENTAGE_MIN: Final = 5


@dataclass(frozen=True, slots=True, eq=False)
class PlannedFilter:
    position: int
    name: str
    plugin: FilterPlugin


@dataclass(frozen=True, slots=True, eq=False)
class PlannedScore:
    position: int
    name: str
    plugin: ScorePlugin
    weight: int
    normalizer: NormalizeScore | None
    reads_resources: bool


@dataclass(slots=True, eq=False)
class Plan:
    """What does not read CLUSTER is kept per pod class; the rest is asked in every cycle."""

    profile: Profile
    reasons: ReasonTable = field(init=False)
    static_filters: tuple[PlannedFilter, ...] = ()
    resource_filters: tuple[PlannedFilter, ...] = ()
    cluster_filters: tuple[PlannedFilter, ...] = ()
    score_count: int = 0
    kept_scores: tuple[PlannedScore, ...] = ()
    cluster_scores: tuple[PlannedScore, ...] = ()
    kept: frozenset[str] = frozenset()
    """Plugins whose PreFilter and PreScore answers hold for every pod of the class."""
    cluster_pre_filters: tuple[PreFilterPlugin, ...] = ()
    cluster_pre_scores: tuple[PreScorePlugin, ...] = ()

    def __post_init__(self) -> None:
        profile = self.profile
        self.reasons = ReasonTable(profile.filter)
        self._plan_filters()
        self._plan_scores()
        every = (*profile.pre_filter, *profile.pre_score)
        self.kept = frozenset(plugin.name for plugin in every if not _is_asked(plugin))
        self.cluster_pre_filters = tuple(filter(_is_asked, profile.pre_filter))
        self.cluster_pre_scores = tuple(filter(_is_asked, profile.pre_score))

    def _plan_filters(self) -> None:
        static, resources, cluster = [], [], []
        for position, plugin in enumerate(self.profile.filter):
            planned = PlannedFilter(position, plugin.name, plugin)
            if _is_asked(plugin):
                cluster.append(planned)
            elif Reads.RESOURCES in reads_of(plugin):
                resources.append(planned)
            else:
                static.append(planned)
        self.static_filters, self.resource_filters = tuple(static), tuple(resources)
        self.cluster_filters = tuple(cluster)

    def _plan_scores(self) -> None:
        kept: list[PlannedScore] = []
        cluster: list[PlannedScore] = []
        weighted = zip(self.profile.score, self.profile.weights, strict=True)
        for position, (plugin, weight) in enumerate(weighted):
            planned = PlannedScore(
                position,
                plugin.name,
                plugin,
                weight,
                _normalizer(plugin),
                Reads.RESOURCES in reads_of(plugin),
            )
            (cluster if _is_asked(plugin) else kept).append(planned)
        self.kept_scores, self.cluster_scores = tuple(kept), tuple(cluster)
        self.score_count = len(kept) + len(cluster)


def _is_asked(plugin: Plugin) -> bool:
    """Whether the plugin is asked in every cycle."""
    return Reads.CLUSTER in reads_of(plugin)


def _normalizer(plugin: Any) -> NormalizeScore | None:
    return plugin if callable(getattr(plugin, "normalize", None)) else None


def feasible_nodes_to_find(node_count: int, percentage: int) -> int:
    """Return how many feasible nodes are enough; percentage 0 is adaptive."""
    if node_count < SAMPLE_MIN:
        return node_count
    if percentage == 0:
        percentage = max(SAMPLE_PERCENTAGE_MIN, 50 - node_count // 125)
    return max(node_count * percentage // 100, SAMPLE_MIN)
