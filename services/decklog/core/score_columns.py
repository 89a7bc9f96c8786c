"""The scores of every node for one class of pods, kept between cycles, and their total.

A column's `part` is what a plugin adds to the total: its score, normalised and weighted. A column
whose rows are all equal is one number. A normalised part stays right while the extremes of the
feasible rows' raw scores stay the same; when they move, the column is normalised anew.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from decklog.core.columns import NodeColumns, Rows
from decklog.core.framework.interface import SCORE_MAX, CycleState, Mask, NormalizeScore
from decklog.core.framework.runners import score_failure
from decklog.core.framework.status import Status
from decklog.core.node_table import NodeTable
from decklog.core.plan import PlannedScore
from decklog.core.pod_class import PodClass
from decklog.core.row_verdicts import Score, row_score
from decklog.core.select import INFEASIBLE
from decklog.objects.pod import Pod

Int64s = npt.NDArray[np.int64]


@dataclass(slots=True, eq=False)
class ScoreColumn:
    planned: PlannedScore
    part: Int64s | int = 0
    """By row, right where the row is feasible."""
    raw: Int64s | int = 0
    """By row, as the plugin said; only kept if it is normalised."""
    extremes: tuple[int, int] | None = None
    """Lowest and highest raw score of the feasible rows, for which `part` was normalised."""
    of_row: Score | None = None
    """The plugin's raw score of one row, if that is known without the plugin."""


@dataclass(slots=True, eq=False)
class ScoreColumns:
    table: NodeTable
    state: CycleState
    columns: list[ScoreColumn]
    total: Int64s
    """By row; INFEASIBLE where the node cannot be taken."""
    failure: Status | None = None
    """Why a cycle that scores fails: a score of a feasible row was out of its range."""

    # -- all rows ------------------------------------------------------------------------------

    def ask_all(self, pod: Pod, feasible: Mask, *, static: bool) -> None:
        """Ask about all rows; not static: only plugins that read more than what nodes say."""
        self.failure = None
        for column in self.columns:
            planned = column.planned
            if static or planned.reads_resources:
                raw = _collapsed(planned.plugin.score(self.state, pod, self.table))
                if planned.normalizer is not None:
                    column.raw = raw
                else:
                    column.part = raw * planned.weight
                    self._check(column, raw if isinstance(raw, int) else raw[feasible])
            if planned.normalizer is not None:
                self._normalise(column, planned.normalizer, pod, feasible)
        self._sum(feasible)

    def _normalise(
        self, column: ScoreColumn, normalizer: NormalizeScore, pod: Pod, feasible: Mask
    ) -> None:
        """Normalise the feasible rows as the plugin would in a cycle."""
        weight, raw = column.planned.weight, column.raw
        values = np.array([raw]) if isinstance(raw, int) else raw[feasible]
        column.extremes = _extremes(values)
        if column.extremes is None:
            return
        low, high = column.extremes
        if low == high:
            values = values[:1]
        scores = normalizer.normalize(self.state, pod, values)
        self._check(column, scores)
        if low == high:
            column.part = int(scores[0]) * weight
        else:
            column.part = np.zeros(len(feasible), dtype=np.int64)
            column.part[feasible] = scores * weight

    def _sum(self, feasible: Mask) -> None:
        constant = sum(column.part for column in self.columns if isinstance(column.part, int))
        self.total = np.full(len(feasible), constant, dtype=np.int64)
        for column in self.columns:
            if not isinstance(column.part, int):
                self.total += column.part
        self.total[~feasible] = INFEASIBLE

    # -- some rows -----------------------------------------------------------------------------

    def ask_rows(
        self, pod: Pod, at: tuple[Rows, NodeColumns], feasible: Mask, *, static: bool
    ) -> None:
        """Ask about these rows (also as columns), the only ones that may differ from before."""
        rows, nodes = at
        takeable = feasible[rows]
        all_changed = False
        for column in self.columns:
            planned = column.planned
            if static or planned.reads_resources:
                raw = planned.plugin.score(self.state, pod, nodes)
                if planned.normalizer is not None:
                    column.raw = _put(column.raw, rows, raw, len(feasible))
                else:
                    column.part = _put(column.part, rows, raw * planned.weight, len(feasible))
                    self._check(column, raw[takeable])
            if planned.normalizer is not None:
                all_changed |= self._settle(column, planned.normalizer, pod, (rows, feasible))
        if all_changed:
            self._sum(feasible)
            return
        total = np.zeros(len(rows), dtype=np.int64)
        for column in self.columns:
            total += column.part if isinstance(column.part, int) else column.part[rows]
        total[~takeable] = INFEASIBLE
        self.total[rows] = total

    def _settle(
        self, column: ScoreColumn, normalizer: NormalizeScore, pod: Pod, at: tuple[Rows, Mask]
    ) -> bool:
        """Normalise what changed; say whether that is more than these rows."""
        rows, feasible = at
        raw = column.raw
        if isinstance(raw, int):
            return False
        extremes = _extremes(raw[feasible])
        if extremes is None or extremes != column.extremes:
            self._normalise(column, normalizer, pod, feasible)
            return True
        if not isinstance(column.part, int):
            rows = rows[feasible[rows]]
            probe = np.concatenate((np.array(extremes), raw[rows]))
            scores = normalizer.normalize(self.state, pod, probe)[2:]
            column.part[rows] = scores * column.planned.weight
            self._check(column, scores)
        return False

    # -- one row -------------------------------------------------------------------------------

    def ask_row(self, pod: Pod, row: int, feasible: Mask, *, was: bool) -> None:
        """Equivalent to `ask_rows` of one row of which only resources changed."""
        is_feasible = bool(feasible[row])
        if not is_feasible and not was:
            return
        total, all_changed = 0, False
        for column in self.columns:
            planned = column.planned
            if is_feasible and planned.reads_resources:
                self._put_row(column, pod, row, len(feasible))
            if planned.normalizer is not None and not isinstance(column.raw, int):
                rows = np.array([row], dtype=np.intp)
                all_changed |= self._settle(column, planned.normalizer, pod, (rows, feasible))
            part = column.part
            total += part if isinstance(part, int) else part.item(row)
        if all_changed:
            self._sum(feasible)
        else:
            self.total[row] = total if is_feasible else INFEASIBLE

    def _put_row(self, column: ScoreColumn, pod: Pod, row: int, count: int) -> None:
        planned = column.planned
        score = None if column.of_row is None else column.of_row(row)
        if score is None:
            nodes = self.table.take(np.array([row], dtype=np.intp))
            score = int(planned.plugin.score(self.state, pod, nodes)[0])
        value = score if planned.normalizer is not None else score * planned.weight
        held = column.raw if planned.normalizer is not None else column.part
        if isinstance(held, int):
            if held == value:
                return
            held = np.full(count, held, dtype=np.int64)
        held[row] = value
        if planned.normalizer is not None:
            column.raw = held
            return
        column.part = held
        if not 0 <= score <= SCORE_MAX:
            self.failure = score_failure(planned.name, score)

    # -- leaves --------------------------------------------------------------------------------

    def lengthen(self, count: int) -> None:
        """Make room for new rows; they are asked about next."""
        for column in self.columns:
            if not isinstance(column.part, int):
                column.part = _lengthened(column.part, count, 0)
            if not isinstance(column.raw, int):
                column.raw = _lengthened(column.raw, count, 0)
        self.total = _lengthened(self.total, count, INFEASIBLE)

    @property
    def size_bytes(self) -> int:
        held = [value for column in self.columns for value in (column.part, column.raw)]
        return self.total.nbytes + sum(v.nbytes for v in held if not isinstance(v, int))

    def _check(self, column: ScoreColumn, scores: Int64s | int) -> None:
        failure = out_of_range(column.planned.name, scores)
        self.failure = self.failure or failure


