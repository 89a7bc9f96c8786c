from dataclasses import dataclass

import pytest

from decklog.binder.bind import DEFINITE_MAX, BindWork
from decklog.binder.work import Outcome
from decklog.events.facts import BindFailed, BindSucceeded, BindUnknown, PodAssumed, PodRef
from decklog.objects.meta import STAMP
from decklog.ports.cluster import (
    Answer,
    BindPod,
    Call,
    CreateEvent,
    GetPod,
    PatchPodStatus,
    RawObject,
)
from decklog.ports.ledger import Effect, EffectKind, EffectState

POD = PodRef(uid="u1", namespace="shop", name="cart")
ASSUMED = PodAssumed(
    pod=POD, node="n1", resource_version="7", profile="decklog", feasible_count=1, evaluated_count=1
)
BOUND_HERE = {"metadata": {"uid": "u1", "resourceVersion": "9"}, "spec": {"nodeName": "n1"}}
BOUND_THERE = {"metadata": {"uid": "u1", "resourceVersion": "9"}, "spec": {"nodeName": "n2"}}
UNBOUND = {"metadata": {"uid": "u1", "resourceVersion": "9"}, "spec": {}}
RECREATED = {"metadata": {"uid": "u2", "resourceVersion": "9"}, "spec": {}}
DELETING = {
    "metadata": {"uid": "u1", "resourceVersion": "9", "deletionTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {},
}
LOST = Answer(code=0, message="connection reset")
CONFLICT = Answer(code=409, reason="Conflict")


def make_work(*, state: EffectState = EffectState.CLAIMED, look_first: bool = False) -> BindWork:
    effect = Effect(
        seq=5,
        n=0,
        kind=EffectKind.BIND,
        pod_uid="u1",
        state=state,
        owner="b",
        attempts=1,
        outcome=None,
        outcome_published=True,
        late_outcome=None,
    )
    return BindWork(
        effect=effect, fact=ASSUMED, hash=b"\xab" * 32, instance="b", look_first=look_first
    )


@dataclass(slots=True)
class Run:
    """Feeds a work with answers and keeps what it did."""

    work: BindWork
    calls: list[Call]
    outcomes: list[Outcome]


def run(answers: list[Answer], work: BindWork | None = None) -> Run:
    done = Run(work or make_work(), [], [])
    for now, answer in enumerate(answers):
        done.calls.append(done.work.call())
        outcome = done.work.take(answer, now)
        if outcome is not None:
            done.outcomes.append(outcome)
    return done


def found(body: RawObject) -> Answer:
    return Answer(code=200, body=body)


@pytest.mark.parametrize(
    ("answers", "want"),
    [
        pytest.param([Answer(code=201)], "bound", id="201 is bound"),
        pytest.param([CONFLICT, found(BOUND_HERE)], "bound", id="409 and found on our node"),
        pytest.param(
            [CONFLICT, found(BOUND_THERE)], "BoundElsewhere", id="409 and found on another node"
        ),
        pytest.param(
            [CONFLICT, found(RECREATED)], "PodRecreated", id="the name belongs to another uid"
        ),
        pytest.param([CONFLICT, found(DELETING)], "PodDeleted", id="the pod is being deleted"),
        pytest.param([Answer(code=404), Answer(code=404)], "PodDeleted", id="the pod is gone"),
        pytest.param(
            [Answer(code=400, reason="BadRequest")], "BadRequest", id="a bad request is final"
        ),
        pytest.param(
            [Answer(code=413, reason="RequestEntityTooLarge")],
            "RequestEntityTooLarge",
            id="a body too large is final",
        ),
        pytest.param(
            [CONFLICT, found(UNBOUND), Answer(code=201)],
            "bound",
            id="only the resourceVersion had changed",
        ),
        pytest.param(
            [Answer(code=429, retry_after_seconds=1), Answer(code=201)],
            "bound",
            id="429 was not executed, so it is sent again",
        ),
        pytest.param(
            [Answer(code=403, reason="Forbidden"), Answer(code=201)],
            "bound",
            id="one 403 of a server that starts is no answer",
        ),
        pytest.param(
            [Answer(code=403, reason="Forbidden")] * 2, "Forbidden", id="a second 403 rejects"
        ),
    ],
)
def test_every_answer_has_its_outcome(answers: list[Answer], want: str) -> None:
    outcomes = run(answers).outcomes
    assert len(outcomes) == 1
    got = outcomes[0]
    assert (got.detail.get("reason") or got.detail["outcome"]) == want
    assert got.is_final
    assert isinstance(got.fact, BindSucceeded if want == "bound" else BindFailed)


@pytest.mark.parametrize("lost", [LOST, Answer(code=500), Answer(code=504)])
def test_what_is_not_known_is_said_once_and_then_looked_at(lost: Answer) -> None:
    done = run([lost, lost, lost, found(BOUND_HERE)])
    assert [outcome.state for outcome in done.outcomes] == [EffectState.UNKNOWN, EffectState.DONE]
    assert isinstance(done.outcomes[0].fact, BindUnknown)
    assert [type(call) for call in done.calls] == [BindPod, GetPod, GetPod, GetPod]


def test_an_unknown_bind_that_was_not_done_is_sent_again() -> None:
    done = run([LOST, found(UNBOUND), Answer(code=201)])
    assert [type(call) for call in done.calls] == [BindPod, GetPod, BindPod]
    assert done.outcomes[-1].state is EffectState.DONE


def test_a_claim_taken_over_begins_with_a_look() -> None:
    done = run([found(BOUND_HERE)], make_work(look_first=True))
    assert isinstance(done.calls[0], GetPod)
    assert done.outcomes[0].state is EffectState.DONE


def test_an_unknown_claim_taken_over_is_not_reported_unknown_again() -> None:
    work = make_work(state=EffectState.UNKNOWN, look_first=True)
    assert run([LOST, LOST], work).outcomes == []


def test_after_ten_definite_answers_the_pod_is_bumped_and_given_up() -> None:
    rounds = [CONFLICT, found(UNBOUND)] * DEFINITE_MAX
    done = run([*rounds, Answer(code=200), found(UNBOUND)])
    assert [type(call) for call in done.calls[-2:]] == [PatchPodStatus, GetPod]
    assert done.outcomes[-1].detail["reason"] == "StillUnbound"


def test_a_bump_that_finds_the_pod_bound_is_bound() -> None:
    rounds = [CONFLICT, found(UNBOUND)] * DEFINITE_MAX
    done = run([*rounds, Answer(code=409), found(BOUND_HERE)])
    assert done.outcomes[-1].state is EffectState.DONE


def test_the_bind_names_uid_version_and_decision() -> None:
    call = make_work().call()
    assert isinstance(call, BindPod)
    assert (call.uid, call.resource_version, call.node) == ("u1", "7", "n1")
    assert call.annotations == {STAMP: "5.abababab"}


def test_a_bound_pod_gets_kube_schedulers_event() -> None:
    then = run([Answer(code=201)]).outcomes[0].then
    assert isinstance(then, CreateEvent)
    assert then.event["note"] == "Successfully assigned shop/cart to n1"
    assert (then.event["reason"], then.event["type"]) == ("Scheduled", "Normal")


def test_waiting_grows_and_never_ends() -> None:
    work = make_work()
    waits = []
    for _ in range(20):
        work.take(LOST, 0)
        waits.append(work.not_before_ms)
    assert waits == sorted(waits)
    assert waits[-1] == 5_000
