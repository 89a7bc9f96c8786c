"""One scheduler of a cluster: standby until it may lead, then a tick at a time."""

import gc
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import islice
from typing import Final

import structlog

from decklog.core.errors import Deposed, LogUnavailable
from decklog.core.framework.config import SchedulerConfig
from decklog.core.framework.config_body import config_body, config_hash
from decklog.core.rules import RULES
from decklog.core.state import SchedulerState
from decklog.core.tick import CYCLES_MAX, EVENTS_MAX, Proposals, TickRunner
from decklog.events.digests import Digests
from decklog.events.facts import Event, LeaderElected, Record, ResyncRequested, Undecodable
from decklog.objects.kinds import KINDS
from decklog.ports.clock import Clock
from decklog.ports.entries import decision_entries, event_entry, read_records
from decklog.ports.ledger import DeadLetter, Head, Ledger, TickCommit
from decklog.ports.log import Entry, Log
from decklog.ports.recorded import RecordedTick, TickReader
from decklog.ports.redeciding import apply_recorded
from decklog.ports.sealing import ChainHead, seal

UNFINISHED_MAX: Final = 2_000
"""Effects that the binder has yet to finish, beyond which no cycles are run."""
UNFINISHED_ROOM: Final = UNFINISHED_MAX - CYCLES_MAX
"""As many may there be before a tick, so that it does not go beyond."""
UNFINISHED_CHECK_MS: Final = 50
STANDBY_TRY_MS: Final = 1_000
"""How often a standby asks whether it may lead: the beat of a leader."""
GATHER: Final = timedelta(milliseconds=20)
"""How long events are gathered for when nothing is ready."""

_NOT_MARKED: Final = sys.maxsize
"""As a marker's position: it has to be written yet, so no cycle may run."""

_log = structlog.get_logger()


@dataclass(slots=True, kw_only=True)
class SchedulerSettings:
    cluster: str
    config: SchedulerConfig
    holder: str
    code_version: str
    patience: timedelta = GATHER
    """Zero where other services share the thread."""


@dataclass(slots=True)
class SchedulerMetrics:
    """What the service counts; the operations port shows it."""

    ticks: int = 0
    events: int = 0
    decisions: int = 0
    cycles: int = 0
    relay_lost: int = 0
    unfinished: int = 0
    leading: bool = False
    generation: int = 0
    position: int = -1


