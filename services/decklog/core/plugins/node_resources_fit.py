"""Filter out nodes without room for what the pod requests; prefer some by how full they would be.

All that is missing is reported at once: a code stands for one combination of reasons, interned
when it first occurs. Requests are compared with exact sums; scores count containers without
requests with defaults. A request larger than the whole node cannot be met by evicting pods.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from decklog.core.columns import Bools, NodeColumns
from decklog.core.framework.interface import (
    PASS,
    CycleState,
    Mask,
    PreFilterResult,
    Reads,
    ReasonCodes,
    Scores,
)
from decklog.core.framework.status import SUCCESS, Code, Status
from decklog.core.interning import Interner
from decklog.core.plugins.scoring_strategy import ScoringStrategy
from decklog.core.resource_names import NATIVE
from decklog.objects.pod import Pod
from decklog.objects.requests import is_extended_resource

TOO_MANY_PODS = "Too many pods"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeResourcesFit:
    name: str = "NodeResourcesFit"
    reads: Reads = Reads.RESOURCES
    ignored: frozenset[str] = frozenset()
    """Extended resources that are not looked at."""
    ignored_groups: frozenset[str] = frozenset()
    """What stands before the "/" in names of extended resources that are not looked at."""
    strategy: ScoringStrategy = field(default_factory=ScoringStrategy)
    _statuses: Interner[Status] = field(default_factory=lambda: Interner(SUCCESS))

    @property
    def statuses(self) -> Sequence[Status]:
        return self._statuses.values

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeColumns
    ) -> tuple[PreFilterResult | None, Status]:
        return None, SUCCESS

    def filter(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> ReasonCodes:
        requests = nodes.pod_class(pod).requests
        wanted = self._wanted(nodes, requests)
        amounts = requests[wanted][:, None]
        allocatable = nodes.allocatable[wanted]
        short = amounts > allocatable - nodes.requested[wanted]
        crowded = nodes.pod_count >= nodes.allowed_pods
        codes = np.full(len(nodes), PASS, dtype=np.uint16)
        if crowded.any():
            codes = self._with_reason(codes, crowded, TOO_MANY_PODS)
        if short.any():
            hopeless = short & (amounts > allocatable)
            for index in self._in_order(nodes, wanted):
                if short[index].any():
                    reason = f"Insufficient {nodes.resource_names[wanted[index]]}"
                    codes = self._with_reason(codes, short[index] & ~hopeless[index], reason)
                    codes = self._with_reason(codes, hopeless[index], reason, hopeless=True)
        return codes

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeColumns, feasible: Mask) -> Status:
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> Scores:
        return self.strategy.score(nodes.pod_class(pod).scoring, nodes)

    def _wanted(self, nodes: NodeColumns, requests: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
        """Return the resource rows that the pod asks for and that are looked at."""
        wanted = requests.nonzero()[0]
        if not (self.ignored or self.ignored_groups):
            return wanted
        names = nodes.resource_names
        kept = [row for row in wanted.tolist() if not self._is_ignored(names[row])]
        return np.array(kept, dtype=np.intp)

    def _is_ignored(self, name: str) -> bool:
        if not is_extended_resource(name):
            return False
        return name in self.ignored or name.partition("/")[0] in self.ignored_groups

    def _in_order(self, nodes: NodeColumns, wanted: npt.NDArray[np.intp]) -> list[int]:
        """Return the indices into `wanted` as reasons are listed: scalar resources by name."""
        names = nodes.resource_names
        rows = wanted.tolist()

        def place(index: int) -> tuple[int, str]:
            row = rows[index]
            return (row, "") if row < len(NATIVE) else (len(NATIVE), names[row])

        return sorted(range(len(rows)), key=place)

    def _with_reason(
        self, codes: ReasonCodes, where: Bools, reason: str, *, hopeless: bool = False
    ) -> ReasonCodes:
        """Return the codes that say this too, where it holds."""
        if not where.any():
            return codes
        statuses = self._statuses
        step = np.zeros(len(statuses), dtype=np.uint16)
        for code in np.unique(codes[where]).tolist():
            status = statuses.values[code]
            resolvable = status.code != Code.UNSCHEDULABLE_AND_UNRESOLVABLE and not hopeless
            kind = Code.UNSCHEDULABLE if resolvable else Code.UNSCHEDULABLE_AND_UNRESOLVABLE
            step[code] = statuses.number(Status(kind, (*status.reasons, reason)))
        return np.where(where, step[codes], codes)
