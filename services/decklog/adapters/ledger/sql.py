"""The ledger over SQL, on PostgreSQL and SQLite alike."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from decklog.adapters.ledger.audit import Audit
from decklog.adapters.ledger.effects import Effects
from decklog.adapters.ledger.heart import BEAT_INTERVAL, Heart
from decklog.adapters.ledger.leader import Leader
from decklog.adapters.ledger.reader import Reader
from decklog.adapters.ledger.store import Access, Store
from decklog.ports.clock import Clock
from decklog.ports.ledger import (
    LEADER_TTL,
    Anchor,
    DeadLetter,
    DecisionFilter,
    DecisionRow,
    Divergence,
    Effect,
    EffectUpdate,
    Head,
    TickCommit,
    TickRow,
)


class SqlLedger:
    """The whole port over one database, whose schema `migrate.py` has made.

    Threads may share it. `read_only` opens an embedded store beside its writer and changes
    nothing in it. Without `durable` a commit on SQLite survives the process but not a power cut:
    for a store that is thrown away. Without `beat_interval` there is no thread, and whoever made
    the ledger calls `beat` (the simulation, where time is not the machine's).
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        read_only: bool = False,
        durable: bool = True,
        beat_interval: timedelta | None = BEAT_INTERVAL,
    ) -> None:
        access = Access.READER if read_only else Access.WRITER
        self._store = Store(url, clock=clock, access=access, durable=durable)
        open_heart = partial(Store, url, clock=clock, access=Access.HEART, durable=durable)
        self._heart = Heart(open_heart, interval=beat_interval)
        self._reader = Reader(self._store)
        self._leader = Leader(self._store, self._heart)
        self._effects = Effects(self._store, self._heart)
        self._audit = Audit(self._store)

    def close(self) -> None:
        self._heart.close()
        self._store.close()

    def beat(self) -> None:
        """Beat once for the leader and every worker that is registered here.

        Raises:
            LedgerUnavailable: the ledger did not answer.
        """
        self._heart.beat()

    # LedgerReader

    def streams(self) -> Sequence[str]:
        return self._reader.streams()

    def head(self, stream: str) -> Head | None:
        return self._reader.head(stream)

    def ticks(self, stream: str, *, after: int, limit: int) -> Sequence[TickRow]:
        return self._reader.ticks(stream, after=after, limit=limit)

    def decisions(self, stream: str, *, after: int, limit: int) -> Sequence[DecisionRow]:
        return self._reader.decisions(stream, after=after, limit=limit)

    def select(
        self, stream: str, *, where: DecisionFilter, limit: int, newest_first: bool = True
    ) -> Sequence[DecisionRow]:
        return self._reader.select(stream, where=where, limit=limit, newest_first=newest_first)

    def effects(self, stream: str, *, seq_first: int, seq_last: int) -> Sequence[Effect]:
        return self._reader.effects(stream, seq_first=seq_first, seq_last=seq_last)

    def open_assumes(self, stream: str) -> Sequence[DecisionRow]:
        return self._reader.open_assumes(stream)

    def config(self, config_hash: str) -> bytes | None:
        return self._reader.config(config_hash)

    def configs(self) -> Sequence[tuple[str, bytes]]:
        return self._reader.configs()

    def anchors(self, stream: str) -> Sequence[Anchor]:
        return self._reader.anchors(stream)

    def divergences(self, stream: str, *, limit: int) -> Sequence[Divergence]:
        return self._reader.divergences(stream, limit=limit)

    def consumer_cursor(self, stream: str, consumer: str) -> tuple[int, int, int] | None:
        return self._reader.consumer_cursor(stream, consumer)

    # LeaderLedger

    def take_over(
        self, stream: str, *, holder: str, elected: int = 0, ttl: timedelta = LEADER_TTL
    ) -> Head | None:
        return self._leader.take_over(stream, holder=holder, elected=elected, ttl=ttl)

    def commit(self, commit: TickCommit) -> None:
        self._leader.commit(commit)

    def put_config(self, config_hash: str, body: bytes) -> None:
        self._leader.put_config(config_hash, body)

    def unfinished_effects(self, stream: str, *, limit: int) -> int:
        return self._leader.unfinished_effects(stream, limit=limit)

    def alive(self) -> None:
        self._heart.alive()

    def resign(self, stream: str, *, generation: int) -> None:
        self._leader.resign(stream, generation=generation)

    # EffectLedger

    def work_as(self, stream: str, *, owner: str, kind: str) -> None:
        self._effects.work_as(stream, owner=owner, kind=kind)

    def claim(
        self, stream: str, *, owner: str, decisions: Sequence[tuple[int, bytes]]
    ) -> Sequence[Effect]:
        return self._effects.claim(stream, owner=owner, decisions=decisions)

    def sweep(self, stream: str, *, owner: str, seq_last: int, limit: int) -> Sequence[Effect]:
        return self._effects.sweep(stream, owner=owner, seq_last=seq_last, limit=limit)

    def adopt(self, stream: str, *, owner: str, limit: int) -> Sequence[Effect]:
        return self._effects.adopt(stream, owner=owner, limit=limit)

    def due(self, stream: str, *, owner: str, limit: int) -> Sequence[Effect]:
        return self._effects.due(stream, owner=owner, limit=limit)

    def finish(
        self, stream: str, *, owner: str, updates: Sequence[EffectUpdate]
    ) -> Sequence[tuple[int, int]]:
        return self._effects.finish(stream, owner=owner, updates=updates)

    def unpublished(self, stream: str, *, owner: str, limit: int) -> Sequence[Effect]:
        return self._effects.unpublished(stream, owner=owner, limit=limit)

    def published(self, stream: str, *, effects: Sequence[Effect]) -> None:
        self._effects.published(stream, effects=effects)

    def superseded(
        self, stream: str, *, effects: Sequence[tuple[int, str]]
    ) -> Sequence[tuple[int, str]]:
        return self._effects.superseded(stream, effects=effects)

    # AuditLedger

    def audited(
        self,
        stream: str,
        *,
        consumer: str,
        cursor: tuple[int, int, int],
        anchors: Sequence[Anchor] = (),
        divergences: Sequence[Divergence] = (),
    ) -> None:
        self._audit.audited(
            stream, consumer=consumer, cursor=cursor, anchors=anchors, divergences=divergences
        )

    def dead_letter(self, stream: str, letters: Sequence[DeadLetter]) -> None:
        self._audit.dead_letter(stream, letters)
