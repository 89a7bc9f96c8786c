"""The topics on a real broker: created once, never changed, never deleted."""

import re
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from decklog.adapters.log.topics import (
    EVENTS,
    TOPICS,
    TopicState,
    apply_topics,
    describe_topics,
    list_topics,
)
from decklog.core.errors import BadConfiguration, Refused
from tests.contract.logs import create_topic
from tests.stack.kafka import KafkaBroker

REFERENCE: Final = Path(__file__).parents[2] / "docs" / "reference" / "topics.md"


@pytest.fixture
def cluster() -> str:
    return f"c{uuid.uuid4().hex[:8]}"


@pytest.mark.kafka
def test_applying_twice_creates_once(kafka_bootstrap: str, cluster: str) -> None:
    events, decisions = f"decklog.{cluster}.events.v1", f"decklog.{cluster}.decisions.v1"
    missing = describe_topics(kafka_bootstrap, cluster, 1)
    assert [(each.name, each.state) for each in missing] == [
        (events, TopicState.MISSING),
        (decisions, TopicState.MISSING),
    ]
    for want in (TopicState.CREATED, TopicState.UNCHANGED):
        applied = apply_topics(kafka_bootstrap, cluster, 1)
        assert [(each.name, each.state) for each in applied] == [
            (events, want),
            (decisions, want),
        ]
    assert {events, decisions} <= {topic.name for topic in list_topics(kafka_bootstrap)}


@pytest.mark.kafka
def test_optional_topics_are_created_when_asked_for(kafka_bootstrap: str, cluster: str) -> None:
    apply_topics(kafka_bootstrap, cluster, 1)
    applied = apply_topics(kafka_bootstrap, cluster, 1, with_optional=True)
    assert [each.state for each in applied] == [TopicState.UNCHANGED] * 2 + [TopicState.CREATED] * 2
    assert {each.state for each in apply_topics(kafka_bootstrap, cluster, 1)} == {
        TopicState.UNCHANGED
    }


@pytest.mark.kafka
def test_drift_is_said_and_left(kafka_broker: KafkaBroker, cluster: str) -> None:
    name = EVENTS.name(cluster)
    create_topic(kafka_broker, name, **{"retention.ms": "1000", "cleanup.policy": "compact"})
    create_topic(kafka_broker, f"decklog.{cluster}.else")
    for _ in range(2):
        events = apply_topics(kafka_broker.bootstrap, cluster, 1)[0]
        assert events.state is TopicState.DIFFERS
        assert events.drift == (
            "cleanup.policy is compact, delete is wanted",
            "retention.ms is 1000, 604800000 is wanted",
        )
    described = describe_topics(kafka_broker.bootstrap, cluster, 3)
    assert "it has 1 replicas, 3 are wanted" in described[0].drift
    assert described[-1].state is TopicState.UNKNOWN


@pytest.mark.kafka
def test_what_the_cluster_cannot_do_is_refused(kafka_bootstrap: str, cluster: str) -> None:
    with pytest.raises(Refused, match="with 3 replicas"):
        apply_topics(kafka_bootstrap, cluster, 3)


@pytest.mark.kafka
@pytest.mark.parametrize("name", ["", "EU1", "eu_1", "-eu", "a" * 64, "eu1.events"])
def test_topics_are_named_after_plain_names(kafka_bootstrap: str, name: str) -> None:
    with pytest.raises(BadConfiguration, match="cannot name topics"):
        apply_topics(kafka_bootstrap, name, 1)


@pytest.mark.parametrize(("replication", "want"), [(1, "1"), (2, "1"), (3, "2"), (5, "2")])
def test_one_broker_may_be_down(replication: int, want: str) -> None:
    """Two of three have to acknowledge; with fewer replicas, one is enough."""
    assert EVENTS.configs(replication)["min.insync.replicas"] == want


def test_the_reference_shows_every_topic_as_it_is() -> None:
    shown = re.findall(
        r"^\| `([^`]+)`( \(optional\))? \| (\d) \| ([a-z]+)(?:, (\d+) days)? \|",
        REFERENCE.read_text(),
        re.MULTILINE,
    )
    assert shown == [
        (
            topic.pattern,
            " (optional)" if topic.is_optional else "",
            str(topic.partitions),
            topic.cleanup,
            str(topic.retention // timedelta(days=1)) if topic.retention else "",
        )
        for topic in TOPICS
    ]
