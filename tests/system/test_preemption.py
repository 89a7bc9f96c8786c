"""A pod of high priority makes room for itself, through all services; all of it can be redone."""

from datetime import timedelta
from pathlib import Path
from typing import Final

from decklog.adapters.ledger.sql import SqlLedger
from decklog.adapters.log.embedded import EmbeddedLog
from decklog.events.facts import VictimDeleted, VictimsSelected
from decklog.history.source import Source
from decklog.history.verify import Wanted, verify
from decklog.ports.entries import read_records
from tests.harness import (
    CLUSTER,
    EmbeddedStores,
    ManualClock,
    World,
    make_raw_node,
    make_raw_pod,
    make_world,
)

GRACE: Final = timedelta(seconds=40)
"""More than the victims take to end."""
LOWS: Final = tuple(f"low-{number}" for number in range(4))


def fill(world: World) -> None:
    """Fill the one node with four pods, each under the same budget."""
    world.create(make_raw_node("a", cpu="4"))
    world.create(*(make_raw_pod(name, cpu="1", labels={"app": "low"}) for name in LOWS))
    world.run_until_quiet()
    assert all(world.node_of(name) == "a" for name in LOWS)


def here(world: World) -> set[str]:
    return {pod["metadata"]["name"] for pod in world.cluster.raw_objects("Pod")}


def kinds(world: World) -> list[str]:
    rows = world.ledger.decisions(CLUSTER, after=0, limit=1_000)
    return [row.kind for row in rows][len(LOWS) :]


def divergences(folder: Path) -> int:
    """Decide all of it again, as `decklog verify` does."""
    clock = ManualClock()
    stores = EmbeddedStores(folder, clock)
    ledger = SqlLedger(stores.url, clock=clock, read_only=True)
    events = EmbeddedLog(folder, f"{CLUSTER}.events", read_only=True)
    try:
        source = Source(ledger=ledger, events=events, stream=CLUSTER, clock=clock)
        return verify(source, Wanted()).replay.divergent
    finally:
        ledger.close()
        events.close()


def test_a_pod_of_high_priority_takes_the_room_of_others(tmp_path: Path) -> None:
    with make_world(tmp_path) as world:
        fill(world)
        world.create(make_raw_pod("high", cpu="3", priority=1000))
        world.run_for(GRACE)
        world.run_until_quiet()
        assert world.node_of("high") == "a"
        assert len(here(world) & set(LOWS)) == 1
        assert kinds(world) == ["VictimsSelected", "PodUnschedulable", "PodAssumed"]
        read = read_records(world.events, after=-1, limit=1_000, timeout=timedelta(0))
        assert sum(isinstance(record.fact, VictimDeleted) for record, _ in read) == 3
        assert not world.ledger.open_assumes(CLUSTER)
        assert not world.ledger.divergences(CLUSTER, limit=1)
    assert divergences(tmp_path) == 0


def test_a_scheduler_that_dies_in_between_leaves_the_room_to_the_preemptor(tmp_path: Path) -> None:
    """The next one knows the nomination from the ledger, and gives the room to nobody lower."""
    with make_world(tmp_path) as world:
        fill(world)
        world.crash("binder")
        world.create(make_raw_pod("high", cpu="3", priority=1000))
        world.run_until_quiet()
        world.crash("scheduler")
        world.start("scheduler", name="second")
        world.start("binder")
        world.create(make_raw_pod("late", cpu="2"))
        world.run_for(GRACE)
        world.run_until_quiet()
        assert world.node_of("high") == "a"
        assert world.node_of("late") == ""
        assert kinds(world).count("VictimsSelected") == 1
    assert divergences(tmp_path) == 0


def test_pods_that_fit_nowhere_but_evict_nobody(tmp_path: Path) -> None:
    with make_world(tmp_path) as world:
        fill(world)
        world.create(make_raw_pod("equal", cpu="3"))
        world.create(make_raw_pod("polite", cpu="3", priority=1000, preemptionPolicy="Never"))
        world.run_until_quiet()
        assert here(world) == {*LOWS, "equal", "polite"}
        assert VictimsSelected.__name__ not in kinds(world)
