"""Ties are broken by numbers that every machine and every release computes alike."""

from itertools import pairwise

import numpy as np
import pytest

from decklog.core.select import INFEASIBLE, choose, mix, mixed, name_hash, salt


def test_splitmix64_gives_the_published_numbers() -> None:
    state, got = 1234567, []
    for _ in range(5):
        got.append(mix(state))
        state = (state + 0x9E3779B97F4A7C15) % 2**64
    assert got == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@pytest.mark.parametrize(
    ("name", "want"),
    [("", 0xE4A6A0577479B2B4), ("n0", 0xA985AB8AD00828C6), ("node-1", 0x8F57B755BCA4EB29)],
)
def test_name_hash_is_blake2b_64(name: str, want: int) -> None:
    assert name_hash(name) == want


@pytest.mark.parametrize(
    ("seed", "uid", "attempt", "want"),
    [
        (0, "u1", 1, 0x2C2DEB306B5F7CC8),
        (0, "u1", 2, 0x4E30318B5B97F288),
        (7, "u1", 1, 0x132E4834C0B38F99),
        (0, "u2", 1, 0x6D31ED8D8B58037),
    ],
)
def test_salt_tells_seeds_pods_and_attempts_apart(
    seed: int, uid: str, attempt: int, want: int
) -> None:
    assert salt(seed, uid, attempt) == want


def test_mixing_many_equals_mixing_each() -> None:
    hashes = [name_hash(f"n{number}") for number in range(50)]
    got = mixed(np.array(hashes, dtype=np.uint64), salt(1, "u", 1)).tolist()
    assert got == [mix(word ^ salt(1, "u", 1)) for word in hashes]


HASHES = np.array([name_hash(f"n{number}") for number in range(8)], dtype=np.uint64)
BY_HASH = sorted(range(8), key=lambda row: mix(int(HASHES[row]) ^ 5))


@pytest.mark.parametrize(
    ("totals", "want", "ties"),
    [
        pytest.param([3] * 8, BY_HASH[:5], 8, id="all equal: the smallest hashes"),
        pytest.param([1, 2, 3, 4, 5, 6, 7, 8], [7, 6, 5, 4, 3], 1, id="all different: by total"),
        pytest.param(
            [9, 9, *[INFEASIBLE] * 6],
            [row for row in BY_HASH if row < 2],
            2,
            id="fewer than five can be taken",
        ),
        pytest.param(
            [4, 9, 4, 4, 4, 4, 4, 9],
            [row for row in BY_HASH if row in (1, 7)]
            + [row for row in BY_HASH if row not in (1, 7)][:3],
            2,
            id="the next level fills up",
        ),
    ],
)
def test_choose(totals: list[int], want: list[int], ties: int) -> None:
    before = np.array(totals, dtype=np.int64)
    choice = choose(before, HASHES, 5, 5)
    assert (choice.rows, choice.tie_count) == (want, ties)
    assert before.tolist() == totals


def test_an_attempt_more_looks_elsewhere() -> None:
    chosen = [
        choose(np.zeros(8, dtype=np.int64), HASHES, salt(0, "u", n), 1).rows for n in range(9)
    ]
    assert any(one != other for one, other in pairwise(chosen))
