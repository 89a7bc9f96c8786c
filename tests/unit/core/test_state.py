"""What each event does to the state: who is counted where, who waits, and what must be decided."""

from dataclasses import replace
from typing import Any

import pytest

from decklog.core.errors import IllegalTransition
from decklog.core.queued_pod import Place
from decklog.core.state import SchedulerState, pod_ref
from decklog.events.facts import (
    BindingAdopted,
    BindUnknown,
    EndReason,
    Event,
    LeaderElected,
    ObjectDeleted,
    PodAssumed,
    PodSkipped,
    PodUnreserved,
    PodUnschedulable,
    Record,
    ResyncFinished,
    ResyncRequested,
    ResyncStarted,
    Undecodable,
    VictimDeleted,
    VictimRefused,
)
from decklog.objects.kinds import KINDS
from decklog.objects.meta import STAMP
from decklog.objects.policy import PriorityClass
from tests.builders import make_claim, make_namespace, make_node, make_taint, make_volume
from tests.stepping import (
    CONFIG,
    Steps,
    bound,
    deleted,
    our_pod,
    placed,
    refused,
    upserted,
    used,
    view,
)

SMALL = make_node("a", milli_cpu=1000)
POD = our_pod("web", milli_cpu=1000)
WAITER = our_pod("waiter", milli_cpu=1000)


def assumed_on_a() -> Steps:
    """Return a scheduler that has assumed POD on node a and parked WAITER, which lacks the room."""
    steps = Steps()
    first, second = steps.tick(upserted(SMALL), upserted(POD), upserted(WAITER))
    assert isinstance(first, PodAssumed)
    assert isinstance(second, PodUnschedulable)
    assert (first.node, second.unschedulable_plugins) == ("a", ("NodeResourcesFit",))
    return steps


def place(state: SchedulerState, uid: str) -> Place | None:
    queued = state.queue.get(uid)
    return None if queued is None else queued.place


def resync(kind: str, *, full: bool = True) -> tuple[Event, Event]:
    return (
        ResyncStarted(kind=kind, resource_version="1", full=full),
        ResyncFinished(kind=kind, resource_version="1", count=0, digest="0" * 32),
    )


# -- an assume and its ends ------------------------------------------------------------------------


def test_an_assume_counts_from_its_decision_on() -> None:
    state = assumed_on_a().state
    assert placed(state) == {POD.uid: ("a", True)}
    assert used(state)["a"][0] == 1000
    assert state.open_assumes[POD.uid].seq == 1
    assert POD.uid not in state.queue


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param((bound(1, POD, "a"),), id="by its answer"),
        pytest.param((upserted(POD, node_name="a"),), id="by being seen bound"),
        pytest.param((bound(1, POD, "a"), upserted(POD, node_name="a")), id="by both"),
        pytest.param((upserted(POD, node_name="a"), bound(1, POD, "a")), id="by both, seen first"),
    ],
)
def test_an_assume_is_confirmed(facts: tuple[Event, ...]) -> None:
    steps = assumed_on_a()
    assert steps.tick(*facts) == []
    assert not steps.state.open_assumes
    assert used(steps.state)["a"] == (1000, 0, 1)
    assert place(steps.state, WAITER.uid) is Place.UNSCHEDULABLE


@pytest.mark.parametrize(
    ("fact", "reason"),
    [
        pytest.param(deleted(POD), EndReason.DELETED, id="deleted"),
        pytest.param(upserted(POD, deleted="2026-01-01T00:00:00Z"), EndReason.DELETED, id="ending"),
        pytest.param(upserted(POD, phase="Failed"), EndReason.DELETED, id="failed"),
        pytest.param(upserted(POD, uid="uid-2"), EndReason.RECREATED, id="re-created"),
        pytest.param(refused(1, POD), EndReason.REJECTED, id="refused"),
    ],
)
def test_whatever_ends_an_assume_is_one_decision_of_that_tick(fact: Event, reason: str) -> None:
    """The room is free before the cycles of the same tick, and whom it helps is woken."""
    steps = assumed_on_a()
    decided = steps.tick(fact, cycles=0)
    [closing] = decided
    assert isinstance(closing, PodUnreserved)
    assert (closing.pod, closing.reason) == (pod_ref(POD), reason)
    assert (closing.closes_seq, closing.node) == (1, "a")
    assert not steps.state.open_assumes
    assert not steps.state.ending
    assert used(steps.state)["a"] == (0, 0, 0)
    assert place(steps.state, WAITER.uid) is Place.BACKOFF


