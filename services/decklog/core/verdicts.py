"""What is known of every node for one class of pods, kept between cycles.

Equivalent to asking every plugin about every row (tests/property/test_schedule.py holds the two
equal). Plugins that read STATIC or RESOURCES are asked again only for the rows that the table's
logs name since the last look. We rely on three things: their answers depend on the pod's class,
their arguments and the row; their PreFilter and PreScore depend on the class alone; and what
`normalize` makes of a score depends on that score and on the extremes of all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from decklog.core.columns import NodeColumns, Rows
from decklog.core.framework.interface import (
    ClusterView,
    CycleState,
    Mask,
    PreFilterResult,
)
from decklog.core.framework.status import Status
from decklog.core.node_table import NodeTable
from decklog.core.plan import Plan, PlannedFilter
from decklog.core.pod_class import PodClass
from decklog.core.reasons import Reasons
from decklog.core.row_verdicts import Fits, row_filter
from decklog.core.score_columns import ScoreColumns, make_score_columns
from decklog.events.facts import Rejection
from decklog.objects.pod import Pod

ALL_FROM: Final = 4
"""If more than one row in so many was touched, all rows are asked about: that is quicker."""
FEW_ROWS: Final = 16
"""Up to so many touched rows are looked at one by one, in plain integers: that is quicker, too."""
CLASSES_MAX: Final = 1_024
"""Classes kept at most: workloads have some hundred shapes at a time."""
BYTES_MAX: Final = 256 * 1024 * 1024
"""What the kept columns may hold: at 15,000 nodes some 500 classes."""


@dataclass(slots=True, eq=False)
class ClassVerdicts:
    plan: Plan
    kind: PodClass
    table: NodeTable
    state: CycleState
    """What the kept plugins computed of the class in PreFilter and PreScore."""
    pre_filter: dict[str, tuple[PreFilterResult | None, Status]] = field(default_factory=dict)
    pre_score: dict[str, Status] = field(default_factory=dict)
    skip_filter: frozenset[str] | None = None
    """Kept plugins that PreFilter skips; None: not all were asked, or one did more than that."""
    skip_score: frozenset[str] | None = None
    """Kept plugins that PreScore skips, likewise."""
    reason: Reasons = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    """Of the first kept filter that rejects the row; rows without a node are passed over."""
    feasible: Mask = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    feasible_count: int = 0
    version: int = 0
    """Raised whenever a reason, or the presence of a node, changes."""
    rejected: tuple[Rejection, ...] = ()
    """The rejections, grouped, as they were in `rejected_version`."""
    rejected_version: int = -1
    scores: ScoreColumns | None = None
    grew: bool = True
    """Whether more memory is held than when the cache last weighed it."""
    rows_asked: int = 0
    """Rows that plugins were asked about, for metrics."""
    _static_reason: Reasons = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    _static_filters: tuple[PlannedFilter, ...] | None = None
    _resource_filters: tuple[PlannedFilter, ...] = ()
    _fits: tuple[Fits | None, ...] = ()
    """By resource filter: what says at once that a row passes it."""
    _touched_at: int = -1
    _static_at: int = -1

    def refresh(self, pod: Pod) -> None:
        """Bring everything up to date with the table, asking in the name of this pod."""
        table = self.table
        touched = table.touched.since(self._touched_at)
        static = table.static_touched.since(self._static_at)
        if touched is not None and static is not None and not touched and not static:
            return
        self._touched_at = table.touched.position
        self._static_at = table.static_touched.position
        if len(self.reason) != len(table):
            self._lengthen(len(table))
        if self._static_filters is None:
            self._choose_filters()
        if static is None or touched is None or self._are_many(touched):
            self._ask_all(pod, static=static is None or bool(static))
            return
        rows = dict.fromkeys(touched)
        if static or len(rows) > FEW_ROWS:
            self._ask_rows(pod, np.array(list(rows), dtype=np.intp), static=bool(static))
            return
        for row in rows:
            self._ask_row(pod, row)

    def note_pre_filter(self) -> None:
        """Take note if PreFilter of the kept plugins only ever says Success or Skip."""
        names = [plugin.name for plugin in self.plan.profile.pre_filter]
        answers = {
            name: status if result is None else None
            for name, (result, status) in self.pre_filter.items()
        }
        self.skip_filter = self._skips(names, answers)

    def note_pre_score(self) -> None:
        names = [plugin.name for plugin in self.plan.profile.pre_score]
        self.skip_score = self._skips(names, self.pre_score)

    def _skips(
        self, names: Sequence[str], answers: Mapping[str, Status | None]
    ) -> frozenset[str] | None:
        skips = set()
        for name in names:
            if name in self.plan.kept:
                status = answers.get(name)
                if status is None or not (status.is_success or status.is_skip):
                    return None
                if status.is_skip:
                    skips.add(name)
        return frozenset(skips)

    def score(self, pod: Pod, skipped: set[str]) -> ScoreColumns:
        """Return the kept plugins' scores, up to date as `refresh` left the reasons."""
        if self.scores is None:
            kept = [planned for planned in self.plan.kept_scores if planned.name not in skipped]
            self.scores = make_score_columns(kept, self.table, self.state, self.kind)
            self.scores.ask_all(pod, self.feasible, static=True)
            self.grew = True
        elif self.scores.failure is not None:
            self.scores.ask_all(pod, self.feasible, static=True)
        return self.scores

    def resource_reason(self, pod: Pod, rows: Rows, nodes: NodeColumns) -> Reasons:
        """Return what the kept filters would say of these rows if they were as `nodes` has them.

        In `nodes` they may differ in their pods only.
        """
        own = self._first(self._resource_filters, pod, nodes)
        return self._earlier(self._static_reason[rows], own)

    @property
    def resource_filters(self) -> Sequence[PlannedFilter]:
        """Return those that what is on a row can change, without those that PreFilter skips."""
        return self._resource_filters

    def static_reason(self, row: int) -> int:
        return int(self._static_reason[row])

    @property
    def size_bytes(self) -> int:
        own = self.reason.nbytes + self._static_reason.nbytes + self.feasible.nbytes
        return own if self.scores is None else own + self.scores.size_bytes

    # -- asking --------------------------------------------------------------------------------

    def _ask_all(self, pod: Pod, *, static: bool) -> None:
        table = self.table
        self.rows_asked += len(table)
        if static:
            self._static_reason = self._first(self._statics, pod, table)
        own = self._first(self._resource_filters, pod, table)
        self.reason = self._earlier(self._static_reason, own)
        self.feasible = table.present & (self.reason == 0)
        self.feasible_count = int(np.count_nonzero(self.feasible))
        self.version += 1
        if self.scores is not None:
            self.scores.ask_all(pod, self.feasible, static=static)

    def _ask_rows(self, pod: Pod, rows: Rows, *, static: bool) -> None:
        nodes = self.table.take(rows)
        self.rows_asked += len(rows)
        if static:
            self._static_reason[rows] = self._first(self._statics, pod, nodes)
        own = self._first(self._resource_filters, pod, nodes)
        reason = self._earlier(self._static_reason[rows], own)
        if static or (reason != self.reason[rows]).any():
            self.reason[rows] = reason
            before, after = self.feasible[rows], nodes.present & (reason == 0)
            self.feasible[rows] = after
            self.feasible_count += int(np.count_nonzero(after)) - int(np.count_nonzero(before))
            self.version += 1
        if self.scores is not None:
            self.scores.ask_rows(pod, (rows, nodes), self.feasible, static=static)

    def _ask_row(self, pod: Pod, row: int) -> None:
        """Equivalent to `_ask_rows` of one row of which only resources changed."""
        self.rows_asked += 1
        reasons = self.plan.reasons
        reason, position = int(self._static_reason[row]), len(self.plan.profile.filter)
        if reason:
            position = int(reasons.positions[reason])
        for planned, fits in zip(self._resource_filters, self._fits, strict=True):
            if planned.position > position:
                break
            if fits is not None and fits(row):
                continue
            nodes = self.table.take(np.array([row], dtype=np.intp))
            code = int(planned.plugin.filter(self.state, pod, nodes)[0])
            if code:
                reason = reasons.number(planned.position, code)
                break
        was = bool(self.feasible[row])
        if reason != self.reason[row]:
            self.reason[row] = reason
            self.version += 1
            is_feasible = reason == 0 and bool(self.table.present[row])
            self.feasible[row] = is_feasible
            self.feasible_count += is_feasible - was
        if self.scores is not None:
            self.scores.ask_row(pod, row, self.feasible, was=was)

    # -- leaves --------------------------------------------------------------------------------

    @property
    def _statics(self) -> Sequence[PlannedFilter]:
        return self._static_filters or ()

    def _choose_filters(self) -> None:
        """Leave out what PreFilter skips: for a kept plugin, always or never for the class."""
        skipped = {name for name, (_, status) in self.pre_filter.items() if status.is_skip}
        plan = self.plan
        self._static_filters = tuple(f for f in plan.static_filters if f.name not in skipped)
        self._resource_filters = tuple(f for f in plan.resource_filters if f.name not in skipped)
        self._fits = tuple(
            row_filter(planned.plugin, self.kind, self.table) for planned in self._resource_filters
        )

    def _first(self, filters: Sequence[PlannedFilter], pod: Pod, nodes: NodeColumns) -> Reasons:
        """Return the number of each row's first rejection by these filters."""
        found = np.zeros(len(nodes), dtype=np.int32)
        for planned in filters:
            codes = planned.plugin.filter(self.state, pod, nodes)
            if codes.any():
                numbers = self.plan.reasons.numbers(planned.position, codes)
                found = np.where(found == 0, numbers, found)
        return found

    def _earlier(self, one: Reasons, other: Reasons) -> Reasons:
        positions = self.plan.reasons.positions
        return np.where(positions[one] <= positions[other], one, other)

    def _are_many(self, rows: Sequence[int]) -> bool:
        return len(rows) * ALL_FROM > len(self.table) and len(rows) > 1

    def _lengthen(self, count: int) -> None:
        self.grew = True
        before = len(self.reason)
        for name in ("reason", "_static_reason"):
            longer = np.zeros(count, dtype=np.int32)
            longer[:before] = getattr(self, name)
            setattr(self, name, longer)
        feasible = np.zeros(count, dtype=np.bool_)
        feasible[:before] = self.feasible
        self.feasible = feasible
        if self.scores is not None:
            self.scores.lengthen(count)


