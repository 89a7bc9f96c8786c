"""The ledgers that the contract is held against: what to open, to look into and to disturb."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum
from hashlib import sha256
from typing import Any, Final

from sqlalchemy import Connection, Engine, Table, create_engine, event
from sqlalchemy.exc import OperationalError

from decklog.adapters.clock import SystemClock
from decklog.adapters.ledger.sql import SqlLedger
from decklog.adapters.ledger.tables import metadata
from decklog.ports.ledger import (
    DeadLetter,
    DecisionRow,
    EffectKind,
    Head,
    NewEffect,
    TickCommit,
    TickRow,
)

STREAM: Final = "eu1"
LONG_AGO: Final = "1970-01-01 00:00:00.000+00:00"
AT_ONCE: Final = timedelta(0)
HEARTLESS: Final = timedelta(seconds=-1)
"""With it any heart is too old, also one that beats in this very instant."""
SECONDS_MAX: Final = 10.0
NOT_COMPARED: Final = {
    "stream",
    "attempts",
    "claimed_at",
    "created_at",
    "decided_at",
    "found_at",
    "heartbeat_at",
    "next_check_at",
}
"""Columns that differ between two runs that are equal otherwise."""


class ShiftedClock(SystemClock):
    """Real time, which a test may shift."""

    def __init__(self) -> None:
        super().__init__()
        self.shift_ms = 0

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() + self.shift_ms


@dataclass
class Ledgers:
    """One migrated database; opens ledgers on it, and closes them."""

    url: str
    owner_url: str
    clock: ShiftedClock = field(default_factory=ShiftedClock)
    opened: list[SqlLedger] = field(default_factory=list)

    @property
    def is_postgresql(self) -> bool:
        return self.url.startswith("postgresql")

    def open(
        self,
        *,
        url: str | None = None,
        read_only: bool = False,
        beat_interval: timedelta | None = None,
    ) -> SqlLedger:
        ledger = SqlLedger(
            url or self.url,
            clock=self.clock,
            read_only=read_only,
            durable=False,
            beat_interval=beat_interval,
        )
        self.opened.append(ledger)
        return ledger

    def execute(self, statement: str) -> Sequence[Any]:
        """Run the statement as the owner of the tables, past the adapter."""
        engine = create_engine(self.owner_url)
        try:
            with engine.begin() as connection:
                result = connection.exec_driver_sql(statement)
                return list(result.fetchall()) if result.returns_rows else []
        finally:
            engine.dispose()

    def stop_heart(self, owner: str) -> None:
        """Make it look as if the worker had not beaten for long."""
        self.execute(
            f"UPDATE worker SET heartbeat_at = '{LONG_AGO}'"
            f" WHERE stream = '{STREAM}' AND owner = '{owner}'"
        )

    def heartbeat(self) -> Any:
        """Return the leader's last beat."""
        ((beaten,),) = self.execute(
            f"SELECT heartbeat_at FROM ledger_head WHERE stream = '{STREAM}'"
        )
        return beaten

    def set_revision(self, revision: str | None, readable_from: str | None) -> None:
        """Make it look as if other code had migrated the database."""
        self.execute("DELETE FROM alembic_version")
        self.execute("DELETE FROM schema_revision")
        if revision is not None:
            self.execute(f"INSERT INTO alembic_version VALUES ('{revision}')")
            self.execute(f"INSERT INTO schema_revision VALUES ('{revision}', '{readable_from}')")

    @contextmanager
    def holding_the_head(self) -> Iterator[None]:
        """Keep the stream's head locked, as a commit does that takes long."""
        engine = create_engine(self.owner_url)
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql(
                    f"UPDATE ledger_head SET cursor = cursor WHERE stream = '{STREAM}'"
                )
                yield
                connection.rollback()
        finally:
            engine.dispose()

    def dump(self, stream: str) -> dict[str, list[str]]:
        """Return what every table holds of the stream, but for times and attempts."""
        return {
            table.name: sorted(
                repr(tuple(row))
                for row in self.execute(
                    f"SELECT {', '.join(_compared(table))} FROM {table.name}"
                    f" WHERE stream = '{stream}'"
                )
            )
            for table in metadata.sorted_tables
            if "stream" in table.columns
        }

    def close(self) -> None:
        for ledger in self.opened:
            ledger.close()
        self.opened.clear()


def _compared(table: Table) -> list[str]:
    return [column.name for column in table.columns if column.name not in NOT_COMPARED]


@dataclass(frozen=True, kw_only=True)
class Decided:
    """One decision of a tick, and the kinds of effects that it has."""

    kind: str = "PodAssumed"
    pod: str = ""
    """Empty: one of its own."""
    node: str | None = "node-1"
    reason: str | None = None
    closes_seq: int | None = None
    effects: tuple[EffectKind, ...] = (EffectKind.BIND,)


