"""The ledger: what was decided, by which generation, from which position, and what became of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol

ZERO_HASH: Final = bytes(32)
LEADER_TTL: Final = timedelta(seconds=5)
"""A leader whose last beat is older may be replaced. Five beats: one lost second harms nobody."""
WORKER_TTL: Final = timedelta(seconds=10)
"""A claim may be taken over from a worker whose last beat is older (database clock)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The one mutable row of a stream: where both chains end, and who leads."""

    stream: str
    generation: int
    tick: int
    tick_hash: bytes
    seq: int
    seq_hash: bytes
    cursor: int
    now_ms: int
    holder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TickRow:
    tick: int
    generation: int
    cursor: int
    now_ms: int
    cycles: int
    config_hash: str
    rules: int
    seq: int
    """The last seq as of this tick."""
    payload: bytes
    hash: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRow:
    seq: int
    tick: int
    generation: int
    kind: str
    pod_uid: str
    namespace: str
    pod: str
    node: str | None
    reason: str | None
    closes_seq: int | None
    now_ms: int
    payload: bytes
    hash: bytes
    decided_at: datetime | None = None
    """Set by the ledger when it is written; not part of what is hashed."""


class EffectKind(StrEnum):
    BIND = "bind"
    STATUS = "status"
    VICTIM = "victim"
    EVENT = "event"


class EffectState(StrEnum):
    PENDING = "pending"
    CLAIMED = "claimed"
    DONE = "done"
    REJECTED = "rejected"
    UNKNOWN = "unknown"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEffect:
    seq: int
    n: int
    kind: EffectKind
    pod_uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a decision asks of the cluster for one pod, and what became of it."""

    seq: int
    n: int
    kind: EffectKind
    pod_uid: str
    state: EffectState
    owner: str | None
    attempts: int
    """How often it was taken in hand: claimed, swept, adopted, or put off by `finish`."""
    outcome: str | None
    """JSON text: the answer, for people and for the outcome event."""
    outcome_published: bool
    late_outcome: str | None
    next_check_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectUpdate:
    """The new state of an effect that the owner holds."""

    seq: int
    n: int
    state: EffectState
    outcome: str
    publish: bool
    """Whether the outcome goes to the events log: sets `outcome_published` to false."""
    next_check: timedelta | None = None
    """From now, by the database's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    topic: str
    position: int
    error: str
    code_version: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TickCommit:
    """Everything that one tick decided, to be committed whole or not at all."""

    stream: str
    tick: TickRow
    decisions: Sequence[DecisionRow]
    effects: Sequence[NewEffect]
    seq_hash: bytes
    dead_letters: Sequence[DeadLetter] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    chain: str
    """`tick` or `decision`."""
    number: int
    hash: bytes
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    tick: int
    seq: int
    want: bytes
    got: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFilter:
    """What `audit list` selects; None means any."""

    namespace: str | None = None
    pod: str | None = None
    node: str | None = None
    kind: str | None = None
    reason: str | None = None
    pod_uid: str | None = None
    seq_first: int | None = None
    seq_last: int | None = None


class LedgerReader(Protocol):
    """History, read only. Any number of readers may run beside the writers."""

    def streams(self) -> Sequence[str]:
        """Return the streams that the ledger holds.

        Raises:
            LedgerUnavailable: the ledger did not answer.
        """
        ...

    def head(self, stream: str) -> Head | None:
        """Return where the stream's chains end; None if nobody ever led it.

        Raises:
            LedgerUnavailable: the ledger did not answer.
        """
        ...

    def ticks(self, stream: str, *, after: int, limit: int) -> Sequence[TickRow]:
        """Return up to `limit` ticks after number `after`, in order.

        Raises:
            LedgerUnavailable: the ledger did not answer.
        """
        ...

    def decisions(self, stream: str, *, after: int, limit: int) -> Sequence[DecisionRow]:
        """Return up to `limit` decisions after seq `after`, in order.

        Raises:
            LedgerUnavailable: the ledger did not answer.
        """
        ...

    def select(
        self, stream: str, *, where: DecisionFilter, limit: int, newest_first: bool = True
    ) -> Sequence[DecisionRow]:
        """Return up to `limit` decisions that match.

        Raises:
            LedgerUnavailable: the ledger did not answer.
        """
        ...

    def effects(self, stream: str, *, seq_first: int, seq_last: int) -> Sequence[Effect]:
        """Return the effects of the decisions from `seq_first` to `seq_last`, by (seq, n).

        Raises:
            LedgerUnavailable: the ledger did not answer.
        """
        ...

    def open_assumes(self, stream: str) -> Sequence[DecisionRow]:
        """Return the assumes that neither a confirmation nor a closing decision ended yet.

        Raises:
            LedgerUnavailable: the ledger did not answer.
        """
        ...

    def config(self, config_hash: str) -> bytes | None:
        """Return the configuration's body as it was stored.

        Raises:
            LedgerUnavailable: the ledger did not answer.
        """
        ...

    def configs(self) -> Sequence[tuple[str, bytes]]:
        """Return every stored configuration: its hash and its body.

        Raises:
            LedgerUnavailable: the ledger did not answer.
        """
        ...

    def anchors(self, stream: str) -> Sequence[Anchor]:
        """Return the stream's anchors by (chain, number).

        Raises:
            LedgerUnavailable: the ledger did not answer.
        """
        ...

    def divergences(self, stream: str, *, limit: int) -> Sequence[Divergence]:
        """Return what the auditor found to differ, oldest first.

        Raises:
            LedgerUnavailable: the ledger did not answer.
        """
        ...

    def consumer_cursor(self, stream: str, consumer: str) -> tuple[int, int, int] | None:
        """Return (position, tick, seq) up to which the consumer has worked.

        Raises:
            LedgerUnavailable: the ledger did not answer.
        """
        ...

    def close(self) -> None: ...


class LeaderLedger(Protocol):
    """What the leader of a stream writes. Each commit checks the generation: that is the fence."""

    def take_over(
        self, stream: str, *, holder: str, elected: int = 0, ttl: timedelta = LEADER_TTL
    ) -> Head | None:
        """Begin the next generation, above `elected`; None while another leader's heart beats.

        The returned head carries the new generation and what the last one left. A heartbeat
        for it runs from now on, in a thread of the adapter.

        Raises:
            LedgerUnavailable: the ledger did not answer; whether we lead is not known. Ask again.
            Refused: the schema is too new or too old for this code.
        """
        ...

    def commit(self, commit: TickCommit) -> None:
        """Commit the tick. Called again with the same tick, it finds out whether it is done.

        Raises:
            LedgerUnavailable: the tick may or may not be committed. Call again with the same.
            Deposed: another generation leads; nothing was written.
        """
        ...

    def put_config(self, config_hash: str, body: bytes) -> None:
        """Store a configuration once.

        Raises:
            LedgerUnavailable: the ledger did not answer.
        """
        ...

    def unfinished_effects(self, stream: str, *, limit: int) -> int:
        """Count effects that are pending, claimed or unknown, up to `limit`.

        Raises:
            LedgerUnavailable: the ledger did not answer.
        """
        ...

    def alive(self) -> None:
        """Say that the step returned; the heartbeat stops when it has not for 60 s."""
        ...

    def resign(self, stream: str, *, generation: int) -> None:
        """Stop the heartbeat and let the next leader begin at once.

        Raises:
            LedgerUnavailable: the ledger did not answer; the heartbeat runs out by itself.
        """
        ...


class EffectLedger(Protocol):
    """What any number of binders share. Claims keep them apart, and nothing else does."""

    def work_as(self, stream: str, *, owner: str, kind: str) -> None:
        """Register the worker and keep its heart beating, in a thread of the adapter.

        Raises:
            LedgerUnavailable: the ledger did not answer.
        """
        ...

    def claim(
        self, stream: str, *, owner: str, decisions: Sequence[tuple[int, bytes]]
    ) -> Sequence[Effect]:
        """Claim the pending effects of these decisions (seq, hash); a forged one claims nothing.

        Raises:
            LedgerUnavailable: some may be claimed; `adopt` finds them.
        """
        ...

    def sweep(self, stream: str, *, owner: str, seq_last: int, limit: int) -> Sequence[Effect]:
        """Claim up to `limit` pending effects of decisions up to `seq_last`, by (seq, n).

        Raises:
            LedgerUnavailable: some may be claimed; `adopt` finds them.
        """
        ...

    def adopt(self, stream: str, *, owner: str, limit: int) -> Sequence[Effect]:
        """Take over claimed or unknown effects whose owner's heart stopped, or that are our own.

        The first thing to do with one is to look, never to act.

        Raises:
            LedgerUnavailable: some may be taken over; asking again returns them again.
        """
        ...

    def due(self, stream: str, *, owner: str, limit: int) -> Sequence[Effect]:
        """Return our own effects whose next check has come.

        Raises:
            LedgerUnavailable: the ledger did not answer.
        """
        ...

    def finish(
        self, stream: str, *, owner: str, updates: Sequence[EffectUpdate]
    ) -> Sequence[tuple[int, int]]:
        """Store new states and outcomes; return the (seq, n) that were still ours.

        Of a bind whose assume was closed meanwhile the outcome is also kept as `late_outcome`.

        Raises:
            LedgerUnavailable: the ledger did not answer; the same updates may be given again.
        """
        ...

    def unpublished(self, stream: str, *, owner: str, limit: int) -> Sequence[Effect]:
        """Return effects whose outcome still has to reach the events log.

        Our own, and those whose owner's heart stopped: nobody else would publish them.

        Raises:
            LedgerUnavailable: the ledger did not answer.
        """
        ...

    def published(self, stream: str, *, effects: Sequence[Effect]) -> None:
        """Note that these outcomes are in the events log.

        A final outcome that came meanwhile stays unpublished.

        Raises:
            LedgerUnavailable: the ledger did not answer.
        """
        ...

    def superseded(
        self, stream: str, *, effects: Sequence[tuple[int, str]]
    ) -> Sequence[tuple[int, str]]:
        """Of these (seq, pod uid), return those whose pod has a later decision.

        Raises:
            LedgerUnavailable: the ledger did not answer.
        """
        ...


class AuditLedger(Protocol):
    """What the auditor writes: findings and its cursor, together."""

    def audited(
        self,
        stream: str,
        *,
        consumer: str,
        cursor: tuple[int, int, int],
        anchors: Sequence[Anchor] = (),
        divergences: Sequence[Divergence] = (),
    ) -> None:
        """Store anchors and divergences with the cursor (position, tick, seq) that they belong to.

        Raises:
            LedgerUnavailable: the ledger did not answer; the same may be given again.
        """
        ...

    def dead_letter(self, stream: str, letters: Sequence[DeadLetter]) -> None:
        """Store entries that could not be decoded; the same position twice is kept once.

        Raises:
            LedgerUnavailable: the ledger did not answer.
        """
        ...


class Ledger(LedgerReader, LeaderLedger, EffectLedger, AuditLedger, Protocol):
    """The whole port; each service asks for the part that it needs."""