def test_a_refused_pod_is_tried_again_after_its_back_off() -> None:
    steps = Steps()
    steps.tick(upserted(SMALL), upserted(POD))
    [closing] = steps.tick(refused(1, POD))
    assert isinstance(closing, PodUnreserved)
    assert (closing.pending, closing.message) == (True, "Invalid")
    assert place(steps.state, POD.uid) is Place.ERROR_BACKOFF
    assert steps.tick(later_ms=1000) == []
    [again] = steps.tick(later_ms=1000)
    assert isinstance(again, PodAssumed)
    assert again.attempt == 2


def test_a_pod_that_is_gone_is_not_queued_again() -> None:
    steps = Steps()
    steps.tick(upserted(SMALL), upserted(POD))
    [closing] = steps.tick(deleted(POD))
    assert isinstance(closing, PodUnreserved)
    assert not closing.pending
    assert len(steps.state.queue) == 0
    assert not steps.state.queue._assumed


def test_a_pod_that_ends_while_assumed_is_skipped_when_it_is_tried() -> None:
    steps = Steps()
    steps.tick(upserted(SMALL), upserted(POD))
    [closing] = steps.tick(upserted(POD, deleted="2026-01-01T00:00:00Z"), cycles=0)
    assert isinstance(closing, PodUnreserved)
    assert closing.pending
    [skipped] = steps.tick(later_ms=2000)
    assert skipped == PodSkipped(pod=pod_ref(POD), reason="deleting")
    assert len(steps.state.queue) == 0


def test_the_first_cause_of_an_end_wins() -> None:
    steps = assumed_on_a()
    decided = steps.tick(refused(1, POD), deleted(POD), cycles=0)
    assert [one.reason for one in decided if isinstance(one, PodUnreserved)] == [EndReason.REJECTED]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(bound(7, POD, "a"), id="bound, of another decision"),
        pytest.param(refused(7, POD), id="refused, of another decision"),
        pytest.param(refused(1, WAITER), id="refused, of a pod that is not assumed"),
        pytest.param(BindUnknown(seq=1, pod_uid=POD.uid), id="unknown"),
        pytest.param(VictimDeleted(seq=1, pod_uid=POD.uid), id="victim deleted"),
        pytest.param(VictimRefused(seq=1, pod_uid=POD.uid), id="victim refused"),
        pytest.param(ResyncRequested(kind="Pod", reason="test"), id="resync requested"),
    ],
)
def test_an_answer_that_is_not_to_the_open_assume_changes_nothing(answer: Event) -> None:
    steps = assumed_on_a()
    before = view(steps.state)
    assert steps.tick(answer) == []
    assert view(steps.state) == {**before, "position": before["position"] + 1}


def test_an_answer_to_an_assume_that_is_ending_is_ignored() -> None:
    steps = assumed_on_a()
    [closing] = steps.tick(deleted(POD), bound(1, POD, "a"), cycles=0)
    assert isinstance(closing, PodUnreserved)
    assert used(steps.state)["a"] == (0, 0, 0)


def test_an_answer_after_the_close_is_ignored() -> None:
    steps = assumed_on_a()
    steps.tick(deleted(POD), cycles=0)
    before = view(steps.state)
    assert steps.tick(refused(1, POD), bound(1, POD, "a"), cycles=0) == []
    assert view(steps.state) == {**before, "position": before["position"] + 2}


def test_the_answer_to_an_older_attempt_does_not_touch_the_new_one() -> None:
    steps = Steps()
    steps.tick(upserted(SMALL), upserted(POD))
    steps.tick(refused(1, POD))
    [again] = steps.tick(later_ms=2000)
    assert isinstance(again, PodAssumed)
    assert steps.tick(refused(1, POD), bound(1, POD, "a")) == []
    assert steps.state.open_assumes[POD.uid].seq == 3


# -- bound by somebody else ------------------------------------------------------------------------


