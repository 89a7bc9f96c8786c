"""Appends to a topic so that what gets written is always a prefix of what was asked for.

One batch is sent, flushed and acknowledged before the next one is filled: kafka-python keeps
one batch of a partition in flight anyway, so this costs nothing, bounds the memory (the
producer itself has no bound), and leaves no later batch that could overtake a failed one.
After any error the producer is thrown away with all that it holds. It may be in a state that
refuses everything for ever, or that never sends again although the broker answers.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta

from kafka import KafkaProducer
from kafka.errors import MessageSizeTooLargeError, RecordListTooLargeError, UnknownError

from decklog.adapters.log.envelope import check_sizes, headers_of, size_of
from decklog.adapters.log.kafka.cluster import Cluster
from decklog.adapters.log.kafka.connection import (
    BATCH_BYTES,
    CLOSE_SECONDS_MAX,
    ERRORS,
    Connection,
    translated,
)
from decklog.core.errors import LogUnavailable
from decklog.ports.log import Entry


class Writer:
    def __init__(
        self, connection: Connection, cluster: Cluster, topic: str, *, timeout: timedelta
    ) -> None:
        self._connection = connection
        self._cluster = cluster
        self._topic = topic
        self._timeout = timeout
        self._lock = threading.Lock()
        self._producer: KafkaProducer | None = None
        self._entry_bytes_max: int | None = None

    def append(self, entries: Sequence[Entry]) -> int:
        """Append the entries and return the position of the last one."""
        with self._lock:
            if self._entry_bytes_max is None:
                self._entry_bytes_max = self._cluster.entry_bytes_max(self._topic)
            check_sizes(entries, self._entry_bytes_max)
            last = -1
            with translated(f"append to topic {self._topic!r}"):
                for batch in _batches(entries, min(BATCH_BYTES, self._entry_bytes_max)):
                    last = self._send(batch)
        return last

    def close(self) -> None:
        with self._lock:
            self._discard()

    def _send(self, batch: Sequence[Entry]) -> int:
        if self._producer is None:
            self._producer = self._connection.producer()
        try:
            return self._send_by(self._producer, batch)
        except (MessageSizeTooLargeError, RecordListTooLargeError):
            self._entry_bytes_max = None  # Somebody lowered it: ask again before the next append.
            self._discard()
            raise
        except ERRORS:
            self._discard()
            raise
        except ValueError as error:  # For a partition that was there a moment ago.
            self._discard()
            msg = f"cannot append to topic {self._topic!r}: {error}"
            raise LogUnavailable(msg) from error

    def _send_by(self, producer: KafkaProducer, batch: Sequence[Entry]) -> int:
        deadline = time.monotonic() + self._timeout.total_seconds()
        futures = [
            producer.send(
                self._topic,
                partition=0,
                key=entry.key.encode(),
                value=entry.value,
                headers=headers_of(entry),
            )
            for entry in batch
        ]
        with suppress(UnknownError):  # The batch was split, and the halves are on their way.
            producer.flush(timeout=self._timeout.total_seconds())
        last = -1
        for future in futures:
            last = future.get(timeout=max(0.0, deadline - time.monotonic())).offset
        return last

    def _discard(self) -> None:
        """Stop the producer without sending what it holds.

        `close()` alone flushes first; when that takes too long it raises, and leaves a thread
        that goes on sending: old entries, after those that replaced them.
        """
        producer, self._producer = self._producer, None
        if producer is not None:
            producer._sender.force_close()  # type: ignore[attr-defined]
            with suppress(*ERRORS):
                producer.close(timeout=CLOSE_SECONDS_MAX)


def _batches(entries: Sequence[Entry], size_bytes_max: int) -> Iterator[Sequence[Entry]]:
    """Cut the entries into runs that fit into one batch; one entry may be larger than that."""
    start, size_bytes = 0, 0
    for index, entry in enumerate(entries):
        entry_bytes = size_of(entry)
        if index > start and size_bytes + entry_bytes > size_bytes_max:
            yield entries[start:index]
            start, size_bytes = index, 0
        size_bytes += entry_bytes
    if start < len(entries):
        yield entries[start:]
