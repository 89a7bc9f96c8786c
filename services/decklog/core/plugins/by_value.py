"""Judging rows by a value that many of them share: each value is judged once, then gathered."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import numpy as np

from decklog.core.columns import Bools, Int32s, Int64s, NodeColumns

FEW_ROWS: Final = 64
"""Up to so many rows sorting the ids is quicker than counting them."""

T = TypeVar("T")


def masked(ids: Int32s, values: Sequence[T], accepts: Callable[[T], bool]) -> Bools:
    """Return `accepts(values[id])` by row; it is called once for each id that occurs."""
    answers = np.zeros(len(values), dtype=np.bool_)
    for number in _occurring(ids):
        answers[number] = accepts(values[number])
    return answers[ids]


def counted(ids: Int32s, values: Sequence[T], count: Callable[[T], int]) -> Int64s:
    """Return `count(values[id])` by row; it is called once for each id that occurs."""
    answers = np.zeros(len(values), dtype=np.int64)
    for number in _occurring(ids):
        answers[number] = count(values[number])
    return answers[ids]


def labelled(nodes: NodeColumns, key: str, accepts: Callable[[str | None], bool]) -> Bools:
    """Return whether the row's value of the label is accepted; None stands for an absent label."""
    values = nodes.label_values(key)
    ids = nodes.label_ids(key)
    answers = np.zeros(len(values), dtype=np.bool_)
    for number in _occurring(ids):
        answers[number] = accepts(values[number] if number else None)
    return answers[ids]


def _occurring(ids: Int32s) -> list[int]:
    if len(ids) <= FEW_ROWS:
        return sorted(set(ids.tolist()))
    return np.flatnonzero(np.bincount(ids)).tolist()
