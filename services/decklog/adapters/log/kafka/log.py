"""The log on one partition of a Kafka topic; a position is an offset."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from decklog.adapters.log.kafka.cluster import Cluster
from decklog.adapters.log.kafka.connection import Connection
from decklog.adapters.log.kafka.reader import Reader
from decklog.adapters.log.kafka.writer import Writer
from decklog.core.errors import LogUnavailable
from decklog.ports.log import Entry

APPEND_TIMEOUT: Final = timedelta(seconds=10)
"""Longer than the restart of a broker or the election of a leader, which then go unnoticed."""


class KafkaLog:
    """A topic that exists (`topics apply`); it connects when it is first used.

    `security` holds kafka-python's settings for TLS and SASL (`security_protocol`, `sasl_…`,
    `ssl_…`). One thread may read while others append and ask for bounds.

    Positions are not dense where somebody wrote with transactions, and the last of `bounds()`
    may then hold no entry. `identity()` is that of the topic whose positions were read here;
    it changes once a read has said, with PositionLost, that the topic was created anew.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        security: Mapping[str, Any] | None = None,
        append_timeout: timedelta = APPEND_TIMEOUT,
    ) -> None:
        connection = Connection(bootstrap=bootstrap, security=security or {})
        self._topic = topic
        self._cluster = Cluster(connection)
        self._writer = Writer(connection, self._cluster, topic, timeout=append_timeout)
        self._reader = Reader(connection, self._cluster, topic)
        self._is_closed = False

    def append(self, entries: Sequence[Entry]) -> int:
        self._check_open()
        if not entries:
            return self.bounds()[1]
        return self._writer.append(entries)

    def read(self, *, after: int, limit: int, timeout: timedelta) -> Sequence[tuple[int, Entry]]:
        self._check_open()
        return self._reader.read(after=after, limit=limit, timeout=timeout)

    def bounds(self) -> tuple[int, int]:
        self._check_open()
        return self._cluster.bounds(self._topic)

    def identity(self) -> str:
        self._check_open()
        return self._reader.identity()

    def close(self) -> None:
        """Close the clients; a call in another thread ends first."""
        self._is_closed = True
        self._writer.close()
        self._reader.close()
        self._cluster.close()

    def _check_open(self) -> None:
        if self._is_closed:
            msg = f"cannot use topic {self._topic!r}: the log is closed"
            raise LogUnavailable(msg)
