"""What a decision came to, in a word."""

import pytest

from decklog.events.facts import (
    BindFailed,
    BindingAdopted,
    BindSucceeded,
    BindUnknown,
    Decision,
    GangCommitted,
    PermitWait,
    PodAssumed,
    PodRef,
    PodSkipped,
    PodUnreserved,
    PodUnschedulable,
    PodWaiting,
    VictimsSelected,
)
from decklog.history.results import result_of
from decklog.history.since import Outcome
from decklog.ports.ledger import Effect, EffectKind, EffectState

POD = PodRef(uid="u", namespace="shop", name="web")
ASSUMED = PodAssumed(pod=POD, node="a", feasible_count=1, evaluated_count=1)
UNSCHEDULABLE = PodUnschedulable(pod=POD)


def effect(state: EffectState, kind: EffectKind = EffectKind.BIND, outcome: str = "") -> Effect:
    return Effect(
        seq=1,
        n=0,
        kind=kind,
        pod_uid="u",
        state=state,
        owner=None,
        attempts=0,
        outcome=outcome or None,
        outcome_published=True,
        late_outcome=None,
    )


@pytest.mark.parametrize(
    ("fact", "effects", "outcome", "want"),
    [
        pytest.param(ASSUMED, [], None, ("Assumed", "its bind is pending"), id="nothing known"),
        pytest.param(
            ASSUMED,
            [effect(EffectState.CLAIMED)],
            None,
            ("Assumed", "its bind is claimed"),
            id="claimed",
        ),
        pytest.param(ASSUMED, [effect(EffectState.DONE)], None, ("Bound", ""), id="done"),
        pytest.param(
            ASSUMED,
            [effect(EffectState.REJECTED, outcome='{"message":"no"}')],
            None,
            ("BindRejected", "no"),
            id="rejected",
        ),
        pytest.param(
            ASSUMED,
            [effect(EffectState.UNKNOWN, outcome="half a line")],
            None,
            ("BindUnknown", "half a line"),
            id="an outcome that is no JSON",
        ),
        pytest.param(
            ASSUMED,
            [effect(EffectState.CLAIMED)],
            BindSucceeded(seq=1, pod_uid="u", node="a"),
            ("Bound", ""),
            id="the log knows more than the ledger",
        ),
        pytest.param(
            ASSUMED,
            [],
            BindFailed(seq=1, pod_uid="u", reason="Gone"),
            ("BindRejected", "Gone"),
            id="failed by the log",
        ),
        pytest.param(
            ASSUMED,
            [],
            BindUnknown(seq=1, pod_uid="u", message="time-out"),
            ("BindUnknown", "time-out"),
            id="unknown by the log",
        ),
        pytest.param(
            PodWaiting(
                pod=POD,
                node="a",
                feasible_count=1,
                evaluated_count=1,
                waits=(PermitWait("Later", 2_000), PermitWait("Gang", 1_000)),
            ),
            [],
            None,
            ("Waiting", "Gang has time until 1970-01-01T00:00:01.000Z"),
            id="waiting",
        ),
        pytest.param(
            UNSCHEDULABLE,
            [effect(EffectState.DONE, EffectKind.STATUS)],
            None,
            ("Unschedulable", ""),
            id="unschedulable",
        ),
        pytest.param(
            PodUnreserved(pod=POD, node="a", closes_seq=1, reason="Deleted"),
            [],
            None,
            ("Unreserved", "Deleted"),
            id="unreserved",
        ),
        pytest.param(
            BindingAdopted(pod=POD, node="a", was="stamped"),
            [],
            None,
            ("Adopted", "bound by somebody else: it carries our stamp"),
            id="adopted",
        ),
        pytest.param(
            PodSkipped(pod=POD, reason="deleting"), [], None, ("Skipped", "not tried: deleting")
        ),
        pytest.param(
            VictimsSelected(pod=POD, node="a", victims=(POD, POD)),
            [],
            None,
            ("Preempting", "2 pods make room"),
            id="preempting",
        ),
        pytest.param(
            GangCommitted(seq_first=1, seq_last=8),
            [],
            None,
            ("GangCommitted", "decisions 1 to 8"),
            id="gang",
        ),
    ],
)
def test_result_of(
    fact: Decision, effects: list[Effect], outcome: Outcome | None, want: tuple[str, str]
) -> None:
    found = result_of(fact, effects, outcome)
    assert (found.text, found.detail) == want


def test_only_a_pod_without_a_node_is_pending() -> None:
    assert result_of(UNSCHEDULABLE).is_pending
    assert not result_of(ASSUMED).is_pending
