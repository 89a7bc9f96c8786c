"""A pod that names its node fits no other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from decklog.core.columns import NodeColumns
from decklog.core.framework.interface import PASS, CycleState, Reads, ReasonCodes
from decklog.core.framework.status import SUCCESS, Status, unresolvable
from decklog.objects.pod import Pod

OTHER_NODE: Final = 1
STATUSES: Final = (SUCCESS, unresolvable("node(s) didn't match the requested node name"))


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeName:
    name: str = "NodeName"
    reads: Reads = Reads.STATIC
    statuses: Sequence[Status] = STATUSES

    def filter(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> ReasonCodes:
        if not pod.node_name:
            return np.full(len(nodes), PASS, dtype=np.uint16)
        codes = np.full(len(nodes), OTHER_NODE, dtype=np.uint16)
        row = nodes.row_of(pod.node_name)
        if row is not None:
            codes[row] = PASS
        return codes
