"""What each decision says, what it does to the state, and what it must not be applied to."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from decklog.core.deciding import PERMIT, Decider
from decklog.core.errors import IllegalTransition
from decklog.core.framework.interface import PostFilterResult
from decklog.core.framework.status import SUCCESS, Status, error, unschedulable, wait
from decklog.core.plugins.registry import REGISTRY
from decklog.core.queued_pod import Place, Timer
from decklog.core.state import Ending, pod_ref
from decklog.events.decisions import PermitWait
from decklog.events.facts import (
    BindingAdopted,
    Decision,
    EndReason,
    GangCommitted,
    PodAssumed,
    PodSkipped,
    PodUnreserved,
    PodUnschedulable,
    PodWaiting,
    VictimsSelected,
)
from tests.builders import make_node
from tests.stepping import (
    Steps,
    bound,
    deleted,
    our_pod,
    placed,
    refused,
    upserted,
    used,
    view,
    with_points,
)
from tests.unit.core.small_plugins import Answer, Book

NODE = make_node("a", milli_cpu=1000)
POD = our_pod("web", milli_cpu=1000)
OTHER = our_pod("other", milli_cpu=1000)
REF = pod_ref(POD)
ASSUMED = PodAssumed(pod=REF, node="a", feasible_count=1, evaluated_count=1)
WAIT_MS = 5_000


@pytest.fixture
def book(monkeypatch: pytest.MonkeyPatch) -> Book:
    """A plugin at Reserve and Permit, for as long as the test runs."""
    plugin = Book()
    install(monkeypatch, plugin)
    return plugin


def install(monkeypatch: pytest.MonkeyPatch, plugin: Any) -> None:
    registry: Any = REGISTRY
    monkeypatch.setitem(registry, plugin.name, lambda _args, _parity: plugin)


def with_book(*points: str) -> Steps:
    return Steps(with_points(**dict.fromkeys(points, ("Book",))))


def waiting(book: Book) -> Steps:
    """Return a scheduler whose POD waits at Permit, and whose OTHER lacks the room."""
    book.permits, book.timeout_ms = wait(), WAIT_MS
    steps = with_book("reserve", "permit")
    first, second = steps.tick(upserted(NODE), upserted(POD), upserted(OTHER))
    assert isinstance(first, PodWaiting)
    assert isinstance(second, PodUnschedulable)
    return steps


def place(steps: Steps, uid: str) -> Place | None:
    queued = steps.state.queue.get(uid)
    return None if queued is None else queued.place


# -- an attempt ------------------------------------------------------------------------------------


def test_an_assume_says_how_it_came_to_its_node() -> None:
    steps = Steps()
    nodes = [make_node("a"), make_node("b"), make_node("c", unschedulable=True)]
    [assumed] = steps.tick(*(upserted(node) for node in nodes), upserted(POD))
    assert isinstance(assumed, PodAssumed)
    assert (assumed.profile, assumed.attempt, assumed.resource_version) == ("decklog", 1, "4")
    assert (assumed.feasible_count, assumed.evaluated_count, assumed.tie_count) == (2, 3, 2)
    assert [score.node for score in assumed.top] == [assumed.node, *({"a", "b"} - {assumed.node})]
    assert [(group.plugin, group.count) for group in assumed.rejected] == [("NodeUnschedulable", 1)]
    assert (assumed.plan, assumed.closes_seq) == ({}, None)


def test_the_plan_of_reserve_is_recorded_and_kept_while_the_pod_is_assumed(book: Book) -> None:
    steps = with_book("reserve")
    [assumed] = steps.tick(upserted(NODE), upserted(POD))
    assert isinstance(assumed, PodAssumed)
    assert assumed.plan == {"Book": {"room": "a"}}
    assert dict(steps.state.cache.objects("Reservation")) == {POD.uid: ("a", assumed.plan)}
    steps.tick(refused(1, POD), cycles=0)
    assert book.log[-1] == "unreserve web a"
    assert not steps.state.cache.objects("Reservation")


def test_what_cannot_be_undone_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    class Provisioning(Book):
        def unreserve(self, pod: Any, node: str, plan: Any) -> list[str]:
            return [f"volume {plan['room']} was made"]

    install(monkeypatch, Provisioning())
    steps = with_book("reserve")
    steps.tick(upserted(NODE), upserted(POD))
    [closing] = steps.tick(refused(1, POD), cycles=0)
    assert isinstance(closing, PodUnreserved)
    assert closing.residue == ("volume a was made",)


@pytest.mark.parametrize("point", ["reserve", "permit"])
def test_an_assume_rejected_in_its_own_cycle_is_one_failure(book: Book, point: str) -> None:
    """It was never on the ledger, so there is nothing to close, and nobody is woken."""
    steps = with_book("reserve", "permit")
    setattr(book, f"{point}s", unschedulable("no luck"))
    [failure] = steps.tick(upserted(NODE), upserted(POD))
    assert isinstance(failure, PodUnschedulable)
    assert (failure.node_count, failure.unschedulable_plugins) == (1, ("Book",))
    assert placed(steps.state) == {}
    assert place(steps, POD.uid) is Place.UNSCHEDULABLE
    assert view(steps.rebuilt()) == view(steps.state)


@pytest.mark.parametrize("point", ["reserve", "permit"])
def test_an_attempt_that_ends_in_an_error_is_a_scheduler_error(book: Book, point: str) -> None:
    steps = with_book("reserve", "permit")
    setattr(book, f"{point}s", error("boom"))
    [failure] = steps.tick(upserted(NODE), upserted(POD))
    assert isinstance(failure, PodUnschedulable)
    assert failure.reason == "SchedulerError"
    assert failure.error == f'running {point.capitalize()} plugin "Book": boom'
    assert place(steps, POD.uid) is Place.ERROR_BACKOFF


def test_no_nodes_is_a_failure_without_rejectors() -> None:
    steps = Steps()
    [failure] = steps.tick(upserted(POD))
    assert isinstance(failure, PodUnschedulable)
    assert failure.reason == "Unschedulable"
    assert failure.error == "no nodes available to schedule pods"
    assert place(steps, POD.uid) is Place.ERROR_BACKOFF


def test_an_attempt_that_selects_victims_is_two_decisions_of_one_cycle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    victim = our_pod("victim", milli_cpu=1000, node_name="a", priority=-1)
    below = our_pod("below", milli_cpu=1000, nominated_node_name="a", priority=-1)
    answer = Answer(post_filters=SUCCESS)
    install(monkeypatch, answer)
    steps = Steps(with_points(postFilter=("Answer",)))
    answer.post_filters = unschedulable("no victims")
    steps.tick(upserted(NODE), upserted(victim), upserted(below))
    assert steps.state.nominator.node_of(below.uid) == "a"
    answer.post_filters = SUCCESS
    answer.post_filter_result = PostFilterResult(
        nominate="a",
        victims=(victim,),
        candidate_count=2,
        tie_count=1,
        pdb_violations=3,
        nominations_cleared=(below,),
    )
    selected, failure = steps.tick(upserted(POD))
    assert selected == VictimsSelected(
        pod=REF,
        node="a",
        victims=(pod_ref(victim),),
        pdb_violations=3,
        candidate_count=2,
        tie_count=1,
        nominations_cleared=(pod_ref(below),),
    )
    assert isinstance(failure, PodUnschedulable)
    assert failure.nominated_node == "a"
    assert steps.history[-1].result.cycles == 1
    assert steps.state.nominator.node_of(POD.uid) == "a"
    assert steps.state.nominator.node_of(below.uid) is None
    assert view(steps.rebuilt()) == view(steps.state)


# -- repeats and back-off --------------------------------------------------------------------------


def test_a_repeat_of_a_diagnosis_refers_to_the_full_one() -> None:
    steps = Steps()
    [first] = steps.tick(upserted(NODE), upserted(our_pod("big", milli_cpu=9000)))
    assert isinstance(first, PodUnschedulable)
    assert (first.same_as, first.node_count) == (None, 1)
    for attempt in (2, 3):
        [again] = steps.tick(later_ms=300_001)
        assert again == PodUnschedulable(pod=first.pod, attempt=attempt, same_as=1)
    queued = steps.state.queue.get(first.pod.uid)
    assert queued is not None
    assert queued.unschedulable_plugins == ("NodeResourcesFit",)


def test_another_diagnosis_is_written_in_full() -> None:
    steps = Steps()
    steps.tick(upserted(NODE), upserted(our_pod("big", milli_cpu=9000)))
    [other] = steps.tick(upserted(make_node("b", milli_cpu=500)), later_ms=300_001)
    assert isinstance(other, PodUnschedulable)
    assert (other.same_as, other.node_count) == (None, 2)
    [again] = steps.tick(later_ms=300_001)
    assert isinstance(again, PodUnschedulable)
    assert again.same_as == 2


@pytest.mark.parametrize(
    ("facts", "uid"),
    [
        pytest.param(
            (deleted(POD), upserted(POD, uid="uid-2", resource_version="9")), "uid-2", id="another"
        ),
        pytest.param((deleted(POD),), None, id="gone"),
    ],
)
def test_a_diagnosis_is_forgotten_with_its_pod(facts: tuple[Any, ...], uid: str | None) -> None:
    steps = Steps()
    steps.tick(upserted(make_node("a", milli_cpu=1)), upserted(POD))
    assert list(steps.state.failures) == [POD.uid]
    steps.tick(*facts)
    assert list(steps.state.failures) == ([uid] if uid else [])


def test_an_assume_forgets_the_diagnosis_before_it() -> None:
    steps = Steps()
    [parked] = steps.tick(upserted(NODE), upserted(our_pod("web", milli_cpu=2000)))
    steps.tick(upserted(make_node("b")), later_ms=2_000)
    assert isinstance(parked, PodUnschedulable)
    assert steps.state.failures == {}


def test_back_off_doubles_from_attempt_to_attempt() -> None:
    """Each refusal is an error without rejectors: 1, 2, 4, 8, then 10 s."""
    steps = Steps()
    steps.tick(upserted(NODE), upserted(POD))
    waited = []
    for _ in range(6):
        steps.tick(refused(steps.state.seq, POD))
        timer = steps.state.next_timer_ms()
        assert timer is not None
        waited.append((timer - steps.now_ms) // 1000 - 1)
        [again] = steps.tick(later_ms=timer - steps.now_ms)
        assert isinstance(again, PodAssumed)
    assert waited == [1, 2, 4, 8, 10, 10]


# -- skipped ---------------------------------------------------------------------------------------


def test_a_pod_that_is_being_deleted_is_skipped() -> None:
    steps = Steps()
    ending = our_pod("web", deleted="2026-01-01T00:00:00Z")
    assert steps.tick(upserted(NODE), upserted(ending)) == [PodSkipped(pod=REF, reason="deleting")]
    assert len(steps.state.queue) == 0


def test_a_pod_that_is_assumed_already_is_skipped() -> None:
    """An assume of which the queue knows nothing: what a ledger that was mutated can lead to."""
    steps = Steps()
    steps.tick(upserted(NODE), upserted(POD), cycles=0)
    steps.state.cache.assume_pod(POD, "a")
    assert steps.tick() == [PodSkipped(pod=REF, reason="assumed")]


# -- Permit ----------------------------------------------------------------------------------------


def test_a_wait_at_permit_is_an_assume_with_deadlines(book: Book) -> None:
    steps = waiting(book)
    [decision, _] = steps.decisions
    assert isinstance(decision, PodWaiting)
    assert decision.waits == (PermitWait("Book", steps.now_ms + WAIT_MS),)
    assert decision.plan == {"Book": {"room": "a"}}
    assert placed(steps.state) == {POD.uid: ("a", True)}
    assert place(steps, POD.uid) is Place.IN_FLIGHT
    assert steps.state.next_timer_ms() == steps.now_ms + WAIT_MS
    assert view(steps.rebuilt()) == view(steps.state)


def test_a_wait_at_permit_that_times_out_is_closed_by_its_timer(book: Book) -> None:
    """The pod is parked first, so that its own release does not wake it; others are woken."""
    steps = waiting(book)
    assert steps.tick(later_ms=WAIT_MS - 1) == []
    [closing] = steps.tick(later_ms=1, cycles=0)
    assert isinstance(closing, PodUnreserved)
    assert (closing.reason, closing.closes_seq) == (EndReason.PERMIT_TIMED_OUT, 1)
    assert closing.message == "rejected due to timeout after waiting 5s at plugin Book"
    assert place(steps, POD.uid) is Place.UNSCHEDULABLE
    assert place(steps, OTHER.uid) is Place.ACTIVE
    assert placed(steps.state) == {}
    assert view(steps.rebuilt()) == view(steps.state)


def test_the_pod_with_the_earliest_deadline_times_out_first_and_names_its_plugin(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, Book(name="Sooner", permits=wait(), timeout_ms=WAIT_MS - 1))
    book.permits, book.timeout_ms = wait(), WAIT_MS
    steps = Steps(with_points(permit=("Book", "Sooner")))
    steps.tick(upserted(NODE), upserted(POD))
    [closing] = steps.tick(later_ms=2 * WAIT_MS, cycles=0)
    assert isinstance(closing, PodUnreserved)
    assert closing.message.endswith("plugin Sooner")
    queued = steps.state.queue.get(POD.uid)
    assert queued is not None
    assert queued.unschedulable_plugins == ("Sooner",)


@pytest.mark.parametrize(
    ("fact", "reason", "then"),
    [
        pytest.param(deleted(POD), EndReason.DELETED, None, id="deleted"),
        pytest.param(
            upserted(POD, deleted="2026-01-01T00:00:00Z"),
            EndReason.DELETED,
            Place.ERROR_BACKOFF,
            id="ending",
        ),
        pytest.param(upserted(POD, node_name="b"), EndReason.BOUND_ELSEWHERE, None, id="elsewhere"),
        pytest.param(upserted(POD, node_name="a"), EndReason.BOUND_ELSEWHERE, None, id="there"),
    ],
)
def test_whatever_ends_a_wait_at_permit_is_decided_at_once(
    book: Book, fact: Any, reason: str, then: Place | None
) -> None:
    """Nobody asked for its bind, so even one to the same node is somebody else's."""
    steps = waiting(book)
    closing, *adopted = steps.tick(fact, cycles=0)
    assert isinstance(closing, PodUnreserved)
    assert closing.reason == reason
    assert [type(one) for one in adopted] == (
        [BindingAdopted] if reason == EndReason.BOUND_ELSEWHERE else []
    )
    assert place(steps, POD.uid) is then
    assert not steps.state.queue.in_flight
    assert view(steps.rebuilt()) == view(steps.state)