@dataclass(slots=True)
class VerdictCache:
    """The verdicts of the classes that were used last."""

    table: NodeTable
    hits: int = 0
    misses: int = 0
    evictions: int = 0
    size_bytes: int = 0
    """As of each class's last use."""
    _kept: dict[tuple[str, int], ClassVerdicts] = field(default_factory=dict)
    """(profile, class number) → verdicts, least recently used first."""
    _sizes: dict[tuple[str, int], int] = field(default_factory=dict)

    def of(self, plan: Plan, kind: PodClass, cluster: ClusterView) -> ClassVerdicts:
        key = (plan.profile.name, kind.number)
        found = self._kept.pop(key, None)
        if found is None:
            self.misses += 1
            found = ClassVerdicts(plan, kind, self.table, CycleState(cluster=cluster))
        else:
            self.hits += 1
        self._kept[key] = found
        return found

    def weigh(self, grown: ClassVerdicts) -> None:
        """Note what the class holds now, and drop others until all is within the bounds."""
        key = (grown.plan.profile.name, grown.kind.number)
        grown.grew = False
        size = grown.size_bytes
        self.size_bytes += size - self._sizes.get(key, 0)
        self._sizes[key] = size
        while len(self._kept) > CLASSES_MAX or (
            self.size_bytes > BYTES_MAX and len(self._kept) > 1
        ):
            oldest = next(iter(self._kept))
            del self._kept[oldest]
            self.size_bytes -= self._sizes.pop(oldest, 0)
            self.evictions += 1

    def __len__(self) -> int:
        return len(self._kept)