def test_a_pod_bound_elsewhere_ends_its_assume_and_is_adopted() -> None:
    """Whoever waits for the room that the assume held is woken by its end."""
    steps = assumed_on_a()
    other = make_node("b", milli_cpu=1000, taints=(make_taint(),))
    steps.tick(upserted(other))
    closing, adopted = steps.tick(upserted(POD, node_name="b"), cycles=0)
    assert isinstance(closing, PodUnreserved)
    assert (closing.reason, closing.node, closing.pending) == (
        EndReason.BOUND_ELSEWHERE,
        "a",
        False,
    )
    assert isinstance(adopted, BindingAdopted)
    assert (adopted.was, adopted.node) == ("assumed", "b")
    assert placed(steps.state) == {POD.uid: ("b", False)}
    assert (used(steps.state)["a"][0], used(steps.state)["b"][0]) == (0, 1000)
    assert place(steps.state, WAITER.uid) is Place.BACKOFF
    [landed] = steps.tick()
    assert isinstance(landed, PodAssumed)
    assert landed.node == "a"


@pytest.mark.parametrize(
    "then",
    [
        pytest.param(deleted(POD), id="deleted"),
        pytest.param(upserted(POD, node_name="b", phase="Failed"), id="finished"),
    ],
)
def test_a_pod_bound_elsewhere_and_gone_in_one_tick_is_counted_nowhere(then: Event) -> None:
    steps = assumed_on_a()
    closing, adopted = steps.tick(upserted(POD, node_name="b"), then, cycles=0)
    assert isinstance(closing, PodUnreserved)
    assert isinstance(adopted, BindingAdopted)
    assert placed(steps.state) == {}
    assert POD.uid not in steps.state.queue
    assert place(steps.state, WAITER.uid) is Place.BACKOFF
    assert view(steps.rebuilt()) == view(steps.state)


def test_a_late_refusal_does_not_unbind_a_pod_that_is_bound_elsewhere() -> None:
    steps = assumed_on_a()
    steps.tick(upserted(POD, node_name="b"), refused(1, POD), cycles=0)
    assert placed(steps.state) == {POD.uid: ("b", False)}
    assert POD.uid not in steps.state.queue


def test_a_queued_pod_that_somebody_binds_is_adopted() -> None:
    steps = Steps()
    steps.tick(upserted(POD))
    [adopted] = steps.tick(upserted(POD, node_name="z"))
    assert adopted == BindingAdopted(pod=pod_ref(POD), node="z", was="queued")
    assert len(steps.state.queue) == 0
    assert used(steps.state)["z"] == (1000, 0, 1)


@pytest.mark.parametrize(
    ("stamp", "want"),
    [
        pytest.param("7.abcdef01", "stamped", id="of a decision that this ledger lost"),
        pytest.param("1.abcdef01", None, id="of a decision that this ledger has"),
        pytest.param("", None, id="none"),
        pytest.param("seven", None, id="not ours"),
    ],
)
def test_a_bound_pod_with_our_stamp_is_adopted_if_the_ledger_lacks_its_decision(
    stamp: str, want: str | None
) -> None:
    steps = Steps()
    steps.tick(upserted(SMALL), upserted(WAITER))
    assert steps.state.seq == 1
    decided = steps.tick(upserted(POD, node_name="a", annotations={STAMP: stamp} if stamp else {}))
    assert [(one.was, one.stamp) for one in decided if isinstance(one, BindingAdopted)] == (
        [(want, stamp)] if want else []
    )


def test_a_bound_pod_of_another_scheduler_is_contents_of_the_cache() -> None:
    steps = Steps()
    foreign = our_pod("theirs", milli_cpu=500, scheduler_name="other")
    stamped = replace(foreign, node_name="a", annotations={STAMP: "9.abcdef01"})
    assert steps.tick(upserted(SMALL), upserted(stamped)) == []
    assert used(steps.state)["a"] == (500, 0, 1)


# -- pods ------------------------------------------------------------------------------------------


def test_unbound_pods_of_no_profile_are_counted_and_never_queued() -> None:
    steps = Steps()
    foreign = our_pod("theirs", scheduler_name="other")
    assert (
        steps.tick(upserted(SMALL), upserted(foreign), upserted(foreign, labels={"a": "b"})) == []
    )
    assert (steps.state.foreign_pods, len(steps.state.queue)) == (1, 0)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_frees_its_room(phase: str) -> None:
    steps = assumed_on_a()
    steps.tick(upserted(POD, node_name="a"))
    assert steps.tick(upserted(POD, node_name="a", phase=phase), cycles=0) == []
    assert used(steps.state)["a"] == (0, 0, 0)
    assert place(steps.state, WAITER.uid) is Place.BACKOFF


