"""An amount per row of the table and, beside it, per value of a label: both kept by ±1.

The sums per value are made when somebody first asks for them. They must be forgotten whenever a
row's labels change, or rows are added (`forget_values`).
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]


@dataclass(slots=True, eq=False)
class RowCounts:
    by_row: Counts
    by_value: dict[str, tuple[Ids, Counts]] = field(default_factory=dict)
    """Label key → (each row's number of the value, the sums by that number; 0 stays 0)."""

    def change(self, row: int, change: int) -> None:
        self.by_row[row] += change
        for ids, sums in self.by_value.values():
            value = ids.item(row)
            if value:
                sums[value] += change

    def per_value(self, key: str, ids: Ids, size: int) -> Counts:
        """Return the sums by value number; 0, the absent label, sums to 0. Read only."""
        known = self.by_value.get(key)
        if known is None:
            known = self.by_value[key] = (ids, sums_by_value(ids, self.by_row, size))
        return known[1]

    def grow(self, capacity: int) -> None:
        grown = np.zeros(capacity, dtype=np.int64)
        grown[: len(self.by_row)] = self.by_row
        self.by_row = grown
        self.by_value.clear()


def sums_by_value(ids: Ids, counts: Counts, size: int) -> Counts:
    """Sum the counts per value. Exact: a float holds every number of pods there can be."""
    sums = np.bincount(ids, weights=counts, minlength=size).astype(np.int64)
    sums[0] = 0
    return sums
