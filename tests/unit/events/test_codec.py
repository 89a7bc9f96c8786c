"""Keys, ids, columns, digests, and what is refused."""

import dataclasses
import json
from dataclasses import replace
from typing import Any, Final

import pytest

from decklog.events.codec import (
    DECISION_KINDS,
    EVENT_TYPES,
    DecisionColumns,
    DecisionHeader,
    Malformed,
    check_event,
    decision_columns,
    decode_decision,
    decode_event,
    encode_decision,
    encode_event,
    event_id,
    event_key,
    upserted,
)
from decklog.events.examples import DECISIONS, EVENTS, OBJECTS
from decklog.events.facts import (
    BindFailed,
    BindingAdopted,
    BindSucceeded,
    BindUnknown,
    Decision,
    Event,
    GangCommitted,
    LeaderElected,
    NodeScore,
    NodeUpserted,
    ObjectDeleted,
    PodAssumed,
    PodRef,
    PodSkipped,
    PodUnreserved,
    PodUnschedulable,
    PodUpserted,
    Rejection,
    ResyncFinished,
    ResyncRequested,
    ResyncStarted,
    Undecodable,
    VictimDeleted,
    VictimRefused,
    VictimsSelected,
)
from decklog.objects.node import Node
from decklog.objects.pod import Affinity, Container, NodeAffinity, Pod
from tests.unit.events import samples

POD_TYPE: Final = PodUpserted.ce_type
POD: Final = Pod(uid="u1", namespace="shop", name="web", resource_version="7")
REF: Final = PodRef(
    uid="0f8fad5b-d9cb-469f-a165-70867728950e", namespace="default", name="web-7d4b9c6f5-abcde"
)
HEADER: Final = DecisionHeader(123_456, 4_567, 12, 1_760_000_000_000)
DELETED: Final = ObjectDeleted(kind="Node", name="n1", uid="u2", resource_version="9")
ELECTED: Final = LeaderElected(generation=7, holder="a", config_hash="c", code_version="1", rules=1)


@pytest.mark.parametrize(
    ("fact", "key", "id_"),
    [
        (PodUpserted(pod=POD), "Pod/shop/web", "Pod/u1/7/upserted"),
        (NodeUpserted(node=Node(uid="u2", name="n1")), "Node//n1", "Node/u2//upserted"),
        (DELETED, "Node//n1", "Node/u2/9/deleted"),
        (BindSucceeded(seq=4, pod_uid="u1", node="n1"), "bind/u1", "bind/4/succeeded"),
        (BindFailed(seq=4, pod_uid="u1", reason="r"), "bind/u1", "bind/4/failed"),
        (BindUnknown(seq=4, pod_uid="u1"), "bind/u1", "bind/4/unknown"),
        (VictimDeleted(seq=4, pod_uid="u1"), "victim/u1", "victim/4/u1/deleted"),
        (VictimRefused(seq=4, pod_uid="u1"), "victim/u1", "victim/4/u1/refused"),
        (ResyncRequested(kind="Pod", reason="r"), "resync/Pod", "resync/Pod/99/requested"),
        (ResyncStarted(kind="Pod", resource_version="8"), "resync/Pod", "resync/Pod/8/started"),
        (
            ResyncFinished(kind="Pod", resource_version="8", count=0, digest="0"),
            "resync/Pod",
            "resync/Pod/8/finished",
        ),
        (ELECTED, "leader", "leader/7/elected"),
    ],
    ids=lambda value: type(value).__name__ if dataclasses.is_dataclass(value) else "",
)
def test_key_and_id_name_the_subject_and_the_fact(fact: Event, key: str, id_: str) -> None:
    assert (event_key(fact), event_id(fact, time_ms=99)) == (key, id_)


def test_ids_of_all_examples_differ() -> None:
    ids = [event_id(fact) for fact in EVENTS]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("fact", EVENTS, ids=lambda fact: type(fact).__name__)
def test_every_event_has_an_example_and_is_valid(fact: Event) -> None:
    assert check_event(type(fact).ce_type, encode_event(fact)) == fact
    assert {type(each) for each in EVENTS} == set(EVENT_TYPES.values())


