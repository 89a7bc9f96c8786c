"""What the log costs: `python -m bench.log --adapter embedded|kafka [-o json]`.

Appends in batches of several sizes, one read of everything, and the time from an append until
another reader has the entry. Kafka runs on a broker of its own unless `--bootstrap` names one.
"""

import argparse
import json
import statistics
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

from decklog.adapters.log.embedded import EmbeddedLog
from decklog.adapters.log.kafka.cluster import Cluster
from decklog.adapters.log.kafka.connection import Connection
from decklog.adapters.log.kafka.log import KafkaLog
from decklog.ports.log import Entry, Log
from tests.stack.kafka import KafkaBroker

BATCHES: Final = (1, 100, 1_000)
SIZES_BYTES: Final = (100, 1_000)
APPEND_SECONDS: Final = 2.0
READ_ENTRIES: Final = 100_000
READ_LIMIT: Final = 2_000
DELIVERIES: Final = 200
DELIVERY_PAUSE_SECONDS: Final = 0.01
WAIT: Final = timedelta(seconds=10)

Measured = dict[str, float | str]
Opener = Callable[[], Log]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.log", description=__doc__)
    parser.add_argument("--adapter", choices=["embedded", "kafka"], default="embedded")
    parser.add_argument("--bootstrap", help="a Kafka that runs already")
    parser.add_argument("-o", "--output", choices=["json", "table"], default="table")
    given = parser.parse_args(arguments)
    rows = measure(given.adapter, given.bootstrap)
    if given.output == "json":
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        print("  ".join(f"{name} {value}" for name, value in row.items()))


def measure(adapter: str, bootstrap: str | None = None) -> list[Measured]:
    with _place(adapter, bootstrap) as make_opener:
        rows = [
            _append(make_opener(), size_bytes, batch)
            for size_bytes in SIZES_BYTES
            for batch in BATCHES
        ]
        return [*rows, _read(make_opener()), _deliver(make_opener())]


def _append(open_log: Opener, size_bytes: int, batch: int) -> Measured:
    entries = _entries(batch, size_bytes)
    with closing(open_log()) as log:
        log.append(entries)
        seconds: list[float] = []
        cpu = time.process_time()
        while sum(seconds) < APPEND_SECONDS:
            start = time.perf_counter()
            log.append(entries)
            seconds.append(time.perf_counter() - start)
        cpu = time.process_time() - cpu
    count = batch * len(seconds)
    return {
        "what": "append",
        "value_bytes": size_bytes,
        "batch": batch,
        "entries_per_second": round(count / sum(seconds)),
        "cpu_us_per_entry": round(cpu * 1e6 / count, 1),
        **_quantiles(seconds),
    }


def _read(open_log: Opener) -> Measured:
    with closing(open_log()) as log:
        for _ in range(READ_ENTRIES // 1_000):
            log.append(_entries(1_000, 1_000))
    with closing(open_log()) as log:
        log.read(after=-1, limit=1, timeout=WAIT)
        start, cpu = time.perf_counter(), time.process_time()
        after = 0
        while after < READ_ENTRIES - 1:
            after = log.read(after=after, limit=READ_LIMIT, timeout=WAIT)[-1][0]
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    return {
        "what": "read",
        "value_bytes": 1_000,
        "entries_per_second": round(READ_ENTRIES / seconds),
        "cpu_us_per_entry": round(cpu * 1e6 / READ_ENTRIES, 1),
    }


def _deliver(open_log: Opener) -> Measured:
    """Measure from before the append until another object has read the entry."""
    sent: list[float] = []
    seconds: list[float] = []

    def follow(log: Log) -> None:
        after = -1
        while len(seconds) < DELIVERIES:
            for position, _ in log.read(after=after, limit=READ_LIMIT, timeout=WAIT):
                seconds.append(time.perf_counter() - sent[position])
                after = position

    with closing(open_log()) as writer, closing(open_log()) as reader:
        reader.read(after=-1, limit=1, timeout=timedelta(0))
        following = threading.Thread(target=follow, args=[reader])
        following.start()
        for _ in range(DELIVERIES):
            time.sleep(DELIVERY_PAUSE_SECONDS)
            sent.append(time.perf_counter())
            writer.append(_entries(1, 1_000))
        following.join()
    return {"what": "append to read", "value_bytes": 1_000, "batch": 1, **_quantiles(seconds)}


def _quantiles(seconds: Sequence[float]) -> Measured:
    cuts = statistics.quantiles(seconds, n=100)
    return {"p50_ms": round(cuts[49] * 1e3, 2), "p99_ms": round(cuts[98] * 1e3, 2)}


def _entries(count: int, size_bytes: int) -> list[Entry]:
    """Return entries whose bodies compress well, as JSON does."""
    body = uuid.uuid4().hex.encode() * (size_bytes // 32 + 1)
    return [
        Entry(
            key="Pod/default/web-7f9c6d5b8-x2x7q",
            type="dev.decklog.pod.upserted.v1",
            id=f"{number}",
            time="2026-01-01T00:00:00Z",
            value=body[:size_bytes],
            source="bench",
        )
        for number in range(count)
    ]


@contextmanager
def _place(adapter: str, bootstrap: str | None) -> Iterator[Callable[[], Opener]]:
    """Yield what makes a fresh log and returns how to open it."""
    if adapter == "embedded":
        with tempfile.TemporaryDirectory(dir=".") as folder:
            yield lambda: _embedded(Path(folder))
    elif bootstrap is not None:
        yield lambda: _kafka(bootstrap)
    else:
        with KafkaBroker(jvm=["-Xmx512m", "-XX:TieredStopAtLevel=4"]) as broker:
            yield lambda: _kafka(broker.bootstrap)


def _embedded(folder: Path) -> Opener:
    store = folder / uuid.uuid4().hex
    return lambda: EmbeddedLog(store, "events")


def _kafka(bootstrap: str) -> Opener:
    topic = f"bench.{uuid.uuid4().hex}"
    with closing(Cluster(Connection(bootstrap=bootstrap))) as cluster:
        cluster.create(topic, partitions=1, replication=1, configs={})
    return lambda: KafkaLog(bootstrap, topic)


if __name__ == "__main__":
    main()
