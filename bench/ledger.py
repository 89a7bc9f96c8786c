"""What the ledger costs: `python -m bench.ledger --adapter sqlite|postgresql [-o json]`.

Commits ticks of several sizes, then lets one binder claim, finish and publish what they ask for.
Both databases write through to the disk. PostgreSQL runs on a server of its own unless `--url`
names a database that is empty and may be filled.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import Final, TypeVar

from decklog.adapters.clock import SystemClock
from decklog.adapters.ledger import migrate
from decklog.adapters.ledger.sql import SqlLedger
from decklog.ports.ledger import (
    DecisionRow,
    Effect,
    EffectKind,
    EffectState,
    EffectUpdate,
    Head,
    NewEffect,
    TickCommit,
    TickRow,
)
from tests.stack.postgres import PostgresServer

STREAM: Final = "bench"
OWNER: Final = "binder"
SIZES: Final = (0, 1, 10, 100, 500)
"""Decisions of a tick; the scheduler's own limit is 100."""
PAYLOAD_BYTES: Final = 700
"""The budget of a PodAssumed."""
COMMIT_SECONDS: Final = 3.0
ROUNDS: Final = 150
BATCH: Final = 100
UNFINISHED_LIMIT: Final = 2_001

Measured = dict[str, float | str]
Result = TypeVar("Result")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.ledger", description=__doc__)
    parser.add_argument("--adapter", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--url", help="an empty database, to be migrated and filled")
    parser.add_argument("-o", "--output", choices=["json", "table"], default="table")
    given = parser.parse_args(arguments)
    rows = measure(given.adapter, given.url)
    if given.output == "json":
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        print("  ".join(f"{name} {value}" for name, value in row.items()))


def measure(adapter: str, url: str | None = None) -> list[Measured]:
    with _database(adapter, url) as place:
        began = time.perf_counter()
        migrate.upgrade(place)
        migrated: Measured = {"what": "migrate", "p50_ms": _ms(time.perf_counter() - began)}
        with closing(SqlLedger(place, clock=SystemClock())) as ledger:
            return [migrated, *_leader(ledger), *_binder(ledger)]


def _leader(ledger: SqlLedger) -> Iterator[Measured]:
    head = ledger.take_over(STREAM, holder="bench")
    assert head is not None
    for size in SIZES:
        stopwatch = Stopwatch()
        while sum(stopwatch.wall) < COMMIT_SECONDS:
            commit = _make_tick(head, size)
            stopwatch.time(partial(ledger.commit, commit))
            head = _after(head, commit)
        yield {
            "what": "commit",
            "batch": size,
            **stopwatch.measured(),
            "decisions_per_second": round(size * len(stopwatch.wall) / sum(stopwatch.wall)),
        }


@dataclass
class Stopwatch:
    """Times of one kind of call. On a busy machine, processor time is the steadier one."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    def time(self, call: Callable[[], Result]) -> Result:
        processor, wall = time.process_time(), time.perf_counter()
        result = call()
        self.wall.append(time.perf_counter() - wall)
        self.processor.append(time.process_time() - processor)
        return result

    def measured(self) -> Measured:
        cuts = statistics.quantiles(self.wall, n=100)
        return {
            "p50_ms": _ms(cuts[49]),
            "p99_ms": _ms(cuts[98]),
            "cpu_ms": _ms(statistics.mean(self.processor)),
            "calls": len(self.wall),
        }


@dataclass
class _Binder:
    """Does what a binder does with each tick, and notes how long each call takes."""

    ledger: SqlLedger
    stopwatches: dict[str, Stopwatch] = field(default_factory=dict)

    def work_off(self, commit: TickCommit) -> None:
        ledger = self.ledger
        decisions = [(row.seq, row.hash) for row in commit.decisions]
        half = len(decisions) // 2
        counting = partial(ledger.unfinished_effects, STREAM, limit=UNFINISHED_LIMIT)
        self._timed("unfinished_effects", counting)
        claimed = self._timed(
            "claim", partial(ledger.claim, STREAM, owner=OWNER, decisions=decisions[:half])
        )
        sweeping = partial(ledger.sweep, STREAM, owner=OWNER, seq_last=decisions[-1][0])
        swept = self._timed("sweep", partial(sweeping, limit=half))
        for effects in (claimed, swept):
            updates = [_done(effect) for effect in effects]
            self._timed("finish", partial(ledger.finish, STREAM, owner=OWNER, updates=updates))
        found = self._timed(
            "unpublished", partial(ledger.unpublished, STREAM, owner=OWNER, limit=half)
        )
        self._timed("published", partial(ledger.published, STREAM, effects=found))
        self._timed("due", partial(ledger.due, STREAM, owner=OWNER, limit=half))
        self._timed("beat", ledger.beat)

    def _timed(self, what: str, call: Callable[[], Result]) -> Result:
        return self.stopwatches.setdefault(what, Stopwatch()).time(call)


def _binder(ledger: SqlLedger) -> Iterator[Measured]:
    """Begin with what the leader left: a large table, of which nothing is done yet."""
    ledger.work_as(STREAM, owner=OWNER, kind="binder")
    head = ledger.head(STREAM)
    assert head is not None
    binder = _Binder(ledger)
    for _ in range(ROUNDS):
        commit = _make_tick(head, 2 * BATCH)
        ledger.commit(commit)
        head = _after(head, commit)
        binder.work_off(commit)
    for what, stopwatch in binder.stopwatches.items():
        yield {"what": what, "batch": BATCH, **stopwatch.measured()}


def _make_tick(head: Head, count: int) -> TickCommit:
    seq_hash = head.seq_hash
    rows: list[DecisionRow] = []
    for seq in range(head.seq + 1, head.seq + count + 1):
        payload = os.urandom(PAYLOAD_BYTES)
        seq_hash = sha256(seq_hash + payload).digest()
        name = sha256(b"%d" % seq).hexdigest()
        rows.append(
            DecisionRow(
                seq=seq,
                tick=head.tick + 1,
                generation=head.generation,
                kind="PodAssumed",
                pod_uid=f"{name[:8]}-{name[8:12]}-{name[12:16]}-{name[16:20]}-{name[20:32]}",
                namespace="default",
                pod=f"web-{name[:10]}-{name[10:15]}",
                node=f"node-{seq % 1000}",
                reason=None,
                closes_seq=None,
                now_ms=head.now_ms,
                payload=payload,
                hash=seq_hash,
            )
        )
    tick = TickRow(
        tick=head.tick + 1,
        generation=head.generation,
        cursor=head.cursor + count,
        now_ms=head.now_ms,
        cycles=count,
        config_hash="bench",
        rules=1,
        seq=head.seq + count,
        payload=seq_hash,
        hash=sha256(head.tick_hash + seq_hash).digest(),
    )
    effects = [
        NewEffect(seq=row.seq, n=0, kind=EffectKind.BIND, pod_uid=row.pod_uid) for row in rows
    ]
    return TickCommit(stream=STREAM, tick=tick, decisions=rows, effects=effects, seq_hash=seq_hash)


def _after(head: Head, commit: TickCommit) -> Head:
    return replace(
        head,
        tick=commit.tick.tick,
        tick_hash=commit.tick.hash,
        seq=commit.tick.seq,
        seq_hash=commit.seq_hash,
        cursor=commit.tick.cursor,
    )


def _done(effect: Effect) -> EffectUpdate:
    return EffectUpdate(
        seq=effect.seq,
        n=effect.n,
        state=EffectState.DONE,
        outcome='{"status": 201}',
        publish=True,
    )


def _ms(seconds: float) -> float:
    return round(seconds * 1e3, 2)


@contextmanager
def _database(adapter: str, url: str | None) -> Iterator[str]:
    if url is not None:
        yield url
    elif adapter == "sqlite":
        with tempfile.TemporaryDirectory(prefix="decklog-bench-") as folder:
            yield f"sqlite:///{folder}/ledger.db"
    else:
        with PostgresServer(detached=True) as server:
            yield server.create_database("bench")


if __name__ == "__main__":
    main()
