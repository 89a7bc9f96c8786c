"""Two schedulers of one cluster: one leads, the other stands by, and takes over."""

from datetime import timedelta
from pathlib import Path

import pytest

from decklog.core.errors import Deposed
from decklog.events.facts import LeaderElected
from decklog.ports.entries import read_records
from decklog.runner import IDLE_DELAY, Service
from tests.harness import CLUSTER, World, make_raw_node, make_raw_pod, make_world


def fill(world: World, first: int, last: int) -> None:
    world.create(*(make_raw_pod(f"pod-{number:02}") for number in range(first, last)))


def step_for_ever(service: Service) -> None:
    while True:
        service.step()


def test_one_leads_and_the_other_takes_over_when_it_dies(tmp_path: Path) -> None:
    with make_world(tmp_path) as world:
        world.create(make_raw_node("a"), make_raw_node("b"))
        standby = world.start("scheduler", name="standby")
        fill(world, 0, 5)
        world.run_until_quiet()
        assert world.scheduler is world.service("scheduler")
        assert not standby.metrics.leading  # type: ignore[attr-defined]
        world.crash("scheduler")
        fill(world, 5, 10)
        world.run_until_quiet()
        assert world.scheduler is standby
        assert all(world.node_of(f"pod-{number:02}") for number in range(10))
        head = world.ledger.head(CLUSTER)
        assert head is not None
        assert (head.generation, head.holder) == (2, "standby")


def test_after_a_clean_stop_the_standby_need_not_wait_for_the_heart(tmp_path: Path) -> None:
    with make_world(tmp_path) as world:
        world.create(make_raw_node("a"))
        world.start("scheduler", name="standby")
        fill(world, 0, 3)
        world.run_until_quiet()
        world.stop("scheduler")
        before = world.clock.monotonic_ms()
        while not world.scheduler.metrics.leading:
            if not world.turn():
                world.clock.sleep(IDLE_DELAY)
        assert world.clock.monotonic_ms() - before <= 1_500


def test_a_leader_that_was_paused_past_its_heart_commits_nothing_more(tmp_path: Path) -> None:
    with make_world(tmp_path) as world:
        world.create(make_raw_node("a"))
        fill(world, 0, 3)
        world.run_until_quiet()
        paused = world.running.pop("scheduler")
        world._line_up()
        world.clock.advance(timedelta(seconds=10))
        world.start("scheduler", name="second")
        fill(world, 3, 6)
        world.run_until_quiet()
        with pytest.raises(Deposed):
            step_for_ever(paused.service)
        world.run_until_quiet()
        rows = world.ledger.decisions(CLUSTER, after=0, limit=100)
        assert [row.generation for row in rows] == [1, 1, 1, 2, 2, 2]


def test_no_decision_comes_before_the_leaders_own_marker(tmp_path: Path) -> None:
    with make_world(tmp_path) as world:
        world.create(make_raw_node("a"))
        fill(world, 0, 3)
        world.run_until_quiet()
        elected = {
            record.fact.generation: record.position
            for record, _ in read_records(
                world.events, after=-1, limit=10_000, timeout=timedelta(0)
            )
            if isinstance(record.fact, LeaderElected)
        }
        cursors = {
            tick.tick: tick.cursor for tick in world.ledger.ticks(CLUSTER, after=0, limit=1_000)
        }
        rows = world.ledger.decisions(CLUSTER, after=0, limit=100)
        assert rows
        assert all(cursors[row.tick] >= elected[row.generation] for row in rows)
