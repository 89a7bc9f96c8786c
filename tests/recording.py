"""A history as text: what the golden files hold, and what any store can be filled with again.

One JSON object a line. Hashes are not among them: they follow from the payloads, and the last line
says where both chains end, so a file that was edited by hand does not load.

    {"stream": "test"}
    {"config": "<hash>", "body": "…"}
    {"event": 0, "key": "…", "type": "…", "id": "…", "time": "…", "value": "…"}
    {"tick": "[…]", "decisions": ["[…]", …]}
    {"effect": 12, "n": 0, "state": "rejected", "outcome": "…"}
    {"anchor": "tick", "number": 4, "time": 1800000061000}
    {"head": {"tick": 17, "hash": "…", "seq": 21, "seqHash": "…"}}
"""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Final

from decklog.events.codec import decision_columns, decode_decision
from decklog.ports.ledger import (
    ZERO_HASH,
    Anchor,
    DecisionRow,
    EffectState,
    EffectUpdate,
    Ledger,
    LedgerReader,
    TickCommit,
    TickRow,
)
from decklog.ports.log import Entry, Log
from decklog.ports.sealing import chained, decode_tick, effects_of

ALL: Final = 1_000_000
OWNER: Final = "binder"
_NOW: Final = timedelta(0)


def record(ledger: LedgerReader, events: Log, stream: str) -> str:
    """Return the stream's history as text."""
    return "".join(
        json.dumps(line, ensure_ascii=False) + "\n" for line in _lines(ledger, events, stream)
    )


def fill(text: str, ledger: Ledger, events: Log) -> str:
    """Write a recorded history into an empty store, and return its stream."""
    lines = [json.loads(line) for line in text.splitlines()]
    stream, head = str(lines[0]["stream"]), lines[-1]["head"]
    for line in lines:
        if "config" in line:
            ledger.put_config(line["config"], line["body"].encode())
    events.append([_entry(line) for line in lines if "event" in line])
    filler = _Filler(ledger, stream)
    for line in lines:
        if "tick" in line:
            filler.commit(line["tick"].encode(), [text.encode() for text in line["decisions"]])
    _settle(ledger, stream, [line for line in lines if "effect" in line])
    filler.anchor([line for line in lines if "anchor" in line])
    found = ledger.head(stream)
    assert found is not None
    got = {
        "tick": found.tick,
        "hash": found.tick_hash.hex(),
        "seq": found.seq,
        "seqHash": found.seq_hash.hex(),
    }
    assert got == head, "the recording was changed by hand"
    return stream


def _lines(ledger: LedgerReader, events: Log, stream: str) -> Iterator[dict[str, Any]]:
    yield {"stream": stream}
    for config_hash, body in ledger.configs():
        yield {"config": config_hash, "body": body.decode()}
    for position, entry in events.read(after=-1, limit=ALL, timeout=_NOW):
        yield {
            "event": position,
            "key": entry.key,
            "type": entry.type,
            "id": entry.id,
            "time": entry.time,
            "value": entry.value.decode(),
        }
    decisions = ledger.decisions(stream, after=0, limit=ALL)
    for tick in ledger.ticks(stream, after=0, limit=ALL):
        payloads = [row.payload.decode() for row in decisions if row.tick == tick.tick]
        yield {"tick": tick.payload.decode(), "decisions": payloads}
    head = ledger.head(stream)
    assert head is not None
    for effect in ledger.effects(stream, seq_first=1, seq_last=head.seq):
        yield {
            "effect": effect.seq,
            "n": effect.n,
            "state": effect.state.value,
            "outcome": effect.outcome,
        }
    for anchor in ledger.anchors(stream):
        yield {"anchor": anchor.chain, "number": anchor.number, "time": anchor.now_ms}
    yield {
        "head": {
            "tick": head.tick,
            "hash": head.tick_hash.hex(),
            "seq": head.seq,
            "seqHash": head.seq_hash.hex(),
        }
    }


