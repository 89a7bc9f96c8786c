"""Ticks are numbered, chained and checked."""

import json
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

import pytest

from decklog.events.codec import DecisionHeader, decode_decision
from decklog.events.examples import DECISIONS
from decklog.events.facts import (
    BindingAdopted,
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
from decklog.ports.ledger import ZERO_HASH, DeadLetter, EffectKind, NewEffect, TickCommit
from decklog.ports.sealing import (
    BadTick,
    ChainHead,
    check_decision_chain,
    check_tick_chain,
    decode_tick,
    effects_of,
    seal,
)

NOW_MS: Final = 1_770_091_506_789
HEAD: Final = ChainHead(
    stream="harbour",
    generation=7,
    tick=12_344,
    tick_hash=bytes([1]) * 32,
    seq=123_455,
    seq_hash=bytes([2]) * 32,
    config_hash="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    rules=1,
)
POD, OTHER, THIRD = (PodRef(uid=uid, namespace="shop", name=uid) for uid in ("u1", "u2", "u3"))
ASSUMED: Final = PodAssumed(pod=POD, node="n1", feasible_count=1, evaluated_count=1)
UNRESERVED: Final = PodUnreserved(pod=POD, node="n1", closes_seq=3, reason="Deleted")
SKIPPED: Final = PodSkipped(pod=POD, reason="deleting")


def sealed(
    decisions: Sequence[Decision] = DECISIONS, answers: Sequence[bytes] = ()
) -> tuple[TickCommit, ChainHead]:
    return seal(
        HEAD, cursor=1_234_567, now_ms=NOW_MS, cycles=100, decisions=decisions, answers=answers
    )


def test_decisions_are_numbered_and_chained_on() -> None:
    commit, head = sealed()
    prev_hash = HEAD.seq_hash
    for seq, (row, fact) in enumerate(zip(commit.decisions, DECISIONS, strict=True), start=123_456):
        assert decode_decision(row.payload) == (DecisionHeader(seq, 12_345, 7, NOW_MS), fact)
        assert row.hash == sha256(prev_hash + row.payload).digest()
        assert row.seq == seq
        prev_hash = row.hash
    assert head == replace(
        HEAD,
        tick=12_345,
        tick_hash=commit.tick.hash,
        seq=HEAD.seq + len(DECISIONS),
        seq_hash=prev_hash,
    )
    assert commit.seq_hash == prev_hash


def test_a_tick_names_the_last_decision_and_its_hash() -> None:
    commit, head = sealed()
    tick = commit.tick
    assert json.loads(tick.payload) == [
        "harbour",
        12_345,
        7,
        1_234_567,
        NOW_MS,
        100,
        HEAD.config_hash,
        1,
        head.seq,
        head.seq_hash.hex(),
    ]
    assert tick.hash == sha256(HEAD.tick_hash + tick.payload).digest()
    assert (tick.seq, tick.cursor, tick.cycles) == (head.seq, 1_234_567, 100)
    assert len(tick.payload) <= 200


def test_a_tick_without_decisions_keeps_the_chain_of_decisions() -> None:
    commit, head = sealed(decisions=())
    assert (commit.decisions, commit.effects) == ([], [])
    assert (head.seq, head.seq_hash) == (HEAD.seq, HEAD.seq_hash)
    assert (commit.tick.seq, commit.seq_hash) == (HEAD.seq, HEAD.seq_hash)
    assert head.tick_hash != HEAD.tick_hash


def test_sealing_the_same_twice_gives_the_same_bytes() -> None:
    assert sealed(answers=[b"a"]) == sealed(answers=[b"a"])


@pytest.mark.parametrize("answers", [(), (b"",), (b"\x00\xff", b'{"a":1}')])
def test_answers_of_extenders_come_back_exactly(answers: tuple[bytes, ...]) -> None:
    commit, _ = sealed(answers=answers)
    assert decode_tick(commit.tick.payload).answers == answers
    assert check_tick_chain(HEAD.tick_hash, commit.tick) is None


def test_dead_letters_go_with_the_tick() -> None:
    letter = DeadLetter(topic="t", position=3, error="e", code_version="1", body=b"?")
    commit, _ = seal(HEAD, cursor=3, now_ms=NOW_MS, cycles=0, decisions=(), dead_letters=[letter])
    assert commit.dead_letters == (letter,)


@pytest.mark.parametrize(
    ("fact", "want"),
    [
        pytest.param(ASSUMED, [("bind", "u1")], id="an assume is bound"),
        pytest.param(replace(ASSUMED, closes_seq=3), [("bind", "u1")], id="after waiting too"),
        pytest.param(
            PodWaiting(
                pod=POD,
                node="n1",
                feasible_count=1,
                evaluated_count=1,
                waits=(PermitWait("Quota", 5),),
            ),
            [],
            id="a waiting pod asks for nothing",
        ),
        pytest.param(PodUnschedulable(pod=POD), [("status", "u1")], id="a condition is written"),
        pytest.param(UNRESERVED, [], id="a pod that is gone has no condition"),
        pytest.param(replace(UNRESERVED, pending=True), [("status", "u1")], id="pending again"),
        pytest.param(
            VictimsSelected(
                pod=POD, node="n1", victims=(OTHER, THIRD), nominations_cleared=(THIRD, OTHER)
            ),
            [("victim", "u2"), ("victim", "u3"), ("status", "u3"), ("status", "u2")],
            id="victims, then cleared nominations",
        ),
        pytest.param(SKIPPED, [("event", "u1")], id="a skipped pod that is being deleted"),
        pytest.param(replace(SKIPPED, reason="assumed"), [], id="skipped for another reason"),
        pytest.param(GangCommitted(seq_first=1, seq_last=2), [], id="a gang"),
        pytest.param(BindingAdopted(pod=POD, node="n1", was="queued"), [], id="an adopted binding"),
    ],
)
def test_what_a_decision_asks_of_the_cluster(fact: Decision, want: list[tuple[str, str]]) -> None:
    assert effects_of(9, fact) == [
        NewEffect(seq=9, n=n, kind=EffectKind(kind), pod_uid=uid)
        for n, (kind, uid) in enumerate(want)
    ]


def test_effects_of_a_tick_name_their_decisions() -> None:
    commit, _ = sealed(decisions=[ASSUMED, SKIPPED])
    assert [(effect.seq, effect.n, effect.kind) for effect in commit.effects] == [
        (123_456, 0, EffectKind.BIND),
        (123_457, 0, EffectKind.EVENT),
    ]


def test_what_was_sealed_passes_the_checks() -> None:
    commit, _ = sealed()
    assert check_tick_chain(HEAD.tick_hash, commit.tick) is None
    prev_hash = HEAD.seq_hash
    for row in commit.decisions:
        assert check_decision_chain(prev_hash, row) is None
        prev_hash = row.hash


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("tick", 1),
        ("generation", 8),
        ("cursor", 0),
        ("now_ms", 0),
        ("cycles", 99),
        ("config_hash", "x"),
        ("rules", 2),
        ("seq", 1),
    ],
)
def test_a_changed_column_of_a_tick_is_found(column: str, value: Any) -> None:
    tick = replace(sealed()[0].tick, **{column: value})
    finding = check_tick_chain(HEAD.tick_hash, tick)
    assert finding is not None
    assert finding.startswith(f"tick {tick.tick}: column {column} is {value!r}, and its payload ")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("seq", 1),
        ("tick", 1),
        ("generation", 8),
        ("kind", "PodWaiting"),
        ("pod_uid", "u9"),
        ("namespace", "x"),
        ("pod", "x"),
        ("node", None),
        ("reason", "x"),
        ("closes_seq", 1),
        ("now_ms", 0),
    ],
)
def test_a_changed_column_of_a_decision_is_found(column: str, value: Any) -> None:
    row = replace(sealed()[0].decisions[0], **{column: value})
    finding = check_decision_chain(HEAD.seq_hash, row)
    assert finding is not None
    assert finding.startswith(f"decision {row.seq}: column {column} is {value!r}, and its payload ")


def test_a_broken_link_is_found() -> None:
    commit, _ = sealed()
    assert check_tick_chain(ZERO_HASH, commit.tick) == (
        "tick 12345: its hash does not follow from its payload and the hash before it"
    )
    second = commit.decisions[1]
    assert check_decision_chain(HEAD.seq_hash, second) == (
        "decision 123457: its hash does not follow from its payload and the hash before it"
    )


@pytest.mark.parametrize("payload", [b"", b"[]", b'["s",1]', b"[" * 100_000])
def test_a_payload_that_cannot_be_read_is_a_finding(payload: bytes) -> None:
    commit, _ = sealed()
    hash_ = sha256(ZERO_HASH + payload).digest()
    tick = replace(commit.tick, payload=payload, hash=hash_)
    row = replace(commit.decisions[0], payload=payload, hash=hash_)
    assert "cannot decode a tick: " in (check_tick_chain(ZERO_HASH, tick) or "")
    assert "cannot decode a decision: " in (check_decision_chain(ZERO_HASH, row) or "")
    with pytest.raises(BadTick):
        decode_tick(payload)
