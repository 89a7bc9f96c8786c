"""Facts as dicts without their defaults, ready to be encoded.

Equivalent to `dataclasses.asdict` with every field left out that equals its default, and several
times faster: what to do with each field is found out once for each class. Values that are not
dataclasses are passed on as they are, for the encoder to write.
"""

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

Pruner = Callable[[Any], dict[str, Any]]
_REQUIRED: Final = object()
"""Stands for the default of a field that has none: nothing equals it."""


def pruner(cls: type, *, without: frozenset[str] = frozenset()) -> Pruner:
    """Return the function that turns a fact of this class into a dict, fields in class order."""
    hints = get_type_hints(cls)
    kept = [field for field in dataclasses.fields(cls) if field.name not in without]
    names = [field.name for field in kept]
    plan = [
        (name, _default(field), _inner(hints[name]))
        for name, field in zip(names, kept, strict=True)
    ]
    values_of = _values_of(names)

    def prune(fact: Any) -> dict[str, Any]:
        body = {}
        for value, (name, default, inner) in zip(values_of(fact), plan, strict=True):
            if value is not default and value != default:
                body[name] = value if inner is None or value is None else inner(value)
        return body

    return prune


def _default(field: "dataclasses.Field[Any]") -> object:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return _REQUIRED if field.default is dataclasses.MISSING else field.default


def _values_of(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    get = attrgetter(*names)  # Of one name it returns the value alone.
    return lambda fact: (get(fact),)


def _inner(hint: Any) -> Callable[[Any], Any] | None:
    """Return how a value of this type is pruned; None if it holds no dataclass."""
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return pruner(hint)
    arguments = [argument for argument in get_args(hint) if argument not in (NoneType, Ellipsis)]
    if get_origin(hint) in (Union, UnionType, tuple) and len(arguments) == 1:
        inner = _inner(arguments[0])
        if inner is not None and get_origin(hint) is tuple:
            return lambda values: [inner(value) for value in values]
        return inner
    return None
