"""What the filters would say of a node if it had other pods on it.

Two who ask: the filters themselves, since a pod must fit beside the pods that are nominated on the
node as well as without them; and preemption, which takes pods away to see whom to evict. Where the
sums of requests decide, all rows are answered at once; else one row at a time, on a copy of that
row and of the cycle's state. The cluster's columns are only read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from decklog.core.columns import Bools, Rows
from decklog.core.framework.interface import CycleState, PreFilterExtensions, WithoutLower
from decklog.core.framework.runners import filter_failure
from decklog.core.framework.status import Code, Status
from decklog.core.nominator import Nominator
from decklog.core.plan import Plan, PlannedFilter
from decklog.core.reasons import Reasons
from decklog.core.row_loads import KeptLoads, RowLoads
from decklog.core.search_result import Found
from decklog.core.verdicts import ClassVerdicts
from decklog.core.what_if_rows import WhatIfRows
from decklog.objects.pod import Pod


@dataclass(slots=True, eq=False)
class Trials:
    """Answers for one cycle: its pod, after PreFilter; the class's verdicts are up to date."""

    plan: Plan
    kept: ClassVerdicts
    state: CycleState
    pod: Pod
    nominator: Nominator
    loads: KeptLoads
    filters: tuple[PlannedFilter, ...] = field(init=False)
    """Those that pods on the node can change, in filter order, without those that are skipped."""
    extensions: tuple[PreFilterExtensions, ...] = field(init=False)
    sure_before: int = field(init=False)
    """Filters before this place read nothing but the row: sums answer for them."""

    def __post_init__(self) -> None:
        skipped = self.state.skip_filter
        cluster = [one for one in self.plan.cluster_filters if one.name not in skipped]
        every = (*self.kept.resource_filters, *cluster)
        self.filters = tuple(sorted(every, key=lambda planned: planned.position))
        self.extensions = tuple(
            cast("PreFilterExtensions", plugin)
            for plugin in self.plan.profile.pre_filter
            if plugin.name not in skipped and callable(getattr(plugin, "add_pod", None))
        )
        self.sure_before = min(
            (one.position for one in cluster), default=len(self.plan.profile.filter) + 1
        )

    # -- all rows at once ----------------------------------------------------------------------

    def nominated_rows(self) -> Rows:
        """Return the rows with nominated pods of the pod's priority or higher."""
        if not self.nominator.has_any:
            return np.zeros(0, dtype=np.intp)
        return self.loads.nominated(self.pod.priority).count.nonzero()[0]

    def beside_nominated(self, rows: Rows) -> Reasons:
        """Return what rejects the pod on these rows, with and without the nominated pods."""
        load = self.loads.nominated(self.pod.priority)
        reason = self._loaded(rows, [(load, 1)])
        return self._sure(rows, reason, self._unsure(rows, reason, [load]), self._by_trial)

    def without_lower(self, rows: Rows) -> WithoutLower:
        lower = self.loads.lower(self.pod.priority)
        count = lower.count[rows]
        loads = [(lower, -1)]
        if self.nominator.has_any:
            loads.append((self.loads.nominated(self.pod.priority), 1))
        reason = self._loaded(rows, loads)
        unsure = self._unsure(rows, reason, [load for load, _ in loads])
        return WithoutLower(count, np.where(unsure, 0, reason), self.plan.reasons.statuses)

    def _loaded(self, rows: Rows, loads: Sequence[tuple[RowLoads, int]]) -> Reasons:
        view = WhatIfRows(self.kept.table, rows)
        for load, sign in loads:
            view.load(sign * load.requested[:, rows], sign * load.count[rows])
        return self.kept.resource_reason(self.pod, rows, view)

    def _unsure(self, rows: Rows, reason: Reasons, loads: Sequence[RowLoads]) -> Bools:
        """Return where more must be known than the sums of what the pods ask for."""
        reasons = self.plan.reasons
        unsure = reasons.positions[reason] >= self.sure_before
        if reasons.has_failures:
            unsure |= reasons.codes[reason] == int(Code.ERROR)  # That rejects nothing.
        if self.kept.kind.host_ports:
            for load in loads:
                unsure |= load.has_ports[rows]
        own = self.nominator.node_of(self.pod.uid)
        if own:
            row = self.kept.table.row_of(own)
            if row is not None:
                unsure |= rows == row  # The sums count the pod itself there.
        return unsure

    def _sure(
        self, rows: Rows, reason: Reasons, unsure: Bools, ask: Callable[[int], int]
    ) -> Reasons:
        for index in unsure.nonzero()[0].tolist():
            reason[index] = ask(int(rows[index]))
        return reason

    def _by_trial(self, row: int) -> int:
        return self.what_if(row).reason()

    # -- one row -------------------------------------------------------------------------------

    def nominated_on(self, row: int) -> list[Pod]:
        """Return the nominated pods beside which the pod must fit."""
        table, pod = self.kept.table, self.pod
        found = [
            other
            for other in self.nominator.pods_on(table.names[row])
            if other.priority >= pod.priority and other.uid != pod.uid
        ]
        for other in found:
            table.pod_class(other)  # One that asks for a new resource lengthens the columns.
        return found

    def what_if(self, row: int) -> "Trial":
        nominated = self.nominated_on(row) if self.nominator.has_any else []
        columns = WhatIfRows(self.kept.table, np.array([row], dtype=np.intp))
        return Trial(self, row, columns, _copied(self.state), nominated)


