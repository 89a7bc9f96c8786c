"""Decisions, many at once or one with everything that belongs to it."""

import base64
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from decklog.core.errors import DecklogError
from decklog.events.codec import decode_decision
from decklog.events.facts import Decision, PodAssumed, PodUnschedulable, PodWaiting
from decklog.history.policies import policy_name
from decklog.history.positions import Moment
from decklog.history.results import Result, outcome_text, result_of
from decklog.history.source import NotFound, Source
from decklog.ports.entries import to_rfc3339
from decklog.ports.ledger import ZERO_HASH, DecisionFilter, DecisionRow, Effect, TickRow
from decklog.ports.sealing import check_decision_chain, check_tick_chain, decode_tick

LIMIT_MAX: Final = 100_000
"""Decisions a question: what fits in memory with room to spare."""
GAP_MAX: Final = 50
"""Rows between two wanted ones that are read rather than asked around."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which decisions; None means any."""

    where: DecisionFilter = field(default_factory=DecisionFilter)
    after: Moment | None = None
    until: Moment | None = None
    limit: int = LIMIT_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One decision of a list."""

    row: DecisionRow
    result: Result
    policy: str
    position: int
    """The cursor of its tick."""
    feasible: int | None = None
    evaluated: int | None = None
    score: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    items: Sequence[Listed]
    more: bool
    """Whether there are decisions that the limit left out."""


def list_decisions(source: Source, asked: Asked) -> Page:
    """Return the decisions that are asked for, newest first."""
    where = asked.where
    if asked.after is not None:
        where = replace(where, seq_first=asked.after.seq + 1)
    if asked.until is not None:
        where = replace(where, seq_last=asked.until.seq)
    limit = min(asked.limit, LIMIT_MAX)
    rows = source.ledger.select(source.stream, where=where, limit=limit + 1)
    kept = rows[:limit]
    return Page(items=list(_listed(source, kept)), more=len(rows) > limit)


def _listed(source: Source, rows: Sequence[DecisionRow]) -> Iterator[Listed]:
    effects = _effects_of(source, [row.seq for row in rows])
    ticks = _ticks_of(source, {row.tick for row in rows})
    bodies = dict(source.ledger.configs())
    for row in rows:
        fact = decode_decision(row.payload)[1]
        tick = ticks.get(row.tick)
        config_hash = tick.config_hash if tick else ""
        profile = getattr(fact, "profile", "")
        top = getattr(fact, "top", ())
        feasible, evaluated = _counts(fact)
        yield Listed(
            row=row,
            result=result_of(fact, effects.get(row.seq, ())),
            policy=policy_name(config_hash, bodies.get(config_hash), profile),
            position=tick.cursor if tick else -1,
            feasible=feasible,
            evaluated=evaluated,
            score=top[0].total if top and top[0].scores else None,
        )


def _counts(fact: Decision) -> tuple[int | None, int | None]:
    if isinstance(fact, PodAssumed | PodWaiting):
        return fact.feasible_count, fact.evaluated_count
    if isinstance(fact, PodUnschedulable) and fact.same_as is None:
        return 0, fact.node_count - fact.absent_count
    return None, None


def _effects_of(source: Source, seqs: Sequence[int]) -> dict[int, list[Effect]]:
    found: dict[int, list[Effect]] = {}
    for first, last in _stretches(seqs):
        for effect in source.ledger.effects(source.stream, seq_first=first, seq_last=last):
            found.setdefault(effect.seq, []).append(effect)
    return found


def _ticks_of(source: Source, numbers: Iterable[int]) -> dict[int, TickRow]:
    found: dict[int, TickRow] = {}
    for first, last in _stretches(numbers):
        rows = source.ledger.ticks(source.stream, after=first - 1, limit=last - first + 1)
        found.update((row.tick, row) for row in rows)
    return found


def _stretches(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield ranges that hold all the numbers, and not many others."""
    first = last = None
    for number in sorted(numbers):
        if first is None or last is None:
            first = last = number
        elif number - last > GAP_MAX:
            yield first, last
            first = last = number
        else:
            last = number
    if first is not None and last is not None:
        yield first, last


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A decision with everything that belongs to it."""

    listed: Listed
    tick: TickRow
    effects: Sequence[Effect]
    closed_by: DecisionRow | None
    """The decision that ended this assume."""
    same_as: DecisionRow | None
    problems: Sequence[str] = field(default_factory=tuple)
    """What is wrong with its place in the chains; nothing: they hold there."""


def show_decision(source: Source, seq: int) -> Shown:
    """Return one decision.

    Raises:
        NotFound: there is none of that number.
    """
    before, row = _pair(source, seq)
    if row is None:
        head = source.head()
        msg = f"no decision {seq} in the history of {source.stream!r}: it goes up to {head.seq}"
        raise NotFound(msg)
    tick = source.tick(row.tick)
    if tick is None:
        msg = f"tick {row.tick} of decision {seq} is missing: run `decklog verify`"
        raise NotFound(msg)
    (listed,) = _listed(source, [row])
    fact = decode_decision(row.payload)[1]
    same_as = getattr(fact, "same_as", None)
    return Shown(
        listed=listed,
        tick=tick,
        effects=source.ledger.effects(source.stream, seq_first=seq, seq_last=seq),
        closed_by=_closed_by(source, row),
        same_as=_pair(source, same_as)[1] if same_as is not None else None,
        problems=_problems(source, before, row, tick),
    )


def _pair(source: Source, seq: int) -> tuple[DecisionRow | None, DecisionRow | None]:
    """Return the decision before, and the decision."""
    rows = source.ledger.decisions(source.stream, after=seq - 2, limit=2)
    found = {row.seq: row for row in rows}
    return found.get(seq - 1), found.get(seq)


def _closed_by(source: Source, row: DecisionRow) -> DecisionRow | None:
    """Return what closed an assume: a later decision of the pod that names it."""
    if row.kind not in (PodAssumed.__name__, PodWaiting.__name__):
        return None
    where = DecisionFilter(pod_uid=row.pod_uid, seq_first=row.seq + 1)
    later = source.ledger.select(source.stream, where=where, limit=LIMIT_MAX, newest_first=False)
    return next((each for each in later if each.closes_seq == row.seq), None)


def _problems(
    source: Source, before: DecisionRow | None, row: DecisionRow, tick: TickRow
) -> tuple[str, ...]:
    """Check the links around one decision; `verify` checks all of them."""
    found: list[str | None] = []
    if before is None and row.seq > 1:
        found.append(f"decision {row.seq - 1} is missing")
    else:
        found.append(check_decision_chain(before.hash if before else ZERO_HASH, row))
    previous = source.tick(tick.tick - 1)
    if previous is None and tick.tick > 1:
        found.append(f"tick {tick.tick - 1} is missing")
    else:
        found.append(check_tick_chain(previous.hash if previous else ZERO_HASH, tick))
    last = _pair(source, tick.seq)[1]
    try:
        if last is None or decode_tick(tick.payload).seq_hash != last.hash.hex():
            found.append(f"tick {tick.tick}: it names another hash of its last decision")
    except DecklogError as error:
        found.append(str(error))
    return tuple(problem for problem in found if problem)


def listed_facts(found: Listed) -> dict[str, Any]:
    """Return a decision of a list as plain data."""
    row = found.row
    return {
        "decision": row.seq,
        "tick": row.tick,
        "generation": row.generation,
        "decisionKind": row.kind,
        "namespace": row.namespace,
        "pod": row.pod,
        "podUid": row.pod_uid,
        "node": row.node,
        "reason": row.reason,
        "result": found.result.text,
        "detail": found.result.detail or None,
        "effect": found.result.effect or None,
        "feasible": found.feasible,
        "evaluated": found.evaluated,
        "score": found.score,
        "policy": found.policy,
        "position": str(found.position),
        "closesDecision": row.closes_seq,
        "time": to_rfc3339(row.now_ms),
    }


def shown_facts(found: Shown) -> dict[str, Any]:
    """Return a decision with everything that belongs to it as plain data."""
    row, tick = found.listed.row, found.tick
    return {
        **listed_facts(found.listed),
        "decidedAt": row.decided_at.isoformat() if row.decided_at else None,
        "chain": {
            "hash": row.hash.hex(),
            "tickHash": tick.hash.hex(),
            "problems": list(found.problems),
        },
        "tickRow": {
            "tick": tick.tick,
            "generation": tick.generation,
            "cursor": str(tick.cursor),
            "time": to_rfc3339(tick.now_ms),
            "cycles": tick.cycles,
            "configHash": tick.config_hash,
            "rules": tick.rules,
            "lastDecision": tick.seq,
        },
        "effects": [_effect_facts(effect) for effect in found.effects],
        "closedBy": found.closed_by.seq if found.closed_by else None,
        "sameAs": found.same_as.seq if found.same_as else None,
        "payload": payload_object(row.payload),
    }


def _effect_facts(effect: Effect) -> dict[str, Any]:
    return {
        "n": effect.n,
        "effect": effect.kind.value,
        "podUid": effect.pod_uid,
        "state": effect.state.value,
        "owner": effect.owner,
        "attempts": effect.attempts,
        "outcome": payload_object((effect.outcome or "null").encode()),
        "text": outcome_text(effect) or None,
        "published": effect.outcome_published,
        "lateOutcome": effect.late_outcome,
    }


def payload_object(payload: bytes) -> Any:
    """Return what stored JSON says; what is none is shown as base64."""
    try:
        return msgspec.json.decode(payload)
    except msgspec.DecodeError:
        return {"base64": base64.b64encode(payload).decode()}
