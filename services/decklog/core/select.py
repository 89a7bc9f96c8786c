"""Which of the best nodes is taken, and which five are shown.

Nodes with the highest total are told apart by a hash: blake2b-64 of the node's name, mixed by
splitmix64 with seed, pod uid and attempt; the smallest wins. So ties fall evenly over nodes, a
second attempt looks elsewhere, and every machine that decides again decides alike.
"""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.intp]

INFEASIBLE: Final = -(1 << 63)
"""Stands for the total of a node that cannot be taken."""
_WORD: Final = (1 << 64) - 1
_GAMMA: Final = 0x9E3779B97F4A7C15
_FIRST: Final = 0xBF58476D1CE4E5B9
_SECOND: Final = 0x94D049BB133111EB
_GAMMA_WORD, _FIRST_WORD, _SECOND_WORD = np.uint64(_GAMMA), np.uint64(_FIRST), np.uint64(_SECOND)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)
_HIGHEST: Final = np.uint64(_WORD)


def name_hash(name: str) -> int:
    """Return blake2b-64 of the name, read as a big-endian number."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big")


def mix(word: int) -> int:
    """Return splitmix64's output for this state."""
    word = (word + _GAMMA) & _WORD
    word = ((word ^ (word >> 30)) * _FIRST) & _WORD
    word = ((word ^ (word >> 27)) * _SECOND) & _WORD
    return word ^ (word >> 31)


def salt(seed: int, uid: str, attempt: int) -> int:
    """Return what one attempt at one pod mixes into every node's hash."""
    return mix(mix(mix(seed & _WORD) ^ name_hash(uid)) ^ attempt)


def mixed(hashes: UInt64s, salted: int) -> UInt64s:
    """Return `mix(hash ^ salted)` of each hash."""
    words = hashes ^ np.uint64(salted)
    words += _GAMMA_WORD
    words ^= words >> _30
    words *= _FIRST_WORD
    words ^= words >> _27
    words *= _SECOND_WORD
    words ^= words >> _31
    return words


@dataclass(frozen=True, slots=True)
class Choice:
    """`rows` are the best, best first: the first is taken."""

    rows: list[int]
    tie_count: int


def choose(totals: Int64s, hashes: UInt64s, salted: int, count: int) -> Choice:
    """Return up to `count` rows by (highest total, smallest mixed hash); at least one is feasible.

    Equivalent to sorting all rows; it looks at one level of equal totals after the other, since
    the first level nearly always has enough.
    """
    rows: list[int] = []
    tie_count = 0
    level = totals
    while len(rows) < count:
        best = level[level.argmax()]
        if best == INFEASIBLE:
            break
        tied = (level == best).nonzero()[0]
        if tie_count == 0:
            tie_count = len(tied)
        rows.extend(_smallest(tied, hashes, salted, count - len(rows)))
        if len(rows) < count:
            if level is totals:
                level = totals.copy()
            level[tied] = INFEASIBLE
    return Choice(rows, tie_count)


def _smallest(tied: Rows, hashes: UInt64s, salted: int, count: int) -> list[int]:
    if len(tied) == 1:
        return [int(tied[0])]
    words = mixed(hashes[tied], salted)
    rows = []
    for _ in range(min(count, len(tied))):
        index = words.argmin()
        rows.append(int(tied[index]))
        words[index] = _HIGHEST
    return rows
