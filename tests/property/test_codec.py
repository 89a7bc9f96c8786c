"""What was encoded decodes to the same, and nothing that is decoded ever raises."""

import dataclasses
import json
from contextlib import suppress
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec
from annotated_types import Ge
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from decklog.events.codec import (
    DECISION_KINDS,
    EVENT_TYPES,
    DecisionHeader,
    Malformed,
    check_event,
    decode_decision,
    decode_event,
    encode_decision,
    encode_event,
)
from decklog.events.facts import Decision, Event, Undecodable

TEXT: Final = st.text(max_size=8)
NUMBER: Final = st.integers(-(2**63), 2**63 - 1)
POSITIVE: Final = st.integers(1, 2**63 - 1)
PLAIN: Final = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
SIMPLE: Final[dict[Any, SearchStrategy[Any]]] = {
    str: TEXT,
    int: NUMBER,
    bool: st.booleans(),
    NoneType: st.none(),
    Any: PLAIN,
}


@cache
def values(hint: Any) -> SearchStrategy[Any]:
    """Return a strategy for a type that facts use; one of a class leaves some fields out."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return POSITIVE if isinstance(arguments[1], Ge) else st.text(min_size=1, max_size=8)
    if origin in (Union, UnionType):
        return st.one_of(*map(values, arguments))
    if origin is dict:
        return st.dictionaries(*map(values, arguments), max_size=3)
    if origin is tuple and Ellipsis in arguments:
        return st.lists(values(arguments[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, arguments))
    return SIMPLE[hint] if hint in SIMPLE else _records(hint)


def _records(cls: Any) -> SearchStrategy[Any]:
    hints = get_type_hints(cls, include_extras=True)
    if hasattr(cls, "_fields"):
        return st.builds(cls, *(values(hints[name]) for name in cls._fields))
    required = {field.name for field in dataclasses.fields(cls) if not _has_default(field)}
    given_fields = {field.name: values(hints[field.name]) for field in dataclasses.fields(cls)}
    return st.fixed_dictionaries(
        {name: strategy for name, strategy in given_fields.items() if name in required},
        optional={
            name: strategy for name, strategy in given_fields.items() if name not in required
        },
    ).map(lambda fields: cls(**fields))


def _has_default(field: "dataclasses.Field[Any]") -> bool:
    missing = dataclasses.MISSING
    return field.default is not missing or field.default_factory is not missing


EVENTS: Final[SearchStrategy[Event]] = st.one_of(*map(values, EVENT_TYPES.values()))
DECISIONS: Final[SearchStrategy[Decision]] = st.one_of(*map(values, DECISION_KINDS.values()))
HEADERS: Final = st.builds(DecisionHeader, POSITIVE, POSITIVE, POSITIVE, NUMBER)


@given(EVENTS)
def test_an_event_decodes_to_what_was_encoded(fact: Event) -> None:
    body = encode_event(fact)
    assert decode_event(type(fact).ce_type, "key", body) == fact
    assert check_event(type(fact).ce_type, body) == fact


@given(HEADERS, DECISIONS)
def test_a_decision_decodes_to_what_was_encoded(header: DecisionHeader, fact: Decision) -> None:
    payload = encode_decision(header, fact)
    assert decode_decision(payload) == (header, fact)
    assert json.loads(payload)[:5] == [*header, type(fact).__name__]


@given(EVENTS)
def test_pruning_equals_asdict_without_the_defaults(fact: Event) -> None:
    assert encode_event(fact) == msgspec.json.encode(_without_defaults(fact))


@given(st.sampled_from([*EVENT_TYPES, "dev.decklog.pod.upserted.v9", ""]), st.binary(max_size=40))
def test_bytes_that_are_no_event_stand_in_its_place(ce_type: str, value: bytes) -> None:
    assert isinstance(
        decode_event(ce_type, "key", value), (Undecodable, EVENT_TYPES.get(ce_type, Undecodable))
    )


@given(EVENTS, st.data())
def test_a_damaged_event_never_raises(fact: Event, data: st.DataObject) -> None:
    body = bytearray(encode_event(fact))
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    decoded = decode_event(type(fact).ce_type, "key", bytes(body))
    assert isinstance(decoded, (Undecodable, type(fact)))


@given(HEADERS, DECISIONS, st.data())
def test_a_damaged_decision_is_refused_or_is_one(
    header: DecisionHeader, fact: Decision, data: st.DataObject
) -> None:
    payload = bytearray(encode_decision(header, fact))
    payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    with suppress(Malformed):
        decode_decision(bytes(payload))


def _without_defaults(value: Any) -> Any:
    """The plain reading of what `pruner` does."""
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return [_without_defaults(each) for each in value]
    if not dataclasses.is_dataclass(value):
        return value
    kept = {}
    for field in dataclasses.fields(value):
        found = getattr(value, field.name)
        made = field.default_factory
        default = field.default if made is dataclasses.MISSING else made()
        if found != default:
            kept[field.name] = _without_defaults(found)
    return kept
