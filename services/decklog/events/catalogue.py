"""The catalogue of events and decisions as one Markdown page."""

import dataclasses
import inspect
import json
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Len

from decklog.events.codec import (
    DECISION_KINDS,
    EVENT_TYPES,
    DecisionHeader,
    adapter,
    encode_decision,
    encode_event,
    event_id,
    event_key,
    upserted,
)
from decklog.events.decisions import Decision
from decklog.events.examples import DECISIONS, EVENTS
from decklog.events.facts import Event, ObjectUpserted
from decklog.events.schemas import short_name

_WRITERS: Final = {
    "upserted": "watcher",
    "deleted": "watcher",
    "bind": "binder",
    "victim": "binder",
    "requested": "scheduler, binder or auditor",
    "started": "watcher",
    "finished": "watcher",
    "elected": "scheduler",
}
_READERS: Final = {
    "requested": "watcher",
    "started": "scheduler, auditor, feed",
    "elected": "scheduler, auditor",
}
_EVERYBODY: Final = "scheduler, auditor, feed"
"""Who keeps a view of the cluster."""
_ASKED: Final = {
    "PodAssumed": "bind the pod",
    "PodUnschedulable": "write the pod's condition and an Event",
    "PodSkipped": "write an Event, if the pod is being deleted",
    "VictimsSelected": "delete the victims; clear the nominations",
    "PodUnreserved": "write the pod's condition, if it is pending again",
}
_SCALARS: Final = {str: "text", int: "integer", bool: "boolean", Any: "any JSON"}
_HEADER: Final = DecisionHeader(seq=1042, tick=312, generation=7, now_ms=1_770_091_506_789)
_PLACEHOLDERS: Final = frozenset(
    {"generation", "kind", "name", "namespace", "pod_uid", "resource_version", "seq", "uid"}
)

_INTRODUCTION: Final = """\
# Events and decisions

Generated from the classes in `services/decklog/events` by `make docs`: change those, not this page.

**Events** are what the scheduler is told, **decisions** what it decided; [topics](../topics.md)
says how both travel. Their schemas are in [schemas](../schemas), and
[asyncapi.yaml](../asyncapi.yaml) describes topics and entries together.

A field that equals its default is not written. A reader ignores fields that it does not know: a
release may add some within a version. Text is exact, NUL included; an unpaired surrogate is
refused.
"""
_DECISIONS: Final = """\
## Decisions

A decision's payload in the ledger is one JSON array, and its hash is SHA-256 over the hash before
it and exactly these bytes:

```json
[seq, tick, generation, now_ms, kind, pod_uid, namespace, pod, {the other fields}]
```

In the decisions log it is wrapped, so that a reader can check the hash without asking the ledger:

```json
{"prev_hash":"<64 hex digits>","hash":"<64 hex digits>","payload":[…]}
```
"""


def catalogue() -> str:
    """Return the page."""
    return "\n".join(
        [
            _INTRODUCTION,
            "## Events\n",
            *_index(("event", "key", "written by"), _event_rows()),
            *(line for cls in _sorted(EVENT_TYPES) for line in _event(cls)),
            _DECISIONS,
            *_index(("decision", "type", "asks the binder to"), _decision_rows()),
            *(line for cls in _sorted(DECISION_KINDS) for line in _decision(cls)),
            "## Parts\n",
            *(line for cls in _parts() for line in _part(cls)),
        ]
    )


def example_of(cls: Any) -> Any:
    """Return the example of an event or a decision."""
    return next(fact for fact in (*EVENTS, *DECISIONS) if type(fact) is cls)


def writers_of(cls: Any) -> str:
    return _by_type(cls, _WRITERS)


def readers_of(cls: Any) -> str:
    return _by_type(cls, _READERS) or _EVERYBODY


def key_of(cls: Any) -> str:
    """Return the key of an event with names in the places of what varies."""
    return event_key(_with_placeholders(example_of(cls)))


def _event(cls: Any) -> Iterator[str]:
    example: Event = example_of(cls)
    yield from (f"### {cls.__name__}\n", f"{inspect.getdoc(cls)}\n")
    yield f"Type `{cls.ce_type}` ([schema](../schemas/{short_name(cls.ce_type)}.json)).  "
    yield f"Key `{key_of(cls)}`, id `{event_id(_with_placeholders(example))}`.  "
    yield f"Written by: {writers_of(cls)}. Read by: {readers_of(cls)}.\n"
    yield from _fields(cls)
    yield f"```json\n{_spread(json.loads(encode_event(example)), depth=2)}\n```\n"


def _decision(cls: Any) -> Iterator[str]:
    example: Decision = example_of(cls)
    yield from (f"### {cls.__name__}\n", f"{inspect.getdoc(cls)}\n")
    yield f"Type `{cls.ce_type}` ([schema](../schemas/{short_name(cls.ce_type)}.json)).  "
    yield f"Asks the binder to: {_ASKED.get(cls.__name__, 'nothing')}.\n"
    yield from _fields(cls)
    *head, body = json.loads(encode_decision(_HEADER, example))
    yield f"```json\n{json.dumps(head)[:-1]}, {_spread(body, depth=1)}]\n```\n"


