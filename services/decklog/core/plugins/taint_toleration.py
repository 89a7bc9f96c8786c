"""Filter out nodes with a taint that the pod does not tolerate; prefer those with the fewest.

NoSchedule and NoExecute taints keep a pod away, PreferNoSchedule taints only count against a node.
Nodes share few distinct sets of taints, so each set is judged once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from decklog.core.columns import NodeColumns
from decklog.core.framework.interface import PASS, CycleState, Mask, Reads, ReasonCodes, Scores
from decklog.core.framework.status import SUCCESS, Status, unresolvable
from decklog.core.plugins.by_value import counted, masked
from decklog.core.plugins.normalize import normalized
from decklog.objects.matching import count_untolerated_preferences, first_untolerated
from decklog.objects.pod import Pod
from decklog.objects.selectors import Taint

TAINTED: Final = 1
STATUSES: Final = (SUCCESS, unresolvable("node(s) had untolerated taint(s)"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintToleration:
    name: str = "TaintToleration"
    reads: Reads = Reads.STATIC
    statuses: Sequence[Status] = STATUSES
    comparison: bool = False
    """Whether tolerations may compare numbers (Lt, Gt)."""

    def filter(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> ReasonCodes:
        def repels(taints: tuple[Taint, ...]) -> bool:
            found = first_untolerated(taints, pod.tolerations, comparison=self.comparison)
            return found is not None

        repelled = masked(nodes.taint_set_id, nodes.taint_sets, repels)
        return np.where(repelled, TAINTED, PASS).astype(np.uint16)

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeColumns, feasible: Mask) -> Status:
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> Scores:
        def disliked(taints: tuple[Taint, ...]) -> int:
            return count_untolerated_preferences(
                taints, pod.tolerations, comparison=self.comparison
            )

        return counted(nodes.taint_set_id, nodes.taint_sets, disliked)

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        return normalized(scores, reverse=True)