def test_a_pod_that_is_first_seen_finished_is_never_counted() -> None:
    steps = Steps()
    done = our_pod("done", milli_cpu=500, node_name="a", phase="Succeeded")
    steps.tick(upserted(SMALL), upserted(done), upserted(done, labels={"a": "b"}), deleted(done))
    assert placed(steps.state) == {}
    assert not steps.state.store.objects("Pod")


def test_a_finished_pod_that_was_queued_is_no_longer() -> None:
    steps = Steps()
    steps.tick(upserted(POD), cycles=0)
    steps.tick(upserted(POD, phase="Failed"))
    assert len(steps.state.queue) == 0


def test_a_bound_pod_that_changes_is_counted_as_it_is_now() -> None:
    steps = assumed_on_a()
    steps.tick(upserted(POD, node_name="a"))
    smaller = our_pod("web", milli_cpu=400, node_name="a")
    steps.tick(upserted(smaller), cycles=0)
    assert used(steps.state)["a"] == (400, 0, 1)
    assert place(steps.state, WAITER.uid) is Place.BACKOFF


def test_a_deleted_pod_frees_its_room_and_wakes_whom_it_helps() -> None:
    steps = assumed_on_a()
    steps.tick(upserted(POD, node_name="a"))
    steps.tick(deleted(POD), cycles=0)
    assert used(steps.state)["a"] == (0, 0, 0)
    assert place(steps.state, WAITER.uid) is Place.BACKOFF


def test_a_pod_deleted_between_its_answer_and_being_seen_bound_wakes_whom_it_helps() -> None:
    steps = assumed_on_a()
    steps.tick(bound(1, POD, "a"))
    assert steps.tick(deleted(POD), cycles=0) == []
    assert used(steps.state)["a"] == (0, 0, 0)
    assert place(steps.state, WAITER.uid) is Place.BACKOFF


def test_a_pod_that_comes_back_under_its_name_is_another_one() -> None:
    steps = Steps()
    steps.tick(upserted(SMALL), upserted(POD, node_name="a"))
    other = replace(POD, uid="uid-2")
    [assumed] = steps.tick(upserted(other))
    assert isinstance(assumed, PodAssumed)
    assert assumed.pod.uid == "uid-2"
    assert placed(steps.state) == {"uid-2": ("a", True)}


def test_a_bound_pod_that_comes_back_bound_elsewhere_moves() -> None:
    steps = Steps()
    steps.tick(upserted(SMALL), upserted(POD, node_name="a"))
    steps.tick(upserted(POD, uid="uid-2", node_name="b"))
    assert placed(steps.state) == {"uid-2": ("b", False)}


def test_what_an_update_of_a_queued_pod_says_is_what_is_tried() -> None:
    steps = Steps()
    steps.tick(upserted(SMALL), upserted(POD), cycles=0)
    smaller = our_pod("web", milli_cpu=100)
    steps.tick(upserted(smaller))
    assert used(steps.state)["a"] == (100, 0, 1)


def test_a_pod_whose_end_was_missed_wakes_whom_its_nomination_kept_out() -> None:
    """Nobody saw the nomination's end: the pod may have been placed, and its room be free."""
    steps = Steps()
    nominated = our_pod("first", milli_cpu=1000, priority=5, nominated_node_name="a")
    lower = our_pod("lower", milli_cpu=1000, priority=5)
    steps.tick(upserted(SMALL), upserted(nominated), upserted(lower))
    steps.tick(bound(1, nominated, "a"))
    steps.tick(replace(deleted(nominated), final_state_unknown=True), cycles=0)
    assert placed(steps.state) == {}
    assert place(steps.state, lower.uid) is Place.BACKOFF


def test_a_pod_whose_end_was_missed_frees_the_room_that_it_was_counted_for() -> None:
    steps = assumed_on_a()
    steps.tick(bound(1, POD, "a"))
    steps.tick(replace(deleted(POD), final_state_unknown=True), cycles=0)
    assert used(steps.state)["a"] == (0, 0, 0)
    assert place(steps.state, WAITER.uid) is Place.BACKOFF


