"""Make room for a pod that fits nowhere by evicting pods of lower priority from one node.

Whether the pod may, on which nodes it could help (a trial on each, from a place that chance would
choose upstream and a hash chooses here, until enough are found), and which node is best. A node on
which sums of requests show that evicting everybody does not help is not tried; and whom an equal
pod would evict from a node is remembered until something on the node changes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from decklog.core.columns import NodeColumns
from decklog.core.framework.diagnosis import fit_error
from decklog.core.framework.interface import (
    CycleState,
    FilterVerdict,
    PostFilterResult,
    Reads,
    Rows,
    WithoutLower,
)
from decklog.core.framework.status import SUCCESS, Code, Status, error, unschedulable
from decklog.core.plugins.victims import (
    NO_VICTIMS,
    Budget,
    Ranked,
    best_of,
    budgets,
    rank,
    select_victims,
)
from decklog.core.select import mixed
from decklog.objects.go_text import aggregate
from decklog.objects.pod import Pod

NEVER: Final = "Never"
NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
PDB: Final = "PodDisruptionBudget"
DISRUPTION_TARGET: Final = "DisruptionTarget"
BY_SCHEDULER: Final = "PreemptionByScheduler"


@dataclass(slots=True)
class _Trials:
    """What trying the nodes came to."""

    violating: list[Ranked] = field(default_factory=list)
    others: list[Ranked] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)
    """Of the nodes that were tried in vain."""

    def has_enough(self, wanted: int) -> bool:
        return bool(self.others) and len(self.others) + len(self.violating) >= wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultPreemption:
    name: str = "DefaultPreemption"
    reads: Reads = Reads.CLUSTER
    candidates_percentage: int = 10
    """Of the nodes where it may help, so many candidates are enough …"""
    candidates_min: int = 100
    """… but no fewer than this."""

    def pre_enqueue(self, pod: Pod) -> Status:
        """The queue itself keeps a pod out while its victims are not yet on their way."""
        return SUCCESS

    def post_filter(
        self, state: CycleState, pod: Pod, nodes: NodeColumns, verdict: FilterVerdict
    ) -> tuple[PostFilterResult | None, Status]:
        why_not = _why_not_eligible(pod, nodes, verdict)
        if why_not:
            return None, unschedulable(f"preemption: {why_not}")
        order = nodes.order()
        rows = order[verdict.codes[order] == int(Code.UNSCHEDULABLE)]
        if not len(rows):
            return _no_candidate(nodes.node_count, {})
        screened = verdict.without_lower(rows)
        tried = self._try(state, pod, (nodes, rows, screened), verdict)
        candidates = [*tried.others, *tried.violating]
        if not candidates:
            failures = [one.message for one in tried.statuses if one.code is Code.ERROR]
            if failures:
                return None, error(f"preemption: {aggregate(failures)}")
            return _no_candidate(nodes.node_count, _reason_counts(screened, tried.statuses))
        return _chosen(candidates, pod, nodes, verdict), SUCCESS

    def _try(
        self,
        state: CycleState,
        pod: Pod,
        at: tuple[NodeColumns, Rows, WithoutLower],
        verdict: FilterVerdict,
    ) -> _Trials:
        """Try the nodes on which it may help, until enough candidates are found."""
        nodes, rows, screened = at
        count = len(rows)
        wanted = max(count * self.candidates_percentage // 100, self.candidates_min)
        wanted = min(wanted, count)
        hopeful = rows[(screened.lower_count > 0) & (screened.reason == 0)]
        tried = _Trials()
        if not len(hopeful):
            return tried
        limits = _budgets(state)
        memo = verdict.memo()
        for row in _rotated(rows, hopeful, verdict.salt % count):
            said = None if memo is None else memo.get(row)
            if said is None:
                said = _asked(nodes.names[row], row, pod, limits, verdict)
                if memo is not None:
                    memo[row] = said
            if isinstance(said, Status):
                tried.statuses.append(said)
                continue
            into = tried.violating if said.candidate.pdb_violations else tried.others
            if len(into) < wanted:
                into.append(said)
            if tried.has_enough(wanted):
                break
        return tried


def _asked(
    name: str, row: int, pod: Pod, limits: Sequence[Budget], verdict: FilterVerdict
) -> Ranked | Status:
    found = select_victims(verdict.what_if(row), name, pod, limits)
    return found if isinstance(found, Status) else rank(found)


def _why_not_eligible(pod: Pod, nodes: NodeColumns, verdict: FilterVerdict) -> str:
    """Say why the pod may not preempt: it must not, or waits for victims that are on their way."""
    if pod.preemption_policy == NEVER:
        return "not eligible due to preemptionPolicy=Never."
    row = nodes.row_of(pod.nominated_node_name) if pod.nominated_node_name else None
    if row is None or verdict.status(row).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return ""
    if any(other.priority < pod.priority and _is_on_its_way(other) for other in nodes.pods(row)):
        return "not eligible due to a terminating pod on the nominated node."
    return ""


def _is_on_its_way(pod: Pod) -> bool:
    """Whether preemption evicted the pod and it is not gone yet; the first such condition tells."""
    if pod.deleted is None:
        return False
    found = [one for one in pod.conditions if one.type == DISRUPTION_TARGET]
    return bool(found) and found[0].status == "True" and found[0].reason == BY_SCHEDULER


def _budgets(state: CycleState) -> list[Budget]:
    return [] if state.cluster is None else budgets(state.cluster.objects(PDB))


def _rotated(rows: Rows, hopeful: Rows, offset: int) -> list[int]:
    """Return the hopeful ones of the rows, from the offset into all of them on."""
    if len(hopeful) == len(rows):
        return [*hopeful[offset:].tolist(), *hopeful[:offset].tolist()]
    before = int(np.isin(rows[:offset], hopeful).sum())
    return [*hopeful[before:].tolist(), *hopeful[:before].tolist()]


def _reason_counts(screened: WithoutLower, tried: Sequence[Status]) -> dict[str, int]:
    """Return how many of the nodes each reason stands for, the tried ones included."""
    has_lower = screened.lower_count > 0
    numbers = np.bincount(screened.reason[has_lower]).tolist()
    groups = [(NO_VICTIMS, int(np.count_nonzero(~has_lower)))]
    groups += [(screened.statuses[number], numbers[number]) for number in range(1, len(numbers))]
    groups += [(status, 1) for status in tried]
    counts: dict[str, int] = {"": sum(count for _, count in groups)}
    for status, count in groups:
        for reason in status.all_reasons:
            counts[reason] = counts.get(reason, 0) + count
    return counts


def _no_candidate(node_count: int, counts: Mapping[str, int]) -> tuple[PostFilterResult, Status]:
    """`counts` has under the empty name how many nodes have a reason of their own."""
    own = {reason: count for reason, count in counts.items() if reason}
    own[NOT_HELPFUL] = own.get(NOT_HELPFUL, 0) + node_count - counts.get("", 0)
    text = fit_error(node_count, own)
    return PostFilterResult(nominate=""), unschedulable(f"preemption: {text}")


def _chosen(
    candidates: Sequence[Ranked], pod: Pod, nodes: NodeColumns, verdict: FilterVerdict
) -> PostFilterResult:
    best = best_of(candidates)
    words = mixed(np.array([one.hash for one in best], dtype=np.uint64), verdict.salt)
    chosen = best[int(words.argmin())].candidate
    row = nodes.row_of(chosen.node)
    assert row is not None
    return PostFilterResult(
        nominate=chosen.node,
        victims=chosen.victims,
        pdb_violations=chosen.pdb_violations,
        candidate_count=len(candidates),
        tie_count=len(best),
        nominations_cleared=tuple(
            other for other in verdict.nominated(row) if other.priority < pod.priority
        ),
        candidates=tuple([one.candidate for one in candidates]),
    )


def make_default_preemption(args: Mapping[str, Any]) -> DefaultPreemption:
    return DefaultPreemption(
        candidates_percentage=args.get("minCandidateNodesPercentage", 10),
        candidates_min=args.get("minCandidateNodesAbsolute", 100),
    )
