"""Small numbers for values that repeat: labels, taint sets, images, statuses."""

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Interner(Generic[T]):
    """Equal values get equal numbers, in order of first sight; a number is never reused.

    `values` is the table of numbers: who holds it sees it grow.
    """

    __slots__ = ("_number_of", "values")

    def __init__(self, *first: T) -> None:
        self.values: list[T] = list(first)
        self._number_of: dict[T, int] = {value: number for number, value in enumerate(first)}

    def number(self, value: T) -> int:
        """Return the value's number, giving it the next one if it is new."""
        number = self._number_of.get(value)
        if number is None:
            number = self._number_of[value] = len(self.values)
            self.values.append(value)
        return number

    def find(self, value: T) -> int | None:
        return self._number_of.get(value)

    def __len__(self) -> int:
        return len(self.values)