@dataclass(slots=True)
class SchedulerService:
    settings: SchedulerSettings
    events_log: Log
    decisions_log: Log
    ledger: Ledger
    clock: Clock
    state: SchedulerState = field(init=False)
    metrics: SchedulerMetrics = field(default_factory=SchedulerMetrics)
    name: str = "scheduler"
    _digests: Digests = field(default_factory=Digests)
    _ticks: TickRunner = field(init=False)
    _reader: TickReader = field(init=False)
    _config_hash: str = ""
    _chain: ChainHead | None = None
    """Where our chains end while we lead."""
    _taken: Head | None = None
    """The generation that we took and whose marker is not written yet."""
    _marker: int = -1
    """The position of our own `leader.elected`; no cycle runs before it was read back."""
    _try_at_ms: int = 0
    _clock_base_ms: int = 0
    """Logical minus monotonic time, fixed at takeover."""
    _uncommitted: tuple[TickCommit, ChainHead] | None = None
    _requests: list[ResyncRequested] = field(default_factory=list)
    _rest: deque[tuple[Record, Entry]] = field(default_factory=deque)
    """Events that the rebuild read ahead."""
    _relay: list[Entry] = field(default_factory=list)
    _unfinished: int = 0
    _unfinished_at_ms: int = 0

    def __post_init__(self) -> None:
        self.state = SchedulerState(self.settings.config)
        self._ticks = TickRunner(self.state)
        self._reader = TickReader(self.ledger, self.events_log, self.settings.cluster)
        self._config_hash = config_hash(self.settings.config)

    def step(self) -> bool:
        """Do one step: follow the leader, take over, or decide and commit one tick."""
        self.ledger.alive()
        if self._chain is not None:
            return self._lead()
        if self._taken is not None:
            return self._begin(self._taken)
        return self._stand_by()

    def readiness(self) -> Mapping[str, str]:
        found = {"log": "", "ledger": "", "cluster": "", "effects": ""}
        missing = len(KINDS) - len(self.state.complete)
        if missing:
            found["cluster"] = f"{missing} kinds were not listed yet"
        if self._chain is not None and self._unfinished > UNFINISHED_ROOM:
            found["effects"] = f"the binder has {self._unfinished} effects to finish"
        return found

    def stop(self) -> None:
        if self._uncommitted is not None:
            self.ledger.commit(self._uncommitted[0])
            self._uncommitted = None
        if self._chain is not None:
            self.ledger.resign(self.settings.cluster, generation=self._chain.generation)
            self._chain = None

    # -- standby and takeover ------------------------------------------------------------------

    def _stand_by(self) -> bool:
        now = self.clock.monotonic_ms()
        followed = self._follow(through=None)
        if followed or now < self._try_at_ms:
            return followed
        self._try_at_ms = now + STANDBY_TRY_MS
        self._taken = self.ledger.take_over(
            self.settings.cluster, holder=self.settings.holder, elected=self.state.generation
        )
        return self._taken is not None

    def _follow(self, *, through: int | None) -> bool:
        """Apply recorded ticks as facts; say whether there were any."""
        gc.disable()  # Objects of a replay live on: collecting among them finds nothing.
        try:
            ticks = self._reader.read(through=through)
            for tick in ticks:
                self._apply_recorded(tick)
        finally:
            gc.enable()
        return bool(ticks)

    def _apply_recorded(self, tick: RecordedTick) -> None:
        if not tick.before_start:
            self._check_digests(tick.records, tick.entries)
        apply_recorded(self.state, tick)

    def _check_leaders(self, records: Sequence[Record]) -> None:
        """Stay above every generation in the log: a database that was set back forgot some."""
        assert self._chain is not None
        ours = self._chain.generation
        found = max(
            (
                record.fact.generation
                for record in records
                if isinstance(record.fact, LeaderElected)
                and record.fact.holder != self.settings.holder
            ),
            default=0,
        )
        if found < ours:
            return
        stream = self.settings.cluster
        head = self.ledger.head(stream)
        if head is None or head.generation != ours:
            raise Deposed(stream, generation=ours, found=head.generation if head else 0)
        head = self.ledger.take_over(stream, holder=self.settings.holder, elected=found)
        if head is None:
            raise Deposed(stream, generation=ours, found=found)
        self._chain = replace(self._chain, generation=head.generation)
        self._marker = _NOT_MARKED

    def _mark(self, generation: int) -> None:
        """Announce the generation; cycles run when the marker was read back."""
        marker = LeaderElected(
            generation=generation,
            holder=self.settings.holder,
            config_hash=self._config_hash,
            code_version=self.settings.code_version,
            rules=RULES,
        )
        self._marker = self.events_log.append([self._entry(marker)])
        self.metrics.generation = generation

    def _begin(self, head: Head) -> bool:
        """Become the leader of the generation that was taken: catch up, then write the marker."""
        if self._follow(through=head.tick):
            return True
        gc.freeze()
        self.ledger.put_config(self._config_hash, config_body(self.settings.config))
        self._mark(head.generation)
        self._rest = deque(self._reader.rest())
        self.state.resync_requests.clear()
        now = max(head.now_ms, self.state.now_ms, self.clock.now_ms())
        self._clock_base_ms = now - self.clock.monotonic_ms()
        self._chain = ChainHead(
            stream=self.settings.cluster,
            generation=head.generation,
            tick=head.tick,
            tick_hash=head.tick_hash,
            seq=head.seq,
            seq_hash=head.seq_hash,
            config_hash=self._config_hash,
            rules=RULES,
        )
        self._taken = None
        self._unfinished = UNFINISHED_MAX  # What the last leader left is not known before we ask.
        self.metrics.leading = True
        _log.info("Took over", generation=head.generation, position=self._marker, seq=head.seq)
        return True

    # -- leading -------------------------------------------------------------------------------

    def _lead(self) -> bool:
        """Decide one tick and commit it; say whether there was anything to do."""
        assert self._chain is not None
        if self._marker == _NOT_MARKED:
            self._mark(self._chain.generation)
        if self._uncommitted is None:
            self._uncommitted = self._decide()
        if self._uncommitted is not None:
            self._commit(self._uncommitted)
            self._uncommitted = None
            self._send_relay()
            self._send_requests()
            return True
        self._send_requests()
        return False

    def _decide(self) -> tuple[TickCommit, ChainHead] | None:
        assert self._chain is not None
        read = self._read()
        records = [record for record, _ in read]
        self._check_leaders(records)
        now = max(self.state.now_ms, self._clock_base_ms + self.clock.monotonic_ms())
        timer = self.state.next_timer_ms()
        may_run = self._may_run_cycles(read)
        ready = may_run and self.state.queue.peek() is not None
        if not read and not ready and (timer is None or timer > now):
            return None
        self._check_digests(records, [entry for _, entry in read])
        result = self._ticks.run(
            now_ms=now,
            records=records,
            source=Proposals(cycles_left=CYCLES_MAX if may_run else 0),
        )
        if not result.moved:
            return None
        self._count(len(read), result.cycles, len(result.decisions))
        return seal(
            self._chain,
            cursor=result.cursor,
            now_ms=result.now_ms,
            cycles=result.cycles,
            decisions=result.decisions,
            dead_letters=self._dead_letters(read),
        )

    def _read(self) -> list[tuple[Record, Entry]]:
        while self._rest and self._rest[0][0].position <= self.state.position:
            self._rest.popleft()
        if self._rest:
            return list(islice(self._rest, EVENTS_MAX))  # Kept until a tick has applied them.
        timeout = self.settings.patience
        if self.state.queue.peek() is not None:
            timeout = timedelta(0)
        return read_records(
            self.events_log, after=self.state.position, limit=EVENTS_MAX, timeout=timeout
        )

    def _may_run_cycles(self, read: Sequence[tuple[Record, Entry]]) -> bool:
        """Cycles run once our marker was read back, the cluster is known, and binders keep up."""
        position = read[-1][0].position if read else self.state.position
        if position < self._marker or len(self.state.complete) < len(KINDS):
            return False
        return self._binder_keeps_up()

    def _binder_keeps_up(self) -> bool:
        if self._unfinished <= UNFINISHED_ROOM:
            return True
        now = self.clock.monotonic_ms()
        if now >= self._unfinished_at_ms:
            self._unfinished = self.ledger.unfinished_effects(
                self.settings.cluster, limit=UNFINISHED_MAX + 1
            )
            self._unfinished_at_ms = now + UNFINISHED_CHECK_MS
            self.metrics.unfinished = self._unfinished
        return self._unfinished <= UNFINISHED_ROOM

    def _commit(self, sealed: tuple[TickCommit, ChainHead]) -> None:
        commit, after = sealed
        assert self._chain is not None
        self.ledger.commit(commit)
        entries = decision_entries(
            commit.decisions, prev_hash=self._chain.seq_hash, cluster=self.settings.cluster
        )
        self._relay.extend(entries)
        self._unfinished += len(commit.effects)
        self._chain = after
        self.metrics.ticks += 1

    def _send_relay(self) -> None:
        """Publish committed decisions. What is lost here is found by the binder's sweep."""
        entries, self._relay = self._relay, []
        if not entries:
            return
        try:
            self.decisions_log.append(entries)
        except LogUnavailable as error:
            self.metrics.relay_lost += len(entries)
            _log.warning("Could not relay decisions", error=str(error), count=len(entries))

    # -- what we were told wrong ---------------------------------------------------------------

    def _check_digests(self, records: Sequence[Record], entries: Sequence[Entry]) -> None:
        for record, entry in zip(records, entries, strict=True):
            wrong = self._digests.apply(record.fact, entry.key, entry.value)
            if wrong is not None and self._chain is not None:
                kind = getattr(record.fact, "kind", "")
                self._requests.append(ResyncRequested(kind=kind, reason=wrong))
                _log.warning("Resync does not match the log", kind=kind, error=wrong)

    def _send_requests(self) -> None:
        self._requests.extend(self.state.resync_requests)
        self.state.resync_requests.clear()
        if self._requests:
            self.events_log.append([self._entry(request) for request in self._requests])
            self._requests.clear()

    def _dead_letters(self, read: Sequence[tuple[Record, Entry]]) -> list[DeadLetter]:
        return [
            DeadLetter(
                topic="events",
                position=record.position,
                error=record.fact.error,
                code_version=self.settings.code_version,
                body=entry.value,
            )
            for record, entry in read
            if isinstance(record.fact, Undecodable)
        ]

    def _entry(self, fact: Event) -> Entry:
        return event_entry(fact, cluster=self.settings.cluster, time_ms=self.clock.now_ms())

    def _count(self, events: int, cycles: int, decisions: int) -> None:
        self.metrics.events += events
        self.metrics.cycles += cycles
        self.metrics.decisions += decisions
        self.metrics.position = self.state.position