def make_tick(
    head: Head,
    decided: Sequence[Decided] = (),
    *,
    salt: str = "",
    dead_letters: Sequence[DeadLetter] = (),
) -> TickCommit:
    """Make the tick after `head`, chained to it; another salt makes another tick."""
    number, seq_hash = head.tick + 1, head.seq_hash
    rows: list[DecisionRow] = []
    effects: list[NewEffect] = []
    for seq, each in enumerate(decided, head.seq + 1):
        pod = each.pod or f"pod-{seq}"
        payload = f"{head.generation} {seq} {pod} {each} {salt}".encode()
        seq_hash = sha256(seq_hash + payload).digest()
        rows.append(
            DecisionRow(
                seq=seq,
                tick=number,
                generation=head.generation,
                kind=each.kind,
                pod_uid=f"uid-{pod}",
                namespace="default",
                pod=pod,
                node=each.node,
                reason=each.reason,
                closes_seq=each.closes_seq,
                now_ms=head.now_ms + 10,
                payload=payload,
                hash=seq_hash,
            )
        )
        effects += [
            NewEffect(seq=seq, n=n, kind=kind, pod_uid=f"uid-{pod}")
            for n, kind in enumerate(each.effects)
        ]
    payload = f"{head.generation} {number} {head.seq + len(rows)} {salt}".encode()
    tick = TickRow(
        tick=number,
        generation=head.generation,
        cursor=head.cursor + 5,
        now_ms=head.now_ms + 10,
        cycles=len(rows),
        config_hash="c0ffee",
        rules=1,
        seq=head.seq + len(rows),
        payload=payload,
        hash=sha256(head.tick_hash + payload).digest(),
    )
    return TickCommit(
        stream=head.stream,
        tick=tick,
        decisions=rows,
        effects=effects,
        seq_hash=seq_hash,
        dead_letters=dead_letters,
    )


def after(head: Head, commit: TickCommit) -> Head:
    """Return the head that the commit leaves."""
    return replace(
        head,
        tick=commit.tick.tick,
        tick_hash=commit.tick.hash,
        seq=commit.tick.seq,
        seq_hash=commit.seq_hash,
        cursor=commit.tick.cursor,
        now_ms=commit.tick.now_ms,
    )


def lead(
    ledger: SqlLedger, *, holder: str = "a", ttl: timedelta = HEARTLESS, stream: str = STREAM
) -> Head:
    """Take over, which must work."""
    head = ledger.take_over(stream, holder=holder, ttl=ttl)
    assert head is not None
    return head


def decide(ledger: SqlLedger, decided: Sequence[Decided], *, holder: str = "a") -> TickCommit:
    """Take over and commit one tick."""
    commit = make_tick(lead(ledger, holder=holder), decided)
    ledger.commit(commit)
    return commit


def names(commit: TickCommit) -> list[tuple[int, bytes]]:
    """Return (seq, hash) of the tick's decisions, as a binder hears of them."""
    return [(row.seq, row.hash) for row in commit.decisions]


def check_history(ledger: SqlLedger) -> tuple[list[TickRow], list[DecisionRow]]:
    """Check what must hold of any history: dense, in order of generations, chained, head at end."""
    ticks = list(ledger.ticks(STREAM, after=0, limit=1_000_000))
    decisions = list(ledger.decisions(STREAM, after=0, limit=1_000_000))
    head = ledger.head(STREAM)
    assert head is not None
    assert [tick.tick for tick in ticks] == list(range(1, len(ticks) + 1))
    assert [decision.seq for decision in decisions] == list(range(1, len(decisions) + 1))
    generations = [tick.generation for tick in ticks]
    assert generations == sorted(generations)
    generation_of = {tick.tick: tick.generation for tick in ticks}
    assert all(generation_of[each.tick] == each.generation for each in decisions)
    assert (head.tick, head.tick_hash) == (len(ticks), _chain(ticks))
    assert (head.seq, head.seq_hash) == (len(decisions), _chain(decisions))
    return ticks, decisions


def _chain(rows: Sequence[TickRow] | Sequence[DecisionRow]) -> bytes:
    last = bytes(32)
    for row in rows:
        last = sha256(last + row.payload).digest()
        assert row.hash == last
    return last


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


class ConnectionLost(OperationalError):
    """The connection went away, as the driver would say it."""

    def __init__(self) -> None:
        super().__init__(
            "COMMIT", None, ConnectionResetError("connection lost"), connection_invalidated=True
        )


class Loss(Enum):
    """When the connection goes away."""

    BEFORE_THE_FIRST_STATEMENT = "before the first statement"
    BEFORE_COMMIT = "before COMMIT"
    """Where a statement is its own transaction, there is no COMMIT, and it is done."""
    AFTER_COMMIT = "after COMMIT"


@contextmanager
def losing(when: Loss) -> Iterator[None]:
    """Lose the connection of everything that writes."""

    def refuse(connection: Connection, cursor: Any, statement: str, *rest: Any) -> None:
        del connection, cursor, rest
        if re.match(r"\s*(INSERT|UPDATE|WITH)", statement):
            raise ConnectionLost

    def commit(connection: Connection) -> None:
        if when is Loss.AFTER_COMMIT:
            assert connection.connection.dbapi_connection is not None
            connection.connection.dbapi_connection.commit()
        raise ConnectionLost

    if when is Loss.BEFORE_THE_FIRST_STATEMENT:
        with _listening("before_cursor_execute", refuse):
            yield
    else:
        with _listening("commit", commit):
            yield


@contextmanager
def _listening(name: str, listener: Callable[..., None]) -> Iterator[None]:
    event.listen(Engine, name, listener)
    try:
        yield
    finally:
        event.remove(Engine, name, listener)
