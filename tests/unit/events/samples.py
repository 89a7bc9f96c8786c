"""Facts for the tests: one of every class with every field set, and one with as few as it may have.

They are made from the classes themselves, so a new field is in them without anybody's help.
"""

import dataclasses
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from decklog.events.codec import DECISION_KINDS, EVENT_TYPES
from decklog.events.examples import DECISIONS, EVENTS
from decklog.events.facts import Decision, Event

TEXT: Final = 'Grüße \u0000\U0001f6a2 "\\'
"""NUL, a character outside the first plane, and what JSON has to escape."""
NUMBER: Final = 2**62 + 1
"""More than a float holds exactly."""
PLAN: Final[dict[str, Any]] = {"Plugin": {"text": TEXT, "list": [1, None, True, {"a": []}]}}


def full(cls: Any) -> Any:
    """Return a fact of the class in which no field has its default."""
    hints = get_type_hints(cls, include_extras=True)
    fields = [field.name for field in dataclasses.fields(cls)]
    return cls(**{name: _filled(hints[name], name) for name in fields})


def bare(cls: Any) -> Any:
    """Return a fact of the class in which every field that has a default has it."""
    hints = get_type_hints(cls, include_extras=True)
    return cls(
        **{
            field.name: _filled(hints[field.name], field.name, deep=False)
            for field in dataclasses.fields(cls)
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        }
    )


def events() -> list[Event]:
    classes = list(EVENT_TYPES.values())
    return [*EVENTS, *map(full, classes), *map(bare, classes)]


def decisions() -> list[Decision]:
    classes = list(DECISION_KINDS.values())
    return [*DECISIONS, *map(full, classes), *map(bare, classes)]


def _filled(hint: Any, name: str, *, deep: bool = True) -> Any:
    """Return a value of the type that is neither empty nor the default of any field."""
    origin, arguments = get_origin(hint), get_args(hint)
    kinds = [kind for kind in arguments if kind not in (NoneType, Ellipsis)]
    if origin is tuple:
        value: Any = tuple(_filled(kind, name, deep=deep) for kind in kinds)
    elif origin is dict:
        value = PLAN if Any in kinds else {name: TEXT}
    elif origin in (Annotated, Union, UnionType):
        value = _filled(kinds[0], name, deep=deep)
    elif dataclasses.is_dataclass(hint):
        value = full(hint) if deep else bare(hint)
    elif hasattr(hint, "_fields"):
        hints = get_type_hints(hint)
        value = hint(*(_filled(hints[field], field, deep=deep) for field in hint._fields))
    else:
        value = {str: f"{name} {TEXT}", int: NUMBER, bool: True}[hint]
    return value
