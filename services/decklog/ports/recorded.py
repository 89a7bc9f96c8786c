"""History as it was recorded: each tick with the events it applied and the decisions it took.

Rebuild, standby, auditor, verify and the questions about the past all read this one sequence.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from decklog.core.errors import PositionLost
from decklog.events.codec import decode_decision
from decklog.events.facts import Decision, Record, ResyncStarted
from decklog.ports.entries import read_records
from decklog.ports.ledger import DecisionRow, LedgerReader, TickRow
from decklog.ports.log import Entry, Log
from decklog.ports.sealing import TickHeader, decode_tick

READ_MAX: Final = 5_000
"""Entries a read: about 5 MB of the usual ones."""
TICKS_MAX: Final = 500
"""Ticks a read of the ledger: at most 50,000 decisions, usually far fewer."""
EVENTS_MAX: Final = 50_000
"""Events of ticks that are read together: about 100 MB of the usual ones."""
_LOG_PATIENCE: Final = timedelta(seconds=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTick:
    row: TickRow
    header: TickHeader
    rows: Sequence[DecisionRow]
    decisions: Sequence[Decision]
    records: Sequence[Record]
    entries: Sequence[Entry]
    """The entries of `records`, one for one."""
    before_start: bool
    """The log no longer holds, or never held, the events that the tick was decided on."""


@dataclass(slots=True)
class TickReader:
    """Reads a stream's ticks in order, each whole, from the first one that is wanted.

    The events of the past begin with the log's first resync; what stands before it was the tail
    of a history that retention cut, and means nothing by itself.
    """

    ledger: LedgerReader
    log: Log
    stream: str
    tick: int = 0
    seq: int = 0
    position: int = -1
    """The last position handed out."""
    _started: bool = False
    _buffer: deque[tuple[Record, Entry]] = field(default_factory=deque)
    _read_position: int = -1

    def read(self, *, limit: int = TICKS_MAX, through: int | None = None) -> list[RecordedTick]:
        """Return the next ticks, up to number `through`; empty when there are none yet.

        Raises:
            PositionLost: a tick's events are not in the log.
        """
        if through is not None:
            limit = min(limit, through - self.tick)
        if limit <= 0:
            return []
        rows = self._bounded(self.ledger.ticks(self.stream, after=self.tick, limit=limit))
        if not rows:
            return []
        decisions = self._decisions(rows)
        self._fill(rows[-1].cursor)
        # From here on nothing fails, so a read that failed is read again whole.
        return [self._tick(row, decisions) for row in rows]

    def _bounded(self, rows: Sequence[TickRow]) -> Sequence[TickRow]:
        """Return the first ticks whose events fit in memory together; at least one."""
        fitting = [row for row in rows if row.cursor - self.position <= EVENTS_MAX]
        return fitting or rows[:1]

    def rest(self) -> list[tuple[Record, Entry]]:
        """Return the events that were read ahead and belong to no recorded tick yet."""
        rest = list(self._buffer)
        self._buffer.clear()
        if rest:
            self.position = rest[-1][0].position
        return rest

    def _decisions(self, rows: Sequence[TickRow]) -> deque[DecisionRow]:
        last = rows[-1].seq if rows else self.seq
        found: deque[DecisionRow] = deque()
        after = self.seq
        while after < last:
            page = self.ledger.decisions(self.stream, after=after, limit=last - after)
            if not page:
                break
            found.extend(page)
            after = page[-1].seq
        return found

    def _tick(self, row: TickRow, decisions: deque[DecisionRow]) -> RecordedTick:
        mine = []
        while decisions and decisions[0].tick == row.tick:
            mine.append(decisions.popleft())
        read = self._events(row.cursor)
        self.tick, self.seq = row.tick, row.seq
        return RecordedTick(
            row=row,
            header=decode_tick(row.payload),
            rows=mine,
            decisions=[decode_decision(decision.payload)[1] for decision in mine],
            records=[record for record, _ in read],
            entries=[entry for _, entry in read],
            before_start=not self._started,
        )

    def _events(self, cursor: int) -> list[tuple[Record, Entry]]:
        """Return the events after the last tick's cursor, up to and with this one's."""
        events: list[tuple[Record, Entry]] = []
        while self._buffer and self._buffer[0][0].position <= cursor:
            record, entry = self._buffer.popleft()
            self.position = record.position
            if not self._started and isinstance(record.fact, ResyncStarted):
                self._started = True
            if self._started:
                events.append((record, entry))
        return events

    def _fill(self, cursor: int) -> None:
        """Read the log up to the cursor."""
        while self._read_position < cursor:
            first, last = self.log.bounds()
            after = max(self._read_position, first - 1)
            read: Sequence[tuple[Record, Entry]] = ()
            if last >= cursor:
                read = read_records(self.log, after=after, limit=READ_MAX, timeout=_LOG_PATIENCE)
            if not read:
                raise PositionLost(after=after, first=first, last=last)
            self._buffer.extend(read)
            self._read_position = read[-1][0].position
