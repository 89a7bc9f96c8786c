"""One tick: its exact order, who decides in it, and what a rebuild and a verify make of it."""

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from decklog.core.framework.status import unschedulable, wait
from decklog.core.plugins.registry import REGISTRY
from decklog.core.queued_pod import Timer
from decklog.core.state import SchedulerState, pod_ref
from decklog.core.tick import Compared, Proposals, Recorded, TickRunner
from decklog.events.facts import (
    Decision,
    PodAssumed,
    PodSkipped,
    PodUnreserved,
    PodUnschedulable,
    Record,
    VictimsSelected,
)
from decklog.objects.node import ContainerImage
from tests.builders import make_container, make_node
from tests.stepping import (
    NOW_MS,
    Step,
    Steps,
    bound,
    deleted,
    our_pod,
    placed,
    refused,
    replay,
    upserted,
    view,
    with_points,
)
from tests.unit.core.small_plugins import Book

NODE: Final = make_node("a", milli_cpu=1000)
POD: Final = our_pod("web", milli_cpu=1000)
OTHER: Final = our_pod("other", milli_cpu=1000)
BIG: Final = our_pod("big", milli_cpu=9000)


# -- the order of a tick ---------------------------------------------------------------------------


def test_room_that_an_event_frees_is_taken_in_the_same_tick() -> None:
    steps = Steps()
    steps.tick(upserted(NODE), upserted(POD))
    closing, assumed = steps.tick(deleted(POD), upserted(OTHER))
    assert isinstance(closing, PodUnreserved)
    assert isinstance(assumed, PodAssumed)
    assert (assumed.pod.name, assumed.node) == ("other", "a")


def test_events_closings_timers_and_cycles_come_in_this_order() -> None:
    """A back-off that ends in a tick is over before its cycles, and after its closings."""
    steps = Steps()
    steps.tick(upserted(make_node("a", milli_cpu=2000)), upserted(POD), upserted(OTHER))
    steps.tick(refused(1, POD))
    assert steps.state.next_timer_ms() == steps.now_ms + 2000
    decided = steps.tick(refused(2, OTHER), later_ms=2000)
    assert [type(one) for one in decided] == [PodUnreserved, PodAssumed]
    assert [one.pod.name for one in decided] == ["other", "web"]  # type: ignore[union-attr]


def test_timers_of_one_deadline_fire_by_kind_then_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    registry: Any = REGISTRY
    book = Book(timeout_ms=2_000)
    monkeypatch.setitem(registry, "Book", lambda _args, _parity: book)
    steps = Steps(with_points(permit=("Book",)))
    parked = our_pod("parked", node_selector={"pool": "none"})
    steps.tick(upserted(make_node("a", milli_cpu=3000)), upserted(parked), later_ms=999)
    steps.tick(upserted(POD), later_ms=298_001)
    book.permits = wait()
    later, sooner = our_pod("z", milli_cpu=100), our_pod("y", milli_cpu=100)
    steps.tick(refused(2, POD), upserted(later), upserted(sooner))
    deadline_ms = NOW_MS + 301_000
    steps.state.set_now(deadline_ms)
    assert steps.runner.decider.due() == [
        Timer(deadline_ms, "backoff", POD.uid),
        Timer(deadline_ms, "flush", parked.uid),
        Timer(deadline_ms, "permit", sooner.uid),
        Timer(deadline_ms, "permit", later.uid),
    ]


def test_a_tick_runs_as_many_cycles_as_it_may() -> None:
    steps = Steps()
    pods = [our_pod(f"pod-{number}", milli_cpu=10) for number in range(5)]
    decided = steps.tick(upserted(make_node("a")), *(upserted(pod) for pod in pods), cycles=3)
    assert len(decided) == steps.history[-1].result.cycles == 3
    assert [one.pod.name for one in steps.tick()] == ["pod-3", "pod-4"]  # type: ignore[union-attr]


def test_a_tick_says_how_far_it_is_and_whether_anything_moved() -> None:
    steps = Steps()
    steps.tick(upserted(NODE), upserted(BIG))
    steps.tick()
    steps.tick(later_ms=300_001)
    results = [step.result for step in steps.history]
    assert [(one.cursor, one.cycles, one.moved) for one in results] == [
        (1, 1, True),
        (1, 0, False),
        (1, 1, True),
    ]
    assert [one.now_ms - results[0].now_ms for one in results] == [0, 0, 300_001]


def test_a_tick_that_only_moved_a_pod_is_one() -> None:
    steps = Steps()
    steps.tick(upserted(NODE), upserted(BIG))
    assert steps.tick(later_ms=300_001, cycles=0) == []
    assert steps.history[-1].result.moved


