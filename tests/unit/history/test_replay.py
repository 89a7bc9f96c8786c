"""States of the past, rebuilt."""

import json

import pytest

from decklog.core.errors import Refused
from decklog.history.cluster import cluster, stages
from decklog.history.positions import AtDecision, AtPosition, Latest, Position, resolve
from decklog.history.replay import Replayed, rebuild, stats
from decklog.history.source import Source
from tests.unit.history.conftest import Store
from tests.unit.history.test_verify import cut


def at(source: Source, position: Position) -> Replayed:
    return rebuild(source, resolve(position, source))


def test_the_state_of_now(source: Source) -> None:
    found = at(source, Latest())
    assert dict(stages(found.state)) == {
        "Bound": 12,
        "Unschedulable": 1,
        "Gated": 1,
        "Foreign": 1,
    }
    assert found.resyncs_wrong == []
    assert found.events == source.events.bounds()[1] + 1
    assert (found.ticks, found.decisions) == (source.head().tick, source.head().seq)


def test_a_cluster_holds_what_is_allocated(source: Source) -> None:
    held = cluster(at(source, Latest()).state)
    large = next(node for node in held["nodes"] if node["name"] == "large")
    assert large["allocatable"] == {"cpu": "8000m", "memory": str(8 << 30), "pods": "110"}
    assert large["requested"]["pods"] == str(len(large["pods"]))
    assert "default/monolith" in large["pods"]
    tainted = next(node for node in held["nodes"] if node["name"] == "tainted")
    assert tainted["taints"] == ["gpu=true:NoSchedule"]
    assert [waiting["stage"] for waiting in held["queue"]] == ["Unschedulable", "Gated"]
    assert json.loads(json.dumps(held)) == held


def test_a_decision_s_own_tick_is_applied_up_to_it(source: Source) -> None:
    found = at(source, AtDecision(3))
    assert found.state.seq == 3
    assert sorted(assume.pod.name for assume in found.state.open_assumes.values()) == [
        "web-0",
        "web-1",
        "web-2",
    ]
    assert stages(found.state)["Queued"] == 7


def test_events_after_the_last_tick_are_applied(source: Source) -> None:
    """Also when the scheduler had not come to them: that is what was known at the position."""
    first = source.ledger.ticks(source.stream, after=0, limit=1)[0]
    found = at(source, AtPosition(first.cursor + 3))
    assert found.state.position == first.cursor + 3
    assert found.ticks == 1


def test_the_digest_is_of_what_the_log_said(source: Source) -> None:
    last = source.events.bounds()[1]
    states = [at(source, AtPosition(position)).digests.state for position in (last // 2, last)]
    assert states[0] != states[1]
    assert stats(at(source, Latest()))["stateDigest"] == states[1]


def test_a_log_without_its_beginning_is_refused(store: Store) -> None:
    cut(store, "position < 3")
    with store.source() as source, pytest.raises(Refused, match="history begins at 0"):
        at(source, Latest())
