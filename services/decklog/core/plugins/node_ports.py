"""Filter out nodes on which a host port that the pod wants is in use."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from decklog.core.columns import NodeColumns
from decklog.core.framework.interface import CycleState, PreFilterResult, Reads, ReasonCodes
from decklog.core.framework.status import SKIP, SUCCESS, Status, unschedulable
from decklog.objects.pod import Pod

TAKEN: Final = 1
STATUSES: Final = (
    SUCCESS,
    unschedulable("node(s) didn't have free ports for the requested pod ports"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePorts:
    name: str = "NodePorts"
    reads: Reads = Reads.RESOURCES
    statuses: Sequence[Status] = STATUSES

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeColumns
    ) -> tuple[PreFilterResult | None, Status]:
        return None, SUCCESS if nodes.pod_class(pod).host_ports else SKIP

    def filter(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> ReasonCodes:
        taken = np.zeros(len(nodes), dtype=np.bool_)
        for ip, protocol, port in nodes.pod_class(pod).host_ports:
            taken |= nodes.ports_in_use(ip, protocol, port)
        return taken.astype(np.uint16)
