"""A preemptor from its decision on: its room is kept, and it waits until its victims go."""

from dataclasses import replace
from typing import Final

import pytest

from decklog.core.queued_pod import Place
from decklog.events.facts import (
    Decision,
    Event,
    PodAssumed,
    PodUnschedulable,
    VictimRefused,
    VictimsSelected,
)
from decklog.objects.pod import Pod
from tests.builders import make_node
from tests.stepping import Steps, deleted, our_pod, upserted, view

NODE: Final = make_node("a", milli_cpu=4000)
LOWS: Final = [our_pod(f"low{n}", milli_cpu=2000, node_name="a") for n in range(2)]
HIGH: Final = our_pod("high", milli_cpu=4000, priority=10)
DELETED: Final = "2026-01-01T00:00:00Z"


def preempted(*more: Event) -> tuple[Steps, list[Decision]]:
    steps = Steps()
    decided = steps.tick(upserted(NODE), *map(upserted, LOWS), *more, upserted(HIGH))
    return steps, decided


def place(steps: Steps, pod: Pod) -> Place | None:
    queued = steps.state.queue.get(pod.uid)
    return None if queued is None else queued.place


def gated_by(steps: Steps) -> str:
    queued = steps.state.queue.get(HIGH.uid)
    assert queued is not None
    return queued.gating_plugin


def test_it_selects_victims_and_is_nominated() -> None:
    steps, (selected, failure) = preempted()
    assert isinstance(selected, VictimsSelected)
    assert isinstance(failure, PodUnschedulable)
    assert {victim.uid for victim in selected.victims} == {pod.uid for pod in LOWS}
    assert (selected.node, failure.nominated_node) == ("a", "a")
    assert steps.state.nominator.node_of(HIGH.uid) == "a"
    assert view(steps.rebuilt()) == view(steps.state)


def test_the_room_is_kept_from_those_that_are_not_above_it() -> None:
    steps, _ = preempted()
    steps.tick(*map(deleted, LOWS), cycles=0)
    [late] = steps.tick(upserted(our_pod("late", milli_cpu=100)), cycles=1)
    assert isinstance(late, PodUnschedulable)
    [above] = steps.tick(upserted(our_pod("above", milli_cpu=100, priority=11)), cycles=1)
    assert isinstance(above, PodAssumed)
    assert view(steps.rebuilt()) == view(steps.state)


def test_it_waits_until_the_last_victim_goes() -> None:
    steps, _ = preempted()
    assert steps.tick(deleted(LOWS[0]), later_ms=60_000) == []
    assert (place(steps, HIGH), gated_by(steps)) == (Place.UNSCHEDULABLE, "DefaultPreemption")
    [placed] = steps.tick(deleted(LOWS[1]), later_ms=1_000)
    assert isinstance(placed, PodAssumed)
    assert steps.state.nominator.node_of(HIGH.uid) is None
    assert view(steps.rebuilt()) == view(steps.state)


def test_victims_on_their_way_do_not_hold_it_back() -> None:
    """It is tried, and waits for the terminating pod: the message says so."""
    steps, _ = preempted()
    steps.tick(upserted(LOWS[1], deleted=DELETED))
    steps.tick(deleted(LOWS[0]), later_ms=60_000)
    assert gated_by(steps) == ""
    assert view(steps.rebuilt()) == view(steps.state)


def test_victims_that_go_already_are_not_selected_again() -> None:
    leaving = [replace(pod, deleted=DELETED) for pod in LOWS]
    steps = Steps()
    [failure] = steps.tick(upserted(NODE), *map(upserted, leaving), upserted(HIGH))
    assert isinstance(failure, PodUnschedulable)
    assert failure.nominated_node == "a"


@pytest.mark.parametrize("which", [0, 1])
def test_a_victim_that_is_refused_ends_the_waiting(which: int) -> None:
    steps, _ = preempted()
    refused = VictimRefused(seq=1, pod_uid=LOWS[which].uid, reason="Forbidden")
    decided = steps.tick(refused)
    assert [type(decision) for decision in decided] == [VictimsSelected, PodUnschedulable]
    assert steps.tick(VictimRefused(seq=99, pod_uid=LOWS[0].uid, reason="late")) == []
    assert view(steps.rebuilt()) == view(steps.state)


def test_lower_nominations_on_the_node_are_cleared() -> None:
    waits = our_pod("waits", milli_cpu=100, priority=1, nominated_node_name="a")
    steps, decided = preempted(upserted(waits))
    selected = next(one for one in decided if isinstance(one, VictimsSelected))
    assert [one.uid for one in selected.nominations_cleared] == [waits.uid]
    assert steps.state.nominator.node_of(waits.uid) != "a"


def test_a_preemptor_that_goes_is_forgotten() -> None:
    steps, _ = preempted()
    steps.tick(deleted(HIGH))
    assert not steps.state.preempting.is_waiting(HIGH.uid)
    assert steps.state.nominator.node_of(HIGH.uid) is None