def test_a_wait_and_its_timer_in_one_tick_close_once(book: Book) -> None:
    steps = waiting(book)
    decided = steps.tick(deleted(POD), later_ms=WAIT_MS, cycles=0)
    assert [type(one) for one in decided] == [PodUnreserved]


def test_a_wait_at_permit_that_is_allowed_becomes_an_assume(book: Book) -> None:
    """No plugin can allow yet; the decision's place is kept: it opens no second assume."""
    steps = waiting(book)
    allowed = replace(ASSUMED, closes_seq=1)
    assert steps.runner.decider.accept(allowed) == 3
    assert steps.state.open_assumes[POD.uid].seq == 3
    assert steps.state.open_assumes[POD.uid].waiting == {}
    assert POD.uid not in steps.state.queue
    assert used(steps.state)["a"] == (1000, 0, 1)
    assert steps.tick(bound(1, POD, "a"), cycles=0) == []
    assert POD.uid in steps.state.open_assumes
    assert steps.tick(bound(3, POD, "a"), cycles=0) == []
    assert POD.uid not in steps.state.open_assumes


def test_an_event_during_the_wait_is_not_lost(book: Book) -> None:
    steps = waiting(book)
    steps.tick(upserted(make_node("b")), cycles=0)
    [closing] = steps.tick(later_ms=WAIT_MS, cycles=0)
    assert isinstance(closing, PodUnreserved)
    assert place(steps, POD.uid) in (Place.BACKOFF, Place.ACTIVE)


