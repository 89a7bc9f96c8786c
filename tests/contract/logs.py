"""The logs that the contract is held against: what to open, to break and to make again."""

import gc
import itertools
import logging
import shutil
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final, Protocol

from kafka import KafkaAdminClient, TopicPartition

from decklog.adapters.log.embedded import FILE, EmbeddedLog
from decklog.adapters.log.kafka.log import KafkaLog
from decklog.ports.log import Entry, Log
from tests.stack.kafka import KafkaBroker

ROOT: Final = Path(__file__).parents[2]
FORGOTTEN_SOCKETS: Final = "ignore:unclosed <socket:ResourceWarning"
"""For tests that take the broker away, see KafkaStore.close()."""
KAFKA_LOGGER: Final = logging.getLogger("kafka")
SOON: Final = timedelta(seconds=10)
"""For what comes without fail; the machine may be slow."""
NOW: Final = timedelta(0)
READ_LIMIT: Final = 1_000
APPEND_TIMEOUT: Final = timedelta(seconds=2)


class Store(Protocol):
    """A place that holds one log; it closes what it opened."""

    def open(self) -> Log: ...

    def open_another(self) -> Log:
        """Open a different log of the same store."""
        ...

    def recreate(self) -> None:
        """Delete the log and make a new one of the same name."""
        ...

    def forget_before(self, position: int) -> None:
        """Remove entries as retention would."""
        ...

    def outage(self) -> AbstractContextManager[None]:
        """Make appends fail while the context lasts."""
        ...

    def writer_argv(self) -> Sequence[str]:
        """Return the arguments of `python -m tests.contract.append_until_killed`."""
        ...

    def close(self) -> None: ...


@dataclass
class EmbeddedStore:
    folder: Path
    opened: list[Log] = field(default_factory=list)

    def open(self, name: str = "events", *, read_only: bool = False) -> Log:
        log = EmbeddedLog(self.folder, name, read_only=read_only)
        self.opened.append(log)
        return log

    def open_another(self) -> Log:
        return self.open("decisions")

    def recreate(self) -> None:
        self.close()
        shutil.rmtree(self.folder)

    def forget_before(self, position: int) -> None:
        with self._database() as database:
            database.execute('DELETE FROM "log_events" WHERE position < ?', (position,))

    @contextmanager
    def outage(self) -> Iterator[None]:
        with self._database() as database:
            database.execute("BEGIN IMMEDIATE")
            yield
            database.execute("ROLLBACK")

    def writer_argv(self) -> Sequence[str]:
        return ["embedded", str(self.folder), "events"]

    def close(self) -> None:
        for log in self.opened:
            log.close()

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.folder / FILE, isolation_level=None)) as database:
            yield database


@dataclass
class KafkaStore:
    broker: KafkaBroker
    topic: str = field(default_factory=lambda: f"contract.{uuid.uuid4().hex}")
    opened: list[Log] = field(default_factory=list)

    def __post_init__(self) -> None:
        # pytest would keep the records, their errors, and with these the sockets in their frames.
        KAFKA_LOGGER.setLevel(logging.CRITICAL)
        create_topic(self.broker, self.topic)

    def open(self, topic: str | None = None, append_timeout: timedelta = APPEND_TIMEOUT) -> Log:
        log = KafkaLog(self.broker.bootstrap, topic or self.topic, append_timeout=append_timeout)
        self.opened.append(log)
        return log

    def open_another(self) -> Log:
        create_topic(self.broker, f"{self.topic}.other")
        return self.open(f"{self.topic}.other")

    def recreate(self) -> None:
        delete_topic(self.broker, self.topic)
        create_topic(self.broker, self.topic)

    def forget_before(self, position: int) -> None:
        with admin(self.broker) as client:
            client.delete_records({TopicPartition(self.topic, 0): position})

    @contextmanager
    def outage(self) -> Iterator[None]:
        self.broker.kill()
        try:
            yield
        finally:
            self.broker.restart()

    def writer_argv(self) -> Sequence[str]:
        return ["kafka", self.broker.bootstrap, self.topic]

    def segment(self) -> Path:
        """Return the file that holds the topic's records."""
        return self.broker.folder / "data" / f"{self.topic}-0" / f"{0:020}.log"

    def close(self) -> None:
        """Close the logs, and let go of the sockets that kafka-python forgot.

        It leaves each one that could not connect to the collector, which complains in
        whatever test it runs in.
        """
        for log in self.opened:
            log.close()
        self.opened.clear()
        gc.collect()
        KAFKA_LOGGER.setLevel(logging.NOTSET)


@contextmanager
def admin(broker: KafkaBroker) -> Iterator[KafkaAdminClient]:
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as client:
        yield client


def create_topic(broker: KafkaBroker, topic: str, **configs: str) -> None:
    """Create a topic; one of that name that was just deleted may be in the way for a moment."""
    wanted = {"num_partitions": 1, "replication_factor": 1, "configs": configs}
    with admin(broker) as client:
        client.create_topics({topic: wanted}, wait_for_metadata=True)


def delete_topic(broker: KafkaBroker, topic: str) -> None:
    with admin(broker) as client:
        client.delete_topics([topic])
        deadline = time.monotonic() + SOON.total_seconds()
        while client.describe_topics([topic])[0]["error_code"] == 0:
            assert time.monotonic() < deadline, f"{topic} is still there"


def make_entries(count: int, *, first: int = 0, prefix: str = "e", size: int = 20) -> list[Entry]:
    return [
        Entry(
            key=f"pod/default/{prefix}",
            type="dev.decklog.pod.upserted.v1",
            id=f"{prefix}{number}",
            time="2026-01-01T00:00:00Z",
            value=b"x" * size,
            source="test",
        )
        for number in range(first, first + count)
    ]


def read_all(log: Log, *, after: int = -1, limit: int = READ_LIMIT) -> list[tuple[int, Entry]]:
    """Read until the last position that the log has now."""
    _, last = log.bounds()
    found: list[tuple[int, Entry]] = []
    while after < last:
        page = log.read(after=after, limit=limit, timeout=SOON)
        assert page, f"nothing after {after}, and the log ends at {last}"
        assert len(page) <= limit
        found += page
        after = page[-1][0]
    return found


def ids(read: Sequence[tuple[int, Entry]]) -> list[str]:
    return [entry.id for _, entry in read]


@contextmanager
def writing_process(store: Store) -> Iterator[Iterator[int]]:
    """Run a process that appends for ever, and yield the positions it was told, as they come."""
    argv = [sys.executable, "-m", "tests.contract.append_until_killed", *store.writer_argv()]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            yield (int(line) for line in child.stdout)
        finally:
            child.kill()


def take(positions: Iterator[int], count: int) -> list[int]:
    return list(itertools.islice(positions, count))
