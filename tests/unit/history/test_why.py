"""Explanations of the pods of a voyage, each named for what happened to it."""

import json

import pytest

from decklog.history.positions import AtDecision, AtPosition, Latest, Position, resolve
from decklog.history.reasons import ReasonClass
from decklog.history.source import NotFound, Source
from decklog.history.undecided import Undecided, explain_undecided
from decklog.history.why import Explanation, explain, facts


def why(source: Source, name: str, at: Position | None = None) -> Explanation:
    found = explain(source, name, resolve(at or Latest(), source))
    assert found is not None
    return found


def why_not_yet(source: Source, name: str, at: Position | None = None) -> Undecided:
    moment = resolve(at or Latest(), source)
    assert explain(source, name, moment) is None
    return explain_undecided(source, name, moment)


def test_a_bound_pod(source: Source) -> None:
    found = why(source, "shop/web-1")
    assert (found.result.text, found.result.node, found.result.effect) == ("Bound", "large", "done")
    assert found.attempt == 1
    assert found.feasible == 2
    assert found.evaluated == 4
    assert [(group.count, group.plugin, group.reason_class) for group in found.rejected] == [
        (1, "NodeUnschedulable", ReasonClass.POLICY),
        (1, "TaintToleration", ReasonClass.POLICY),
    ]
    assert [score.node for score in found.top] == ["large", "small"]
    assert found.margin == found.top[0].total - found.top[1].total
    assert all(plugin in found.plugins and gain > 0 for plugin, gain in found.decisive)
    assert found.reason_class is None


def test_scores_stand_under_the_plugins_that_gave_them(source: Source) -> None:
    found = why(source, "shop/web-1")
    first = found.top[0]
    given = dict(zip(found.plugins, first.scores, strict=True))
    assert given["TaintToleration"] == 300
    assert sum(score or 0 for score in first.scores) == first.total


def test_an_only_node_has_no_scores(source: Source) -> None:
    found = why(source, "default/index")
    assert [score.node for score in found.top] == ["large"]
    assert found.decisive == ()
    assert facts(found)["scores"] == [{"node": "large", "total": None, "plugins": {}}]


def test_a_pod_that_fits_nowhere(source: Source) -> None:
    found = why(source, "default/archive")
    assert found.result.text == "Unschedulable"
    assert found.reason_class is ReasonClass.STRUCTURAL
    assert found.feasible == 0
    assert found.message.startswith("0/6 nodes are available: ")
    assert "4 node(s) didn't match Pod's node affinity/selector" in found.message
    assert sum(group.count for group in found.rejected) == found.node_count == 6


def test_a_pod_that_is_larger_than_every_node_waits_in_vain(source: Source) -> None:
    assert why(source, "default/giant", AtDecision(9)).reason_class is ReasonClass.STRUCTURAL


def test_an_equal_failure_is_explained_by_the_first_one(source: Source) -> None:
    repeats = [
        row
        for row in source.ledger.decisions(source.stream, after=0, limit=100)
        if b"same_as" in row.payload
    ]
    found = why(source, "default/giant", AtDecision(repeats[0].seq))
    assert found.same_as is not None
    before = why(source, "default/giant", AtDecision(found.same_as))
    assert found.message == before.message
    assert found.attempt == (before.attempt or 0) + 1


def test_a_refused_bind_and_the_next_attempt(source: Source) -> None:
    rows = [
        row.seq
        for row in source.ledger.decisions(source.stream, after=0, limit=100)
        if row.pod == "refused"
    ]
    assumed, unreserved, again = rows
    assert why(source, "default/refused", AtDecision(assumed)).result.text == "Assumed"
    undone = why(source, "default/refused", AtDecision(unreserved))
    assert undone.result.text == "Unreserved"
    assert undone.result.detail.startswith("BindRejected: ")
    assert undone.reason_class is ReasonClass.TRANSIENT
    assert why(source, "default/refused").row.seq == again
    assert why(source, "default/refused").previous == unreserved


def test_a_bind_is_pending_until_the_log_tells_its_outcome(source: Source) -> None:
    """The same question about the same position has the same answer for ever."""
    found = why(source, "shop/web-1", AtDecision(2))
    assert (found.result.text, found.result.effect) == ("Assumed", "pending")
    later = why(source, "shop/web-1", AtPosition(found.tick.cursor + 40))
    assert later.result.text == "Bound"


def test_a_pod_that_somebody_else_bound(source: Source) -> None:
    found = why(source, "default/taken")
    assert (found.result.text, found.result.node) == ("Adopted", "small")
    assert found.result.detail == "bound by somebody else: it was queued here"


def test_a_pod_that_is_gone_is_still_explained(source: Source) -> None:
    found = why(source, "shop/web-0")
    assert found.result.text == "Bound"
    assert len(found.notes) == 1
    assert found.notes[0].startswith("the pod was deleted at position ")


def test_a_pod_that_waits_for_its_victims(source: Source) -> None:
    rows = source.ledger.decisions(source.stream, after=0, limit=100)
    selected = next(row.seq for row in rows if row.kind == "VictimsSelected")
    assert why(source, "default/urgent", AtDecision(selected)).result.text == "Preempting"
    found = why(source, "default/urgent", AtDecision(selected + 1))
    assert found.nominated_node == "island"
    assert found.reason_class is ReasonClass.TRANSIENT
    assert found.notes == ("nominated to island, where default/evicted makes room",)
    assert why(source, "default/urgent").result.text == "Bound"


def test_a_uid_names_one_of_several_pods_of_a_name(source: Source) -> None:
    now = why(source, "default/monolith")
    rows = source.ledger.decisions(source.stream, after=0, limit=100)
    first = next(row for row in rows if row.pod == "monolith")
    assert now.result.text == "Bound"
    assert first.pod_uid != now.pod.uid
    assert why(source, first.pod_uid).result.text == "Unschedulable"


@pytest.mark.parametrize(
    ("name", "stage", "message", "reason_class"),
    [
        pytest.param(
            "default/gated",
            "Gated",
            "held by SchedulingGates: example.com/quota",
            ReasonClass.POLICY,
            id="gated",
        ),
        pytest.param(
            "default/foreign",
            "Foreign",
            "it asks for scheduler 'default-scheduler', and ours are decklog",
            ReasonClass.POLICY,
            id="of another scheduler",
        ),
    ],
)
def test_a_pod_about_which_nothing_was_decided(
    source: Source, name: str, stage: str, message: str, reason_class: ReasonClass
) -> None:
    found = why_not_yet(source, name)
    assert found.standing.stage.value == stage
    assert found.message == message
    assert found.reason_class is reason_class


def test_a_pod_that_is_queued(source: Source) -> None:
    found = why_not_yet(source, "default/archive", AtDecision(1))
    assert found.standing.stage.value == "Queued"
    assert found.reason_class is ReasonClass.TRANSIENT


def test_a_pod_that_never_was(source: Source) -> None:
    with pytest.raises(NotFound, match="no pod 'shop/web-77' as of position"):
        why_not_yet(source, "shop/web-77")


def test_a_pod_that_was_not_there_yet(source: Source) -> None:
    with pytest.raises(NotFound, match="no pod 'shop/late'"):
        why_not_yet(source, "shop/late", AtDecision(5))


@pytest.mark.parametrize("name", ["shop/web-1", "default/archive", "default/taken"])
def test_facts_are_plain_data(source: Source, name: str) -> None:
    told = facts(why(source, name))
    assert json.loads(json.dumps(told)) == told
