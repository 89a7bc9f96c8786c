"""What a Kafka cluster answers about topics: ids, bounds, settings."""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from kafka import KafkaAdminClient, OffsetSpec, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import (
    InvalidConfigurationError,
    InvalidReplicationFactorError,
    InvalidTopicError,
    PolicyViolationError,
    RetriableError,
    TopicAlreadyExistsError,
)

from decklog.adapters.log.envelope import ENTRY_BYTES_MAX
from decklog.adapters.log.kafka.connection import ERRORS, Connection, translated
from decklog.core.errors import LogUnavailable, Refused

Answer = TypeVar("Answer")

FRAMING_BYTES: Final = 1_024
"""Kept free below max.message.bytes: the batch's header, and lengths."""

_IMPOSSIBLE: Final = (
    InvalidConfigurationError,
    InvalidReplicationFactorError,
    InvalidTopicError,
    PolicyViolationError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFound:
    """A topic as it is."""

    name: str
    topic_id: str
    partitions: int
    replication: int
    configs: Mapping[str, str]


class Cluster:
    """Asks one question at a time, from any thread."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._admin: KafkaAdminClient | None = None

    def identity(self, topic: str) -> str:
        """Return the topic's id, which changes when it is deleted and created again."""
        found = self._ask(f"find topic {topic!r}", lambda admin: admin.describe_topics([topic])[0])
        if found["error_code"] != 0:
            msg = f"cannot find topic {topic!r} at {self._connection.bootstrap!r}"
            raise LogUnavailable(msg)
        return str(found["topic_id"])

    def bounds(self, topic: str) -> tuple[int, int]:
        partition = TopicPartition(topic, 0)

        def ask(admin: KafkaAdminClient) -> tuple[int, int]:
            first = admin.list_partition_offsets({partition: OffsetSpec.EARLIEST})
            end = admin.list_partition_offsets({partition: OffsetSpec.LATEST})
            return first[partition].offset, end[partition].offset - 1

        return self._ask(f"read the bounds of topic {topic!r}", ask)

    def entry_bytes_max(self, topic: str) -> int:
        """Return how large an entry may be.

        We refuse what is larger: a batch that the broker refuses ends an idempotent producer.
        """
        limit = int(self.configs([topic])[topic]["max.message.bytes"])
        return min(ENTRY_BYTES_MAX, limit - FRAMING_BYTES)

    def topics(self, prefix: str) -> Sequence[TopicFound]:
        """Return the topics whose names begin so."""
        described = self._ask("list topics", lambda admin: admin.describe_topics())
        found = [
            topic for topic in described if topic["name"].startswith(prefix) and topic["partitions"]
        ]
        configs = self.configs([topic["name"] for topic in found])
        return [
            TopicFound(
                name=topic["name"],
                topic_id=str(topic["topic_id"]),
                partitions=len(topic["partitions"]),
                replication=len(topic["partitions"][0]["replica_nodes"]),
                configs=configs[topic["name"]],
            )
            for topic in found
        ]

    def configs(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        if not topics:
            return {}
        resources = [ConfigResource(ConfigResourceType.TOPIC, topic) for topic in topics]
        found = self._ask(
            f"read the settings of {', '.join(topics)}",
            lambda admin: admin.describe_configs(resources, config_filter="all")["topic"],
        )
        for topic in topics:
            if not found.get(topic):
                msg = f"cannot read the settings of topic {topic!r}: it is gone, or hidden from us"
                raise LogUnavailable(msg)
        return {
            topic: {name: str(config["value"]) for name, config in found[topic].items()}
            for topic in topics
        }

    def create(
        self, topic: str, *, partitions: int, replication: int, configs: Mapping[str, str]
    ) -> bool:
        """Create a topic and wait until it can be used; say False if there is one already."""
        wanted = {
            "num_partitions": partitions,
            "replication_factor": replication,
            "configs": dict(configs),
        }

        def ask(admin: KafkaAdminClient) -> bool:
            try:
                admin.create_topics({topic: wanted}, wait_for_metadata=True)
            except TopicAlreadyExistsError:
                return False
            except _IMPOSSIBLE as error:
                msg = f"cannot create topic {topic!r} with {replication} replicas: {error}"
                raise Refused(msg) from error
            return True

        return self._ask(f"create topic {topic!r}", ask)

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _ask(self, what: str, question: Callable[[KafkaAdminClient], Answer]) -> Answer:
        """Ask over the connection that we have, else over a new one.

        The broker closes what is idle for ten minutes, and the first question after that (or
        after a restart) fails at once.
        """
        with self._lock, translated(what):
            if self._admin is not None:
                try:
                    return question(self._admin)
                except ERRORS as error:
                    self._drop()
                    if not isinstance(error, RetriableError):
                        raise
            self._admin = self._connection.admin()
            try:
                return question(self._admin)
            except ERRORS:
                self._drop()
                raise

    def _drop(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            with suppress(*ERRORS):
                admin.close()
