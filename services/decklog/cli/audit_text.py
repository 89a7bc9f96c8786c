"""Decisions as people read them."""

from collections.abc import Iterator, Sequence
from typing import Final

from decklog.cli.render import table_lines
from decklog.cli.why_text import labelled, short
from decklog.history.audit import Listed, Shown
from decklog.history.results import outcome_text
from decklog.ports.entries import to_rfc3339

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def headers(*, is_wide: bool) -> list[str]:
    """Return the names of the columns; the namespace comes first."""
    wide = ["FEASIBLE", "SCORE", "POLICY", "POSITION"] if is_wide else []
    return ["NAMESPACE", "DECISION", "POD", "NODE", "RESULT", *wide, "AGE"]


def line(found: Listed, now_ms: int, *, is_wide: bool) -> list[object]:
    row = found.row
    wide: list[object] = []
    if is_wide:
        counts = None if found.feasible is None else f"{found.feasible}/{found.evaluated}"
        wide = [counts, found.score, found.policy, found.position]
    told = age((now_ms - row.now_ms) // 1000)
    return [row.namespace, row.seq, row.pod, row.node, found.result.text, *wide, told]


def age(seconds: int) -> str:
    """Return how long ago, as kubectl does: 45s, 4m, 2h, 3d."""
    for size, unit in _UNITS:
        if seconds >= size * (2 if size > 1 else 1):
            return f"{seconds // size}{unit}"
    return "0s"


def shown_text(found: Shown) -> str:
    row, tick, result = found.listed.row, found.tick, found.listed.result
    on = f" {row.node}" if row.node else ""
    told = f"cursor {tick.cursor}  cycles {tick.cycles}  rules {tick.rules}"
    lines = [
        *labelled("DECISION", [f"{row.seq}  {row.kind}"]),
        *labelled("POD", [f"{row.namespace}/{row.pod} (uid {row.pod_uid})"]),
        *labelled("RESULT", [f"{result.text}{on}", *([result.detail] if result.detail else [])]),
        *labelled("TIME", [f"{to_rfc3339(row.now_ms)}, generation {row.generation}"]),
        *labelled("TICK", [f"{tick.tick}  {told}  policy {found.listed.policy}"]),
        *labelled("CHAIN", list(_chain(found))),
        *labelled("EFFECTS", _effects(found)),
        *labelled("CLOSED BY", _closed_by(found)),
        *labelled("CLOSES", [f"decision {row.closes_seq}"] if row.closes_seq else []),
        *labelled("SAME AS", [f"decision {found.same_as.seq}"] if found.same_as else []),
        *labelled("PAYLOAD", [row.payload.decode(errors="backslashreplace")]),
    ]
    return "\n".join(text.rstrip() for text in lines)


def _chain(found: Shown) -> Iterator[str]:
    if found.problems:
        yield from (f"BROKEN: {problem}" for problem in found.problems)
    else:
        yield f"holds here: decision {_hash(found.listed.row.hash)}, tick {_hash(found.tick.hash)}"


def _hash(value: bytes) -> str:
    text = value.hex()
    return f"{text[:6]}…{text[-2:]}"


def _effects(found: Shown) -> list[str]:
    if not found.effects:
        return []
    rows = [
        [
            effect.n,
            effect.kind.value,
            short(effect.pod_uid),
            effect.state.value,
            effect.attempts,
            effect.owner,
            outcome_text(effect),
        ]
        for effect in found.effects
    ]
    return table_lines(["N", "KIND", "POD", "STATE", "ATTEMPTS", "OWNER", "OUTCOME"], rows)


def _closed_by(found: Shown) -> Sequence[str]:
    closing = found.closed_by
    if closing is None:
        return []
    return [f"decision {closing.seq}  {closing.kind}  {closing.reason or ''}"]
