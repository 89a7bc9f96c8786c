"""Prefer nodes on which the pod makes the use of different resources more even.

Balance is 100 minus the standard deviation of the used fractions. Since 1.36 the score is by how
much the pod changes it, 75 being no change on an evenly used node; before, it was the balance with
the pod.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from decklog.core.columns import Int64s, NodeColumns
from decklog.core.framework.interface import SCORE_MAX, CycleState, Mask, Reads, Scores
from decklog.core.framework.status import SKIP, SUCCESS, Status
from decklog.core.plugins.scoring_strategy import CPU_AND_MEMORY
from decklog.core.resource_names import NATIVE
from decklog.objects.pod import Pod

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeResourcesBalancedAllocation:
    name: str = "NodeResourcesBalancedAllocation"
    reads: Reads = Reads.RESOURCES
    resources: Sequence[tuple[str, int]] = CPU_AND_MEMORY
    """(resource, weight): every weight is 1."""
    by_change: bool = True
    """Whether the change counts that the pod makes, not the balance that it leaves."""

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeColumns, feasible: Mask) -> Status:
        asked = nodes.pod_class(pod).accounted
        rows = [nodes.resource_row(name) for name, _ in self.resources]
        return SUCCESS if any(_amount(asked, row) for row in rows) else SKIP

    def score(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> Scores:
        asked = nodes.pod_class(pod).accounted
        rows = [
            row
            for name, _ in self.resources
            if (row := nodes.resource_row(name)) is not None
            and (row < len(NATIVE) or _amount(asked, row))
        ]
        allocatable, requested = nodes.allocatable[rows], nodes.requested[rows]
        amounts = np.array([_amount(asked, row) for row in rows], dtype=np.int64)[:, None]
        after = _balance(requested + amounts, allocatable)
        if not self.by_change:
            return after
        change = SCORE_MAX // 2 + after - _balance(requested, allocatable)
        # Halves are cut towards zero, as Go does.
        return SCORE_MAX // 2 + np.where(change >= 0, change // 2, -(-change // 2))


def _balance(requested: Int64s, allocatable: Int64s) -> Scores:
    """Return 0 … 100 by row: 100 if the resources that the node has are used to equal parts."""
    has = allocatable != 0
    fractions = np.minimum(requested / np.where(has, allocatable, 1), 1.0)
    count = has.sum(axis=0)
    deviation = np.zeros(requested.shape[1], dtype=np.float64)
    if len(requested) >= 2:
        # Half of the difference is what upstream computes for two; it differs in the last bit.
        highest = np.where(has, fractions, -1.0).max(axis=0)
        lowest = np.where(has, fractions, 2.0).min(axis=0)
        deviation = np.where(count == 2, (highest - lowest) / 2, deviation)
    if len(requested) > 2:
        deviation = np.where(count > 2, _deviation(fractions, has, count), deviation)
    return ((1 - deviation) * SCORE_MAX).astype(np.int64)


def _deviation(fractions: Floats, has: npt.NDArray[np.bool_], count: Int64s) -> Floats:
    """Return the standard deviation by row. Sums go from resource to resource: order counts."""
    divisor = np.maximum(count, 1)
    total = np.zeros(fractions.shape[1], dtype=np.float64)
    for index in range(len(fractions)):
        total = total + np.where(has[index], fractions[index], 0.0)
    mean = total / divisor
    squares = np.zeros(fractions.shape[1], dtype=np.float64)
    for index in range(len(fractions)):
        distance = fractions[index] - mean
        squares = squares + np.where(has[index], distance * distance, 0.0)
    return np.sqrt(squares / divisor)


def _amount(asked: Int64s, row: int | None) -> int:
    return int(asked[row]) if row is not None and row < len(asked) else 0
