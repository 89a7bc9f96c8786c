"""One auditor of a cluster: every recorded tick is chain-checked, decided again and compared."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import structlog

from decklog.core.errors import IllegalTransition
from decklog.ports.clock import Clock
from decklog.ports.ledger import ZERO_HASH, Anchor, Divergence, Ledger
from decklog.ports.log import Log
from decklog.ports.recorded import RecordedTick
from decklog.ports.redeciding import Redecided, Redecider
from decklog.ports.sealing import check_decision_chain, check_tick_chain

TICKS_A_STEP: Final = 20
"""About 0.3 s of deciding: a step stays bounded."""
ANCHOR_ROWS: Final = 1_000
ANCHOR_MS: Final = 60_000
IDLE_MS: Final = 200
"""How long after finding nothing the ledger is asked again."""

_log = structlog.get_logger()


@dataclass(slots=True)
class AuditorMetrics:
    ticks: int = 0
    decided: int = 0
    not_decided: int = 0
    divergences: int = 0
    chain_breaks: int = 0
    verified_seq: int = 0


@dataclass(slots=True)
class AuditorService:
    cluster: str
    log: Log
    ledger: Ledger
    clock: Clock
    name: str = "auditor"
    metrics: AuditorMetrics = field(default_factory=AuditorMetrics)
    _redecider: Redecider | None = None
    _tick_hash: bytes = ZERO_HASH
    _seq_hash: bytes = ZERO_HASH
    _anchored: tuple[int, int, int] = (0, 0, 0)
    """(tick, seq, monotonic ms) of the last anchors."""
    _found: list[Divergence] = field(default_factory=list)
    _cursor: tuple[int, int, int] | None = None
    """What was walked and is not stored yet."""
    _walked: tuple[int, int, int] | None = None
    """The cursor after the last tick that was walked."""
    _idle_until_ms: int = 0
    _last_now_ms: int = 0
    _broken: str = ""
    _is_stuck: bool = False
    """A tick records what cannot be, so nothing after it can be decided again."""

    def step(self) -> bool:
        """Walk some ticks and store what was found together with how far we are."""
        now = self.clock.monotonic_ms()
        if now < self._idle_until_ms or self._is_stuck:
            return False
        if self._redecider is None:
            self._redecider = self._start(now)
        if self._cursor is None:
            try:
                for redecided in self._redecider.walk(limit=TICKS_A_STEP):
                    self._note(redecided)
            except IllegalTransition as error:
                self._note_impossible(self._redecider.next_tick, error)
        if self._cursor is None:
            self._idle_until_ms = now + IDLE_MS
            return False
        self._store(self._cursor, now)
        self._cursor = None
        return True

    def readiness(self) -> Mapping[str, str]:
        return {"chain": self._broken}

    def stop(self) -> None:
        """Store what is not stored, and anchor the end: a short history has an anchor too."""
        cursor = self._cursor or self._walked
        if cursor is not None:
            self._store(cursor, self.clock.monotonic_ms(), is_last=not self._is_stuck)
            self._cursor = None

    def _start(self, now: int) -> Redecider:
        """Begin after what was audited before; the state up to there is folded, not decided."""
        known = self.ledger.consumer_cursor(self.cluster, self.name)
        first = known[1] + 1 if known else 1
        self._anchored = (first - 1, known[2] if known else 0, now)
        return Redecider(self.ledger, self.log, self.cluster, first_tick=first)

    def _note(self, redecided: Redecided) -> None:
        tick = redecided.tick
        self._check_chains(tick)
        self.metrics.ticks += 1
        self.metrics.decided += redecided.decided
        self.metrics.not_decided += not redecided.decided
        if redecided.divergences:
            first = redecided.divergences[0]
            self.metrics.divergences += len(redecided.divergences)
            _log.error("Decision differs when decided again", seq=first.seq, tick=first.tick)
            self._found.extend(redecided.divergences)
        self.metrics.verified_seq = tick.row.seq
        self._last_now_ms = tick.row.now_ms
        self._cursor = self._walked = (tick.row.cursor, tick.row.tick, tick.row.seq)

    def _note_impossible(self, tick: RecordedTick | None, error: IllegalTransition) -> None:
        """Say that the ledger holds what cannot have been decided; there is no way past it."""
        assert tick is not None
        self._is_stuck = True
        row = tick.row
        self._note_broken(f"tick {row.tick}: what it records cannot be: {error}")
        self.metrics.divergences += 1
        self._found.append(
            Divergence(tick=row.tick, seq=row.seq, want=row.payload, got=str(error).encode())
        )
        if self._cursor is None:
            before = self.ledger.consumer_cursor(self.cluster, self.name)
            self._cursor = before or (-1, 0, 0)

    def _note_broken(self, finding: str) -> None:
        if not self._broken:
            self._broken = finding
            _log.error("Chain is broken", error=finding)
        self.metrics.chain_breaks += 1

    def _check_chains(self, tick: RecordedTick) -> None:
        finding = check_tick_chain(self._tick_hash, tick.row)
        self._tick_hash = tick.row.hash
        for row in tick.rows:
            finding = finding or check_decision_chain(self._seq_hash, row)
            self._seq_hash = row.hash
        if finding:
            self._note_broken(finding)

    def _store(self, cursor: tuple[int, int, int], now: int, *, is_last: bool = False) -> None:
        _, tick, seq = cursor
        anchors = []
        rows = max(tick - self._anchored[0], seq - self._anchored[1])
        is_time = is_last or now - self._anchored[2] >= ANCHOR_MS
        due = rows >= ANCHOR_ROWS or (rows > 0 and is_time)
        if due:
            anchors.append(
                Anchor(chain="tick", number=tick, hash=self._tick_hash, now_ms=self._last_now_ms)
            )
            if seq:
                anchors.append(
                    Anchor(
                        chain="decision",
                        number=seq,
                        hash=self._seq_hash,
                        now_ms=self._last_now_ms,
                    )
                )
        self.ledger.audited(
            self.cluster,
            consumer=self.name,
            cursor=cursor,
            anchors=anchors,
            divergences=self._found,
        )
        self._found = []
        if due:
            self._anchored = (tick, seq, now)