def test_a_pod_whose_end_was_missed_may_have_held_room() -> None:
    steps = Steps()
    gone = our_pod("gone", milli_cpu=2000, nominated_node_name="a")
    steps.tick(upserted(SMALL), upserted(gone), upserted(our_pod("big", milli_cpu=3000)))
    steps.tick(replace(deleted(gone), final_state_unknown=True), cycles=0)
    assert place(steps.state, "uid-default-big") is Place.BACKOFF


def test_a_nomination_that_goes_wakes_pods_of_no_higher_priority() -> None:
    steps = Steps()
    nominated = our_pod("first", milli_cpu=2000, priority=5, nominated_node_name="a")
    lower = our_pod("lower", milli_cpu=2000, priority=5)
    higher = our_pod("higher", milli_cpu=2000, priority=6)
    steps.tick(upserted(SMALL), upserted(nominated), upserted(lower), upserted(higher))
    steps.tick(upserted(replace(nominated, nominated_node_name="")), cycles=0)
    assert place(steps.state, lower.uid) is Place.BACKOFF
    assert place(steps.state, higher.uid) is Place.UNSCHEDULABLE


def test_a_nominated_pod_that_is_deleted_wakes_them_too() -> None:
    steps = Steps()
    nominated = our_pod("first", milli_cpu=2000, priority=5, nominated_node_name="a")
    lower = our_pod("lower", milli_cpu=2000, priority=5)
    steps.tick(upserted(SMALL), upserted(nominated), upserted(lower))
    steps.tick(deleted(nominated), cycles=0)
    assert place(steps.state, lower.uid) is Place.BACKOFF


# -- twice, late, out of order ---------------------------------------------------------------------


def test_an_event_at_a_position_that_was_applied_changes_nothing() -> None:
    steps = assumed_on_a()
    before = view(steps.state)
    facts: tuple[Event, ...] = (deleted(POD), deleted(SMALL), refused(1, POD))
    for position, fact in enumerate(facts):
        steps.state.apply(Record(position, fact))
    assert view(steps.state) == before


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(upserted(POD, resource_version="2"), id="the same version of a pod"),
        pytest.param(upserted(POD, resource_version="1", node_name="z"), id="an older version"),
        pytest.param(upserted(SMALL, resource_version="1", unschedulable=True), id="of a node"),
        pytest.param(deleted(our_pod("unknown")), id="the delete of a pod that is not known"),
    ],
)
def test_what_is_old_news_changes_nothing(again: Event) -> None:
    steps = assumed_on_a()
    before = view(steps.state)
    assert steps.tick(again) == []
    assert view(steps.state) == {**before, "position": before["position"] + 1}


def test_a_deleted_pod_does_not_come_back_by_redelivery() -> None:
    steps = Steps()
    steps.tick(upserted(SMALL), upserted(POD, resource_version="9"), cycles=0)
    steps.tick(
        deleted(POD), upserted(POD, resource_version="9"), upserted(POD, resource_version="8")
    )
    assert (placed(steps.state), len(steps.state.queue)) == ({}, 0)


def test_a_pod_may_be_seen_before_its_node() -> None:
    steps = Steps()
    steps.tick(upserted(POD, node_name="a"))
    steps.tick(upserted(SMALL))
    [unschedulable] = steps.tick(upserted(WAITER))
    assert isinstance(unschedulable, PodUnschedulable)
    steps.tick(deleted(POD), deleted(SMALL), cycles=0)
    assert (steps.state.cache.node_count, steps.state.cache.pod_count) == (0, 0)


# -- nodes -----------------------------------------------------------------------------------------


def test_a_deleted_node_ends_nothing_and_its_pods_stay_counted() -> None:
    steps = assumed_on_a()
    assert steps.tick(deleted(SMALL)) == []
    assert POD.uid in steps.state.open_assumes
    assert used(steps.state)["a"] == (1000, 0, 1)
    assert steps.tick(bound(1, POD, "a")) == []


