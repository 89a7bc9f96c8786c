"""Filter out nodes that do not declare a feature without which the pod would not run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from decklog.core.columns import NodeColumns
from decklog.core.framework.interface import (
    PASS,
    CycleState,
    PreFilterResult,
    Reads,
    ReasonCodes,
)
from decklog.core.framework.status import SKIP, SUCCESS, Status, unresolvable
from decklog.core.plugins.by_value import masked
from decklog.objects.pod import Pod
from decklog.objects.requests import required_features

UNDECLARED: Final = 1
STATUSES: Final = (SUCCESS, unresolvable("node(s) didn't match Pod's required features"))


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDeclaredFeatures:
    name: str = "NodeDeclaredFeatures"
    reads: Reads = Reads.STATIC
    statuses: Sequence[Status] = STATUSES

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeColumns
    ) -> tuple[PreFilterResult | None, Status]:
        return None, SUCCESS if required_features(pod) else SKIP

    def filter(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> ReasonCodes:
        required = required_features(pod)
        declared = masked(nodes.feature_set_id, nodes.feature_sets, required.issubset)
        return np.where(declared, PASS, UNDECLARED).astype(np.uint16)
