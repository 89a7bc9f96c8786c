"""One binder: what it claims, in which order it acts, and what it reports."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from decklog.adapters.log.embedded import EmbeddedLog
from decklog.binder import service
from decklog.binder.service import (
    ADOPT_MS,
    FORBIDDEN_PODS_MAX,
    SWEEP_AGE_MS,
    BinderService,
    fact_of,
)
from decklog.core.errors import LedgerUnavailable, LogUnavailable, PositionLost
from decklog.events.facts import (
    BindFailed,
    BindingAdopted,
    BindSucceeded,
    BindUnknown,
    PodSkipped,
    PodUnreserved,
    VictimDeleted,
    VictimRefused,
    VictimsSelected,
)
from decklog.ports.cluster import Answer, BindPod, CreateEvent, DeletePod, GetPod, PatchPodStatus
from decklog.ports.entries import decision_entries
from decklog.ports.ledger import WORKER_TTL, Effect, EffectKind, EffectState
from decklog.ports.log import Entry
from tests.unit.binder.workbench import (
    CLUSTER,
    CREATED,
    FORBIDDEN,
    LOST,
    OK,
    Workbench,
    assumed,
    ref,
    unschedulable,
)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Workbench]:
    made = Workbench(tmp_path)
    yield made
    made.close()


def started(bench: Workbench, owner: str = "b", **options: Any) -> BinderService:
    """Return a binder that reads the log from here on."""
    binder = bench.binder(owner, **options)
    assert not binder.step()
    return binder


# -- what each decision asks of the cluster --------------------------------------------------------


def test_an_assume_is_bound_told_and_written_down(bench: Workbench) -> None:
    binder = started(bench)
    bench.decide(assumed("web"))
    bench.run(binder)
    [bind] = bench.writer.of(BindPod)
    assert (bind.name, bind.uid, bind.node, bind.resource_version) == ("web", "uid-web", "n1", "7")
    [event] = bench.writer.of(CreateEvent)
    assert (event.event["reason"], event.event["metadata"]["name"]) == ("Scheduled", "web.1.0")
    assert bench.news() == [BindSucceeded(seq=1, pod_uid="uid-web", node="n1")]
    assert bench.states() == ["bind done"]
    assert binder.metrics.bound == 1
    assert all(effect.outcome_published for effect in bench.effects())


def test_a_kubernetes_event_has_its_time_to_the_microsecond(bench: Workbench) -> None:
    binder = started(bench)
    bench.decide(assumed("web"))
    bench.run(binder)
    [event] = bench.writer.of(CreateEvent)
    assert event.event["eventTime"] == "2027-01-15T08:00:00.000000Z"


def test_a_failure_is_told_to_its_pod_and_reported_nowhere_else(bench: Workbench) -> None:
    binder = started(bench)
    bench.decide(unschedulable("web", nominated_node="", generation=3))
    bench.run(binder)
    [patch] = bench.writer.of(PatchPodStatus)
    [condition] = patch.patch["conditions"]
    assert condition == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes are available: 3 Insufficient cpu.",
        "observedGeneration": 3,
    }
    assert patch.patch["nominatedNodeName"] is None
    [event] = bench.writer.of(CreateEvent)
    assert event.event["reason"] == "FailedScheduling"
    assert bench.news() == []
    assert bench.states() == ["status done"]
    assert binder.metrics.statuses == 1


def test_a_repeat_changes_no_status_and_says_the_full_words_again(bench: Workbench) -> None:
    binder = started(bench)
    bench.decide(unschedulable("web"))
    bench.run(binder)
    bench.decide(unschedulable("web", rejected=(), node_count=0, attempt=2, same_as=1))
    bench.writer.answer = lambda call: (
        Answer(code=200, body={"metadata": {"uid": "uid-web"}})
        if isinstance(call, GetPod)
        else CREATED
    )
    bench.run(binder)
    assert len(bench.writer.of(PatchPodStatus)) == 1
    notes = [call.event["note"] for call in bench.writer.of(CreateEvent)]
    assert notes == ["0/3 nodes are available: 3 Insufficient cpu."] * 2
    assert bench.states() == ["status done", "status done"]


def test_an_undone_assume_is_told_to_a_pod_that_is_still_there(bench: Workbench) -> None:
    binder = started(bench)
    undone = PodUnreserved(
        pod=ref("web"), node="n1", closes_seq=1, reason="BindRejected", message="no", pending=True
    )
    bench.decide(undone, replace(undone, pod=ref("gone"), pending=False))
    bench.run(binder)
    [patch] = bench.writer.of(PatchPodStatus)
    assert patch.patch["conditions"][0]["reason"] == "SchedulerError"
    assert patch.patch["conditions"][0]["message"] == "no"
    assert bench.states() == ["status done"]


def test_a_skipped_pod_gets_an_event_and_nothing_else(bench: Workbench) -> None:
    binder = started(bench)
    bench.decide(PodSkipped(pod=ref("web"), reason="deleting"))
    bench.run(binder)
    [call] = bench.writer.calls
    assert isinstance(call, CreateEvent)
    assert call.event["note"] == "skip schedule deleting pod: default/web"
    assert bench.states() == ["event done"]


def test_victims_are_marked_then_deleted_and_the_nominations_they_cost_are_cleared(
    bench: Workbench,
) -> None:
    binder = started(bench)
    selected = VictimsSelected(
        pod=ref("high"),
        node="n1",
        victims=(ref("low"), ref("locked")),
        nominations_cleared=(ref("mid"),),
    )
    bench.writer.answer = lambda call: (
        Answer(code=422, reason="Invalid")
        if isinstance(call, PatchPodStatus) and call.name == "locked"
        else Answer(code=400, reason="BadRequest")
        if isinstance(call, DeletePod) and call.name == "locked"
        else OK
    )
    bench.decide(selected)
    bench.run(binder)
    assert [call.name for call in bench.writer.of(DeletePod)] == ["low"]
    cleared = [call for call in bench.writer.of(PatchPodStatus) if call.name == "mid"]
    assert [call.patch for call in cleared] == [{"nominatedNodeName": None}]
    [event] = bench.writer.of(CreateEvent)
    assert (event.event["reason"], event.event["note"]) == (
        "Preempted",
        "Preempted by pod uid-high on node n1",
    )
    assert sorted(bench.news(), key=repr) == [
        VictimDeleted(seq=1, pod_uid="uid-locked"),
        VictimDeleted(seq=1, pod_uid="uid-low"),
    ]
    assert bench.states() == ["victim done", "victim done", "status done"]


def test_a_victim_that_cannot_be_deleted_is_an_event_too(bench: Workbench) -> None:
    binder = started(bench)
    bench.writer.say(DeletePod, Answer(code=400, reason="BadRequest"))
    bench.decide(VictimsSelected(pod=ref("high"), node="n1", victims=(ref("low"),)))
    bench.run(binder)
    assert bench.news() == [VictimRefused(seq=1, pod_uid="uid-low", reason="BadRequest")]
    assert bench.states() == ["victim rejected"]


def test_a_rejected_bind_is_reported_with_its_reason(bench: Workbench) -> None:
    binder = started(bench)
    bench.writer.say(BindPod, Answer(code=422, reason="Invalid", message="bad node"))
    bench.decide(assumed("web"))
    bench.run(binder)
    assert bench.news() == [
        BindFailed(seq=1, pod_uid="uid-web", reason="Invalid", message="bad node")
    ]
    assert binder.metrics.rejected == 1


def test_an_unknown_bind_is_reported_once_and_ends_by_what_a_look_shows(bench: Workbench) -> None:
    binder = started(bench)
    bench.writer.say(BindPod, LOST)
    bench.writer.say(GetPod, LOST, LOST)
    bench.look("web", node="n1")
    bench.decide(assumed("web"))
    bench.run(binder)
    assert bench.states() == ["bind unknown"]
    bench.run(binder, for_ms=2_000)
    assert bench.news() == [
        BindUnknown(seq=1, pod_uid="uid-web", message="connection reset"),
        BindSucceeded(seq=1, pod_uid="uid-web", node="n1"),
    ]
    assert binder.metrics.unknown == 1
    assert len(bench.writer.of(BindPod)) == 1


# -- what is claimed -------------------------------------------------------------------------------


def test_a_forged_decision_claims_nothing(bench: Workbench) -> None:
    """Its chain is its own, so its hash is not the ledger's: whoever can write the log can bind."""
    binder = started(bench)
    [row] = bench.decide(assumed("web"), relay=False)
    forged = replace(row, payload=row.payload.replace(b"n1", b"n2"))
    entries = decision_entries([forged], prev_hash=bytes(32), cluster=CLUSTER)
    bench.decisions.append(entries)
    bench.run(binder)
    assert bench.writer.calls == []
    assert bench.states() == ["bind pending"]