# -- a rebuild -------------------------------------------------------------------------------------


def life(steps: Steps) -> Steps:
    """Let a bit of everything happen."""
    nodes = [make_node(name, milli_cpu=2000, zone=f"zone-{name}") for name in ("a", "b", "c")]
    pods = [our_pod(f"pod-{number}", milli_cpu=700) for number in range(8)]
    steps.tick(*(upserted(node) for node in nodes), cycles=0)
    steps.tick(*(upserted(pod) for pod in pods), upserted(BIG))
    steps.tick(refused(1, pods[0]), bound(2, pods[1], "a"), deleted(pods[2]))
    steps.tick(deleted(nodes[0]), upserted(pods[3], node_name="elsewhere"), later_ms=700)
    steps.tick(later_ms=1_500)
    steps.tick(upserted(nodes[0], uid="uid-a-2"), upserted(pods[4], phase="Failed"))
    steps.tick(upserted(pods[5], uid="uid-again"), later_ms=10_000)
    steps.tick(later_ms=300_001)
    return steps


@pytest.mark.parametrize("percentage", [100, 0, 34])
def test_a_rebuild_comes_to_the_live_state_after_every_tick(percentage: int) -> None:
    config = replace(Steps().config, percentage_of_nodes_to_score=percentage)
    live: list[dict[str, Any]] = []
    steps = life(Steps(config, each=lambda state: live.append(view(state))))
    rebuilt: list[dict[str, Any]] = []
    replay(config, steps.history, each=lambda state: rebuilt.append(view(state)))
    assert rebuilt == live
    assert len(live) == 8


def test_a_rebuilt_scheduler_goes_on_as_the_one_that_was_killed() -> None:
    steps = life(Steps())
    heir = Steps(steps.config, now_ms=steps.now_ms, position=steps.position)
    heir.state = steps.rebuilt()
    heir.runner = TickRunner(heir.state)
    more = [upserted(our_pod(f"more-{number}", milli_cpu=300)) for number in range(4)]
    assert heir.tick(*more, later_ms=20_000) == steps.tick(*more, later_ms=20_000)
    assert view(heir.state) == view(steps.state)


def test_a_rebuilt_scheduler_knows_how_many_nodes_had_an_image() -> None:
    image = ContainerImage(names=("web:1",), size_bytes=900 * 1024 * 1024)
    container = make_container(image="web:1", milli_cpu=100)
    pods = [our_pod(f"pod-{number}", containers=(container,)) for number in range(6)]
    steps = Steps()
    steps.tick(upserted(make_node("a", images=(image,))), upserted(pods[0]))
    steps.tick(upserted(make_node("b", images=(image,))), cycles=0)
    steps.tick(upserted(make_node("c")), upserted(pods[1]))
    heir = Steps(steps.config, now_ms=steps.now_ms, position=steps.position)
    heir.state = steps.rebuilt()
    heir.runner = TickRunner(heir.state)
    more = [upserted(pod) for pod in pods[2:]]
    assert heir.tick(*more) == steps.tick(*more)


def test_a_rebuild_asks_no_plugin_to_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    registry: Any = REGISTRY
    book = Book()
    monkeypatch.setitem(registry, "Book", lambda _args, _parity: book)
    steps = Steps(with_points(reserve=("Book",), permit=("Book",)))
    steps.tick(upserted(NODE), upserted(POD))
    book.log.clear()
    steps.rebuilt()
    assert book.log == []


# -- who decides -----------------------------------------------------------------------------------


def test_recorded_decisions_that_ran_out_end_the_tick() -> None:
    source = Recorded(deque())
    assert source.closing(lambda: ()) == ()
    assert source.cycle(lambda: ()) == ()


def test_victims_and_the_failure_that_follows_are_one_cycle() -> None:
    ref = pod_ref(POD)
    selected = VictimsSelected(pod=ref, node="a", victims=())
    failure, skipped = PodUnschedulable(pod=ref), PodSkipped(pod=ref, reason="deleting")
    source = Recorded(deque([selected, failure, failure, selected, skipped, selected]))
    cycles = [source.cycle(lambda: ()) for _ in range(6)]
    assert cycles == [(selected, failure), (failure,), (selected,), (skipped,), (selected,), ()]


def test_proposals_end_with_the_cycles_that_are_left() -> None:
    source = Proposals(cycles_left=1)
    decision = PodSkipped(pod=pod_ref(POD), reason="deleting")
    assert source.cycle(lambda: (decision,)) == (decision,)
    assert source.cycle(lambda: (decision,)) == ()
    assert source.closing(lambda: (decision,)) == (decision,)


