"""One cycle's search: which nodes the pod fits, and why it does not fit the others."""

from dataclasses import dataclass

import numpy as np

from decklog.core.columns import Rows
from decklog.core.framework.interface import CycleState, Mask
from decklog.core.framework.runners import filter_failure
from decklog.core.framework.status import Status
from decklog.core.node_table import NodeTable
from decklog.core.plan import Plan, feasible_nodes_to_find
from decklog.core.reasons import Reasons, ReasonTable
from decklog.core.verdicts import ClassVerdicts
from decklog.events.facts import Rejection
from decklog.objects.pod import Pod


@dataclass(slots=True)
class Found:
    """What filtering said. Arrays are by row of the table, and hold until the cache changes."""

    table: NodeTable
    reasons: ReasonTable
    reason: Reasons
    """0: the row passes all filters, was not looked at, or holds no node."""
    feasible: Mask
    feasible_count: int
    evaluated: Rows | None = None
    """Rows that were looked at, in the order of the list; None: all nodes, and nothing more."""
    nominated: int | None = None
    """Row of the nominated node if it was looked at first."""
    is_kept: bool = False
    """Whether `feasible` is what the class's verdicts say, and nothing less."""
    start_index: int = 0
    """Where the next cycle starts in the list of nodes."""
    failure: Status | None = None
    """The failure that a Filter plugin answered instead of a verdict."""

    @property
    def evaluated_count(self) -> int:
        """Feasible nodes and nodes with a status."""
        if self.evaluated is None:
            return self.table.node_count
        return len(self.evaluated)

    @property
    def rejected_rows(self) -> Rows:
        """Rows with a status, in the order of the list."""
        rows = self.table.order() if self.evaluated is None else self.evaluated
        rejected: Rows = rows[self.reason[rows] != 0]
        return rejected

    def rows(self) -> Rows:
        """Return the rows that the pod fits."""
        return self.feasible.nonzero()[0]

    def rejections(self) -> tuple[Rejection, ...]:
        """Group the rejected rows by plugin, code and reasons, with the first node as example."""
        rows = self.table.order() if self.evaluated is None else self.evaluated
        numbers = self.reason[rows]
        counts = np.bincount(numbers).tolist()
        statuses, names = self.reasons.statuses, self.table.names
        found = []
        for number in range(1, len(counts)):
            if counts[number]:
                status = statuses[number]
                example = names[rows[(numbers == number).argmax()]]
                found.append(
                    Rejection(
                        status.plugin,
                        int(status.code),
                        status.all_reasons,
                        counts[number],
                        (example,),
                    )
                )
        positions = self.reasons.position_of  # Numbers differ with history; places do not.
        found.sort(key=lambda group: (positions[group.plugin], group.code, group.reasons))
        return tuple(found)


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

    def find(self, verdicts: ClassVerdicts, names: frozenset[str] | None) -> Found:
        """Return what fits, among the nodes of these names only (None: all)."""
        verdicts.refresh(self.pod)
        found = self._filter(verdicts)
        nominated = self.pod.nominated_node_name
        row = self.table.row_of(nominated) if nominated else None
        if row is not None and self._is_settled(found, row):
            return found
        self._narrow(found, names)
        if self.plan.reasons.has_failures:
            found.failure = self._failure(found)
        if found.evaluated is not None:
            tried = found.nominated
            if tried is not None and tried not in found.evaluated:
                found.evaluated = np.concatenate(([tried], found.evaluated))
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
