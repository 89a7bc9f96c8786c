"""Scores of some nodes in one cycle: what is kept per class, and what is asked every time."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import numpy.typing as npt

from decklog.core.columns import Rows
from decklog.core.framework.interface import CycleState
from decklog.core.framework.status import Status
from decklog.core.node_table import NodeTable
from decklog.core.plan import Plan, PlannedScore
from decklog.core.score_columns import ScoreColumn, ScoreColumns, out_of_range
from decklog.events.facts import NodeScore
from decklog.objects.pod import Pod

Int64s = npt.NDArray[np.int64]
Part = Int64s | int | None
"""A plugin's weighted scores; one number if all are equal; None if PreScore skipped it."""


@dataclass(frozen=True, slots=True)
class Scored:
    """`parts` by score plugin and `totals` have an entry per row of the table, or of `rows`."""

    totals: Int64s
    parts: list[Part]
    rows: Rows | None = None
    """None: all rows of the table, of which those that cannot be taken are INFEASIBLE."""
    failure: Status | None = None

    def node_scores(self, table: NodeTable, indices: list[int]) -> tuple[NodeScore, ...]:
        """Return what these rows (or entries of `rows`) scored, by plugin."""
        at = np.array(indices, dtype=np.intp)
        columns = [
            [part] * len(indices) if part is None or isinstance(part, int) else part[at].tolist()
            for part in self.parts
        ]
        rows = indices if self.rows is None else self.rows[at].tolist()
        totals = self.totals[at].tolist()
        names = table.names
        per_node = zip(*columns, strict=True) if columns else repeat((), len(indices))
        return tuple(
            [
                NodeScore(names[row], total, scores)
                for row, total, scores in zip(rows, totals, per_node, strict=True)
            ]
        )


def score_all(plan: Plan, kept: ScoreColumns, zeros: Sequence[PlannedScore] = ()) -> Scored:
    """Return the kept scores: all there is to this cycle, where the other plugins said 0."""
    parts: list[Part] = [None] * plan.score_count
    for planned in zeros:
        parts[planned.position] = 0
    for column in kept.columns:
        parts[column.planned.position] = column.part
    return Scored(kept.total, parts, failure=kept.failure)


@dataclass(frozen=True, slots=True)
class RowScorer:
    """Scores any feasible rows, with plugins that are asked every time, or rows that differ."""

    plan: Plan
    table: NodeTable
    state: CycleState
    pod: Pod
    rows: Rows

    def score(self, kept: ScoreColumns) -> Scored:
        """Equivalent to asking every plugin about these rows alone."""
        parts: list[Part] = [None] * self.plan.score_count
        failures: dict[int, Status] = {}
        for planned in self.plan.cluster_scores:
            if planned.name not in self.state.skip_score:
                at = planned.position
                parts[at], failure = self._asked(planned)
                if failure is not None:
                    failures[at] = failure
        for column in kept.columns:
            at = column.planned.position
            parts[at], failure = self._kept(column, kept)
            if failure is not None:
                failures[at] = failure
        totals = np.full(len(self.rows), sum(p for p in parts if isinstance(p, int)), np.int64)
        for part in parts:
            if isinstance(part, np.ndarray):
                totals += part
        return Scored(totals, parts, self.rows, failures[min(failures)] if failures else None)

    def _asked(self, planned: PlannedScore) -> tuple[Part, Status | None]:
        scores = planned.plugin.score(self.state, self.pod, self.table)[self.rows]
        if planned.normalizer is not None:
            scores = planned.normalizer.normalize(self.state, self.pod, scores)
        return scores * planned.weight, out_of_range(planned.name, scores)

    def _kept(self, column: ScoreColumn, kept: ScoreColumns) -> tuple[Part, Status | None]:
        planned = column.planned
        if planned.normalizer is None or isinstance(column.raw, int):
            part = column.part if isinstance(column.part, int) else column.part[self.rows]
            if kept.failure is None:
                return part, None
            scores = part // planned.weight if planned.weight else part
            return part, out_of_range(planned.name, scores)
        raw = column.raw[self.rows]
        if (int(raw.min()), int(raw.max())) == column.extremes and kept.failure is None:
            return (column.part if isinstance(column.part, int) else column.part[self.rows]), None
        scores = planned.normalizer.normalize(kept.state, self.pod, raw)
        return scores * planned.weight, out_of_range(planned.name, scores)
