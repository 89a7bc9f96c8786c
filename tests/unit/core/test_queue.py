from collections.abc import Sequence
from dataclasses import replace

import pytest

from decklog.core import in_flight
from decklog.core.framework.events import (
    ADD,
    ALL,
    ASSIGNED_POD_DELETE,
    DELETE,
    FORCE_ACTIVATE,
    NODE,
    NODE_ADD,
    POD,
    Registration,
)
from decklog.core.nominator import Nominator
from decklog.core.queue import SchedulingQueue
from decklog.core.queued_pod import Place
from decklog.objects.pod import Pod
from decklog.objects.selectors import Toleration

FIT = "NodeResourcesFit"
TOLERATIONS = (Toleration(key="x", operator="Exists"),)


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


# -- pods that rebuilding names, and that nobody waits for -----------------------------------------


def test_a_pod_that_is_popped_by_name_has_its_first_attempt_now() -> None:
    """Rebuilding pops by decision: it may name one that was never ready here."""
    queue = make_queue()
    queue.now_ms = 7
    queue.add(make("a", gates=("g",)))
    queued = queue.pop("a")
    assert queued is not None
    assert (queued.initial_attempt_ms, queued.attempts) == (7, 1)
    assert queue.pop("a") is queued
    assert queued.attempts == 1
    assert queue.pop("nobody") is None


def test_a_pod_that_nobody_knows_is_queued_when_it_failed() -> None:
    queue = make_queue()
    queue.add_unschedulable(make("a"), unschedulable_plugins=(FIT,), pending_plugins=())
    assert place(queue, "a") is Place.UNSCHEDULABLE


def test_a_pod_that_is_queued_already_stays_where_it_is() -> None:
    queue = make_queue()
    queue.add(make("a"))
    queue.add_unschedulable(make("a"), unschedulable_plugins=(FIT,), pending_plugins=())
    assert place(queue, "a") is Place.ACTIVE


def test_an_assume_of_a_pod_that_was_not_popped_is_remembered_by_nobody() -> None:
    queue = make_queue()
    queue.assumed("a")
    queue.done("a")
    assert len(queue) == 0


def test_an_assume_that_is_undone_by_a_plugin_parks_the_pod() -> None:
    queue = make_queue()
    queue.add(make("a"))
    queue.pop("a")
    queue.assumed("a")
    queue.add_unschedulable(make("a"), unschedulable_plugins=(FIT,), pending_plugins=())
    assert place(queue, "a") is Place.UNSCHEDULABLE


# -- updates ---------------------------------------------------------------------------------------


def test_an_update_of_a_pod_that_nobody_knows_queues_it() -> None:
    queue = make_queue()
    queue.update(make("a"), make("a", version="2"))
    assert place(queue, "a") is Place.ACTIVE


def test_an_update_of_a_waiting_pod_is_what_is_tried() -> None:
    queue = make_queue()
    queue.add(make("a"))
    queue.add(make("b", priority=1))
    queue.update(make("a"), make("a", priority=5, version="2"))
    assert drain(queue) == ["a", "b"]


def test_an_update_of_a_pod_in_back_off_leaves_it_there() -> None:
    queue = make_queue()
    queue.add(make("a"))
    fail(queue, "a")
    queue.update(make("a"), make("a", version="2"))
    queued = queue.get("a")
    assert queued is not None
    assert (queued.place, queued.pod.resource_version) == (Place.ERROR_BACKOFF, "2")


def test_an_update_that_leaves_a_gate_leaves_the_pod() -> None:
    queue = make_queue([Registration("SchedulingGates", POD, ALL)])
    queue.add(make("a", gates=("g", "h")))
    labels = {"app": "web"}
    changed = replace(make("a", gates=("g",), version="2"), labels=labels, tolerations=TOLERATIONS)
    queue.update(make("a", gates=("g", "h")), changed)
    assert place(queue, "a") is Place.UNSCHEDULABLE


def test_an_update_during_the_attempt_is_not_lost() -> None:
    own = Registration(FIT, POD, ALL, lambda pod, old, new: new.uid == pod.uid)
    queue = make_queue([own])
    queue.add(make("a"))
    queue.pop("a")
    queue.update(make("a"), make("a", version="2"))
    queue.add_unschedulable(
        make("a", version="2"), unschedulable_plugins=(FIT,), pending_plugins=()
    )
    assert place(queue, "a") is Place.BACKOFF


# -- events ----------------------------------------------------------------------------------------


def test_what_a_plugin_waits_for_comes_without_back_off() -> None:
    """A plugin that said Pending has the pod tried at once."""
    queue = make_queue([Registration(FIT, NODE, ADD), Registration("Waits", NODE, ADD)])
    queue.add(make("a"))
    queue.pop("a")
    queue.add_unschedulable(make("a"), unschedulable_plugins=(FIT,), pending_plugins=("Waits",))
    queue.move_all(NODE_ADD, None, None)
    assert place(queue, "a") is Place.ACTIVE