# -- verify ----------------------------------------------------------------------------------------


def verify(
    steps: Steps, *, changed: Callable[[int, list[Decision]], list[Decision]] = lambda _, kept: kept
) -> tuple[SchedulerState, list[bool]]:
    """Decide a history again, of which `changed` may have recorded something else.

    Return the state at the end, and for each tick whether what was decided is what is recorded.
    """
    state = SchedulerState(steps.config)
    equal = []
    for number, step in enumerate(steps.history):
        recorded = changed(number, list(step.result.decisions))
        source = Compared(Recorded(deque(recorded)), cycles_left=step.result.cycles)
        TickRunner(state).run(now_ms=step.now_ms, records=step.records, source=source)
        equal.append(source.proposed == recorded)
    return state, equal


def test_history_as_it_was_is_decided_again_in_every_tick() -> None:
    steps = life(Steps())
    state, equal = verify(steps)
    assert equal == [True] * len(steps.history)
    assert view(state) == view(steps.state)


def test_one_difference_causes_no_second() -> None:
    """The recorded decision is what is applied, so all that follows is decided as it was."""
    steps = Steps()
    nodes = [make_node(name, milli_cpu=4000) for name in ("a", "b")]
    steps.tick(*(upserted(node) for node in nodes), upserted(POD))
    [first] = steps.decisions
    assert isinstance(first, PodAssumed)
    moved = replace(first, node="b" if first.node == "a" else "a")
    lie = Steps()
    lie.history = [_with(steps.history[0], moved)]
    lie.state = lie.rebuilt()
    lie.runner = TickRunner(lie.state)
    lie.now_ms, lie.position = steps.now_ms, steps.position
    lie.tick(upserted(OTHER))
    lie.tick(bound(1, POD, moved.node), later_ms=100)
    state, equal = verify(lie)
    assert equal == [False, True, True]
    assert placed(state)[POD.uid] == (moved.node, True)
    assert view(state) == view(lie.state)


def _with(step: Step, *decisions: Decision) -> Step:
    return replace(step, result=replace(step.result, decisions=decisions))


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(lambda number, kept: kept[:-1] if number == 1 else kept, id="one is missing"),
        pytest.param(
            lambda number, kept: (
                [*kept, PodSkipped(pod=pod_ref(OTHER), reason="deleting")] if number == 1 else kept
            ),
            id="one too many",
        ),
        pytest.param(
            lambda number, kept: [replace(kept[0], attempt=7)] if number == 1 else kept,
            id="one differs",
        ),
    ],
)
def test_a_mutated_tick_is_found_and_the_next_ones_are_still_decided(changed: Any) -> None:
    steps = Steps()
    steps.tick(upserted(NODE))
    steps.tick(upserted(BIG))
    steps.tick(upserted(make_node("b")), upserted(POD), later_ms=2000)
    _, equal = verify(steps, changed=changed)
    assert equal[:2] == [True, False]
    assert len(equal) == 3


def test_an_end_that_is_not_recorded_is_found_and_the_assume_stays_open() -> None:
    steps = Steps()
    steps.tick(upserted(NODE), upserted(POD))
    steps.tick(deleted(POD), cycles=0)
    steps.tick(upserted(OTHER))
    state, equal = verify(steps, changed=lambda number, kept: [] if number == 1 else kept)
    assert equal[:2] == [True, False]
    assert POD.uid in state.open_assumes


def test_a_cycle_that_was_not_run_is_not_decided_again() -> None:
    """How many cycles a tick ran may depend on anything, so the record says it."""
    steps = Steps()
    steps.tick(upserted(NODE), upserted(POD), cycles=0)
    steps.tick()
    _, equal = verify(steps)
    assert equal == [True, True]


def test_a_failed_reserve_leaves_the_rebuilt_state_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    registry: Any = REGISTRY
    book = Book(reserves=unschedulable("no luck"))
    monkeypatch.setitem(registry, "Book", lambda _args, _parity: book)
    steps = Steps(with_points(reserve=("Book",)))
    steps.tick(upserted(NODE), upserted(POD))
    state, equal = verify(steps)
    assert equal == [True]
    assert view(state) == view(steps.state) == view(steps.rebuilt())


def test_a_record_is_applied_once_however_often_it_is_read() -> None:
    steps = Steps()
    steps.tick(upserted(NODE), upserted(POD))
    before = view(steps.state)
    result = steps.runner.run(
        now_ms=steps.now_ms,
        records=[Record(0, deleted(NODE)), Record(1, deleted(POD))],
        source=Proposals(),
    )
    assert (result.decisions, result.cursor) == ((), 1)
    assert view(steps.state) == before
