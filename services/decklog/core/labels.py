"""Label values by row, interned per key; a key gets its column when somebody first asks for it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from decklog.core.interning import Interner

Int32s = npt.NDArray[np.int32]
LabelSets = Callable[[], Iterable[Mapping[str, str]]]


@dataclass(slots=True)
class _LabelColumn:
    ids: Int32s
    values: Interner[str | None] = field(default_factory=lambda: Interner(None))

    def set(self, row: int, value: str | None) -> None:
        self.ids[row] = self.values.number(value)


@dataclass(slots=True)
class LabelColumns:
    capacity: int = 0
    _columns: dict[str, _LabelColumn] = field(default_factory=dict)

    def grow(self, capacity: int) -> None:
        self.capacity = capacity
        for column in self._columns.values():
            grown = np.zeros(capacity, dtype=np.int32)
            grown[: len(column.ids)] = column.ids
            column.ids = grown

    def set(self, row: int, labels: Mapping[str, str]) -> None:
        for key, column in self._columns.items():
            column.set(row, labels.get(key))

    def ids(self, key: str, label_sets: LabelSets) -> Int32s:
        """Return the key's column; `label_sets` gives all rows' labels, in case it is new."""
        return self._column(key, label_sets).ids

    def value_count(self, key: str, label_sets: LabelSets) -> int:
        """Return the length of `values`, without making them."""
        return len(self._column(key, label_sets).values)

    def values(self, key: str, label_sets: LabelSets) -> Sequence[str]:
        """Return the key's values; index 0 stands for an absent label."""
        values = self._column(key, label_sets).values.values
        return ["" if value is None else value for value in values]

    def _column(self, key: str, label_sets: LabelSets) -> _LabelColumn:
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = _LabelColumn(np.zeros(self.capacity, dtype=np.int32))
            for row, labels in enumerate(label_sets()):
                column.set(row, labels.get(key))
        return column
