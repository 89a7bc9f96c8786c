"""The AsyncAPI 3.0 document: both topics, what travels on them, and who sends and receives it."""

import inspect
import json
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final

from decklog.events.catalogue import example_of, key_of, readers_of, writers_of
from decklog.events.codec import (
    DECISION_KINDS,
    EVENT_TYPES,
    DecisionHeader,
    encode_decision,
    encode_event,
)
from decklog.events.schemas import components, decision_types, entry_of_decision, short_name

Part = dict[str, Any]
_REFERENCE: Final = "#/components/schemas/{model}"
_RETENTION_MS: Final = 7 * 24 * 3600 * 1000
_INTRODUCTION: Final = """\
What decklog, an event-sourced Kubernetes scheduler, writes to Kafka. Entries are CloudEvents 1.0 in
binary mode. Each topic has one partition: its order is the order of everything that happened."""
_EVENTS: Final = (
    "Everything the scheduler of a cluster is told, in the one order in which it is told."
)
_DECISIONS: Final = (
    "What the scheduler of a cluster decided, relayed after it was committed to the ledger."
)
_PLAIN_KEY: Final = re.compile(r"(?!(?:yes|off|true|null|false)$)[A-Za-z$][\w.-]{2,}", re.ASCII)
"""Keys that YAML cannot take for anything but text; all others are quoted."""
_FIRST: Final = DecisionHeader(seq=1, tick=1, generation=1, now_ms=1_770_091_506_789)
_HEADERS: Final = {
    "ce_specversion": {"type": "string", "const": "1.0"},
    "ce_id": {"type": "string", "description": "The same whenever the same fact is written."},
    "ce_source": {"type": "string", "description": "`decklog/` and the cluster's name."},
    "ce_time": {"type": "string", "format": "date-time", "description": "For display only."},
    "content-type": {"type": "string", "const": "application/json"},
}


def asyncapi() -> Part:
    """Return the document."""
    events, decisions = sorted(EVENT_TYPES), sorted(decision_types())
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "decklog",
            "version": "1.0.0",
            "description": _INTRODUCTION,
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {
            "decisions": _channel("decisions", _DECISIONS, decisions),
            "events": _channel("events", _EVENTS, events),
        },
        "operations": dict(sorted(_operations(events, decisions))),
        "components": {
            "messages": dict(sorted({**_messages(events), **_messages(decisions)}.items())),
            "schemas": dict(sorted(_schemas())),
        },
    }


def to_yaml(document: Any, indent: int = 0) -> str:
    """Write plain data as YAML: blocks for what is nested, JSON for what is not."""
    if not isinstance(document, (dict, list)) or not document:
        return f" {json.dumps(document, ensure_ascii=False)}\n"
    margin = " " * indent
    if isinstance(document, list):
        items = [to_yaml(value, indent + 2).lstrip() for value in document]
        return "\n" + "".join(f"{margin}- {item}" for item in items)
    fields = [f"{_key(key)}:{to_yaml(value, indent + 2)}" for key, value in document.items()]
    return "\n" * (indent > 0) + "".join(margin + field for field in fields)


def _channel(name: str, words: str, ce_types: list[str]) -> Part:
    return {
        "address": f"decklog.{{cluster}}.{name}.v1",
        "description": words,
        "parameters": {"cluster": {"description": "Name of the cluster."}},
        "messages": {
            short_name(ce_type): {"$ref": f"#/components/messages/{short_name(ce_type)}"}
            for ce_type in ce_types
        },
        "bindings": {
            "kafka": {
                "partitions": 1,
                "topicConfiguration": {
                    "cleanup.policy": ["delete"],
                    "retention.ms": _RETENTION_MS,
                },
                "bindingVersion": "0.5.0",
            }
        },
    }


def _operations(events: list[str], decisions: list[str]) -> Iterator[tuple[str, Part]]:
    """Pair every service with the topic that it sends to or receives from, and with what."""
    for action, services_of in (("send", writers_of), ("receive", readers_of)):
        sent: dict[str, list[str]] = {}
        for ce_type in events:
            for service in services_of(EVENT_TYPES[ce_type]).replace(" or ", ", ").split(", "):
                sent.setdefault(service, []).append(ce_type)
        for service, ce_types in sent.items():
            yield f"{service}.{action}.events", _operation(action, "events", ce_types)
    yield "scheduler.send.decisions", _operation("send", "decisions", decisions)
    yield "binder.receive.decisions", _operation("receive", "decisions", decisions)


def _operation(action: str, channel: str, ce_types: list[str]) -> Part:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel}"},
        "messages": [
            {"$ref": f"#/channels/{channel}/messages/{short_name(ce_type)}"} for ce_type in ce_types
        ],
    }


def _messages(ce_types: list[str]) -> dict[str, Part]:
    return {short_name(ce_type): _message(ce_type) for ce_type in ce_types}


def _message(ce_type: str) -> Part:
    cls = EVENT_TYPES.get(ce_type) or decision_types()[ce_type]
    summary, _, rest = (inspect.getdoc(cls) or "").partition("\n\n")
    key = key_of(cls) if ce_type in EVENT_TYPES else "<pod_uid>"
    headers = {**_HEADERS, "ce_type": {"type": "string", "const": ce_type}}
    return {
        "name": ce_type,
        "title": cls.__name__,
        "summary": " ".join(summary.split()),
        **({"description": rest} if rest else {}),
        "headers": {"type": "object", "properties": headers, "required": sorted(headers)},
        "payload": {"$ref": _REFERENCE.format(model=_schema_name(cls))},
        "bindings": {"kafka": {"key": {"type": "string", "description": key}}},
        "examples": [{"payload": _example(cls)}],
    }


def _example(cls: Any) -> Part:
    fact = example_of(cls)
    if cls in EVENT_TYPES.values():
        return dict(json.loads(encode_event(fact)))
    before, payload = bytes(32), encode_decision(_FIRST, fact)
    return {
        "prev_hash": before.hex(),
        "hash": sha256(before + payload).hexdigest(),
        "payload": json.loads(payload),
    }


def _schemas() -> Iterator[tuple[str, Part]]:
    """The payloads are in AsyncAPI's own dialect, which knows tuples as draft-07 does."""
    for name, schema in components(_REFERENCE).items():
        cls = DECISION_KINDS.get(name)
        if cls is None:
            yield name, _draft_07(schema)
        else:
            yield _schema_name(cls), _draft_07(entry_of_decision(name, schema))


def _schema_name(cls: Any) -> str:
    return f"{cls.__name__}Entry" if cls.__name__ in DECISION_KINDS else str(cls.__name__)


def _draft_07(schema: Any) -> Any:
    if isinstance(schema, dict):
        renamed = {"items" if k == "prefixItems" else k: _draft_07(v) for k, v in schema.items()}
        return {**renamed, "additionalItems": False} if "prefixItems" in schema else renamed
    return [_draft_07(value) for value in schema] if isinstance(schema, list) else schema


def _key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else json.dumps(key)