def _entry(line: dict[str, Any]) -> Entry:
    return Entry(
        key=line["key"],
        type=line["type"],
        id=line["id"],
        time=line["time"],
        value=line["value"].encode(),
    )


def _settle(ledger: Ledger, stream: str, lines: list[dict[str, Any]]) -> None:
    """Have a binder come to the recorded outcomes."""
    ledger.work_as(stream, owner=OWNER, kind="binder")
    claimed = ledger.sweep(stream, owner=OWNER, seq_last=ALL, limit=ALL)
    assert len(claimed) == len(lines)
    updates = [
        EffectUpdate(
            seq=line["effect"],
            n=line["n"],
            state=EffectState(line["state"]),
            outcome=line["outcome"] or "",
            publish=False,
        )
        for line in lines
    ]
    ledger.finish(stream, owner=OWNER, updates=updates)


class _Filler:
    """Commits ticks as their leaders did."""

    def __init__(self, ledger: Ledger, stream: str) -> None:
        self._ledger = ledger
        self._stream = stream
        self._generation = 0
        self._tick_hash = self._seq_hash = ZERO_HASH
        self._hashes: dict[tuple[str, int], bytes] = {}

    def anchor(self, lines: list[dict[str, Any]]) -> None:
        anchors = [
            Anchor(
                chain=line["anchor"],
                number=line["number"],
                hash=self._hashes[line["anchor"], line["number"]],
                now_ms=line["time"],
            )
            for line in lines
        ]
        cursor = (0, 0, 0)
        self._ledger.audited(self._stream, consumer="auditor", cursor=cursor, anchors=anchors)

    def commit(self, payload: bytes, decisions: list[bytes]) -> None:
        header = decode_tick(payload)
        while self._generation < header.generation:
            taken = self._ledger.take_over(self._stream, holder="test", ttl=_NOW)
            assert taken is not None
            self._generation = taken.generation
        rows = [self._decision(decision) for decision in decisions]
        self._tick_hash = self._hashes["tick", header.tick] = chained(self._tick_hash, payload)
        columns = {
            name: value
            for name, value in header._asdict().items()
            if name not in ("stream", "seq_hash", "answers")
        }
        tick = TickRow(**columns, payload=payload, hash=self._tick_hash)
        effects = [
            effect
            for row in rows
            for effect in effects_of(row.seq, decode_decision(row.payload)[1])
        ]
        self._ledger.commit(
            TickCommit(
                stream=self._stream,
                tick=tick,
                decisions=rows,
                effects=effects,
                seq_hash=self._seq_hash,
            )
        )

    def _decision(self, payload: bytes) -> DecisionRow:
        header, fact = decode_decision(payload)
        self._seq_hash = self._hashes["decision", header.seq] = chained(self._seq_hash, payload)
        return DecisionRow(
            **header._asdict(),
            **decision_columns(fact)._asdict(),
            payload=payload,
            hash=self._seq_hash,
        )


def forged(text: str, change: Callable[[int, list[Any]], None]) -> str:
    """Return a history that somebody rewrote who can compute hashes: every chain in it holds.

    `change` is given each decision's seq and payload, and may alter the payload.
    """
    lines = [json.loads(line) for line in text.splitlines()]
    tick_hash = seq_hash = ZERO_HASH
    for line in lines:
        if "tick" in line:
            payloads = [json.loads(payload) for payload in line["decisions"]]
            for payload in payloads:
                change(payload[0], payload)
            line["decisions"] = [_compact(payload) for payload in payloads]
            for payload in line["decisions"]:
                seq_hash = chained(seq_hash, payload.encode())
            tick = json.loads(line["tick"])
            tick[9] = seq_hash.hex()
            line["tick"] = _compact(tick)
            tick_hash = chained(tick_hash, line["tick"].encode())
    lines[-1]["head"] |= {"hash": tick_hash.hex(), "seqHash": seq_hash.hex()}
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
