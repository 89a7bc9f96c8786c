"""Preemption through the whole loop: victims are deleted by the binder, and their room is taken."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Final

from decklog.events.facts import VictimDeleted
from decklog.ports.entries import read_records
from decklog.ports.ledger import DecisionFilter
from tests.harness import CLUSTER, World, make_raw_node, make_raw_pod, make_world

LIMIT: Final = 100
GRACE: Final = timedelta(seconds=45)
"""The 30 s that a victim has for its end, and some to spare."""


def kinds(world: World) -> list[tuple[str, str]]:
    """Return what was decided, oldest first: (kind, pod)."""
    rows = world.ledger.select(CLUSTER, where=DecisionFilter(), limit=LIMIT, newest_first=False)
    return [(row.kind, row.pod) for row in rows]


def test_a_pod_of_higher_priority_takes_the_room_of_one_of_lower(tmp_path: Path) -> None:
    with make_world(tmp_path) as world:
        world.create(make_raw_node("a", cpu="2"))
        world.create(make_raw_pod("low", cpu="1500m", priority=0))
        world.run_until_quiet()
        assert world.node_of("low") == "a"
        world.create(make_raw_pod("high", cpu="1500m", priority=1_000))
        world.run_for(GRACE)
        world.run_until_quiet()
        assert world.node_of("high") == "a"
        assert world.cluster.get("Pod", "low", "default") is None
        assert kinds(world) == [
            ("PodAssumed", "low"),
            ("VictimsSelected", "high"),
            ("PodUnschedulable", "high"),
            ("PodAssumed", "high"),
        ]
        records = read_records(world.events, after=-1, limit=10_000, timeout=timedelta(0))
        deleted = [each.fact for each, _ in records if isinstance(each.fact, VictimDeleted)]
        assert [fact.seq for fact in deleted] == [2]


def test_a_pod_that_never_preempts_waits(tmp_path: Path) -> None:
    with make_world(tmp_path) as world:
        world.create(make_raw_node("a", cpu="2"))
        world.create(make_raw_pod("low", cpu="1500m", priority=0))
        world.run_until_quiet()
        world.create(make_raw_pod("polite", cpu="1500m", priority=1_000, preemptionPolicy="Never"))
        world.run_until_quiet()
        assert world.node_of("polite") == ""
        assert world.node_of("low") == "a"
        (row,) = world.ledger.select(
            CLUSTER, where=DecisionFilter(pod="polite"), limit=LIMIT, newest_first=False
        )
        assert "not eligible" in json.loads(row.payload)[-1]["post_filter_message"]
