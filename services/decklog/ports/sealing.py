"""A tick's decisions, numbered, encoded and chained: what is committed, and what verify checks.

Decisions and ticks are two chains: `hash = sha256(hash before it | payload)`. A tick's payload is

    [stream, tick, generation, cursor, now_ms, cycles, config_hash, rules, seq, seq_hash, answers?]

with the last seq and its hash (hex), so that the tick's hash covers every decision up to it, and
the extenders' answers (base64) only where there were any.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from decklog.core.errors import DecklogError
from decklog.events.codec import (
    DecisionHeader,
    Malformed,
    decision_columns,
    decode_decision,
    encode_decision,
)
from decklog.events.facts import (
    Decision,
    PodAssumed,
    PodRef,
    PodSkipped,
    PodUnreserved,
    PodUnschedulable,
    VictimsSelected,
)
from decklog.ports.ledger import (
    DeadLetter,
    DecisionRow,
    EffectKind,
    NewEffect,
    TickCommit,
    TickRow,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainHead:
    """Where both chains end, and what stays the same for a whole generation."""

    stream: str
    generation: int
    tick: int
    tick_hash: bytes
    seq: int
    seq_hash: bytes
    config_hash: str
    rules: int


class TickHeader(NamedTuple):
    """What a tick's payload says."""

    stream: str
    tick: int
    generation: int
    cursor: int
    now_ms: int
    cycles: int
    config_hash: str
    rules: int
    seq: int
    seq_hash: str
    """Hexadecimal."""
    answers: tuple[bytes, ...] = ()


class BadTick(DecklogError):
    """A tick's payload that cannot be read."""


def seal(  # noqa: PLR0913 - everything that one tick is made of, and nothing else
    head: ChainHead,
    *,
    cursor: int,
    now_ms: int,
    cycles: int,
    decisions: Sequence[Decision],
    answers: Sequence[bytes] = (),
    dead_letters: Sequence[DeadLetter] = (),
) -> tuple[TickCommit, ChainHead]:
    """Return the commit of the tick after `head`, and the head after it."""
    tick = head.tick + 1
    rows = _seal_decisions(head, decisions, now_ms=now_ms)
    after = replace(
        head, tick=tick, seq=head.seq + len(rows), seq_hash=rows[-1].hash if rows else head.seq_hash
    )
    header = TickHeader(
        stream=head.stream,
        tick=tick,
        generation=head.generation,
        cursor=cursor,
        now_ms=now_ms,
        cycles=cycles,
        config_hash=head.config_hash,
        rules=head.rules,
        seq=after.seq,
        seq_hash=after.seq_hash.hex(),
        answers=tuple(answers),
    )
    payload = _ENCODER.encode(header if answers else header[:-1])
    tick_hash = chained(head.tick_hash, payload)
    commit = TickCommit(
        stream=head.stream,
        tick=TickRow(**_tick_columns(header), payload=payload, hash=tick_hash),
        decisions=rows,
        effects=[
            effect
            for row, fact in zip(rows, decisions, strict=True)
            for effect in effects_of(row.seq, fact)
        ],
        seq_hash=after.seq_hash,
        dead_letters=tuple(dead_letters),
    )
    return commit, replace(after, tick_hash=tick_hash)


def effects_of(seq: int, fact: Decision) -> list[NewEffect]:
    """Return what the decision asks of the cluster, one for each pod and numbered from 0."""
    return [
        NewEffect(seq=seq, n=n, kind=kind, pod_uid=pod.uid)
        for n, (kind, pod) in enumerate(_asked(fact))
    ]


def chained(prev_hash: bytes, payload: bytes) -> bytes:
    """Return the hash of a payload that follows the one with `prev_hash`."""
    return sha256(prev_hash + payload).digest()


def decode_tick(payload: bytes) -> TickHeader:
    """Decode a tick's payload.

    Raises:
        BadTick: it is none that this release can read.
    """
    try:
        return _TICK.decode(payload)
    except (ValueError, RecursionError) as error:
        msg = f"cannot decode a tick: {error}"
        raise BadTick(msg) from error


def check_tick_chain(prev_hash: bytes, row: TickRow) -> str | None:
    """Compare the tick's hash and columns with its payload; return a finding, or None."""
    if chained(prev_hash, row.payload) != row.hash:
        return f"tick {row.tick}: its hash does not follow from its payload and the hash before it"
    try:
        header = decode_tick(row.payload)
    except BadTick as error:
        return f"tick {row.tick}: {error}"
    return _difference(f"tick {row.tick}", row, _tick_columns(header))


def check_decision_chain(prev_hash: bytes, row: DecisionRow) -> str | None:
    """Compare the decision's hash and columns with its payload; return a finding, or None."""
    name = f"decision {row.seq}"
    if chained(prev_hash, row.payload) != row.hash:
        return f"{name}: its hash does not follow from its payload and the hash before it"
    try:
        header, fact = decode_decision(row.payload)
    except Malformed as error:
        return f"{name}: {error}"
    return _difference(name, row, {**header._asdict(), **decision_columns(fact)._asdict()})


def _seal_decisions(
    head: ChainHead, decisions: Sequence[Decision], *, now_ms: int
) -> list[DecisionRow]:
    rows, prev_hash = [], head.seq_hash
    for seq, fact in enumerate(decisions, start=head.seq + 1):
        header = DecisionHeader(seq, head.tick + 1, head.generation, now_ms)
        payload = encode_decision(header, fact)
        prev_hash = chained(prev_hash, payload)
        columns = decision_columns(fact)
        rows.append(
            DecisionRow(**header._asdict(), **columns._asdict(), payload=payload, hash=prev_hash)
        )
    return rows


def _asked(fact: Decision) -> Iterator[tuple[EffectKind, PodRef]]:
    match fact:
        case PodAssumed(pod=pod):
            yield EffectKind.BIND, pod
        case PodUnschedulable(pod=pod) | PodUnreserved(pod=pod, pending=True):
            yield EffectKind.STATUS, pod
        case VictimsSelected(victims=victims, nominations_cleared=cleared):
            yield from ((EffectKind.VICTIM, victim) for victim in victims)
            yield from ((EffectKind.STATUS, pod) for pod in cleared)
        case PodSkipped(pod=pod, reason="deleting"):
            yield EffectKind.EVENT, pod
        case _:
            pass


def _tick_columns(header: TickHeader) -> dict[str, Any]:
    columns = header._asdict()
    del columns["stream"], columns["seq_hash"], columns["answers"]
    return columns


def _difference(name: str, row: object, said: dict[str, Any]) -> str | None:
    for column, want in said.items():
        found = getattr(row, column)
        if found != want:
            return f"{name}: column {column} is {found!r}, and its payload says {want!r}"
    return None


_ENCODER: Final = msgspec.json.Encoder()
_TICK: Final = msgspec.json.Decoder(TickHeader)