def test_a_decision_that_comes_twice_is_carried_out_once(bench: Workbench) -> None:
    binder = started(bench)
    before = bench.chain
    rows = bench.decide(assumed("web"))
    bench.decisions.append(decision_entries(rows, prev_hash=before.seq_hash, cluster=CLUSTER))
    bench.run(binder)
    assert len(bench.writer.of(BindPod)) == 1


def test_two_binders_share_the_work_and_do_nothing_twice(bench: Workbench) -> None:
    binders = [started(bench, owner) for owner in ("b1", "b2")]
    bench.decide(*(assumed(f"pod-{number}") for number in range(20)))
    bench.run(*binders)
    assert sorted(call.name for call in bench.writer.of(BindPod)) == sorted(
        f"pod-{number}" for number in range(20)
    )
    assert bench.states() == ["bind done"] * 20


def test_what_no_message_brought_is_swept_after_two_seconds(bench: Workbench) -> None:
    binder = started(bench)
    bench.decide(assumed("web"), relay=False)
    bench.run(binder, for_ms=SWEEP_AGE_MS - 100)
    assert bench.writer.calls == []
    bench.run(binder, for_ms=1_000)
    assert bench.states() == ["bind done"]


def test_a_sweep_of_an_empty_ledger_finds_nothing(tmp_path: Path, bench: Workbench) -> None:
    class Empty:
        def __getattr__(self, name: str) -> Any:
            return getattr(bench.ledger, name)

        def head(self, stream: str) -> None:
            return None

    binder = started(bench, ledger=Empty())
    bench.run(binder, for_ms=3 * SWEEP_AGE_MS)


