"""Resource claims, in their first form: pods without claims pass, others are refused.

For a pod without claims this answers as kube-scheduler's plugin does, whose texts are part of
every failure message since 1.34.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from decklog.core.columns import NodeColumns
from decklog.core.framework.interface import (
    PASS,
    CycleState,
    FilterVerdict,
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
    error,
    unresolvable,
    unschedulable,
)
from decklog.objects.pod import Pod

UNSUPPORTED: Final = unresolvable("decklog does not support resource claims yet")
NOTHING_TO_DO: Final = unschedulable("no new claims to deallocate")
# Upstream's plugin cannot find its state if a PreFilter plugin before it rejected the pod.
NOT_ASKED: Final = error("not found")


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicResources:
    name: str = "DynamicResources"
    reads: Reads = Reads.CLUSTER
    statuses: Sequence[Status] = (SUCCESS,)
    answers_post_filter: bool = True
    """Whether it says that there is nothing to deallocate (since 1.34)."""

    def pre_enqueue(self, pod: Pod) -> Status:
        return SUCCESS

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeColumns
    ) -> tuple[PreFilterResult | None, Status]:
        state.values[self.name] = True
        return None, UNSUPPORTED if claims_resources(pod) else SKIP

    def filter(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> ReasonCodes:
        return np.full(len(nodes), PASS, dtype=np.uint16)

    def post_filter(
        self, state: CycleState, pod: Pod, nodes: NodeColumns, verdict: FilterVerdict
    ) -> tuple[PostFilterResult | None, Status]:
        if not self.answers_post_filter:
            return None, unschedulable()
        return None, NOTHING_TO_DO if self.name in state.values else NOT_ASKED

    def score(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> Scores:
        return np.zeros(len(nodes), dtype=np.int64)

    def reserve(self, state: CycleState, pod: Pod, node: str) -> tuple[Mapping[str, Any], Status]:
        return {}, SUCCESS

    def unreserve(self, pod: Pod, node: str, plan: Mapping[str, Any]) -> Sequence[str]:
        return ()


def claims_resources(pod: Pod) -> bool:
    containers = (*pod.containers, *pod.init_containers)
    return bool(pod.resource_claims) or any(one.resource_claims for one in containers)
