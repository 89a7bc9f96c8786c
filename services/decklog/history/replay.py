"""The scheduler's state at a past moment, rebuilt as a scheduler does it: nothing is decided."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from decklog.core.errors import BadConfiguration, Refused
from decklog.core.state import SchedulerState
from decklog.events.digests import Digests
from decklog.events.facts import Record
from decklog.history.collecting import no_collecting
from decklog.history.positions import Moment
from decklog.history.source import NotFound, Source
from decklog.ports.entries import read_records
from decklog.ports.log import Entry
from decklog.ports.recorded import READ_MAX, RecordedTick, TickReader
from decklog.ports.redeciding import apply_recorded, recorded_config

Progress = Callable[[int, int], None]
"""Told the last tick that was applied, and the last one that will be."""

_PATIENCE: Final = timedelta(seconds=2)


@dataclass(slots=True, kw_only=True)
class Replayed:
    """A state of the past, and what it was rebuilt from."""

    moment: Moment
    state: SchedulerState
    digests: Digests = field(default_factory=Digests)
    resyncs_wrong: list[str] = field(default_factory=list)
    """What finished resyncs showed to differ from what the log had told."""
    events: int = 0
    ticks: int = 0
    decisions: int = 0
    seconds: float = 0.0

    @property
    def events_per_second(self) -> float:
        return self.events / self.seconds if self.seconds else 0.0


def rebuild(source: Source, moment: Moment, progress: Progress = lambda *_: None) -> Replayed:
    """Apply everything up to the moment.

    Raises:
        NotFound: nobody had led the stream, so no configuration says what is queued.
        PositionLost: events of a tick are gone.
        Refused: the log lacks the beginning of history, or the ledger its configuration.
    """
    started_ms = source.clock.monotonic_ms()
    first, last = source.events.bounds()
    if first > 0:
        msg = (
            f"cannot rebuild position {moment.position}: the log holds positions {first} to "
            f"{last}, and history begins at 0"
        )
        raise Refused(msg)
    found = Replayed(moment=moment, state=_new_state(source, moment))
    with no_collecting():
        reader = TickReader(source.ledger, source.events, source.stream)
        while ticks := reader.read(through=moment.tick):
            for tick in ticks:
                _apply(found, tick)
            progress(reader.tick, moment.tick)
        for record, entry in _later(source, reader, moment.position):
            found.state.apply(record)
            _note(found, record, entry)
    found.seconds = (source.clock.monotonic_ms() - started_ms) / 1000
    return found


def _new_state(source: Source, moment: Moment) -> SchedulerState:
    """Return an empty state with the configuration that was in force."""
    tick = source.tick(max(moment.tick, 1))
    if tick is None:
        msg = f"no configuration is recorded for position {moment.position}"
        raise NotFound(msg)
    try:
        return SchedulerState(recorded_config(source.ledger, tick.config_hash))
    except BadConfiguration as error:
        msg = f"cannot rebuild position {moment.position}: {error}"
        raise Refused(msg) from error


def _apply(found: Replayed, tick: RecordedTick) -> None:
    """Apply a tick; of the moment's own only the decisions up to its seq."""
    wanted = [row for row in tick.rows if row.seq <= found.moment.seq]
    if len(wanted) < len(tick.rows):
        tick = replace(tick, rows=wanted, decisions=tick.decisions[: len(wanted)])
    apply_recorded(found.state, tick)
    for record, entry in zip(tick.records, tick.entries, strict=True):
        _note(found, record, entry)
    found.ticks += 1
    found.decisions += len(tick.rows)


def _later(source: Source, reader: TickReader, through: int) -> Iterator[tuple[Record, Entry]]:
    """Yield the events that no tick had applied yet."""
    read = reader.rest()
    after = reader.position
    while True:
        for record, entry in read:
            if record.position > through:
                return
            after = record.position
            yield record, entry
        if after >= through:
            return
        read = read_records(source.events, after=after, limit=READ_MAX, timeout=_PATIENCE)
        if not read:
            return


def _note(found: Replayed, record: Record, entry: Entry) -> None:
    found.events += 1
    wrong = found.digests.apply(record.fact, entry.key, entry.value)
    if wrong is not None:
        found.resyncs_wrong.append(f"position {record.position}: {wrong}")


def stats(found: Replayed) -> dict[str, Any]:
    """Return what was replayed, as plain data."""
    state = found.state
    return {
        "position": str(found.moment.position),
        "asOf": found.moment.as_of,
        "tick": found.moment.tick,
        "decision": found.moment.seq,
        "events": found.events,
        "ticks": found.ticks,
        "decisions": found.decisions,
        "seconds": round(found.seconds, 3),
        "eventsPerSecond": round(found.events_per_second),
        "stateDigest": found.digests.state,
        "nodes": len(state.store.objects("Node")),
        "pods": len(state.store.objects("Pod")),
        "queued": len(state.queue),
        "openAssumes": len(state.open_assumes),
        "foreignPods": state.foreign_pods,
        "resyncsWrong": found.resyncs_wrong,
    }