def test_the_claims_of_a_dead_binder_are_taken_over_and_begin_with_a_look(
    bench: Workbench,
) -> None:
    """It may have died between the API server's yes and the record."""
    dead = started(bench, "dead", ledger=bench.open_ledger())
    bench.decide(assumed("web"))
    dead._claim_from_log()
    assert bench.states() == ["bind claimed"]
    heir = started(bench, "heir", ledger=bench.open_ledger())
    bench.look("web", node="n1")
    bench.clock.advance(WORKER_TTL + timedelta(seconds=1))
    bench.run(heir, for_ms=ADOPT_MS)
    assert [type(call) for call in bench.writer.calls] == [GetPod, CreateEvent]
    assert bench.news() == [BindSucceeded(seq=1, pod_uid="uid-web", node="n1")]


def test_a_binder_that_was_restarted_goes_on_with_its_own_claims(bench: Workbench) -> None:
    before = started(bench)
    bench.decide(assumed("web"), assumed("db"))
    before._claim_from_log()
    bench.writer.answer = lambda call: Answer(code=404) if isinstance(call, GetPod) else CREATED
    bench.run(bench.binder())
    assert [type(call) for call in bench.writer.calls] == [GetPod, GetPod]
    assert [type(fact) for fact in bench.news()] == [BindFailed, BindFailed]