@pytest.mark.parametrize(
    ("ce_type", "value"),
    [
        pytest.param(POD_TYPE, b"", id="empty"),
        pytest.param(POD_TYPE, b"{", id="cut off"),
        pytest.param(POD_TYPE, b"[]", id="an array"),
        pytest.param(POD_TYPE, b"{}", id="a field is missing"),
        pytest.param(POD_TYPE, b'{"pod":{"uid":1,"namespace":"n","name":"p"}}', id="a wrong type"),
        pytest.param(POD_TYPE, b'{"pod":"\xff"}', id="not UTF-8"),
        pytest.param(POD_TYPE, rb'{"pod":"\ud800"}', id="an unpaired surrogate"),
        pytest.param(POD_TYPE, b'{"x":' + b"[" * 100_000, id="too deep"),
        pytest.param(POD_TYPE, b'{"x":1e999}', id="a number out of range"),
        pytest.param("dev.decklog.pod.upserted.v2", b"{}", id="a later version"),
        pytest.param("dev.decklog.pod.upserted.v0", b"{}", id="no version"),
        pytest.param("dev.decklog.pod.upserted", b"{}", id="a type without version"),
        pytest.param("dev.decklog.ship.launched.v1", b"{}", id="an unknown type"),
        pytest.param("", b"{}", id="no type"),
    ],
)
def test_what_cannot_be_decoded_stands_in_its_place(ce_type: str, value: bytes) -> None:
    got = decode_event(ce_type, "some/key", value)
    assert isinstance(got, Undecodable)
    assert (got.key, got.type) == ("some/key", ce_type)
    assert got.error
    with pytest.raises(Malformed):
        check_event(ce_type, value)


def test_replay_ignores_a_field_it_does_not_know_and_the_edge_refuses_it() -> None:
    value = b'{"pod":{"uid":"u1","namespace":"shop","name":"web","resource_version":"7","x":1}}'
    assert decode_event(POD_TYPE, "", value) == PodUpserted(pod=POD)
    with pytest.raises(Malformed, match=r"pod\.x: Unexpected keyword argument$"):
        check_event(POD_TYPE, value)


def test_constraints_are_checked_where_an_event_enters_and_not_on_replay() -> None:
    value = b'{"seq":0,"pod_uid":"","node":"n1"}'
    fact = decode_event(BindSucceeded.ce_type, "", value)
    assert fact == BindSucceeded(seq=0, pod_uid="", node="n1")
    with pytest.raises(Malformed, match=r"seq: .* greater than or equal to 1 \(and 1 more\)$"):
        check_event(BindSucceeded.ce_type, value)


def test_a_refusal_does_not_repeat_the_value() -> None:
    with pytest.raises(Malformed) as raised:
        check_event(POD_TYPE, b'{"pod":{"uid":"u","namespace":"n","name":{"secret":1}}}')
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("text", ["a\0b", "\u2028", "\U0001f6a2", "\\u0000", "\x7f"])
def test_odd_text_is_carried_exactly(text: str) -> None:
    fact = BindFailed(seq=1, pod_uid="u", reason=text)
    body = encode_event(fact)
    assert decode_event(fact.ce_type, "", body) == fact == check_event(fact.ce_type, body)
    decision = PodUnschedulable(pod=REF, error=text)
    assert decode_decision(encode_decision(HEADER, decision)) == (HEADER, decision)


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param({"profile": "\ud800"}, id="an unpaired surrogate"),
        pytest.param({"plan": {"Plugin": object()}}, id="a plan that is not plain data"),
    ],
)
def test_what_has_no_bytes_is_refused(odd: dict[str, Any]) -> None:
    fact = PodAssumed(pod=REF, node="n1", feasible_count=1, evaluated_count=1, **odd)
    with pytest.raises(Malformed, match=r"^cannot encode a PodAssumed: "):
        encode_decision(HEADER, fact)


def test_numbers_of_any_size_are_carried_exactly() -> None:
    fact = PodUnschedulable(pod=REF, generation=2**200)
    assert decode_decision(encode_decision(HEADER, fact)) == (HEADER, fact)


def test_empty_is_not_absent() -> None:
    pod = replace(
        POD,
        host_users=False,
        containers=(Container(name="c", requests={}),),
        node_selector={},
        affinity=Affinity(node=NodeAffinity(preferred=())),
    )
    body = json.loads(encode_event(PodUpserted(pod=pod)))["pod"]
    assert body["host_users"] is False
    assert body["containers"] == [{"name": "c", "requests": {}}]
    assert body["node_selector"] == {}
    assert body["affinity"] == {"node": {"preferred": []}}
    assert decode_event(POD_TYPE, "", encode_event(PodUpserted(pod=pod))) == PodUpserted(pod=pod)