@dataclass(slots=True, eq=False)
class Trial:
    """One node as it would be; pods that come and go change this copy of it."""

    trials: Trials
    row: int
    columns: WhatIfRows
    state: CycleState
    nominated: Sequence[Pod]
    """The pods beside which the pod must fit."""

    @property
    def pods(self) -> Sequence[Pod]:
        return self.columns.pods(0)

    def add(self, pod: Pod) -> None:
        trials = self.trials
        self.columns.add(0, pod)
        for plugin in trials.extensions:
            plugin.add_pod(self.state, trials.pod, pod, self.row, trials.kept.table)

    def remove(self, pod: Pod) -> None:
        trials = self.trials
        self.columns.remove(0, pod)
        for plugin in trials.extensions:
            plugin.remove_pod(self.state, trials.pod, pod, self.row, trials.kept.table)

    def status(self) -> Status:
        status = self.trials.plan.reasons.statuses[self.reason()]
        if status.is_success or status.is_rejected:
            return status
        return filter_failure(status)

    def reason(self) -> int:
        """Return the number of what rejects the pod: beside the nominated pods, then without."""
        if self.nominated:
            beside = Trial(self.trials, self.row, self.columns.copy(), _copied(self.state), ())
            for pod in self.nominated:
                beside.add(pod)
            reason = beside.reason()
            if reason:
                return reason
        return self._first()

    def _first(self) -> int:
        trials, reasons = self.trials, self.trials.plan.reasons
        static = trials.kept.static_reason(self.row)
        position = int(reasons.positions[static])
        for planned in trials.filters:
            if planned.position > position:
                break
            code = int(planned.plugin.filter(self.state, trials.pod, self.columns)[0])
            if code:
                return reasons.number(planned.position, code)
        return static


@dataclass(frozen=True, slots=True)
class Verdict:
    """What filtering said of each row, for PostFilter; and what it would say."""

    found: Found | None
    absent: Status
    trials: Trials
    salt: int

    @property
    def codes(self) -> npt.NDArray[np.uint8]:
        codes = np.full(len(self.trials.kept.table), int(self.absent.code), dtype=np.uint8)
        if self.found is not None:
            rows = self.found.rejected_rows
            codes[rows] = self.found.reasons.codes[self.found.reason[rows]]
        return codes

    def status(self, row: int) -> Status:
        found = self.found
        if found is None or (found.evaluated is not None and row not in found.evaluated):
            return self.absent
        return found.reasons.statuses[int(found.reason[row])]

    def nominated(self, row: int) -> Sequence[Pod]:
        return self.trials.nominator.pods_on(self.trials.kept.table.names[row])

    def what_if(self, row: int) -> Trial:
        return self.trials.what_if(row)

    def without_lower(self, rows: Rows) -> WithoutLower:
        return self.trials.without_lower(rows)

    def memo(self) -> dict[int, Any] | None:
        trials = self.trials
        kept = trials.kept
        if trials.sure_before <= len(trials.plan.profile.filter):
            return None
        if trials.nominator.node_of(trials.pod.uid):
            return None  # On one row the pod itself is among the nominated ones.
        key = (trials.plan.profile.name, kept.kind.number, trials.pod.priority)
        cluster = trials.state.cluster
        return trials.loads.memo(key, 0 if cluster is None else cluster.version)


def _copied(state: CycleState) -> CycleState:
    return CycleState(dict(state.values), state.skip_filter, state.skip_score, state.cluster)
