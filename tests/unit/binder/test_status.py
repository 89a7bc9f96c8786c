"""What is told to a pod, answer by answer: its condition, its nomination, its end."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from decklog.binder.kube_events import failed_event, scheduled_event
from decklog.binder.status import (
    CONFLICTS_MAX,
    EventWork,
    StatusWork,
    Told,
    VictimWork,
    skipped_event,
    told_nomination_cleared,
    told_unreserved,
    told_unschedulable,
)
from decklog.binder.work import Outcome, Work, retry_at
from decklog.events.facts import (
    PodRef,
    PodSkipped,
    PodUnreserved,
    VictimDeleted,
    VictimRefused,
    VictimsSelected,
)
from decklog.ports.cluster import Answer, Call, CreateEvent, DeletePod, GetPod, PatchPodStatus
from decklog.ports.ledger import Effect, EffectKind, EffectState
from tests.unit.binder.workbench import (
    CREATED,
    FORBIDDEN,
    LOST,
    OK,
    assumed,
    found,
    ref,
    unschedulable,
)

EFFECT = Effect(
    seq=5,
    n=0,
    kind=EffectKind.STATUS,
    pod_uid="uid-web",
    state=EffectState.CLAIMED,
    owner="b",
    attempts=1,
    outcome=None,
    outcome_published=True,
    late_outcome=None,
)
CONFLICT = Answer(code=409, reason="Conflict")
BUSY = Answer(code=429, retry_after_seconds=2)
GONE = Answer(code=404)
EVENT = {"reason": "FailedScheduling"}


@dataclass
class Run:
    """What a work did with the answers that it got."""

    calls: list[Call] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def states(self) -> list[EffectState]:
        return [outcome.state for outcome in self.outcomes]


def run(work: Work, *answers: Answer) -> Run:
    done = Run()
    for answer in answers:
        done.calls.append(work.call())
        outcome = work.take(answer, 0)
        if outcome is not None:
            done.outcomes.append(outcome)
    return done


def status_work(**fields: Any) -> StatusWork:
    told = {"pod": ref("web"), "patch": {"a": 1}, "resource_version": "7", "event": EVENT, **fields}
    return StatusWork(effect=EFFECT, told=Told(**told))


def victim_work() -> VictimWork:
    selected = VictimsSelected(pod=ref("high"), node="n1", victims=(ref("web"),))
    return VictimWork(effect=EFFECT, victim=ref("web"), selected=selected, instance="b")


# -- status ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "want"),
    [
        pytest.param([OK], "done patched", id="patched"),
        pytest.param([GONE], "dropped the pod is gone", id="gone"),
        pytest.param([Answer(code=422)], "dropped the pod is gone", id="another uid"),
        pytest.param([Answer(code=400, message="no")], "rejected no", id="refused"),
        pytest.param([Answer(code=400)], "rejected 400", id="refused without words"),
        pytest.param([LOST, OK], "done patched", id="lost, and sent again"),
        pytest.param([Answer(code=503), OK], "done patched", id="server error, sent again"),
        pytest.param([BUSY, OK], "done patched", id="busy, sent again"),
        pytest.param([FORBIDDEN, FORBIDDEN, OK], "done patched", id="forbidden, held"),
        pytest.param([CONFLICT, found("web"), OK], "done patched", id="changed meanwhile"),
        pytest.param(
            [CONFLICT, found("web", node="n1")], "dropped the pod is bound", id="bound meanwhile"
        ),
        pytest.param(
            [CONFLICT, found("web", uid="uid-2")], "dropped the pod is gone", id="re-created"
        ),
        pytest.param([CONFLICT, GONE], "dropped the pod is gone", id="gone meanwhile"),
    ],
)
def test_every_answer_to_a_status_has_its_outcome(answers: list[Answer], want: str) -> None:
    [outcome] = run(status_work(), *answers).outcomes
    assert f"{outcome.state} {outcome.detail['message']}" == want
    assert outcome.is_final
    assert outcome.fact is None


def test_a_status_goes_with_the_version_it_was_decided_on_then_with_the_one_found() -> None:
    done = run(status_work(), CONFLICT, found("web"), OK)
    patches = [call for call in done.calls if isinstance(call, PatchPodStatus)]
    assert [patch.resource_version for patch in patches] == ["7", "9"]
    assert [patch.uid for patch in patches] == ["uid-web"] * 2


def test_conflicts_end() -> None:
    rounds = [CONFLICT, found("web")] * CONFLICTS_MAX
    [outcome] = run(status_work(), *rounds, CONFLICT).outcomes
    assert (outcome.state, outcome.detail["message"]) == (EffectState.REJECTED, "10 conflicts")


def test_only_what_was_told_gets_an_event() -> None:
    [told] = run(status_work(), OK).outcomes
    assert told.then == CreateEvent(namespace="default", event=EVENT)
    [dropped] = run(status_work(), GONE).outcomes
    assert dropped.then is None
    [silent] = run(status_work(event=None), OK).outcomes
    assert silent.then is None


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param(found("web"), EffectState.DONE, id="still pending"),
        pytest.param(found("web", node="n1"), EffectState.DROPPED, id="bound"),
        pytest.param(GONE, EffectState.DROPPED, id="gone"),
    ],
)
def test_where_nothing_is_patched_a_look_says_whether_to_write_the_event(
    answer: Answer, want: EffectState
) -> None:
    done = run(status_work(patch={}), answer)
    assert [type(call) for call in done.calls] == [GetPod]
    assert done.states == [want]


def test_a_pod_is_known_by_its_uid() -> None:
    event = EventWork(effect=EFFECT, pod=ref("web"), event=EVENT)
    assert {work.pod_key for work in (status_work(), event, victim_work())} == {"uid-web"}


# -- events ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param(CREATED, EffectState.DONE, id="written"),
        pytest.param(CONFLICT, EffectState.DONE, id="there already"),
        pytest.param(FORBIDDEN, EffectState.DROPPED, id="refused"),
        pytest.param(LOST, EffectState.DROPPED, id="lost"),
    ],
)
def test_an_event_is_tried_once(answer: Answer, want: EffectState) -> None:
    work = EventWork(effect=EFFECT, pod=ref("web"), event=EVENT)
    assert run(work, answer).states == [want]


# -- victims ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "want"),
    [
        pytest.param([OK, OK], True, id="marked, then deleted"),
        pytest.param([OK, Answer(code=202)], True, id="its end began"),
        pytest.param([GONE], True, id="gone before it was marked"),
        pytest.param([OK, GONE], True, id="gone before it was deleted"),
        pytest.param([OK, CONFLICT], True, id="re-created before it was deleted"),
        pytest.param([CONFLICT, OK], True, id="changed as it was marked"),
        pytest.param([LOST, OK, LOST, OK], True, id="lost, and sent again"),
        pytest.param([BUSY, OK, BUSY, OK], True, id="busy, sent again"),
        pytest.param([FORBIDDEN, OK, OK], True, id="one 403 of a server that starts"),
        pytest.param([FORBIDDEN, FORBIDDEN], False, id="forbidden"),
        pytest.param([OK, Answer(code=400)], False, id="refused"),
        pytest.param([Answer(code=400)], False, id="cannot be marked"),
    ],
)
def test_every_end_of_a_victim_is_an_event(answers: list[Answer], want: bool) -> None:
    [outcome] = run(victim_work(), *answers).outcomes
    assert isinstance(outcome.fact, VictimDeleted if want else VictimRefused)
    assert outcome.state is (EffectState.DONE if want else EffectState.REJECTED)


def test_a_victim_is_marked_as_disrupted_then_deleted_under_its_uid() -> None:
    mark, delete = run(victim_work(), OK, OK).calls
    assert isinstance(mark, PatchPodStatus)
    [condition] = mark.patch["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "DisruptionTarget",
        "True",
        "PreemptionByScheduler",
    )
    assert delete == DeletePod(namespace="default", name="web", uid="uid-web")


def test_only_a_victim_that_we_deleted_gets_an_event() -> None:
    assert run(victim_work(), OK, OK).outcomes[0].then is not None
    assert run(victim_work(), GONE).outcomes[0].then is None


def test_a_refused_victim_says_why() -> None:
    [outcome] = run(victim_work(), Answer(code=400, reason="BadRequest")).outcomes
    assert outcome.fact == VictimRefused(seq=5, pod_uid="uid-web", reason="BadRequest")
    [nameless] = run(victim_work(), Answer(code=400)).outcomes
    assert nameless.fact == VictimRefused(seq=5, pod_uid="uid-web", reason="400")


# -- words -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nominated", "want"),
    [
        pytest.param(None, {}, id="kept"),
        pytest.param("", {"nominatedNodeName": None}, id="cleared"),
        pytest.param("n1", {"nominatedNodeName": "n1"}, id="given"),
    ],
)
def test_a_nomination_is_told_only_where_it_changes(
    nominated: str | None, want: dict[str, Any]
) -> None:
    fact = unschedulable("web", nominated_node=nominated)
    told = told_unschedulable(EFFECT, fact, repeat=False, message="m", instance="b")
    assert {key: told.patch[key] for key in told.patch if key != "conditions"} == want
    assert told.resource_version == "7"


def test_a_repeat_tells_no_status() -> None:
    fact = unschedulable("web", nominated_node="n1")
    told = told_unschedulable(EFFECT, fact, repeat=True, message="m", instance="b")
    assert told.patch == {}
    assert told.event is not None
    assert told.event["note"] == "m"


def test_an_undone_assume_tells_its_message_or_its_reason() -> None:
    fact = PodUnreserved(pod=ref("web"), node="n1", closes_seq=1, reason="Deleted")
    [condition] = told_unreserved(EFFECT, fact, instance="b").patch["conditions"]
    assert (condition["reason"], condition["message"]) == ("SchedulerError", "Deleted")
    assert "observedGeneration" not in condition


def test_an_undone_assume_clears_the_nomination() -> None:
    fact = PodUnreserved(pod=ref("web"), node="n1", closes_seq=1, reason="BindRejected")
    assert told_unreserved(EFFECT, fact, instance="b").patch["nominatedNodeName"] is None


def test_a_rejection_at_permit_is_told_as_one_and_not_as_an_error() -> None:
    fact = PodUnreserved(
        pod=ref("web"),
        node="n1",
        closes_seq=1,
        reason="PermitRejected",
        message="no luck",
        plugin="Quorum",
    )
    told = told_unreserved(EFFECT, fact, instance="b")
    [condition] = told.patch["conditions"]
    want = "0/1 nodes are available: 1 no luck."
    assert (condition["reason"], condition["message"]) == ("Unschedulable", want)
    assert told.event is not None
    assert told.event["note"] == want


def test_a_cleared_nomination_is_told_without_an_event() -> None:
    told = told_nomination_cleared(ref("web"))
    assert (told.patch, told.event) == ({"nominatedNodeName": None}, None)


def test_a_skipped_pod_is_told_why() -> None:
    event = skipped_event(EFFECT, PodSkipped(pod=ref("web"), reason="deleting"), instance="b")
    assert event["note"] == "skip schedule deleting pod: default/web"


def test_an_event_fits_what_an_api_server_takes() -> None:
    long = PodRef(uid="u", namespace="default", name="p" * 253)
    event = failed_event(EFFECT, long, profile="x" * 200, instance="b" * 200, message="m" * 2000)
    assert len(event["metadata"]["name"]) <= 253
    assert len(event["reportingInstance"]) == 128
    assert len(event["note"]) == 1024
    assert event["note"].endswith(" ...")


def test_an_event_names_its_pod_and_who_reports_it() -> None:
    event = scheduled_event(EFFECT, assumed("web", profile="gold"), instance="b")
    assert event["regarding"]["uid"] == "uid-web"
    assert (event["reportingController"], event["reportingInstance"]) == ("gold", "gold-b")
    assert event["metadata"]["name"] == "web.5.0"


@pytest.mark.parametrize(
    ("failures", "answer", "want"),
    [
        pytest.param(1, LOST, 100, id="first"),
        pytest.param(2, LOST, 200, id="second"),
        pytest.param(50, LOST, 5_000, id="never later than this"),
        pytest.param(1, BUSY, 2_000, id="as the server says"),
    ],
)
def test_a_retry_comes_later_each_time(failures: int, answer: Answer, want: int) -> None:
    assert retry_at(0, failures, answer) == want