def test_outcomes_that_were_stored_and_not_published_are_published_at_start(
    bench: Workbench,
) -> None:
    class LogIsDown(EmbeddedLog):
        def __init__(self) -> None: ...

        def append(self, entries: Any) -> int:
            msg = "down"
            raise LogUnavailable(msg)

    binder = bench.binder(events=LogIsDown())
    binder.step()
    bench.decide(assumed("web"))
    with pytest.raises(LogUnavailable):
        bench.run(binder)
    assert (bench.states(), bench.news()) == (["bind done"], [])
    bench.run(bench.binder())
    assert bench.news() == [BindSucceeded(seq=1, pod_uid="uid-web", node="n1")]
    assert len(bench.writer.of(BindPod)) == 1


def test_outcomes_that_a_dead_binder_left_are_published_by_one_that_lives(
    bench: Workbench,
) -> None:
    """It need not start anew for that: nobody may be there to restart the dead one."""
    dead = started(bench, "dead", ledger=bench.open_ledger())
    heir = started(bench, "heir", ledger=bench.open_ledger())
    bench.decide(assumed("web"))
    dead._claim_from_log()
    [effect] = bench.effects()
    outcome = next(iter(dead._works.values())).take(CREATED, 0)
    assert outcome is not None
    bench.ledger.finish(CLUSTER, owner="dead", updates=[outcome.update(effect)])
    bench.clock.advance(WORKER_TTL + timedelta(seconds=1))
    heir.ledger.beat()  # type: ignore[attr-defined]
    bench.run(heir, for_ms=ADOPT_MS)
    assert bench.news() == [BindSucceeded(seq=1, pod_uid="uid-web", node="n1")]
    assert [effect.outcome_published for effect in bench.effects()] == [True]


# -- in order --------------------------------------------------------------------------------------


def test_the_effects_of_one_pod_are_carried_out_in_their_order(bench: Workbench) -> None:
    """A victim that is still binding is deleted after its bind has its outcome."""
    binder = started(bench)
    bench.writer.say(BindPod, LOST)
    bench.writer.say(GetPod, LOST)
    bench.decide(assumed("low"), VictimsSelected(pod=ref("high"), node="n1", victims=(ref("low"),)))
    bench.run(binder)
    assert bench.writer.of(DeletePod) == []
    bench.look("low", node="n1")
    bench.run(binder, for_ms=2_000)
    kinds = [type(call) for call in bench.writer.calls if not isinstance(call, CreateEvent)]
    assert kinds == [BindPod, GetPod, GetPod, PatchPodStatus, DeletePod]


def test_a_status_that_a_later_decision_overtook_is_dropped(bench: Workbench) -> None:
    binder = started(bench)
    bench.decide(unschedulable("web"), assumed("web"))
    bench.run(binder)
    assert bench.writer.of(PatchPodStatus) == []
    assert bench.states() == ["status dropped", "bind done"]
    assert binder.metrics.dropped == 1


def test_pods_do_not_wait_for_each_other(bench: Workbench) -> None:
    binder = started(bench)
    bench.writer.answer = lambda call: LOST if getattr(call, "name", "") == "stuck" else CREATED
    bench.decide(assumed("stuck"), *(assumed(f"pod-{number}") for number in range(5)))
    bench.run(binder)
    assert bench.states() == ["bind unknown", *["bind done"] * 5]


# -- refused ---------------------------------------------------------------------------------------


def test_a_refused_call_is_held_until_the_server_is_ready(bench: Workbench) -> None:
    """While it starts, a server may refuse a valid user."""
    binder = started(bench)
    bench.writer.is_ready = False
    bench.writer.say(BindPod, FORBIDDEN)
    bench.decide(assumed("web"))
    bench.run(binder, for_ms=10_000)
    assert len(bench.writer.of(BindPod)) == 1
    bench.writer.is_ready = True
    bench.run(binder, for_ms=2_000)
    assert bench.states() == ["bind done"]


