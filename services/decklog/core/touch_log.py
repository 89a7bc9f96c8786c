"""What changed, in order: who remembers how far it has read refreshes only what came since."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

ROWS_MAX: Final = 65_536
"""Rows kept: a reader that fell behind further looks at all rows, which is quicker by then."""

T = TypeVar("T")


@dataclass(slots=True)
class TouchLog(Generic[T]):
    """The entries are rows, or names of nodes."""

    rows: list[T] = field(default_factory=list)
    start: int = 0
    """Position of the first row that is kept."""

    @property
    def position(self) -> int:
        return self.start + len(self.rows)

    def append(self, row: T) -> None:
        self.rows.append(row)
        if len(self.rows) > 2 * ROWS_MAX:
            del self.rows[:ROWS_MAX]
            self.start += ROWS_MAX

    def touch_all(self) -> None:
        self.start = self.position + 1
        self.rows.clear()

    def since(self, position: int) -> Sequence[T] | None:
        """Return the rows touched after the position, repeated ones included; None: any row."""
        if position < self.start:
            return None
        if position == self.start + len(self.rows):
            return ()
        return self.rows[position - self.start :]