@pytest.mark.parametrize("fact", OBJECTS, ids=lambda fact: type(fact).__name__)
def test_an_object_is_upserted_by_the_event_of_its_kind(fact: Any) -> None:
    assert upserted(fact.object) == fact


@pytest.mark.parametrize("number", range(len(samples.decisions())))
def test_a_payload_holds_every_column(number: int) -> None:
    fact = samples.decisions()[number]
    columns = decision_columns(fact)
    payload = json.loads(encode_decision(HEADER, fact))
    assert payload[:8] == [*HEADER, *columns[:4]]
    assert decode_decision(encode_decision(HEADER, fact)) == (HEADER, fact)


@pytest.mark.parametrize(
    ("fact", "node", "reason", "closes_seq"),
    [
        (
            PodAssumed(pod=REF, node="n1", feasible_count=1, evaluated_count=1, closes_seq=3),
            "n1",
            None,
            3,
        ),
        (PodUnschedulable(pod=REF, nominated_node="n2"), None, "Unschedulable", None),
        (PodSkipped(pod=REF, reason="assumed"), None, "assumed", None),
        (VictimsSelected(pod=REF, node="n1", victims=(REF,)), "n1", None, None),
        (PodUnreserved(pod=REF, node="n1", closes_seq=3, reason="Deleted"), "n1", "Deleted", 3),
        (BindingAdopted(pod=REF, node="n1", was="stamped"), "n1", "stamped", None),
    ],
)
def test_columns(fact: Decision, node: str | None, reason: str | None, closes_seq: int) -> None:
    kind = type(fact).__name__
    want = DecisionColumns(kind, REF.uid, REF.namespace, REF.name, node, reason, closes_seq)
    assert decision_columns(fact) == want


def test_a_gang_has_no_pod() -> None:
    fact = GangCommitted(seq_first=1, seq_last=2)
    assert decision_columns(fact) == DecisionColumns("GangCommitted", "", "", "", None, None, None)


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"[]", id="too short"),
        pytest.param(b'[1,2,3,4,"PodSkipped","u","n","p",{}]', id="a field is missing"),
        pytest.param(b'[1,2,3,4,"PodSkipped","","","",{"reason":"r"}]', id="no pod"),
        pytest.param(b'[1,2,3,4,"PodLaunched","u","n","p",{}]', id="an unknown kind"),
        pytest.param(b'["1",2,3,4,"PodSkipped","u","n","p",{"reason":"r"}]', id="seq is text"),
    ],
)
def test_a_payload_that_is_no_decision_is_refused(payload: bytes) -> None:
    with pytest.raises(Malformed, match=r"^cannot decode a decision: "):
        decode_decision(payload)


def test_every_decision_has_an_example() -> None:
    assert {type(each) for each in DECISIONS} == set(DECISION_KINDS.values())


TOP: Final = tuple(
    NodeScore(node=f"node-{n:04}", total=612 - n, scores=(100, 87, None, 100, 200, 125))
    for n in range(5)
)
REJECTED: Final = (
    Rejection("TaintToleration", 3, ("node(s) had untolerated taint(s)",), 3, ("c-1", "c-2")),
    Rejection("NodeResourcesFit", 2, ("Insufficient cpu",), 40, ("node-0001", "node-0002")),
)


@pytest.mark.parametrize(
    ("fact", "bytes_max"),
    [
        pytest.param(
            PodAssumed(
                pod=REF,
                node="node-0017",
                resource_version="1234567",
                profile="decklog",
                feasible_count=400,
                evaluated_count=443,
                tie_count=3,
                rejected=REJECTED,
                top=TOP,
            ),
            700,
            id="an assume with the best five nodes",
        ),
        pytest.param(
            PodUnschedulable(
                pod=REF,
                resource_version="1234567",
                generation=1,
                profile="decklog",
                attempt=3,
                node_count=43,
                rejected=REJECTED,
                post_filter_message="0/43 nodes are available: 40 No preemption victims found.",
                unschedulable_plugins=("NodeResourcesFit", "TaintToleration"),
            ),
            600,
            id="a diagnosis",
        ),
        pytest.param(
            PodUnschedulable(
                pod=replace(REF, name="web-7d4b9c6f5-abc"), attempt=12, same_as=123_400
            ),
            150,
            id="the same diagnosis again",
        ),
    ],
)
def test_payloads_keep_their_budget(fact: Decision, bytes_max: int) -> None:
    assert len(encode_decision(HEADER, fact)) <= bytes_max