# -- timers ----------------------------------------------------------------------------------------


def test_timers_fire_by_deadline_kind_and_pod(book: Book) -> None:
    book.permits, book.timeout_ms = wait(), WAIT_MS
    steps = with_book("permit")
    steps.tick(upserted(make_node("big", milli_cpu=4000)))
    names = ("c", "a", "b")
    steps.tick(*(upserted(our_pod(name, milli_cpu=1000)) for name in names))
    steps.now_ms += WAIT_MS
    steps.state.set_now(steps.now_ms)
    due = steps.runner.decider.due()
    assert due == [Timer(steps.now_ms, PERMIT, f"uid-default-{name}") for name in ("a", "b", "c")]


def test_a_timer_of_a_pod_that_has_moved_on_does_nothing() -> None:
    steps = Steps()
    steps.tick(upserted(NODE), upserted(our_pod("big", milli_cpu=9000)))
    big = "uid-default-big"
    steps.state.queue.fire(Timer(0, "backoff", big))
    assert place(steps, big) is Place.UNSCHEDULABLE
    steps.state.queue.activate(big)
    steps.state.queue.fire(Timer(0, "flush", big))
    steps.state.queue.fire(Timer(0, "flush", "uid-unknown"))
    assert place(steps, big) is Place.ACTIVE


