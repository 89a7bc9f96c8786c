"""Filter out cordoned nodes, unless the pod tolerates the cordon taint."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from decklog.core.columns import NodeColumns
from decklog.core.framework.interface import PASS, CycleState, Reads, ReasonCodes
from decklog.core.framework.status import SUCCESS, Status, unresolvable
from decklog.objects.matching import NO_SCHEDULE, tolerates
from decklog.objects.pod import Pod
from decklog.objects.selectors import Taint

CORDONED: Final = 1
# Evicting pods cannot uncordon a node, so preemption must not try.
STATUSES: Final = (SUCCESS, unresolvable("node(s) were unschedulable"))
CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUnschedulable:
    name: str = "NodeUnschedulable"
    reads: Reads = Reads.STATIC
    statuses: Sequence[Status] = STATUSES
    comparison: bool = False
    """Whether tolerations may compare numbers (Lt, Gt)."""

    def filter(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> ReasonCodes:
        if any(tolerates(one, CORDON, comparison=self.comparison) for one in pod.tolerations):
            return np.full(len(nodes), PASS, dtype=np.uint16)
        return np.where(nodes.unschedulable, CORDONED, PASS).astype(np.uint16)
