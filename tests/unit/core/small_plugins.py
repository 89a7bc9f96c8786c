"""Plugins that are just big enough to show how the engine treats plugins of their kind."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from decklog.core.columns import NodeColumns
from decklog.core.framework.interface import (
    CycleState,
    FilterVerdict,
    Mask,
    PostFilterResult,
    PreFilterResult,
    Reads,
    ReasonCodes,
    Scores,
)
from decklog.core.framework.status import (
    SKIP,
    SUCCESS,
    Status,
    unresolvable,
    unschedulable,
)
from decklog.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class Cordon:
    """STATIC filter."""

    name: str = "Cordon"
    reads: Reads = Reads.STATIC
    statuses: Sequence[Status] = (SUCCESS, unresolvable("node(s) were cordoned"))

    def filter(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> ReasonCodes:
        return nodes.unschedulable.astype(np.uint16)


@dataclass(frozen=True, slots=True)
class Room:
    """RESOURCES filter with codes for combinations, and a score that is not normalised."""

    name: str = "Room"
    reads: Reads = Reads.RESOURCES
    statuses: Sequence[Status] = (
        SUCCESS,
        unschedulable("Insufficient cpu"),
        unschedulable("Insufficient memory"),
        unschedulable("Insufficient cpu", "Insufficient memory"),
        unschedulable("Too many pods"),
    )

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeColumns
    ) -> tuple[PreFilterResult | None, Status]:
        state.values[self.name] = nodes.pod_class(pod).requests[:2].copy()
        return None, SUCCESS

    def filter(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> ReasonCodes:
        free = nodes.allocatable[:2] - nodes.requested[:2]
        short = free < state.values[self.name][:, None]
        codes = short[0] + 2 * short[1].astype(np.uint16)
        return np.where(nodes.pod_count + 1 > nodes.allowed_pods, 4, codes).astype(np.uint16)

    def score(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> Scores:
        cpu = nodes.allocatable[0]
        used = nodes.non_zero_requested[0] + nodes.pod_class(pod).scoring[0]
        free = np.maximum(cpu - used, 0)
        scores: Scores = np.where(cpu > 0, free * 100 // np.maximum(cpu, 1), 0)
        return scores


@dataclass(frozen=True, slots=True)
class Rank:
    """STATIC score from a label, normalised; skipped for pods that do not ask for it."""

    name: str = "Rank"
    reads: Reads = Reads.STATIC

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeColumns, feasible: Mask) -> Status:
        return SUCCESS if pod.node_selector is not None else SKIP

    def score(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> Scores:
        values = np.array([int(value or 0) for value in nodes.label_values("rank")])
        return values[nodes.label_ids("rank")].astype(np.int64)

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        highest = int(scores.max())
        return scores if highest == 0 else scores * 100 // highest


@dataclass(frozen=True, slots=True)
class Crowd:
    """CLUSTER filter and normalised score: no more than `limit` pods of a name prefix on a node."""

    limit: int = 2
    name: str = "Crowd"
    statuses: Sequence[Status] = (SUCCESS, unschedulable("node(s) had a crowd"))

    def _counts(self, pod: Pod, nodes: NodeColumns) -> Scores:
        prefix = pod.name[:1]
        counts = [
            sum(other.name[:1] == prefix for other in nodes.pods(row)) for row in range(len(nodes))
        ]
        return np.array(counts, dtype=np.int64)

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeColumns
    ) -> tuple[PreFilterResult | None, Status]:
        return None, SKIP if pod.name[:1] == "q" else SUCCESS

    def filter(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> ReasonCodes:
        return (self._counts(pod, nodes) >= self.limit).astype(np.uint16)

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeColumns, feasible: Mask) -> Status:
        return SKIP if pod.name[:1] == "q" else SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> Scores:
        return self._counts(pod, nodes)

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        return 100 - scores * 100 // max(int(scores.max()), 1)


@dataclass(frozen=True, slots=True)
class Pick:
    """Narrows the nodes to those that the pod's annotation names."""

    name: str = "Pick"
    reads: Reads = Reads.CLUSTER

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeColumns
    ) -> tuple[PreFilterResult | None, Status]:
        names = pod.annotations.get("nodes")
        if names is None:
            return None, SUCCESS
        return PreFilterResult(frozenset(names.split(","))), SUCCESS


@dataclass(slots=True)
class Book:
    """Reserve and Permit that answer as they are told, and note what they are asked."""

    name: str = "Book"
    reserves: Status = SUCCESS
    permits: Status = SUCCESS
    timeout_ms: int = 0
    log: list[str] = field(default_factory=list)

    def reserve(self, state: CycleState, pod: Pod, node: str) -> tuple[dict[str, str], Status]:
        self.log.append(f"reserve {pod.name} {node}")
        return {"room": node}, self.reserves

    def unreserve(self, pod: Pod, node: str, plan: object) -> Sequence[str]:
        self.log.append(f"unreserve {pod.name} {node}")
        return ()

    def permit(self, state: CycleState, pod: Pod, node: str) -> tuple[Status, int]:
        self.log.append(f"permit {pod.name} {node}")
        return self.permits, self.timeout_ms


@dataclass(slots=True)
class Answer:
    """Answers at each point what it is told to, and notes the codes that PostFilter is shown."""

    name: str = "Answer"
    reads: Reads = Reads.CLUSTER
    pre_enqueues: Status = SUCCESS
    pre_filters: Status = SUCCESS
    filters: Status = SUCCESS
    scores: int = 0
    pre_scores: Status = SUCCESS
    post_filters: Status = SUCCESS
    post_filter_result: PostFilterResult | None = None
    codes: list[int] = field(default_factory=list)

    @property
    def statuses(self) -> Sequence[Status]:
        return SUCCESS, self.filters

    def pre_enqueue(self, pod: Pod) -> Status:
        return self.pre_enqueues

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeColumns
    ) -> tuple[PreFilterResult | None, Status]:
        return None, self.pre_filters

    def filter(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> ReasonCodes:
        return np.full(len(nodes), 0 if self.filters.is_success else 1, dtype=np.uint16)

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeColumns, feasible: Mask) -> Status:
        return self.pre_scores

    def score(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> Scores:
        return np.full(len(nodes), self.scores, dtype=np.int64)

    def post_filter(
        self, state: CycleState, pod: Pod, nodes: NodeColumns, verdict: FilterVerdict
    ) -> tuple[PostFilterResult | None, Status]:
        self.codes = verdict.codes.tolist()
        assert self.codes == [int(verdict.status(row).code) for row in range(len(nodes))]
        return self.post_filter_result, self.post_filters