def test_three_refused_pods_in_a_row_stop_claiming_until_the_server_is_ready(
    bench: Workbench,
) -> None:
    binder = started(bench)
    bench.writer.answer = lambda _: FORBIDDEN
    bench.decide(*(assumed(f"pod-{number}") for number in range(FORBIDDEN_PODS_MAX)))
    bench.run(binder, for_ms=2_000)
    assert [type(fact) for fact in bench.news()] == [BindFailed] * FORBIDDEN_PODS_MAX
    assert binder.readiness() == {"cluster": "the API server refuses our calls"}
    bench.writer.is_ready = False
    bench.writer.answer = lambda _: CREATED
    bench.decide(assumed("later"))
    bench.run(binder, for_ms=5_000)
    assert bench.states()[-1] == "bind pending"
    bench.writer.is_ready = True
    bench.run(binder, for_ms=2_000)
    assert bench.states()[-1] == "bind done"
    assert binder.readiness() == {"cluster": ""}


def test_a_pod_that_is_not_refused_ends_the_row(bench: Workbench) -> None:
    binder = started(bench)
    for number in range(FORBIDDEN_PODS_MAX):
        bench.writer.say(BindPod, FORBIDDEN, FORBIDDEN)
        bench.decide(assumed(f"refused-{number}"))
        bench.run(binder, for_ms=2_000)
        bench.decide(assumed(f"taken-{number}"))
        bench.run(binder)
    assert binder.readiness() == {"cluster": ""}


# -- when the world fails --------------------------------------------------------------------------


def test_a_poison_record_is_dead_lettered_and_the_rest_is_read(bench: Workbench) -> None:
    binder = started(bench)
    poison = Entry(
        key="uid-x", type="x", id="1", time="2026-01-01T00:00:00Z", value=b"\xff", source="x"
    )
    bench.decisions.append([poison])
    bench.decide(assumed("web"))
    bench.run(binder)
    assert bench.states() == ["bind done"]
    assert binder.metrics.dead_letters == 1


def test_a_poison_record_is_not_passed_before_it_is_stored(bench: Workbench) -> None:
    class Failing:
        failures = 1

        def __getattr__(self, name: str) -> Any:
            return getattr(bench.ledger, name)

        def dead_letter(self, stream: str, letters: Any) -> None:
            if self.failures:
                self.failures -= 1
                msg = "down"
                raise LedgerUnavailable(msg)
            bench.ledger.dead_letter(stream, letters)

    binder = started(bench, ledger=Failing())
    poison = Entry(
        key="uid-x", type="x", id="1", time="2026-01-01T00:00:00Z", value=b"{}", source="x"
    )
    bench.decide(assumed("web"))
    bench.decisions.append([poison])
    with pytest.raises(LedgerUnavailable):
        bench.run(binder)
    bench.run(binder)
    assert binder.metrics.dead_letters == 1
    assert bench.states() == ["bind done"]


def test_a_place_in_the_log_that_is_lost_costs_the_sweep_s_two_seconds(bench: Workbench) -> None:
    class Lost:
        lost = True

        def __getattr__(self, name: str) -> Any:
            return getattr(bench.decisions, name)

        def read(self, **options: Any) -> Any:
            if self.lost:
                self.lost = False
                raise PositionLost(after=0, first=9, last=9)
            return bench.decisions.read(**options)

    binder = bench.binder()
    binder.decisions_log = Lost()
    bench.decide(assumed("web"))
    bench.run(binder, for_ms=2 * SWEEP_AGE_MS)
    assert bench.states() == ["bind done"]


def test_a_ledger_that_fails_after_a_call_keeps_its_outcome(bench: Workbench) -> None:
    class Failing:
        failures = 2

        def __getattr__(self, name: str) -> Any:
            return getattr(bench.ledger, name)

        def finish(self, stream: str, **options: Any) -> Any:
            if self.failures:
                self.failures -= 1
                msg = "down"
                raise LedgerUnavailable(msg)
            return bench.ledger.finish(stream, **options)

    binder = started(bench, ledger=Failing())
    bench.decide(assumed("web"))
    for _ in range(2):
        with pytest.raises(LedgerUnavailable):
            bench.run(binder)
    binder.stop()
    assert bench.states() == ["bind done"]
    assert bench.news() == [BindSucceeded(seq=1, pod_uid="uid-web", node="n1")]
    assert len(bench.writer.of(BindPod)) == 1