def test_a_node_that_comes_back_has_its_pods() -> None:
    steps = assumed_on_a()
    steps.tick(deleted(SMALL))
    [still] = steps.tick(upserted(SMALL, uid="uid-a-2"), later_ms=2000)
    assert isinstance(still, PodUnschedulable)
    assert used(steps.state)["a"] == (1000, 0, 1)


def test_a_node_that_is_re_created_under_its_name_in_one_event_has_its_pods() -> None:
    steps = assumed_on_a()
    steps.tick(upserted(SMALL, uid="uid-a-2"), cycles=0)
    assert used(steps.state)["a"] == (1000, 0, 1)
    assert list(steps.state.store.objects("Node")) == ["uid-a-2"]


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param({"annotations": {"x": "y"}}, Place.UNSCHEDULABLE, id="annotations"),
        pytest.param({"conditions": {"Ready": "False"}}, Place.UNSCHEDULABLE, id="conditions"),
        pytest.param({"labels": {"pool": "z"}}, Place.UNSCHEDULABLE, id="labels"),
        pytest.param(
            {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}, Place.BACKOFF, id="room"
        ),
    ],
)
def test_a_change_of_a_node_wakes_whom_it_helps(change: dict[str, Any], want: Place) -> None:
    steps = assumed_on_a()
    steps.tick(upserted(SMALL, **change), cycles=0)
    assert place(steps.state, WAITER.uid) is want


# -- other objects ---------------------------------------------------------------------------------


def test_other_objects_are_kept_by_name_and_go_when_they_are_deleted() -> None:
    steps = Steps()
    claim = make_claim("data")
    steps.tick(upserted(claim), upserted(make_namespace("default")))
    assert list(steps.state.cache.objects("PersistentVolumeClaim")) == ["default/data"]
    assert list(steps.state.cache.objects("Namespace")) == ["default"]
    version = steps.state.cache.version
    steps.tick(upserted(claim, resource_version="1"))
    assert steps.state.cache.version == version
    steps.tick(deleted(claim))
    assert list(steps.state.cache.objects("PersistentVolumeClaim")) == []


def test_another_object_under_the_same_name_takes_its_place() -> None:
    steps = Steps()
    steps.tick(upserted(make_volume("v")), upserted(make_volume("v", storage="9Gi"), uid="uid-2"))
    assert steps.state.cache.objects("PersistentVolume")["v"].uid == "uid-2"


def test_every_kind_that_is_watched_can_be_applied() -> None:
    steps = Steps()
    for kind in KINDS:
        names = {"namespace": "default"} if kind.namespaced else {}
        make: Any = kind.cls
        obj = make(uid=f"uid-{kind.name}", name="x", **names)
        steps.tick(upserted(obj), upserted(obj), deleted(obj), *resync(kind.name))
    assert steps.state.complete == {kind.name for kind in KINDS}
    assert all(not steps.state.store.objects(kind.name) for kind in KINDS)


# -- resyncs and what could not be read ------------------------------------------------------------


def test_what_a_full_resync_does_not_name_is_gone() -> None:
    steps = assumed_on_a()
    started, finished = resync("Pod")
    [closing] = steps.tick(started, upserted(WAITER), finished, cycles=0)
    assert isinstance(closing, PodUnreserved)
    assert closing.reason == EndReason.DELETED
    assert list(steps.state.store.objects("Pod")) == [WAITER.uid]


def test_a_resync_of_what_changed_removes_nothing() -> None:
    steps = assumed_on_a()
    assert steps.tick(*resync("Pod", full=False)) == []
    assert set(steps.state.store.objects("Pod")) == {POD.uid, WAITER.uid}
    assert steps.state.complete == {"Pod"}


def test_a_resync_removes_nodes_and_other_objects_too() -> None:
    steps = Steps()
    steps.tick(upserted(SMALL), upserted(PriorityClass(uid="u", name="high")))
    steps.tick(*resync("Node"), *resync("PriorityClass"))
    assert steps.state.cache.node_count == 0
    assert not steps.state.cache.objects("PriorityClass")


def test_a_resync_that_names_the_same_again_decides_nothing() -> None:
    steps = assumed_on_a()
    before = view(steps.state)
    started, finished = resync("Pod")
    same = [upserted(pod) for pod in steps.state.store.objects("Pod").values()]
    assert steps.tick(started, *same, finished) == []
    after = view(steps.state)
    assert after == {**before, "position": before["position"] + 4, "complete": {"Pod"}}