def _part(cls: Any) -> Iterator[str]:
    yield f"### {cls.__name__}\n"
    words = inspect.getdoc(cls) or ""
    if words and not words.startswith(f"{cls.__name__}("):  # What dataclass writes by itself.
        yield f"{words}\n"
    if not dataclasses.is_dataclass(cls):
        yield "An array of these, in this order.\n"
    yield from _fields(cls)


def _fields(cls: Any) -> Iterator[str]:
    words = _words(cls)
    hints = get_type_hints(cls, include_extras=True)
    rows = [
        (f"`{name}`", _type(hints[name]), default, words.get(name, ""))
        for name, default in _defaults(cls)
    ]
    yield from _index(("field", "type", "default", "meaning"), rows)


def _defaults(cls: Any) -> Iterator[tuple[str, str]]:
    if not dataclasses.is_dataclass(cls):
        for name in cls._fields:
            yield name, "`[]`" if name in cls._field_defaults else "required"
        return
    for field in dataclasses.fields(cls):
        if field.default is not dataclasses.MISSING:
            yield field.name, f"`{json.dumps(field.default)}`"
        elif field.default_factory is not dataclasses.MISSING:
            yield field.name, f"`{json.dumps(field.default_factory())}`"
        else:
            yield field.name, "required"


def _words(cls: Any) -> dict[str, str]:
    properties = adapter(cls).json_schema().get("properties", {})
    return {
        name: " ".join(schema.get("description", "").split()).replace("|", "\\|")
        for name, schema in properties.items()
    }


def _type(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _type(arguments[0]) + "".join(_bound(rule) for rule in arguments[1:])
    if origin in (Union, UnionType):
        return " or ".join("null" if kind is NoneType else _type(kind) for kind in arguments)
    if origin is dict:
        return f"object of {_type(arguments[1])}"
    if origin is tuple:
        kinds = [_type(kind) for kind in arguments if kind is not Ellipsis]
        return f"array of {kinds[0]}" if Ellipsis in arguments else f"[{', '.join(kinds)}]"
    if hint in _SCALARS:
        return _SCALARS[hint]
    return f"[{hint.__name__}](#{hint.__name__.lower()})"


def _bound(rule: Any) -> str:
    match rule:
        case Ge(ge=least):
            return f" ≥ {least}"
        case Len(min_length=1, max_length=None):
            return ", not empty"
        case _:
            msg = f"the catalogue has no words for {rule!r}"
            raise TypeError(msg)


def _parts() -> list[Any]:
    """Return every class that a field of a fact has, at any depth."""
    facts = [*EVENT_TYPES.values(), *DECISION_KINDS.values()]
    found: set[Any] = set()
    pending: list[Any] = list(facts)
    while pending:
        hint = pending.pop()
        if hint not in found and (dataclasses.is_dataclass(hint) or hasattr(hint, "_fields")):
            found.add(hint)
            pending += get_type_hints(hint).values()
        pending += get_args(hint)
    return sorted(found.difference(facts), key=lambda cls: str(cls.__name__))


def _event_rows() -> Iterator[tuple[str, ...]]:
    for cls in _sorted(EVENT_TYPES):
        name = f"[`{short_name(cls.ce_type)}`](#{cls.__name__.lower()})"
        yield name, f"`{key_of(cls)}`", writers_of(cls)


def _decision_rows() -> Iterator[tuple[str, ...]]:
    for kind, cls in sorted(DECISION_KINDS.items()):
        link = f"[{kind}](#{kind.lower()})"
        yield link, f"`{short_name(cls.ce_type)}`", _ASKED.get(kind, "")


def _by_type(cls: Any, table: dict[str, str]) -> str:
    subject, state = cls.ce_type.split(".")[2:4]
    return table.get(subject) or table.get(state) or ""


def _with_placeholders(fact: Any) -> Any:
    """Return the fact with `<name>` as its name, and so on, in what keys and ids are made of."""
    if isinstance(fact, ObjectUpserted):
        return upserted(_with_placeholders(fact.object))
    names = _PLACEHOLDERS.intersection(field.name for field in dataclasses.fields(fact))
    texts = {name: f"<{name}>" for name in names if getattr(fact, name) != ""}
    return dataclasses.replace(fact, **texts)


def _sorted(table: Any) -> list[Any]:
    return sorted(table.values(), key=lambda cls: str(cls.ce_type))


def _index(heads: tuple[str, ...], rows: Any) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def _spread(value: Any, *, depth: int, indent: str = "") -> str:
    """Write JSON with one line for each field, down to a depth."""
    if depth == 0 or not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    inner = indent + "  "
    lines = [
        f"{inner}{json.dumps(name)}: {_spread(each, depth=depth - 1, indent=inner)}"
        for name, each in value.items()
    ]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