def test_an_outcome_of_a_claim_that_somebody_took_over_is_not_reported(bench: Workbench) -> None:
    slow = started(bench, "slow", ledger=bench.open_ledger())
    bench.decide(assumed("web"))
    slow._claim_from_log()
    bench.clock.advance(WORKER_TTL + timedelta(seconds=1))
    heir = bench.binder("heir", ledger=bench.open_ledger())
    bench.look("web", node="n1")
    bench.run(heir, for_ms=ADOPT_MS)
    assert len(bench.news()) == 1
    bench.run(slow)
    assert bench.news() == []


def test_events_that_cannot_be_written_are_counted_and_block_nothing(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "KUBE_EVENTS_MAX", 2)
    binder = started(bench)
    bench.writer.answer = lambda call: (
        Answer(code=500) if isinstance(call, CreateEvent) else CREATED
    )
    bench.decide(*(assumed(f"pod-{number}") for number in range(5)))
    bench.run(binder)
    assert bench.states() == ["bind done"] * 5
    assert binder.metrics.events_failed == 5


def test_an_event_that_is_there_already_is_written(bench: Workbench) -> None:
    binder = started(bench)
    bench.writer.say(CreateEvent, Answer(code=409, reason="AlreadyExists"))
    bench.decide(assumed("web"))
    bench.run(binder)
    assert binder.metrics.events_failed == 0


def test_no_more_is_claimed_than_can_be_held(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "WORKS_MAX", 2)
    binder = started(bench)
    bench.writer.answer = lambda _: LOST
    bench.decide(assumed("a"), assumed("b"))
    bench.run(binder)
    bench.decide(assumed("c"))
    bench.run(binder, for_ms=5_000)
    assert bench.states() == ["bind unknown", "bind unknown", "bind pending"]


# -- stored outcomes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "state", "outcome", "want"),
    [
        pytest.param(
            EffectKind.BIND,
            EffectState.DONE,
            '{"node": "n1"}',
            BindSucceeded(seq=1, pod_uid="u", node="n1"),
            id="bound",
        ),
        pytest.param(
            EffectKind.BIND,
            EffectState.REJECTED,
            '{"reason": "Invalid", "message": "no"}',
            BindFailed(seq=1, pod_uid="u", reason="Invalid", message="no"),
            id="rejected",
        ),
        pytest.param(
            EffectKind.BIND,
            EffectState.UNKNOWN,
            '{"message": "lost"}',
            BindUnknown(seq=1, pod_uid="u", message="lost"),
            id="unknown",
        ),
        pytest.param(
            EffectKind.VICTIM,
            EffectState.DONE,
            "{}",
            VictimDeleted(seq=1, pod_uid="u"),
            id="victim",
        ),
        pytest.param(
            EffectKind.VICTIM,
            EffectState.REJECTED,
            '{"message": "no"}',
            VictimRefused(seq=1, pod_uid="u", reason="no"),
            id="victim refused",
        ),
        pytest.param(EffectKind.STATUS, EffectState.DONE, None, None, id="status"),
    ],
)
def test_a_stored_outcome_is_the_event_that_it_was(
    kind: EffectKind, state: EffectState, outcome: str | None, want: object
) -> None:
    effect = Effect(
        seq=1,
        n=0,
        kind=kind,
        pod_uid="u",
        state=state,
        owner="b",
        attempts=1,
        outcome=outcome,
        outcome_published=False,
        late_outcome=None,
    )
    assert fact_of(effect) == want


def test_a_decision_without_effects_has_no_work(bench: Workbench) -> None:
    binder = started(bench)
    [row] = bench.decide(BindingAdopted(pod=ref("web"), node="n1", was="queued"))
    effect = Effect(
        seq=1,
        n=0,
        kind=EffectKind.BIND,
        pod_uid="uid-web",
        state=EffectState.CLAIMED,
        owner="b",
        attempts=1,
        outcome=None,
        outcome_published=True,
        late_outcome=None,
    )
    with pytest.raises(AssertionError, match="BindingAdopted has no effects"):
        binder._add([effect], {1: row}, look_first=False)