@pytest.mark.parametrize(
    ("older", "want"),
    [
        pytest.param({"node_name": ""}, {POD.uid: ("a", True)}, id="not bound yet"),
        pytest.param({"node_name": "b"}, {POD.uid: ("b", False)}, id="bound to another node"),
        pytest.param({"node_name": "a"}, {POD.uid: ("a", False)}, id="bound as it is"),
        pytest.param({"node_name": "a", "phase": "Failed"}, {}, id="finished"),
    ],
)
@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_a_cluster_that_was_set_back_is_believed(
    phase: str, older: dict[str, Any], want: dict[str, Any]
) -> None:
    """A restored etcd shows pods as they were: unbound, elsewhere, or no longer finished."""
    steps = Steps()
    steps.tick(upserted(SMALL), upserted(make_node("b", taints=(make_taint(),))))
    steps.tick(upserted(POD, node_name="a", phase=phase, resource_version="90"))
    started, finished = resync("Pod")
    steps.tick(started, upserted(POD, resource_version="5", **older), finished)
    assert placed(steps.state) == want
    assert view(steps.rebuilt()) == view(steps.state)


def test_an_undecodable_event_asks_for_its_kind_to_be_listed_again() -> None:
    steps = assumed_on_a()
    poison = Undecodable(key="Pod/default/web", type="x", error="bad byte")
    assert steps.tick(poison) == []
    [request] = steps.state.resync_requests
    assert (request.kind, request.reason) == (
        "Pod",
        "undecodable event of Pod/default/web: bad byte",
    )


def test_an_undecodable_event_of_nothing_that_is_listed_asks_for_nothing() -> None:
    steps = Steps()
    steps.tick(Undecodable(key="bind/uid-1", type="x", error="bad byte"))
    assert steps.state.resync_requests == []


def test_a_node_whose_change_was_missed_takes_no_pod_until_it_was_read_again() -> None:
    steps = Steps()
    steps.tick(upserted(SMALL))
    poison = Undecodable(key="Node//a", type="x", error="bad byte")
    [parked] = steps.tick(poison, upserted(POD))
    assert isinstance(parked, PodUnschedulable)
    assert parked.unschedulable_plugins == ("NodeUnschedulable",)
    assert view(steps.rebuilt()) == view(steps.state)
    started, finished = resync("Node")
    [assumed] = steps.tick(started, upserted(SMALL), finished)
    assert isinstance(assumed, PodAssumed)


@pytest.mark.parametrize(
    "key",
    [pytest.param("Node//unknown", id="not known"), pytest.param("Node//closed", id="cordoned")],
)
def test_a_node_that_takes_no_pods_anyhow_is_left_as_it_is(key: str) -> None:
    steps = Steps()
    steps.tick(upserted(make_node("closed", unschedulable=True)))
    steps.tick(Undecodable(key=key, type="x", error="bad byte"))
    assert len(steps.state.resync_requests) == 1


# -- generations and time --------------------------------------------------------------------------


def test_the_highest_generation_in_the_log_is_remembered() -> None:
    steps = Steps()
    for generation in (3, 5, 4):
        steps.tick(
            LeaderElected(
                generation=generation, holder="x", config_hash="h", code_version="v", rules=1
            )
        )
    assert steps.state.generation == 5


def test_time_never_goes_back() -> None:
    state = SchedulerState(CONFIG)
    state.set_now(1000)
    state.set_now(1000)
    with pytest.raises(IllegalTransition, match="from 1000 to 999"):
        state.set_now(999)


def test_the_next_timer_is_the_earliest() -> None:
    steps = Steps()
    assert steps.state.next_timer_ms() is None
    steps.tick(upserted(SMALL), upserted(our_pod("big", milli_cpu=9000)))
    assert steps.state.next_timer_ms() == steps.now_ms + 300_001


def test_a_delete_names_its_object_by_uid() -> None:
    """The delete of one that is gone must not take the one that has its name now."""
    steps = Steps()
    steps.tick(upserted(SMALL), upserted(POD, node_name="a"))
    gone = ObjectDeleted(kind="Pod", namespace="default", name="web", uid="uid-of-another")
    steps.tick(gone)
    assert placed(steps.state) == {POD.uid: ("a", False)}