# -- the order of closings -------------------------------------------------------------------------


def test_closings_are_decided_in_the_order_of_their_causes() -> None:
    steps = Steps()
    names = ("a", "b", "c")
    pods = [our_pod(name, milli_cpu=100) for name in names]
    steps.tick(upserted(make_node("big")), *(upserted(pod) for pod in pods))
    a, b, c = pods
    decided = steps.tick(refused(3, c), upserted(a, node_name="z"), deleted(b), cycles=0)
    assert [(type(one).__name__, one.pod.name) for one in decided] == [  # type: ignore[union-attr]
        ("PodUnreserved", "c"),
        ("PodUnreserved", "a"),
        ("BindingAdopted", "a"),
        ("PodUnreserved", "b"),
    ]


# -- what may not be applied -----------------------------------------------------------------------


def assumed() -> Steps:
    steps = Steps()
    steps.tick(upserted(NODE), upserted(POD))
    return steps


@pytest.mark.parametrize(
    ("make", "decision", "problem"),
    [
        pytest.param(
            assumed, ASSUMED, "decision 2 assumes pod 'default/web', which is assumed already",
            id="a second assume",
        ),
        pytest.param(
            Steps, ASSUMED, "decision 1 assumes pod 'default/web', which does not exist",
            id="an assume of nobody",
        ),
        pytest.param(
            assumed, replace(ASSUMED, closes_seq=7), "decision 2 closes 7, which is not open",
            id="an allowed wait that is another",
        ),
        pytest.param(
            Steps, replace(ASSUMED, closes_seq=1), "decision 1 closes 1, which is not open",
            id="an allowed wait of nobody",
        ),
        pytest.param(
            assumed, PodUnreserved(pod=REF, node="a", closes_seq=9, reason="Deleted"),
            "assume 9 of pod 'default/web' is not open",
            id="the end of another assume",
        ),
        pytest.param(
            Steps, PodUnreserved(pod=REF, node="a", closes_seq=1, reason="Deleted"),
            "assume 1 of pod 'default/web' is not open",
            id="the end of no assume",
        ),
        pytest.param(
            Steps, PodUnschedulable(pod=REF, same_as=1),
            "decision 1 is the same as 1, which is not known",
            id="a repeat of nothing",
        ),
    ],
)  # fmt: skip
def test_a_decision_that_contradicts_the_state_is_refused(
    make: Callable[[], Steps], decision: Decision, problem: str
) -> None:
    with pytest.raises(IllegalTransition) as caught:
        make().runner.decider.accept(decision)
    assert str(caught.value) == problem


