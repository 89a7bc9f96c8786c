"""JSON Schemas of events and of decisions' entries, made from the classes.

They say what may be relied on, not what may be written: unlike the check where an event enters,
they allow further fields, since a release may add some within a version.
"""

import inspect
import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter

from decklog.events.codec import DECISION_KINDS, EVENT_TYPES, adapter
from decklog.events.decisions import NodeScore, PermitWait, Rejection

Schema = dict[str, Any]
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_HASH: Final = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_RECORDS: Final = (NodeScore, PermitWait, Rejection)
"""NamedTuples, whose docstrings Pydantic leaves out."""


def short_name(ce_type: str) -> str:
    """Return the type without what all of them begin with: `pod.assumed.v1`."""
    return ce_type.removeprefix("dev.decklog.")


def value_schemas() -> dict[str, Schema]:
    """Return by `ce_type` the schema of an entry's value, each complete in itself, sorted."""
    schemas = {}
    for ce_type, cls in sorted({**EVENT_TYPES, **decision_types()}.items()):
        schema = _tidy(adapter(cls).json_schema())
        parts = schema.pop("$defs", {})
        if ce_type not in EVENT_TYPES:
            schema = entry_of_decision(cls.__name__, schema)
        used = {name: part for name, part in parts.items() if _refers(name, [schema, parts])}
        identity = {"$schema": _DIALECT, "$id": f"urn:decklog:{short_name(ce_type)}"}
        schemas[ce_type] = {**identity, **schema, **({"$defs": used} if used else {})}
    return schemas


def components(reference: str) -> dict[str, Schema]:
    """Return the schemas of all classes by name, sorted; they refer to others by `reference`."""
    inputs = [
        (cls.__name__, "validation", adapter(cls))
        for cls in (*EVENT_TYPES.values(), *DECISION_KINDS.values())
    ]
    _, document = TypeAdapter.json_schemas(inputs, ref_template=reference)  # type: ignore[arg-type]
    parts: dict[str, Schema] = _tidy(document)["$defs"]
    return parts


def decision_types() -> Mapping[str, Any]:
    """Return the classes of decisions by `ce_type`."""
    return {cls.ce_type: cls for cls in DECISION_KINDS.values()}


def entry_of_decision(kind: str, body: Schema) -> Schema:
    """Return the schema of a decision's entry, of which `body` describes the whole class."""
    text: Schema = {"type": "string"}
    if "pod" in body["properties"]:
        text["minLength"] = 1
    count = {"type": "integer", "minimum": 1}
    rest = {
        **{key: value for key, value in body.items() if key != "description"},
        "properties": {k: v for k, v in body["properties"].items() if k != "pod"},
        "required": [name for name in body.get("required", ()) if name != "pod"],
    }
    items = [
        {**count, "description": "seq"},
        {**count, "description": "tick"},
        {**count, "description": "generation"},
        {"type": "integer", "description": "now_ms"},
        {"const": kind, "description": "kind"},
        {**text, "description": "pod_uid"},
        {**text, "description": "namespace"},
        {**text, "description": "pod"},
        rest,
    ]
    payload = {"type": "array", "prefixItems": items, "minItems": 9, "maxItems": 9}
    return {
        "description": body["description"],
        "type": "object",
        "properties": {"prev_hash": _HASH, "hash": _HASH, "payload": payload},
        "required": ["prev_hash", "hash", "payload"],
    }


def structure(schema: Any) -> Any:
    """Return the schema without its words: what a program can tell the difference of."""
    if isinstance(schema, dict):
        return {
            key: structure(value)
            for key, value in schema.items()
            if not (key == "description" and isinstance(value, str))
        }
    return [structure(value) for value in schema] if isinstance(schema, list) else schema


def _refers(name: str, schema: Any) -> bool:
    return f'"#/$defs/{name}"' in json.dumps(schema)


def _tidy(schema: Schema) -> Schema:
    """Sort the parts, and add the docstrings of the records."""
    schema = _opened(schema)
    parts = schema.get("$defs", {})
    for record in _RECORDS:
        if record.__name__ in parts:
            parts[record.__name__]["description"] = inspect.getdoc(record)
    return {**schema, "$defs": dict(sorted(parts.items()))}


def _opened(schema: Any) -> Any:
    """Drop titles, which only repeat names, and the ban on fields that a later release may add."""
    if isinstance(schema, dict):
        return {
            key: _opened(value)
            for key, value in schema.items()
            if not (key == "title" and isinstance(value, str))
            and not (key == "additionalProperties" and value is False)
        }
    return [_opened(value) for value in schema] if isinstance(schema, list) else schema
