"""Reads a topic behind a position that the caller keeps.

`poll()` says nothing when the broker is down or the topic is gone, and goes on without a word
in a topic of the same name that was created anew. So every two seconds of reading we ask who
the topic is and where it ends. After any exception from `poll()` the consumer is thrown away:
polling it again may never return.

Records that cannot be unpacked (a broken checksum, a header that is not UTF-8) are read once
more, because the damage may be in transit. Damage that stays becomes one entry without type
at the last position that it covers, so it stops nobody and reads the same from everywhere.
"""

import struct
import threading
import time
import zlib
from collections.abc import Sequence
from contextlib import closing, suppress
from datetime import timedelta
from typing import Final

import zstandard
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import (
    CorruptRecordError,
    LogTruncationError,
    OffsetOutOfRangeError,
)

from decklog.adapters.log.envelope import entry_of
from decklog.adapters.log.kafka.cluster import Cluster
from decklog.adapters.log.kafka.connection import (
    ANSWER_MS_MAX,
    CLOSE_SECONDS_MAX,
    ERRORS,
    Connection,
    translated,
)
from decklog.core.errors import LogUnavailable, PositionLost
from decklog.ports.log import Entry

CHECK_SECONDS: Final = 2.0
"""A check costs 5 ms. A topic that was re-created goes unnoticed for at most this long."""
POLL_MS_MAX: Final = 500
POLL_SECONDS_MIN: Final = 0.002
"""What is left of a wait when less than this is left is not worth another poll."""
STALLED_CHECKS_MAX: Final = 2
DAMAGED_POSITIONS_MAX: Final = 10_000
"""More than a batch can hold; if all of them fail, the fault is ours and not the log's."""
ONE_BATCH_BYTES: Final = 1
"""A broker answers at least one whole batch, however little is asked for."""
PROBE_MS_MAX: Final = 5_000

_UNREADABLE: Final = (
    CorruptRecordError,
    ArithmeticError,
    AssertionError,
    EOFError,
    LookupError,
    RuntimeError,  # lz4's
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
    zstandard.ZstdError,
)