def test_a_bound_pod_cannot_be_assumed() -> None:
    steps = Steps()
    steps.tick(upserted(NODE), upserted(POD, node_name="a"))
    with pytest.raises(IllegalTransition, match="is in the cache"):
        steps.runner.decider.accept(ASSUMED)


@pytest.mark.parametrize(
    "decision",
    [
        pytest.param(GangCommitted(seq_first=1, seq_last=1), id="gang committed"),
        pytest.param(BindingAdopted(pod=REF, node="a", was="stamped"), id="binding adopted"),
        pytest.param(PodSkipped(pod=REF, reason="deleting"), id="skipped, and unknown"),
        pytest.param(PodUnschedulable(pod=REF), id="unschedulable, and gone"),
        pytest.param(VictimsSelected(pod=REF, node="a", victims=()), id="nobody cleared"),
    ],
)
def test_a_decision_about_nobody_we_know_only_takes_its_number(decision: Decision) -> None:
    steps = Steps()
    assert steps.runner.decider.accept(decision) == 1
    assert (placed(steps.state), len(steps.state.queue)) == ({}, 0)


# -- taking a proposal back ------------------------------------------------------------------------


@pytest.mark.parametrize("permits", [SUCCESS, wait()], ids=["assumed", "waiting"])
def test_a_proposal_that_is_taken_back_leaves_no_trace(book: Book, permits: Status) -> None:
    book.permits, book.timeout_ms = permits, WAIT_MS
    steps = with_book("reserve", "permit")
    steps.tick(upserted(NODE), upserted(POD), cycles=0)
    before = view(steps.state)
    decider = steps.runner.decider
    proposed = decider.propose()
    assert placed(steps.state) == {POD.uid: ("a", True)}
    decider.retract(proposed)
    assert view(steps.state) == before
    assert decider.propose() == proposed


def test_a_failure_that_is_taken_back_leaves_no_trace() -> None:
    steps = Steps()
    steps.tick(upserted(NODE), upserted(our_pod("big", milli_cpu=9000)), cycles=0)
    before = view(steps.state)
    decider = steps.runner.decider
    decider.retract(decider.propose())
    assert view(steps.state) == before


def test_a_closing_that_is_taken_back_leaves_the_plan(book: Book) -> None:
    steps = with_book("reserve")
    steps.tick(upserted(NODE), upserted(POD))
    before = view(steps.state)
    decider = steps.runner.decider
    cause = Ending(1, POD.uid, EndReason.REJECTED)
    decider.retract([decider.closing(cause)])
    assert view(steps.state) == before


def test_nothing_is_proposed_when_nobody_is_ready() -> None:
    assert Decider(Steps().state).propose() == ()
