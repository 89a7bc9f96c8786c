"""From a position, as people name it, to the moment that it means.

The position orders what was told, ticks order what was decided, and a tick's cursor joins the two:
the moment of position P holds every event up to P and every tick whose cursor is not beyond P.
Several ticks may have the same cursor; the moment of a decision ends with the decision itself.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, assert_never

from decklog.core.errors import BadConfiguration
from decklog.events.facts import LeaderElected
from decklog.history.source import NotFound, Source
from decklog.ports.entries import read_records, to_rfc3339
from decklog.ports.ledger import Head, TickRow

READ_MAX: Final = 5_000
"""Entries a read of the log: about 5 MB of the usual ones."""
_PATIENCE: Final = timedelta(seconds=2)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Latest:
    pass


@dataclass(frozen=True, slots=True)
class AtPosition:
    position: int


@dataclass(frozen=True, slots=True)
class AtTime:
    time_ms: int


@dataclass(frozen=True, slots=True)
class AtDecision:
    seq: int


@dataclass(frozen=True, slots=True)
class Boot:
    pass


@dataclass(frozen=True, slots=True)
class AtSnapshot:
    name: str


Position = Latest | AtPosition | AtTime | AtDecision | Boot | AtSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What had been told and decided: events, ticks and decisions up to these numbers."""

    position: int
    tick: int
    seq: int
    time_ms: int
    is_latest: bool = False
    """Whether nothing comes after it yet."""

    @property
    def as_of(self) -> str:
        return to_rfc3339(self.time_ms)

    def __str__(self) -> str:
        return f"position {self.position}, {self.as_of}"


def resolve(position: Position, source: Source) -> Moment:
    """Return the moment that is meant.

    Raises:
        NotFound: this history has no such moment.
    """
    head = source.head()
    match position:
        case Latest():
            return _latest(source, head)
        case AtPosition(position=number):
            return _at_position(source, head, number)
        case AtTime(time_ms=time_ms):
            return _at_time(source, head, time_ms)
        case AtDecision(seq=seq):
            return _at_decision(source, seq)
        case Boot():
            return _at_position(source, head, _boot(source, head))
        case AtSnapshot(name=name):
            msg = f"cannot go to snapshot {name!r}: this release takes no snapshots"
            raise BadConfiguration(msg)
        case _ as unreachable:
            assert_never(unreachable)


def _latest(source: Source, head: Head) -> Moment:
    last = max(head.cursor, source.events.bounds()[1])
    return replace(_after_tick(source, source.tick(head.tick), last), is_latest=True)


def _at_position(source: Source, head: Head, position: int) -> Moment:
    last = max(head.cursor, source.events.bounds()[1])
    if position > last:
        msg = f"position {position} is not reached yet: the newest is {last}"
        raise NotFound(msg)
    if position == last:
        return _latest(source, head)
    return _after_tick(
        source, _last_tick(source, head, lambda tick: tick.cursor <= position), position
    )


def _at_time(source: Source, head: Head, time_ms: int) -> Moment:
    tick = _last_tick(source, head, lambda tick: tick.now_ms <= time_ms)
    if tick is None:
        first = source.tick(1)
        since = f": its history begins at {to_rfc3339(first.now_ms)}" if first else ""
        msg = f"nothing was recorded of {source.stream!r} by {to_rfc3339(time_ms)}{since}"
        raise NotFound(msg)
    return _after_tick(source, tick, tick.cursor)


def _at_decision(source: Source, seq: int) -> Moment:
    rows = source.ledger.decisions(source.stream, after=seq - 1, limit=1)
    tick = source.tick(rows[0].tick) if rows and rows[0].seq == seq else None
    if tick is None:
        msg = f"no decision {seq} in the history of {source.stream!r}"
        raise NotFound(msg)
    return Moment(position=tick.cursor, tick=tick.tick, seq=seq, time_ms=tick.now_ms)


def _boot(source: Source, head: Head) -> int:
    """Return the position of the marker with which the current generation began."""
    before = _last_tick(source, head, lambda tick: tick.generation < head.generation)
    after = max(source.events.bounds()[0] - 1, before.cursor if before else -1)
    while records := read_records(source.events, after=after, limit=READ_MAX, timeout=_PATIENCE):
        for record, _ in records:
            fact = record.fact
            if isinstance(fact, LeaderElected) and fact.generation == head.generation:
                return record.position
        after = records[-1][0].position
        if after >= source.events.bounds()[1]:
            break
    msg = f"the log does not hold the beginning of generation {head.generation}"
    raise NotFound(msg)


def _after_tick(source: Source, tick: TickRow | None, position: int) -> Moment:
    """Return the moment that has the tick as its last one, and the events up to the position."""
    number, seq, cursor, time_ms = (0, 0, -1, 0)
    if tick is not None:
        number, seq, cursor, time_ms = (tick.tick, tick.seq, tick.cursor, tick.now_ms)
    if position > cursor:
        time_ms = max(time_ms, _time_of(source, position))
    return Moment(position=position, tick=number, seq=seq, time_ms=time_ms)


def _time_of(source: Source, position: int) -> int:
    """Return the time that the event itself names; 0 if it has none, or is gone."""
    if position < source.events.bounds()[0]:
        return 0
    read = source.events.read(after=position - 1, limit=1, timeout=timedelta(0))
    try:
        moment = datetime.fromisoformat(read[0][1].time)
        return (moment - _EPOCH) // timedelta(milliseconds=1)
    except (IndexError, ValueError, TypeError):
        return 0


def _last_tick(source: Source, head: Head, is_before: Callable[[TickRow], bool]) -> TickRow | None:
    """Return the last tick for which it holds. It holds for a first part of all, or for none."""
    low, high, found = 1, head.tick, None
    while low <= high:
        middle = (low + high) // 2
        rows = source.ledger.ticks(source.stream, after=middle - 1, limit=1)
        if rows and is_before(rows[0]):
            found, low = rows[0], max(middle, rows[0].tick) + 1
        else:
            high = middle - 1
    return found
