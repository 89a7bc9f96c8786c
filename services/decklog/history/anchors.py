"""Anchors held against the chains: (chain, number, hash, time), kept for ever.

The auditor writes them in pairs: a tick, and the last decision as of that tick, both with the
tick's time. So an anchor that was taken away is missed by the other one of its pair.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from decklog.ports.ledger import Anchor, TickRow

TICK: Final = "tick"
DECISION: Final = "decision"
_ALONE: Final = "the anchor of its tick is missing"


@dataclass(slots=True)
class Seen:
    """What a walk along the chains saw of the rows that are anchored."""

    anchored: set[tuple[str, int]]
    ticks: dict[int, TickRow] = field(default_factory=dict)
    decisions: dict[int, bytes] = field(default_factory=dict)
    """seq → hash."""

    def tick(self, row: TickRow) -> None:
        if (TICK, row.tick) in self.anchored:
            self.ticks[row.tick] = row

    def decision(self, seq: int, row_hash: bytes) -> None:
        if (DECISION, seq) in self.anchored:
            self.decisions[seq] = row_hash


def check_anchors(
    anchors: Sequence[Anchor], seen: Seen, *, is_whole: bool
) -> Iterator[tuple[Anchor, str]]:
    """Yield each anchor with what is wrong with it, or with nothing.

    Where the chains are not whole, what lies beyond the break is left out.
    """
    by_chain: dict[str, dict[int, Anchor]] = {TICK: {}, DECISION: {}}
    for anchor in anchors:
        by_chain.setdefault(anchor.chain, {})[anchor.number] = anchor
    times: dict[int, list[int]] = {}
    for row in seen.ticks.values():
        times.setdefault(row.seq, []).append(row.now_ms)
    for anchor in anchors:
        if anchor.chain == TICK:
            problem = _tick_problem(anchor, seen, by_chain[DECISION])
        elif anchor.chain == DECISION:
            problem = _decision_problem(anchor, seen, times.get(anchor.number, ()))
            problem = problem if is_whole or problem != _ALONE else None
        else:
            problem = f"there is no chain {anchor.chain!r}"
        if problem is not None:
            yield anchor, problem
        elif is_whole:
            yield anchor, f"there is no {anchor.chain} of that number"


def _tick_problem(anchor: Anchor, seen: Seen, decisions: Mapping[int, Anchor]) -> str | None:
    """Return what is wrong, empty if nothing is, and None where the walk did not come by."""
    row = seen.ticks.get(anchor.number)
    if row is None:
        return None
    if anchor.hash != row.hash:
        return _other_hash(anchor.hash, row.hash)
    if anchor.now_ms != row.now_ms:
        return _other_time(anchor.now_ms, row.now_ms)
    if row.seq and row.seq not in decisions:
        return f"the anchor of its last decision, {row.seq}, is missing"
    return ""


def _decision_problem(anchor: Anchor, seen: Seen, times: Sequence[int]) -> str | None:
    row_hash = seen.decisions.get(anchor.number)
    if row_hash is None:
        return None
    if anchor.hash != row_hash:
        return _other_hash(anchor.hash, row_hash)
    if not times:
        return _ALONE
    return "" if anchor.now_ms in times else _other_time(anchor.now_ms, times[0])


def _other_hash(found: bytes, want: bytes) -> str:
    return f"its hash is {shown(found)}, and the chain's {shown(want)}"


def _other_time(found: int, want: int) -> str:
    return f"its now_ms is {found}, and that of its tick {want}"


def shown(value: object) -> str:
    """Return the value as a finding shows it."""
    return value.hex() if isinstance(value, bytes) else str(value)
