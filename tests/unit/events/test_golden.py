"""Every event and decision that was ever written can still be read, and is still written so.

The files under tests/golden/events are only added to: `python -m tests.golden.generate_events`.
"""

import json
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from cloudevents.core.bindings.kafka import KafkaMessage, from_binary, to_binary
from cloudevents.core.formats.json import JSONFormat

from decklog.adapters.log.envelope import entry_of, headers_of
from decklog.events.codec import (
    DECISION_KINDS,
    EVENT_TYPES,
    DecisionHeader,
    adapter,
    check_event,
    decode_decision,
    decode_event,
    encode_decision,
    encode_event,
    event_id,
    event_key,
)
from decklog.ports.entries import decode_decision_entry
from decklog.ports.log import Entry
from decklog.ports.sealing import chained
from tests.golden.generate_events import MANIFEST, NOW_MS, ROOT, manifest, pins, structures

FILES: Final = sorted(ROOT.rglob("*.json"))
DECISION_TYPES: Final = {cls.ce_type: cls for cls in DECISION_KINDS.values()}


def read(path: Path) -> tuple[Entry, dict[str, Any]]:
    golden: dict[str, Any] = json.loads(path.read_text())
    headers = [(name, value.encode()) for name, value in golden["headers"].items()]
    return entry_of(golden["key"].encode(), golden["value"].encode(), headers), golden


EVENT_FILES: Final = [path for path in FILES if read(path)[0].type not in DECISION_TYPES]
DECISION_FILES: Final = [path for path in FILES if path not in EVENT_FILES]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT).with_suffix(""))


def test_golden_files_are_only_added_to() -> None:
    assert MANIFEST.read_text().splitlines() == manifest()


def test_no_schema_of_a_version_changes_in_silence() -> None:
    assert structures() == pins()


@pytest.mark.parametrize("ce_type", [*EVENT_TYPES, *DECISION_TYPES])
def test_every_type_has_golden_files(ce_type: str) -> None:
    assert ce_type in {read(path)[0].type for path in FILES}


@pytest.mark.parametrize("path", EVENT_FILES, ids=name)
def test_an_event_is_read_alike_by_both_decoders(path: Path) -> None:
    entry, golden = read(path)
    want = msgspec.convert(golden["fact"], EVENT_TYPES[entry.type])
    assert decode_event(entry.type, entry.key, entry.value) == want
    assert check_event(entry.type, entry.value) == want


@pytest.mark.parametrize("path", EVENT_FILES, ids=name)
def test_an_event_is_written_as_it_was(path: Path) -> None:
    entry, golden = read(path)
    fact = decode_event(entry.type, entry.key, entry.value)
    assert encode_event(fact) == entry.value
    assert event_key(fact) == entry.key
    assert event_id(fact, time_ms=NOW_MS) == entry.id
    assert {name: value.decode() for name, value in headers_of(entry)} == golden["headers"]


@pytest.mark.parametrize("path", DECISION_FILES, ids=name)
def test_a_decision_is_read_alike_by_both_decoders(path: Path) -> None:
    entry, golden = read(path)
    want = msgspec.convert(golden["fact"], DECISION_TYPES[entry.type])
    header, fact = decode_decision(decode_decision_entry(entry).payload)
    assert (header, fact) == (DecisionHeader(**golden["header"]), want)
    assert adapter(DECISION_TYPES[entry.type]).validate_json(json.dumps(golden["fact"])) == want


@pytest.mark.parametrize("path", DECISION_FILES, ids=name)
def test_a_decision_is_written_as_it_was(path: Path) -> None:
    entry, _ = read(path)
    row = decode_decision_entry(entry)
    assert encode_decision(*decode_decision(row.payload)) == row.payload
    value = json.loads(entry.value)
    assert chained(bytes.fromhex(value["prev_hash"]), row.payload) == row.hash
    assert value["hash"] == row.hash.hex()
    assert value["payload"] == json.loads(row.payload)


@pytest.mark.parametrize("path", FILES, ids=name)
def test_the_cloudevents_package_reads_and_writes_the_same_headers(path: Path) -> None:
    entry, _ = read(path)
    message = KafkaMessage(headers=dict(headers_of(entry)), key=entry.key, value=entry.value)
    event = from_binary(message, JSONFormat())
    assert event.get_type() == entry.type
    assert event.get_id() == entry.id
    assert event.get_source() == entry.source
    assert event.get_time() == datetime.fromisoformat(entry.time)
    again = to_binary(event, JSONFormat())
    headers = {name: value for name, value in again.headers.items() if name != "ce_partitionkey"}
    assert headers.keys() == message.headers.keys()
    assert datetime.fromisoformat(headers.pop("ce_time").decode()) == datetime.fromisoformat(
        entry.time
    )
    assert headers.items() <= message.headers.items()
    assert json.loads(again.value) == json.loads(entry.value)
