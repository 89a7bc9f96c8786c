"""What the one leader writes. Every commit moves the head, and only its generation can."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import Connection

from decklog.adapters.ledger import schema, statements, tables
from decklog.adapters.ledger.heart import Heart
from decklog.adapters.ledger.reader import to_head
from decklog.adapters.ledger.store import Store
from decklog.core.errors import Deposed
from decklog.ports.ledger import ZERO_HASH, DeadLetter, EffectState, Head, TickCommit

COPY_FROM: Final = 10
"""Rows from which on COPY is faster than one insert for each."""
PARTITION_DUE: Final = tables.PARTITION_SIZE * 8 // 10
"""How far into a partition the next two are made."""

_TICK: Final = tuple(column.name for column in tables.tick.columns)
_DECISION: Final = tuple(column.name for column in tables.decision.columns)
_EFFECT: Final = ("stream", "seq", "n", "kind", "pod_uid", "state", "outcome_published")


class Leader:
    """The leader's part of the ledger."""

    def __init__(self, store: Store, heart: Heart) -> None:
        self._store = store
        self._heart = heart
        self._partitions_due = {"tick": 0, "seq": 0}

    def take_over(self, stream: str, *, holder: str, elected: int, ttl: timedelta) -> Head | None:
        run = self._store.run
        with self._store.write() as connection:
            schema.check(schema.read_status(connection))
            run(connection, statements.BEGIN_STREAM, stream=stream, zero=ZERO_HASH)
            row = run(
                connection,
                statements.TAKE_OVER,
                stream=stream,
                holder=holder,
                elected=elected,
                ttl=ttl.total_seconds(),
            ).fetchone()
        if row is None:
            return None
        head = to_head(row)
        self._partition(tick=head.tick, seq=head.seq, at_once=True)
        self._heart.lead(stream, head.generation)
        return head

    def commit(self, commit: TickCommit) -> None:
        self._partition(tick=commit.tick.tick, seq=commit.tick.seq)
        with self._store.write() as connection:
            if self._advance_head(connection, commit):
                self._insert_tick(connection, commit)
                self._insert_decisions(connection, commit)
                self._insert_effects(connection, commit)
                put_dead_letters(self._store, connection, commit.stream, commit.dead_letters)

    def put_config(self, config_hash: str, body: bytes) -> None:
        with self._store.write_once() as connection:
            self._store.run(connection, statements.PUT_CONFIG, config_hash=config_hash, body=body)

    def unfinished_effects(self, stream: str, *, limit: int) -> int:
        with self._store.read() as connection:
            rows = self._store.fetch(
                connection, statements.UNFINISHED_EFFECTS, stream=stream, limit=limit
            )
        return min(int(rows[0][0]), limit)

    def resign(self, stream: str, *, generation: int) -> None:
        self._heart.stop_leading(stream)
        with self._store.write_once() as connection:
            self._store.run(connection, statements.RESIGN, stream=stream, generation=generation)

    def _advance_head(self, connection: Connection, commit: TickCommit) -> bool:
        """Move the head; False if it stands there already: the reply to our COMMIT was lost.

        The hash proves that the tick is ours; its number alone proves nothing. A COMMIT that is
        still under way holds the row, so this waits for it.
        """
        moved = self._store.run(
            connection,
            statements.ADVANCE_HEAD,
            stream=commit.stream,
            generation=commit.tick.generation,
            tick=commit.tick.tick,
            tick_hash=commit.tick.hash,
            seq=commit.tick.seq,
            seq_hash=commit.seq_hash,
            cursor=commit.tick.cursor,
            now_ms=commit.tick.now_ms,
        )
        if moved.rowcount == 1:
            return True
        rows = self._store.fetch(connection, statements.HEAD, stream=commit.stream)
        if rows and to_head(rows[0]).tick_hash == commit.tick.hash:
            return False
        raise Deposed(
            commit.stream,
            generation=commit.tick.generation,
            found=to_head(rows[0]).generation if rows else 0,
        )

    def _insert_tick(self, connection: Connection, commit: TickCommit) -> None:
        tick = commit.tick
        row = (
            commit.stream,
            tick.tick,
            tick.generation,
            tick.cursor,
            tick.now_ms,
            tick.cycles,
            tick.config_hash,
            tick.rules,
            tick.seq,
            tick.payload,
            tick.hash,
        )
        self._store.insert(connection, "tick", _TICK, [row])

    def _insert_decisions(self, connection: Connection, commit: TickCommit) -> None:
        decided_at = self._store.now()
        rows = [
            (
                commit.stream,
                row.seq,
                row.tick,
                row.generation,
                row.kind,
                row.pod_uid,
                row.namespace,
                row.pod,
                row.node,
                row.reason,
                row.closes_seq,
                row.now_ms,
                decided_at,
                row.payload,
                row.hash,
            )
            for row in commit.decisions
        ]
        self._insert(connection, "decision", _DECISION, rows)

    def _insert_effects(self, connection: Connection, commit: TickCommit) -> None:
        state, nothing_to_publish = EffectState.PENDING.value, True
        rows = [
            (commit.stream, new.seq, new.n, new.kind.value, new.pod_uid, state, nothing_to_publish)
            for new in commit.effects
        ]
        self._insert(connection, "effect", _EFFECT, rows)

    def _insert(
        self,
        connection: Connection,
        table: str,
        columns: Sequence[str],
        rows: Sequence[tuple[Any, ...]],
    ) -> None:
        if self._store.is_postgresql and len(rows) >= COPY_FROM:
            self._store.copy(connection, table, columns, rows)
        elif rows:
            self._store.insert(connection, table, columns, rows)

    def _partition(self, *, tick: int, seq: int, at_once: bool = False) -> None:
        """Have the next partitions made before they are needed.

        Before the commit, not in it: a failure then leaves nothing in doubt.
        """
        if not self._store.is_postgresql:
            return
        due = self._partitions_due
        if at_once or tick >= due["tick"] or seq >= due["seq"]:
            with self._store.write_once() as connection:
                self._store.run(connection, statements.CREATE_PARTITIONS)
            due["tick"], due["seq"] = _next_due(tick), _next_due(seq)


def put_dead_letters(
    store: Store, connection: Connection, stream: str, letters: Sequence[DeadLetter]
) -> None:
    """Keep each position once: whoever reads it again has nothing new to say."""
    for letter in letters:
        store.run(
            connection,
            statements.PUT_DEAD_LETTER,
            stream=stream,
            topic=letter.topic,
            position=letter.position,
            error=letter.error,
            code_version=letter.code_version,
            body=letter.body,
        )


def _next_due(number: int) -> int:
    """Return the next number at 80 % of its partition."""
    blocks, into = divmod(number, tables.PARTITION_SIZE)
    return (blocks + (into >= PARTITION_DUE)) * tables.PARTITION_SIZE + PARTITION_DUE
