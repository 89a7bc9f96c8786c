"""One cycle's search: which nodes the pod fits, and why it does not fit the others.

Where pods of its priority or higher are nominated, the pod must fit beside them as well as without
them (they may never come); the first of the two that it does not fit gives the reason.
"""

from dataclasses import dataclass

import numpy as np

from decklog.core.columns import Rows
from decklog.core.framework.interface import CycleState
from decklog.core.framework.runners import filter_failure
from decklog.core.framework.status import Status
from decklog.core.node_table import NodeTable
from decklog.core.plan import Plan, feasible_nodes_to_find
from decklog.core.search_result import Found
from decklog.core.verdicts import ClassVerdicts
from decklog.core.what_if import Trials
from decklog.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class Search:
    """Filters the nodes for one pod, in kube-scheduler's order of things."""

    plan: Plan
    table: NodeTable
    state: CycleState
    pod: Pod
    percentage: int
    """Of nodes to score; 0 is adaptive."""
    start_index: int
    trials: Trials

    def find(self, verdicts: ClassVerdicts, names: frozenset[str] | None) -> Found:
        """Return what fits, among the nodes of these names only (None: all)."""
        found = self._filter(verdicts)
        crowded = self.trials.nominated_rows()
        nominated = self.pod.nominated_node_name
        row = self.table.row_of(nominated) if nominated else None
        if row is not None:
            self._fit_beside(found, crowded[crowded == row])
            if self._is_settled(found, row):
                return found
        self._fit_beside(found, crowded)
        self._narrow(found, names)
        if self.plan.reasons.has_failures:
            found.failure = self._failure(found)
        if found.evaluated is not None:
            tried = found.nominated
            if tried is not None and tried not in found.evaluated:
                found.evaluated = np.concatenate(([tried], found.evaluated))
                found.nominated_apart = True
            found.start_index = self.start_index + found.evaluated_count
        found.start_index %= self.table.node_count
        return found

    def _filter(self, verdicts: ClassVerdicts) -> Found:
        """Let the plugins that are asked every time reject rows that no earlier one rejected."""
        table, reasons = self.table, self.plan.reasons
        reason = verdicts.reason
        for planned in self.plan.cluster_filters:
            if planned.name in self.state.skip_filter:
                continue
            codes = planned.plugin.filter(self.state, self.pod, table)
            if codes.any():
                numbers = reasons.numbers(planned.position, codes)
                first = (numbers != 0) & (reasons.positions[reason] > planned.position)
                reason = np.where(first, numbers, reason)
        is_kept = reason is verdicts.reason
        feasible = verdicts.feasible if is_kept else table.present & (reason == 0)
        count = verdicts.feasible_count if is_kept else int(np.count_nonzero(feasible))
        return Found(
            table,
            reasons,
            reason,
            feasible,
            count,
            is_kept=is_kept,
            start_index=self.start_index,
        )

    def _fit_beside(self, found: Found, rows: Rows) -> None:
        """Reject the pod also where it does not fit beside the nominated pods."""
        if not len(rows):
            return
        beside = self.trials.beside_nominated(rows)
        now = found.reason[rows]
        first = np.where(beside != 0, beside, now)
        if (first == now).all():
            return
        found.reason = found.reason.copy()
        found.reason[rows] = first
        found.feasible = self.table.present & (found.reason == 0)
        found.feasible_count = int(np.count_nonzero(found.feasible))
        found.is_kept = False

    def _is_settled(self, found: Found, row: int) -> bool:
        """Try the nominated node first: if the pod fits it, no other is looked at.

        It is tried whether or not PreFilter narrowed the nodes to others, and a rejection of it
        counts as looked at even if the search below does not reach it.
        """
        status = found.reasons.statuses[found.reason[row]]
        if status.is_success:
            found.feasible = np.zeros(len(self.table), dtype=np.bool_)
            found.feasible[row] = True
            found.feasible_count = 1
            found.evaluated = np.array([row], dtype=np.intp)
            found.nominated = row
            found.is_kept = False
            return True
        if status.is_rejected:
            found.nominated = row
        return False

    def _narrow(self, found: Found, names: frozenset[str] | None) -> None:
        """Look at the named nodes only, and only until enough are found, from the start index."""
        rows = self.table.order()
        if names is not None:
            named = np.zeros(len(self.table), dtype=np.bool_)
            named[[row for name in names if (row := self.table.row_of(name)) is not None]] = True
            rows = rows[named[rows]]
            found.evaluated = rows
        want = len(rows)
        if not self.plan.score_count:
            want = 1
        elif self.percentage < 100:
            want = feasible_nodes_to_find(len(rows), self.percentage)
        if want < len(rows):
            found.evaluated = self._sampled(found, rows, want)
        if found.evaluated is not None:
            looked_at = np.zeros(len(self.table), dtype=np.bool_)
            looked_at[found.evaluated] = True
            found.feasible = found.feasible & looked_at
            found.feasible_count = int(np.count_nonzero(found.feasible))
            found.is_kept = False

    def _sampled(self, found: Found, rows: Rows, want: int) -> Rows:
        """Return the rows up to the first feasible one that is not needed any more."""
        start = self.start_index % len(rows)
        rows = np.concatenate((rows[start:], rows[:start]))
        passed = np.cumsum(found.feasible[rows])
        return rows[: np.searchsorted(passed, want + 1)]

    def _failure(self, found: Found) -> Status | None:
        """Return the failure of the first node at which a plugin could not say whether it fits."""
        rows = self.table.order() if found.evaluated is None else found.evaluated
        for number in found.reason[rows].tolist():
            status = found.reasons.statuses[number]
            if not status.is_success and not status.is_rejected:
                return filter_failure(status)
        return None
