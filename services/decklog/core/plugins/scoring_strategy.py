"""How NodeResourcesFit scores a node by how full the pod would make it: one of three strategies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from decklog.core.columns import Int64s, NodeColumns
from decklog.core.errors import BadConfiguration
from decklog.core.framework.interface import SCORE_MAX, Scores
from decklog.core.resource_names import NATIVE

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"
SHAPE_SCORE_MAX: Final = 10
COUNTED_FOR_SCORES: Final = NATIVE[:2]
"""Resources that a container counts for in scores even if it requests none."""
CPU_AND_MEMORY: Final = (("cpu", 1), ("memory", 1))

Shape = tuple[tuple[int, int], ...]
"""(utilisation in per cent, score of 0 … 10)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringStrategy:
    type: str = LEAST_ALLOCATED
    resources: Sequence[tuple[str, int]] = CPU_AND_MEMORY
    """(resource, weight)"""
    curve: npt.NDArray[np.int64] | None = None
    """Score by utilisation in per cent, for RequestedToCapacityRatio."""

    def score(self, asked: Int64s, nodes: NodeColumns) -> Scores:
        """Return the weighted mean over the resources that count for the pod and the node."""
        found = [
            (row, amount, weight)
            for name, weight in self.resources
            if (row := nodes.resource_row(name)) is not None
            and ((amount := _amount(asked, row)) or row < len(NATIVE))
        ]
        if not found:
            return np.zeros(len(nodes), dtype=np.int64)
        rows = [row for row, _, _ in found]
        given = np.array(found, dtype=np.int64)
        allocatable = nodes.allocatable[rows]
        scores = self._by_resource(_used(nodes, rows) + given[:, 1:2], allocatable)
        counted = given[:, 2:] * (scores > 0 if self.curve is not None else allocatable != 0)
        total = (scores * counted).sum(axis=0)
        divisor = np.maximum(counted.sum(axis=0), 1)
        if self.curve is not None:
            total, divisor = 2 * total + divisor, 2 * divisor  # Rounded, halves away from zero.
        mean: Scores = total // divisor
        return mean

    def _by_resource(self, requested: Int64s, allocatable: Int64s) -> Scores:
        """Return 0 … 100 for what would be requested of what there is; 0 where there is nothing."""
        divisor = np.maximum(allocatable, 1)
        if self.curve is not None:
            used = np.where(requested > allocatable, 100, requested * 100 // divisor)
            return np.where(allocatable != 0, self.curve[used], 0)
        if self.type == MOST_ALLOCATED:
            part = np.minimum(requested, allocatable)
        else:
            part = np.maximum(allocatable - requested, 0)
        scores: Scores = part * SCORE_MAX // divisor
        return scores


def _used(nodes: NodeColumns, rows: Sequence[int]) -> Int64s:
    """Return what pods use: of cpu and memory as counted for scores, of the others exactly."""
    if max(rows) < len(COUNTED_FOR_SCORES):
        return nodes.non_zero_requested[rows]
    columns = [
        nodes.non_zero_requested[row] if row < len(COUNTED_FOR_SCORES) else nodes.requested[row]
        for row in rows
    ]
    return np.stack(columns)


def _amount(asked: Int64s, row: int) -> int:
    return int(asked[row]) if row < len(asked) else 0


def make_strategy(args: Mapping[str, Any]) -> ScoringStrategy:
    """Return the strategy of `scoringStrategy`, as it stands after defaulting."""
    kind = args.get("type", "")
    resources = weighted_resources(args["resources"])
    if kind in (LEAST_ALLOCATED, MOST_ALLOCATED):
        return ScoringStrategy(type=kind, resources=resources)
    if kind != REQUESTED_TO_CAPACITY_RATIO:
        msg = f"scoringStrategy of NodeResourcesFit has type {kind!r}, which does not exist"
        raise BadConfiguration(msg)
    points = (args.get("requestedToCapacityRatio") or {}).get("shape") or ()
    shape = tuple((point["utilization"], point["score"]) for point in points)
    if not shape:
        msg = "scoringStrategy of NodeResourcesFit has type RequestedToCapacityRatio and no shape"
        raise BadConfiguration(msg)
    return ScoringStrategy(type=kind, resources=resources, curve=make_curve(shape))


def weighted_resources(entries: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, int], ...]:
    return tuple((entry["name"], entry["weight"]) for entry in entries)


def make_curve(shape: Shape) -> npt.NDArray[np.int64]:
    """Return the score at 0 … 100 % of a line through the points; constant outside of them."""
    return np.array([_on_line(shape, percent) for percent in range(101)], dtype=np.int64)


def _on_line(shape: Shape, percent: int) -> int:
    scale = SCORE_MAX // SHAPE_SCORE_MAX
    below = shape[0]
    for point in shape:
        if percent <= point[0]:
            if point is shape[0]:
                break
            rise = (point[1] - below[1]) * scale * (percent - below[0])
            run = point[0] - below[0]
            return below[1] * scale + (rise // run if rise >= 0 else -(-rise // run))
        below = point
    return below[1] * scale
