"""Which rows changed, in order: who remembers how far it has read refreshes only those since."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

ROWS_MAX: Final = 65_536
"""Rows kept: a reader that fell behind further looks at all rows, which is quicker by then."""


@dataclass(slots=True)
class TouchLog:
    rows: list[int] = field(default_factory=list)
    start: int = 0
    """Position of the first row that is kept."""

    @property
    def position(self) -> int:
        return self.start + len(self.rows)

    def append(self, row: int) -> None:
        self.rows.append(row)
        if len(self.rows) > 2 * ROWS_MAX:
            del self.rows[:ROWS_MAX]
            self.start += ROWS_MAX

    def touch_all(self) -> None:
        self.start = self.position + 1
        self.rows.clear()

    def since(self, position: int) -> Sequence[int] | None:
        """Return the rows touched after the position, repeated ones included; None: any row."""
        if position < self.start:
            return None
        if position == self.start + len(self.rows):
            return ()
        return self.rows[position - self.start :]
