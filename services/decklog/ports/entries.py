"""Facts as entries of a log, and back.

The value of an event's entry is its body. The value of a decision's entry is the JSON object

    {"prev_hash":"<64 hex digits>","hash":"<64 hex digits>","payload":[…]}

in exactly this form, without a space: the payload stands in it byte for byte as it was hashed, so
that whoever reads a decision from the log can check its hash without asking the ledger.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from typing import Final
from uuid import NAMESPACE_URL, UUID, uuid5

from decklog.core.errors import DecklogError
from decklog.events.codec import (
    DECISION_KINDS,
    Malformed,
    decision_columns,
    decode_decision,
    decode_event,
    encode_event,
    event_id,
    event_key,
)
from decklog.events.facts import Event, Record
from decklog.ports.ledger import ZERO_HASH, DecisionRow
from decklog.ports.log import Entry, Log

_DECISION: Final = b'{"prev_hash":"%b","hash":"%b","payload":%b}'
_HEX: Final = 64
_PREV_AT: Final = len('{"prev_hash":"')
_HASH_AT: Final = _PREV_AT + _HEX + len('","hash":"')
_PAYLOAD_AT: Final = _HASH_AT + _HEX + len('","payload":')
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class BadRecord(DecklogError):
    """An entry that is not what it claims to be, or a fact that no entry can hold."""


def event_value(fact: Event) -> bytes:
    """Return the bytes that stand for the event in the log.

    Raises:
        BadRecord: it has none.
    """
    try:
        return encode_event(fact)
    except Malformed as error:
        msg = f"cannot write {event_key(fact)!r} to the log: {error}"
        raise BadRecord(msg) from error


def event_entry(fact: Event, *, cluster: str, time_ms: int, value: bytes | None = None) -> Entry:
    """Return the entry that carries the event; `value` where its bytes are known already."""
    if value is None:
        value = event_value(fact)
    return Entry(
        key=event_key(fact),
        type=type(fact).ce_type,
        id=event_id(fact, time_ms=time_ms),
        time=to_rfc3339(time_ms),
        value=value,
        source=f"decklog/{cluster}",
    )


def read_records(
    log: Log, *, after: int, limit: int, timeout: timedelta
) -> list[tuple[Record, Entry]]:
    """Read and decode up to `limit` events; what cannot be decoded keeps its place.

    Raises:
        LogUnavailable: the log did not answer.
        PositionLost: entries after `after` are gone (retention), or the log ends before it.
    """
    return [
        (Record(position, decode_event(entry.type, entry.key, entry.value)), entry)
        for position, entry in log.read(after=after, limit=limit, timeout=timeout)
    ]


def decision_entry(row: DecisionRow, *, prev_hash: bytes, cluster: str) -> Entry:
    """Return the entry that carries a decision; `prev_hash` is that of the decision before it."""
    return Entry(
        key=row.pod_uid,
        type=DECISION_KINDS[row.kind].ce_type,
        id=str(uuid5(_namespace(cluster), f"{row.generation}:{row.seq}")),
        time=to_rfc3339(row.now_ms),
        value=_decision_value(prev_hash, row.hash, row.payload),
        source=f"decklog/{cluster}",
    )


def decision_entries(rows: Sequence[DecisionRow], *, prev_hash: bytes, cluster: str) -> list[Entry]:
    """Return the entries of successive decisions; `prev_hash` is that before the first one."""
    hashes = [prev_hash, *(row.hash for row in rows)]
    return [
        decision_entry(row, prev_hash=before, cluster=cluster)
        for row, before in zip(rows, hashes, strict=False)
    ]


def decode_decision_entry(entry: Entry) -> DecisionRow:
    """Return the decision as the ledger holds it.

    Raises:
        BadRecord: it is malformed, or its hash does not follow from its payload.
    """
    prev_hash, claimed, payload = _parts(entry)
    if sha256(prev_hash + payload).digest() != claimed:
        msg = f"cannot take decision entry {entry.id!r}: its hash is not that of its payload"
        raise BadRecord(msg)
    try:
        header, fact = decode_decision(payload)
    except Malformed as error:
        msg = f"cannot take decision entry {entry.id!r}: {error}"
        raise BadRecord(msg) from error
    return DecisionRow(
        **header._asdict(), **decision_columns(fact)._asdict(), payload=payload, hash=claimed
    )


def to_rfc3339(time_ms: int) -> str:
    """Return the time in UTC to the millisecond, as in `2026-02-03T04:05:06.789Z`."""
    moment = _EPOCH + timedelta(milliseconds=time_ms)
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def _parts(entry: Entry) -> tuple[bytes, bytes, bytes]:
    """Return the hash before the decision, its hash, and its payload."""
    value, hashes = entry.value, (ZERO_HASH, ZERO_HASH)
    payload = value[_PAYLOAD_AT:-1]
    with suppress(ValueError):  # Not hexadecimal: then the comparison fails.
        hashes = (_hash_at(value, _PREV_AT), _hash_at(value, _HASH_AT))
    if value != _decision_value(*hashes, payload):
        msg = f"cannot take decision entry {entry.id!r}: it has not the form of one"
        raise BadRecord(msg)
    return *hashes, payload


def _hash_at(value: bytes, at: int) -> bytes:
    return bytes.fromhex(value[at : at + _HEX].decode())


def _decision_value(prev_hash: bytes, claimed: bytes, payload: bytes) -> bytes:
    return _DECISION % (prev_hash.hex().encode(), claimed.hex().encode(), payload)


@cache
def _namespace(cluster: str) -> UUID:
    return uuid5(NAMESPACE_URL, f"decklog/{cluster}")