def make_score_columns(
    planned: Iterable[PlannedScore], table: NodeTable, state: CycleState, kind: PodClass
) -> ScoreColumns:
    columns = [ScoreColumn(score, of_row=row_score(score.plugin, kind, table)) for score in planned]
    return ScoreColumns(table, state, columns, np.full(len(table), INFEASIBLE, dtype=np.int64))


def out_of_range(plugin: str, scores: Int64s | int) -> Status | None:
    """Return the failure that normalised scores outside of 0 … 100 are, if there are some."""
    if isinstance(scores, int):
        low = high = scores
    else:
        extremes = _extremes(scores)
        if extremes is None:
            return None
        low, high = extremes
    if low < 0:
        return score_failure(plugin, low)
    return score_failure(plugin, high) if high > SCORE_MAX else None


def _extremes(values: Int64s) -> tuple[int, int] | None:
    return (int(values.min()), int(values.max())) if len(values) else None


def _collapsed(values: Int64s) -> Int64s | int:
    low, high = int(values.min()), int(values.max())
    return low if low == high else values


def _put(column: Int64s | int, rows: Rows, values: Int64s, count: int) -> Int64s | int:
    """Put the values into the column; one number becomes a column once a value differs."""
    if isinstance(column, int):
        if (values == column).all():
            return column
        column = np.full(count, column, dtype=np.int64)
    column[rows] = values
    return column


def _lengthened(column: Int64s, count: int, fill: int) -> Int64s:
    longer = np.full(count, fill, dtype=np.int64)
    longer[: len(column)] = column
    return longer
