from collections.abc import Sequence

import pytest

from decklog.core.framework.events import (
    ADD,
    ASSIGNED_POD_DELETE,
    DELETE,
    NODE,
    NODE_ADD,
    POD,
    Registration,
)
from decklog.core.nominator import Nominator
from decklog.core.queue import SchedulingQueue
from decklog.core.queued_pod import Place
from decklog.objects.pod import Pod

FIT = "NodeResourcesFit"


def make_queue(registrations: Sequence[Registration] = ()) -> SchedulingQueue:
    def gate(pod: Pod, _last: str) -> str:
        return "SchedulingGates" if pod.scheduling_gates else ""

    return SchedulingQueue(
        gate=gate, registrations={"decklog": registrations}, nominator=Nominator()
    )


def make(name: str, *, priority: int = 0, gates: tuple[str, ...] = (), version: str = "1") -> Pod:
    return Pod(
        uid=name,
        namespace="default",
        name=name,
        resource_version=version,
        priority=priority,
        scheduler_name="decklog",
        scheduling_gates=gates,
    )


def place(queue: SchedulingQueue, uid: str) -> Place | None:
    queued = queue.get(uid)
    return queued.place if queued else None


def drain(queue: SchedulingQueue) -> list[str]:
    order = []
    while (queued := queue.peek()) is not None:
        order.append(queued.pod.uid)
        queue.pop(queued.pod.uid)
        queue.done(queued.pod.uid)
    return order


def fail(queue: SchedulingQueue, uid: str, *plugins: str) -> None:
    queued = queue.pop(uid)
    assert queued is not None
    queue.add_unschedulable(queued.pod, unschedulable_plugins=plugins, pending_plugins=())


def fire(queue: SchedulingQueue, now_ms: int) -> None:
    queue.now_ms = now_ms
    for timer in sorted(queue.due_timers()):
        queue.fire(timer)


def test_higher_priority_goes_first_then_the_older_one() -> None:
    queue = make_queue()
    for now, (name, priority) in enumerate((("a", 0), ("b", 5), ("c", 5), ("d", 0))):
        queue.now_ms = now
        queue.add(make(name, priority=priority))
    assert drain(queue) == ["b", "c", "a", "d"]


def test_equal_pods_go_in_the_order_of_their_arrival() -> None:
    queue = make_queue()
    for name in ("z", "m", "a"):
        queue.add(make(name))
    assert drain(queue) == ["z", "m", "a"]


def test_a_rejected_pod_waits_for_an_event_that_its_plugin_registered() -> None:
    queue = make_queue([Registration(FIT, NODE, ADD)])
    queue.add(make("a"))
    fail(queue, "a", FIT)
    assert place(queue, "a") is Place.UNSCHEDULABLE
    queue.move_all(ASSIGNED_POD_DELETE, None, None)
    assert place(queue, "a") is Place.UNSCHEDULABLE
    queue.move_all(NODE_ADD, None, None)
    assert place(queue, "a") is Place.BACKOFF


def test_a_hint_may_say_that_an_event_does_not_help() -> None:
    queue = make_queue([Registration(FIT, POD, DELETE, lambda pod, old, new: False)])
    queue.add(make("a"))
    fail(queue, "a", FIT)
    queue.move_all(ASSIGNED_POD_DELETE, make("other"), None)
    assert place(queue, "a") is Place.UNSCHEDULABLE


def test_a_pod_in_back_off_is_tried_when_nothing_else_is_ready() -> None:
    queue = make_queue([Registration(FIT, NODE, ADD)])
    queue.add(make("a"))
    fail(queue, "a", FIT)
    queue.move_all(NODE_ADD, None, None)
    queue.add(make("b"))
    assert drain(queue) == ["b", "a"]


def test_a_pod_that_failed_with_an_error_waits_its_back_off_out() -> None:
    queue = make_queue()
    queue.now_ms = 100_900
    queue.add(make("a"))
    fail(queue, "a")
    assert place(queue, "a") is Place.ERROR_BACKOFF
    assert queue.peek() is None
    fire(queue, 101_999)
    assert place(queue, "a") is Place.ERROR_BACKOFF
    assert queue.next_timer_ms() == 102_000
    fire(queue, 102_000)
    assert place(queue, "a") is Place.ACTIVE


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (9, 10)]
)
def test_back_off_doubles_up_to_its_maximum(failures: int, seconds: int) -> None:
    queue = make_queue()
    queue.add(make("a"))
    for _ in range(failures):
        fail(queue, "a")
    queued = queue.get("a")
    assert queued is not None
    assert queued.backoff_expiry_ms == seconds * 1000
    assert queued.attempts == failures


def test_a_gated_pod_is_freed_by_its_own_update_only() -> None:
    own = Registration("SchedulingGates", POD, 1 << 11, lambda pod, old, new: new.uid == pod.uid)
    queue = make_queue([own])
    gated = make("a", gates=("g",))
    queue.add(gated)
    assert place(queue, "a") is Place.UNSCHEDULABLE
    fire(queue, 10_000_000)
    assert place(queue, "a") is Place.UNSCHEDULABLE
    queue.update(gated, make("a", version="2"))
    assert place(queue, "a") is Place.ACTIVE


def test_a_parked_pod_is_flushed_after_five_minutes() -> None:
    queue = make_queue()
    queue.add(make("a"))
    fail(queue, "a", FIT)
    assert queue.next_timer_ms() == 300_001
    fire(queue, 300_000)
    assert place(queue, "a") is Place.UNSCHEDULABLE
    fire(queue, 300_001)
    queued = queue.get("a")
    assert queued is not None
    assert (queued.place, queued.flushed) == (Place.ACTIVE, True)


def test_an_event_during_the_attempt_is_not_lost() -> None:
    queue = make_queue([Registration(FIT, NODE, ADD)])
    queue.add(make("a"))
    queued = queue.pop("a")
    assert queued is not None
    queue.move_all(NODE_ADD, None, None)
    queue.add_unschedulable(queued.pod, unschedulable_plugins=(FIT,), pending_plugins=())
    assert place(queue, "a") is Place.BACKOFF


def test_an_assume_that_is_undone_keeps_attempts_and_age() -> None:
    queue = make_queue()
    queue.now_ms = 1_000
    queue.add(make("a"))
    queue.pop("a")
    queue.assumed("a")
    assert "a" not in queue
    queue.now_ms = 9_000
    queue.add_unschedulable(make("a"), unschedulable_plugins=(), pending_plugins=())
    queued = queue.get("a")
    assert queued is not None
    assert (queued.attempts, queued.initial_attempt_ms) == (1, 1_000)


def test_activating_ignores_back_off() -> None:
    queue = make_queue()
    queue.add(make("a"))
    fail(queue, "a", FIT)
    queue.activate("a")
    assert place(queue, "a") is Place.ACTIVE


def test_a_deleted_pod_is_nowhere() -> None:
    queue = make_queue()
    queue.add(make("a"))
    queue.delete("a")
    assert "a" not in queue
    assert queue.peek() is None