def test_what_came_during_the_attempt_and_was_waited_for_comes_without_back_off() -> None:
    queue = make_queue([Registration("Waits", NODE, ADD), Registration(FIT, POD, DELETE)])
    queue.add(make("a"))
    queue.pop("a")
    queue.move_all(ASSIGNED_POD_DELETE, None, None)
    queue.move_all(NODE_ADD, None, None)
    queue.add_unschedulable(make("a"), unschedulable_plugins=(FIT,), pending_plugins=("Waits",))
    assert place(queue, "a") is Place.ACTIVE


def test_another_rejector_may_help_where_the_awaited_event_does_not_come() -> None:
    queue = make_queue([Registration("Waits", NODE, ADD), Registration(FIT, POD, DELETE)])
    queue.add(make("a"))
    queue.pop("a")
    queue.move_all(ASSIGNED_POD_DELETE, None, None)
    queue.add_unschedulable(make("a"), unschedulable_plugins=(FIT,), pending_plugins=("Waits",))
    assert place(queue, "a") is Place.BACKOFF


def test_too_many_events_for_a_pod_in_flight_wake_it_in_any_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(in_flight, "EVENTS_MAX", 2)
    queue = make_queue([Registration("Another", NODE, ADD)])
    queue.add(make("a"))
    queue.pop("a")
    for _ in range(3):
        queue.move_all(NODE_ADD, None, None)
    queue.add_unschedulable(make("a"), unschedulable_plugins=(FIT,), pending_plugins=())
    assert place(queue, "a") is Place.BACKOFF


def test_an_event_that_the_gate_does_not_listen_to_leaves_a_gated_pod() -> None:
    queue = make_queue([Registration(FIT, NODE, ADD), Registration("SchedulingGates", POD, ALL)])
    queue.add(make("a", gates=("g",)))
    queued = queue.get("a")
    assert queued is not None
    fail(queue, "a", FIT)
    queue.now_ms = 60_000
    queue.activate("a")
    assert queued.rejectors == (FIT, "SchedulingGates")
    queue.move_all(NODE_ADD, None, None)
    queue.move_all(FORCE_ACTIVATE, None, None)
    assert place(queue, "a") is Place.UNSCHEDULABLE


def test_a_pod_of_a_profile_that_is_gone_is_woken_by_anything() -> None:
    queue = make_queue([Registration(FIT, NODE, ADD)])
    queue.add(replace(make("a"), scheduler_name="gone"))
    fail(queue, "a", FIT)
    queue.move_all(NODE_ADD, None, None)
    assert place(queue, "a") is Place.BACKOFF


def test_a_pre_check_spares_pods() -> None:
    queue = make_queue([Registration(FIT, NODE, ADD)])
    for name in ("a", "b"):
        queue.add(make(name))
        fail(queue, name, FIT)
    assert queue.move_all(NODE_ADD, None, None, lambda pod: pod.uid != "a") == 1
    assert place(queue, "a") is Place.UNSCHEDULABLE


def test_activating_a_pod_in_flight_wakes_it_and_nobody_else() -> None:
    queue = make_queue()
    for name in ("a", "b"):
        queue.add(make(name))
        queue.pop(name)
    queue.activate("a")
    queue.activate("nobody")
    for name in ("a", "b"):
        queue.add_unschedulable(make(name), unschedulable_plugins=(FIT,), pending_plugins=())
    assert place(queue, "a") is Place.BACKOFF
    assert place(queue, "b") is Place.UNSCHEDULABLE


def test_gated_pods_that_wait_too_long_are_told_of_to_pods_in_flight() -> None:
    """As kube-scheduler does every thirty seconds: its flush is an event like any other."""
    queue = make_queue()
    queue.add(make("gated", gates=("g",)))
    queue.add(make("a"))
    queue.pop("a")
    fire(queue, 300_001)
    assert [timer.uid for timer in queue.due_timers()] == [""]
    fire(queue, 300_001)
    assert queue.due_timers() == []
    queue.delete("gated")
    queue.now_ms = 400_000
    assert queue.due_timers() == []
    queue.add_unschedulable(make("a"), unschedulable_plugins=(FIT,), pending_plugins=())
    assert place(queue, "a") is Place.BACKOFF


def test_without_a_maximum_there_is_no_back_off() -> None:
    queue = make_queue([Registration(FIT, NODE, ADD)])
    queue.max_backoff_ms = 0
    queue.add(make("a"))
    fail(queue, "a", FIT)
    queue.move_all(NODE_ADD, None, None)
    assert place(queue, "a") is Place.ACTIVE


def test_a_gate_that_closes_during_back_off_keeps_the_pod_parked() -> None:
    closed: list[str] = []
    queue = make_queue([Registration(FIT, NODE, ADD)])
    queue.gate = lambda pod, _last: "SchedulingGates" if pod.uid in closed else ""
    queue.add(make("a"))
    fail(queue, "a", FIT)
    closed.append("a")
    queue.move_all(NODE_ADD, None, None)
    assert place(queue, "a") is Place.UNSCHEDULABLE
