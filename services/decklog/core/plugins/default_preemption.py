"""Preemption in its first form: it says what evicting pods could do, and evicts none.

The message is the one of kube-scheduler's plugin for a pod that may evict nobody: a node where
evicting could help has no victims, on the others it does not help.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from decklog.core.columns import NodeColumns
from decklog.core.framework.diagnosis import fit_error
from decklog.core.framework.interface import (
    CycleState,
    FilterVerdict,
    PostFilterResult,
    Reads,
)
from decklog.core.framework.status import SUCCESS, Code, Status, unschedulable
from decklog.objects.pod import Pod

NEVER: Final = "Never"
NOT_ELIGIBLE: Final = unschedulable("preemption: not eligible due to preemptionPolicy=Never.")
NO_VICTIMS: Final = "No preemption victims found for incoming pod"
NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultPreemption:
    name: str = "DefaultPreemption"
    reads: Reads = Reads.CLUSTER

    def pre_enqueue(self, pod: Pod) -> Status:
        return SUCCESS

    def post_filter(
        self, state: CycleState, pod: Pod, nodes: NodeColumns, verdict: FilterVerdict
    ) -> tuple[PostFilterResult | None, Status]:
        if pod.preemption_policy == NEVER:
            return None, NOT_ELIGIBLE
        resolvable = nodes.present & (verdict.codes == int(Code.UNSCHEDULABLE))
        helpful = int(np.count_nonzero(resolvable))
        text = fit_error(
            nodes.node_count, {NO_VICTIMS: helpful, NOT_HELPFUL: nodes.node_count - helpful}
        )
        return PostFilterResult(nominate=""), unschedulable(f"preemption: {text}")


def may_preempt(pod: Pod, others: Sequence[Pod]) -> bool:
    """Whether there is a pod that this one could evict."""
    if pod.preemption_policy == NEVER:
        return False
    return any(other.node_name and other.priority < pod.priority for other in others)
