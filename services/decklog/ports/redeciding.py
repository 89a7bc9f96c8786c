"""History decided again: every tick from the same events and time, compared byte for byte.

A tick is decided again by the code that decided it, then the *recorded* decisions are applied, so
that one difference never causes a second. Ticks of other rules, and of configurations that this
installation cannot build, are applied as facts and said to be not re-decided.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from decklog.core.errors import BadConfiguration
from decklog.core.framework.config import SchedulerConfig
from decklog.core.framework.config_body import config_from_body
from decklog.core.rules import RULES
from decklog.core.state import SchedulerState
from decklog.core.tick import Compared, Recorded, TickRunner
from decklog.events.codec import DecisionHeader, encode_decision
from decklog.events.facts import Decision
from decklog.ports.ledger import Divergence, LedgerReader
from decklog.ports.log import Log
from decklog.ports.recorded import RecordedTick, TickReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Redecided:
    """What deciding a tick again showed."""

    tick: RecordedTick
    decided: bool
    """False: the tick was only applied; `why_not` says why."""
    why_not: str = ""
    divergences: Sequence[Divergence] = ()


@dataclass(slots=True)
class Redecider:
    """Walks a stream's history, deciding again from `first_tick` on."""

    ledger: LedgerReader
    log: Log
    stream: str
    first_tick: int = 1
    state: SchedulerState | None = None
    """As of the last tick that was walked."""
    reader: TickReader = field(init=False)
    _config_hash: str = ""
    _ahead: deque[RecordedTick] = field(default_factory=deque)
    """Ticks that were read and not walked yet."""

    def __post_init__(self) -> None:
        self.reader = TickReader(self.ledger, self.log, self.stream)

    @property
    def next_tick(self) -> RecordedTick | None:
        """The tick that is walked next, if it was read already."""
        return self._ahead[0] if self._ahead else None

    def walk(self, *, limit: int) -> Iterator[Redecided]:
        """Yield the next ticks, up to `limit`, as they are recorded."""
        if not self._ahead:
            self._ahead.extend(self.reader.read(limit=limit))
        while self._ahead:
            redecided = self._walk(self._ahead[0])  # May fail; then it is walked again.
            self._ahead.popleft()
            yield redecided

    def _walk(self, tick: RecordedTick) -> Redecided:
        problem = self._prepare(tick)
        if problem or tick.row.tick < self.first_tick:
            self._apply(tick)
            return Redecided(tick=tick, decided=False, why_not=problem or "before the range")
        return Redecided(tick=tick, decided=True, divergences=self._decide(tick))

    def _prepare(self, tick: RecordedTick) -> str:
        """Have the state that the tick's generation had; return why it cannot be decided again."""
        if tick.row.config_hash != self._config_hash:
            try:
                config = recorded_config(self.ledger, tick.row.config_hash)
            except BadConfiguration as error:
                self.state, self._config_hash = None, ""
                return str(error)
            self.state = self._fold(config, before=tick.row.tick)
            self._config_hash = tick.row.config_hash
        if tick.before_start:
            return "its events are no longer in the log"
        if tick.row.rules != RULES:
            return f"rules {tick.row.rules}, and this is decklog with rules {RULES}"
        return ""

    def _fold(self, config: SchedulerConfig, *, before: int) -> SchedulerState:
        """Return the state before a tick, as a scheduler with this configuration rebuilds it."""
        state = SchedulerState(config)
        reader = TickReader(self.ledger, self.log, self.stream)
        while ticks := reader.read(through=before - 1):
            for tick in ticks:
                apply_recorded(state, tick)
        return state

    def _apply(self, tick: RecordedTick) -> None:
        if self.state is not None:
            apply_recorded(self.state, tick)

    def _decide(self, tick: RecordedTick) -> Sequence[Divergence]:
        assert self.state is not None
        source = Compared(Recorded(deque(tick.decisions)), cycles_left=tick.row.cycles)
        TickRunner(self.state).run(
            now_ms=tick.row.now_ms,
            records=tick.records,
            source=source,
            ask=_answers(tick.header.answers),
        )
        return _differences(tick, source.proposed)


def recorded_config(ledger: LedgerReader, config_hash: str) -> SchedulerConfig:
    """Return a configuration of the past.

    Raises:
        BadConfiguration: it is not there, was changed, or is of a release that we cannot read.
    """
    body = ledger.config(config_hash)
    if body is None:
        msg = f"configuration {config_hash} is not in the ledger"
        raise BadConfiguration(msg)
    if sha256(body).hexdigest() != config_hash:
        msg = f"configuration {config_hash} was changed after it was stored"
        raise BadConfiguration(msg)
    return config_from_body(body)


def apply_recorded(state: SchedulerState, tick: RecordedTick) -> None:
    """Apply a recorded tick as facts: nothing is decided."""
    if tick.before_start:
        state.seq = tick.row.seq
        state.set_now(tick.row.now_ms)
        return
    TickRunner(state).run(
        now_ms=tick.row.now_ms,
        records=tick.records,
        source=Recorded(deque(tick.decisions)),
    )


def _answers(recorded: Sequence[bytes]) -> Callable[[bytes], bytes]:
    """Give back what extenders answered then, in the order in which they were asked."""
    left = deque(recorded)

    def ask(_request: bytes) -> bytes:
        return left.popleft() if left else b""

    return ask


def _differences(tick: RecordedTick, proposed: Sequence[Decision]) -> list[Divergence]:
    """Compare what was decided again with what is recorded, seq by seq."""
    row = tick.row
    first = row.seq - len(tick.rows) + 1
    found = []
    for index in range(max(len(proposed), len(tick.rows))):
        seq = first + index
        want = tick.rows[index].payload if index < len(tick.rows) else b""
        got = b""
        if index < len(proposed):
            header = DecisionHeader(seq, row.tick, row.generation, row.now_ms)
            got = encode_decision(header, proposed[index])
        if want != got:
            found.append(Divergence(tick=row.tick, seq=seq, want=want, got=got))
    return found
