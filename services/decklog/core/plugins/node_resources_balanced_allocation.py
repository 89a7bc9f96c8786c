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
        balance = _balance(np.stack((requested + amounts, requested)), allocatable)
        after: Scores = balance[0]
        if not self.by_change:
            return after
        change = SCORE_MAX // 2 + after - balance[1]
        # A negative half is cut towards zero, as Go does.
        scores: Scores = SCORE_MAX // 2 + (change + (change < 0)) // 2
        return scores


def _balance(requested: Int64s, allocatable: Int64s) -> Scores:
    """Return 0 … 100 by (case, row): 100 if the resources that a node has are used alike.

    `requested` is by (case, resource, row).
    """
    has = allocatable != 0
    fractions = np.minimum(requested / np.maximum(allocatable, 1), 1.0)
    if len(allocatable) < 2:
        deviation = np.zeros((len(requested), requested.shape[2]), dtype=np.float64)
    elif len(allocatable) == 2:
        deviation = _half_of_difference(fractions) * has.all(axis=0)
    else:
        deviation = _of_many(fractions, has)
    scores: Scores = ((1 - deviation) * SCORE_MAX).astype(np.int64)
    return scores


def _half_of_difference(fractions: Floats) -> Floats:
    """Equal to the standard deviation of two, up to the last bit: upstream computes it so."""
    halves: Floats = np.abs(fractions[:, 0] - fractions[:, 1]) / 2
    return halves


def _of_many(fractions: Floats, has: npt.NDArray[np.bool_]) -> Floats:
    """Return the standard deviation of the fractions of the resources that each node has.

    Sums go from resource to resource: the order counts for the last bit.
    """
    count = has.sum(axis=0)
    divisor = np.maximum(count, 1)
    total = np.zeros((len(fractions), fractions.shape[2]), dtype=np.float64)
    for index in range(len(has)):
        total = total + np.where(has[index], fractions[:, index], 0.0)
    mean = total / divisor
    squares = np.zeros_like(total)
    for index in range(len(has)):
        distance = fractions[:, index] - mean
        squares = squares + np.where(has[index], distance * distance, 0.0)
    highest = np.where(has, fractions, -1.0).max(axis=1)
    lowest = np.where(has, fractions, 2.0).min(axis=1)
    of_many = np.where(count > 2, np.sqrt(squares / divisor), 0.0)
    return np.where(count == 2, (highest - lowest) / 2, of_many)


def _amount(asked: Int64s, row: int | None) -> int:
    return int(asked[row]) if row is not None and row < len(asked) else 0