class Reader:
    """Reads for one thread at a time."""

    def __init__(self, connection: Connection, cluster: Cluster, topic: str) -> None:
        self._connection = connection
        self._cluster = cluster
        self._topic = topic
        self._partition = TopicPartition(topic, 0)
        self._lock = threading.Lock()
        self._consumer: KafkaConsumer | None = None
        self._after = -1
        self._identity: str | None = None
        self._checked_at = 0.0
        self._stalled_checks = 0
        self._suspect_after: int | None = None

    def read(self, *, after: int, limit: int, timeout: timedelta) -> Sequence[tuple[int, Entry]]:
        deadline = time.monotonic() + timeout.total_seconds()
        with self._lock:
            while True:
                remaining_ms = max(0, int((deadline - time.monotonic()) * 1000))
                found = self._poll(after, limit, min(POLL_MS_MAX, remaining_ms))
                if found or time.monotonic() + POLL_SECONDS_MIN >= deadline:
                    return found

    def identity(self) -> str:
        """Return the id of the topic that the positions of this reader belong to."""
        if self._identity is None:
            self._identity = self._cluster.identity(self._topic)
        return self._identity

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _poll(self, after: int, limit: int, timeout_ms: int) -> list[tuple[int, Entry]]:
        consumer = self._consumer_behind(after)
        try:
            polled = consumer.poll(timeout_ms=timeout_ms, max_records=limit)
        except (OffsetOutOfRangeError, LogTruncationError) as error:
            self._drop()
            raise self._lost(after) from error
        except _UNREADABLE as error:
            self._drop()
            return self._read_damage(after, error)
        except ERRORS as error:
            self._drop()
            msg = f"cannot read topic {self._topic!r}: {type(error).__name__}: {error}"
            raise LogUnavailable(msg) from error
        records = polled.get(self._partition, [])
        if records:
            self._after = records[-1].offset
        if time.monotonic() - self._checked_at >= CHECK_SECONDS:
            self._check(consumer, after, is_silent=not records)
        return [(each.offset, entry_of(each.key, each.value, each.headers)) for each in records]

    def _consumer_behind(self, after: int) -> KafkaConsumer:
        """Return the consumer, standing behind the position; a new one belongs to our topic."""
        if self._consumer is None:
            if self._cluster.identity(self._topic) != self.identity():
                raise self._lost(after)
            self._consumer = self._connection.consumer()
            self._consumer.assign([self._partition])
            self._consumer.seek(self._partition, after + 1)
            self._checked_at = time.monotonic()
        elif self._after != after:
            self._consumer.seek(self._partition, after + 1)
        self._after = after
        return self._consumer

    def _check(self, consumer: KafkaConsumer, after: int, *, is_silent: bool) -> None:
        """Hear from the broker that it is there and the topic is ours; replace a stuck consumer."""
        if self._cluster.identity(self._topic) != self.identity():
            raise self._lost(after)
        _, last = self._cluster.bounds(self._topic)
        self._checked_at = time.monotonic()
        with translated(f"read topic {self._topic!r}"):
            position = consumer.position(self._partition, ANSWER_MS_MAX) or 0
        is_stalled = is_silent and position <= last
        self._stalled_checks = self._stalled_checks + 1 if is_stalled else 0
        if self._stalled_checks > STALLED_CHECKS_MAX:
            self._stalled_checks = 0
            self._drop()

    def _lost(self, after: int) -> PositionLost:
        """Return the error for a position that is gone; a new topic is ours from now on."""
        is_new = self._cluster.identity(self._topic) != self.identity()
        first, last = self._cluster.bounds(self._topic)
        error = PositionLost(after=after, first=first, last=last)
        self._drop()
        if is_new:
            error.add_note(f"topic {self._topic!r} was deleted and created again")
            self._identity = None
        return error

    def _read_damage(self, after: int, error: Exception) -> list[tuple[int, Entry]]:
        """Return one entry for what cannot be unpacked behind a position, or nothing yet."""
        if self._suspect_after != after:
            self._suspect_after = after
            return []
        last = self._damage_end(after + 1, error) - 1
        value = f"the records up to position {last} are damaged and cannot be unpacked"
        return [(last, Entry(key="", type="", id="", time="", value=value.encode()))]

    def _damage_end(self, first: int, cause: Exception) -> int:
        """Return the first position from `first` on that can be read, or the end.

        One at a time, because the damage may be in several batches with good ones between
        them, and nothing tells where a batch that cannot be unpacked ends.
        """
        _, last = self._cluster.bounds(self._topic)
        with closing(_Probe(self._connection, self._partition)) as probe:
            for position in range(first, min(last + 1, first + DAMAGED_POSITIONS_MAX)):
                readable = probe.readable_from(position)
                if readable is not None:
                    return readable
        if last - first >= DAMAGED_POSITIONS_MAX:
            msg = f"cannot unpack topic {self._topic!r} at position {first} and everything after it"
            raise LogUnavailable(msg) from cause
        return last + 1

    def _drop(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            _close(consumer)


class _Probe:
    """Tries positions, with a consumer that gets one batch at a time.

    It may be polled again after an exception, because it seeks to another position first.
    """

    def __init__(self, connection: Connection, partition: TopicPartition) -> None:
        self._partition = partition
        self._consumer = connection.consumer(fetch_bytes=ONE_BATCH_BYTES)
        self._consumer.assign([partition])

    def readable_from(self, position: int) -> int | None:
        """Return the first readable position, or None if the one that was asked for is damaged."""
        self._consumer.seek(self._partition, position)
        with translated(f"read topic {self._partition.topic!r}"):
            try:
                polled = self._consumer.poll(timeout_ms=PROBE_MS_MAX, max_records=1)
            except _UNREADABLE:
                return None
            if records := polled.get(self._partition):
                return records[0].offset
            behind_markers = self._consumer.position(self._partition, ANSWER_MS_MAX)
        if behind_markers == position:
            msg = f"cannot read topic {self._partition.topic!r} at position {position}: no answer"
            raise LogUnavailable(msg)
        return behind_markers

    def close(self) -> None:
        _close(self._consumer)


def _close(consumer: KafkaConsumer) -> None:
    with suppress(*ERRORS):
        consumer.close(autocommit=False, timeout_ms=CLOSE_SECONDS_MAX * 1000)
