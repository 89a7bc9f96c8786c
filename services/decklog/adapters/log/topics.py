"""The one table of Kafka topics, and what makes a Kafka cluster look like it.

Applying creates what is missing. It never deletes, and never changes a topic that is there:
what differs is said in words, because a person has to decide what it means.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from decklog.adapters.log.kafka.cluster import Cluster, TopicFound
from decklog.adapters.log.kafka.connection import Connection
from decklog.core.errors import BadConfiguration

PREFIX: Final = "decklog."
CLUSTER_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
MESSAGE_BYTES_MAX: Final = 1_048_588
"""Kafka's default, said aloud: a broker's own may be lower, and then entries are refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """What a topic has to be like."""

    pattern: str
    content: str
    key: str
    cleanup: str = "delete"
    retention: timedelta | None = timedelta(days=7)
    """What has to outlive it is in the archive before; None where only compaction removes."""
    partitions: int = 1
    """One: the offset is the total order."""
    is_optional: bool = False

    def name(self, cluster: str) -> str:
        return self.pattern.replace("<cluster>", cluster)

    def configs(self, replication: int) -> Mapping[str, str]:
        retention_ms = -1 if self.retention is None else self.retention // timedelta(milliseconds=1)
        return {
            "cleanup.policy": self.cleanup,
            "retention.ms": str(retention_ms),
            "retention.bytes": "-1",
            "min.insync.replicas": str(min(2, max(1, replication - 1))),
            "max.message.bytes": str(MESSAGE_BYTES_MAX),
            "unclean.leader.election.enable": "false",
        }


EVENTS: Final = Topic(
    pattern="decklog.<cluster>.events.v1",
    content="everything the scheduler is told",
    key="<kind>/<namespace>/<name>",
)
DECISIONS: Final = Topic(
    pattern="decklog.<cluster>.decisions.v1",
    content="decisions, relayed after their commit",
    key="pod uid",
)
ANCHORS: Final = Topic(
    pattern="decklog.<cluster>.anchors.v1",
    content="a copy of the ledger's anchors outside the database",
    key="<stream>/<seq>",
    cleanup="compact",
    retention=None,
    is_optional=True,
)
DEAD_LETTERS: Final = Topic(
    pattern="decklog.<cluster>.dlq.v1",
    content="a copy of what could not be decoded, with the reason as headers",
    key="the original key",
    retention=timedelta(days=90),
    is_optional=True,
)
TOPICS: Final = (EVENTS, DECISIONS, ANCHORS, DEAD_LETTERS)


class TopicState(StrEnum):
    CREATED = "created"
    UNCHANGED = "unchanged"
    DIFFERS = "differs"
    MISSING = "missing"
    UNKNOWN = "unknown"
    """Ours by its name, and not in the table: an older version's, or somebody's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicResult:
    name: str
    state: TopicState
    drift: tuple[str, ...] = ()
    """One sentence for each setting that is not as in the table."""


def apply_topics(
    bootstrap: str,
    cluster: str,
    replication: int,
    *,
    with_optional: bool = False,
    security: Mapping[str, Any] | None = None,
) -> list[TopicResult]:
    """Create the cluster's topics that are missing, and say how the others differ.

    Doing it again changes nothing. An optional topic that exists is always looked at.
    """
    kafka = _kafka(bootstrap, security)
    try:
        found = _find(kafka, cluster)
        results = []
        for topic in TOPICS:
            name = topic.name(cluster)
            if name in found:
                results.append(_compare(topic, found[name], replication))
            elif with_optional or not topic.is_optional:
                results.append(_create(kafka, topic, name, replication))
        return results
    finally:
        kafka.close()


def describe_topics(
    bootstrap: str, cluster: str, replication: int, *, security: Mapping[str, Any] | None = None
) -> list[TopicResult]:
    """Say what is there and how it differs, and create nothing."""
    kafka = _kafka(bootstrap, security)
    try:
        found = _find(kafka, cluster)
    finally:
        kafka.close()
    results = []
    for topic in TOPICS:
        name = topic.name(cluster)
        if name in found:
            results.append(_compare(topic, found.pop(name), replication))
        elif not topic.is_optional:
            results.append(TopicResult(name=name, state=TopicState.MISSING))
    return results + [TopicResult(name=name, state=TopicState.UNKNOWN) for name in found]


def list_topics(bootstrap: str, *, security: Mapping[str, Any] | None = None) -> list[TopicFound]:
    """Return decklog's topics of all clusters, by name."""
    kafka = _kafka(bootstrap, security)
    try:
        return sorted(kafka.topics(PREFIX), key=lambda topic: topic.name)
    finally:
        kafka.close()


def _kafka(bootstrap: str, security: Mapping[str, Any] | None) -> Cluster:
    return Cluster(Connection(bootstrap=bootstrap, security=security or {}))


def _find(kafka: Cluster, cluster: str) -> dict[str, TopicFound]:
    if CLUSTER_NAME.fullmatch(cluster) is None:
        msg = f"cannot name topics after cluster {cluster!r}: use a-z, 0-9 and '-', at most 63"
        raise BadConfiguration(msg)
    return {topic.name: topic for topic in kafka.topics(f"{PREFIX}{cluster}.")}


def _create(kafka: Cluster, topic: Topic, name: str, replication: int) -> TopicResult:
    created = kafka.create(
        name,
        partitions=topic.partitions,
        replication=replication,
        configs=topic.configs(replication),
    )
    return TopicResult(name=name, state=TopicState.CREATED if created else TopicState.UNCHANGED)


def _compare(topic: Topic, found: TopicFound, replication: int) -> TopicResult:
    drift = tuple(_drift(topic, found, replication))
    state = TopicState.DIFFERS if drift else TopicState.UNCHANGED
    return TopicResult(name=found.name, state=state, drift=drift)


def _drift(topic: Topic, found: TopicFound, replication: int) -> Sequence[str]:
    drift = []
    if found.partitions != topic.partitions:
        drift.append(
            f"it has {found.partitions} partitions, and only the first is read and written; "
            f"{topic.partitions} is wanted"
        )
    if found.replication != replication:
        drift.append(f"it has {found.replication} replicas, {replication} are wanted")
    for name, want in topic.configs(replication).items():
        got = found.configs.get(name)
        if got != want:
            drift.append(f"{name} is {got}, {want} is wanted")
    return drift
