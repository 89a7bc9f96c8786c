"""Between decoded JSON and dataclasses: tables that say which fields are kept, both ways.

A table maps keys of a mapping to fields of a dataclass. Keys that it does not name are dropped
unseen, nulls are as good as absent, and what is kept is checked, so that whoever reads it later
need not. A section is a mapping whose keys are fields of the same dataclass. The same table
writes the mapping back: fields that equal their default are left out.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from decklog.objects.go_text import INT64_MAX, INT64_MIN
from decklog.objects.meta import NO_LABELS
from decklog.objects.quantity import InvalidQuantity, nano

T = TypeVar("T")
Raw = Mapping[str, Any]
SHOWN_LENGTH_MAX: Final = 60
"""Characters of a refused value that a message shows: it stays one line."""
QUANTITY: Final = "a quantity"

_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9._/-]{1,100}", re.ASCII)
_SURROGATES: Final = re.compile(r"[\ud800-\udfff]")
_REQUIRED: Final = object()
"""Stands for the default of a field that has none: nothing equals it."""


class InvalidObject(ValueError):
    """A field is not what the API says it is. One line: where, what is wanted, what was found."""

    def __init__(self, *, found: object, want: str, path: str = "") -> None:
        self.path = path
        self.found = found
        self.want = want
        super().__init__(f"{path}{': ' if path else ''}{_complaint(found, want)}")

    def under(self, key: str) -> "InvalidObject":
        """Return the error as seen from outside of the mapping that it is in."""
        dot = "." if self.path and not self.path.startswith("[") else ""
        return InvalidObject(path=f"{key}{dot}{self.path}", found=self.found, want=self.want)

    def at(self, index: int) -> "InvalidObject":
        """Return the error as seen from outside of the list that it is in."""
        return self.under(f"[{index}]")


@dataclass(frozen=True, slots=True)
class Entry:
    """One key: the field it becomes, and how; or a section."""

    name: str = ""
    read: Callable[[Any], Any] = lambda value: value
    write: Callable[[Any], Any] = lambda value: value
    when: Callable[[Any], bool] | None = None
    """Where several keys become one field: whether this key is the one to write it under."""
    section: "Table | None" = None


Table = Mapping[str, Entry]


@dataclass(frozen=True, slots=True)
class Shape(Generic[T]):
    """A dataclass with its table."""

    cls: type[T]
    table: Table
    zero: Mapping[str, Any]
    """What fields without a default are when their keys are absent."""
    defaults: Mapping[str, Any]

    def read(self, raw: object) -> T:
        fields = dict(self.zero)
        read_into(fields, raw, self.table)
        return self.cls(**fields)

    def write(self, value: T) -> dict[str, Any]:
        return written(value, self.table, self.defaults)


def shape(cls: type[T], table: Table, **zero: Any) -> Shape[T]:
    return Shape(cls, table, zero, defaults_of(cls))


def defaults_of(cls: type) -> dict[str, Any]:
    return {field.name: _default(field) for field in dataclasses.fields(cls)}


def section(table: Table) -> Entry:
    return Entry(section=table)


def read_into(fields: dict[str, Any], raw: object, table: Table) -> None:
    """Read what the table names into `fields`."""
    for key, value in read_mapping(raw).items():
        entry = table.get(key)
        if entry is None or value is None:
            continue
        try:
            if entry.section is None:
                fields[entry.name] = entry.read(value)
            else:
                read_into(fields, value, entry.section)
        except InvalidObject as error:
            raise error.under(key) from None


def written(value: Any, table: Table, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mapping of what differs from the defaults."""
    found = {}
    for key, entry in table.items():
        if entry.section is not None:
            inner = written(value, entry.section, defaults)
            if inner:
                found[key] = inner
            continue
        part = getattr(value, entry.name)
        if part == defaults[entry.name] or (entry.when is not None and not entry.when(part)):
            continue
        found[key] = entry.write(part)
    return found


def text(name: str) -> Entry:
    return Entry(name, read_text)


def integer(name: str) -> Entry:
    return Entry(name, read_integer)


def boolean(name: str) -> Entry:
    return Entry(name, _read_boolean)


def texts(name: str) -> Entry:
    return Entry(name, _read_texts, list)


def text_map(name: str) -> Entry:
    """Of text to text, sorted by key: equal contents have equal bytes."""
    return Entry(name, read_text_map, dict)


def quantity(name: str) -> Entry:
    return Entry(name, read_quantity)


def quantities(name: str) -> Entry:
    """Of resource to quantity, sorted like `text_map`."""
    return Entry(name, read_quantities, dict)


def inside(name: str, of: Shape[Any]) -> Entry:
    return Entry(name, of.read, of.write)


def each(
    name: str, of: Shape[Any], *, keep: Callable[[dict[str, Any]], bool] | None = None
) -> Entry:
    """A list of mappings; of them those that `keep` lets through."""

    def read(value: object) -> tuple[Any, ...]:
        return read_each(value, of.read, keep)

    return Entry(name, read, lambda parts: [of.write(part) for part in parts])


def read_each(
    value: object,
    read: Callable[[Any], Any],
    keep: Callable[[dict[str, Any]], bool] | None = None,
) -> tuple[Any, ...]:
    found = []
    for index, item in enumerate(read_list(value)):
        try:
            if keep is None or keep(read_mapping(item)):
                found.append(read(item))
        except InvalidObject as error:
            raise error.at(index) from None
    return tuple(found)


def read_mapping(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidObject(found=value, want="a mapping")
    return value


def read_list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidObject(found=value, want="a list")
    return value


def read_text(value: object) -> str:
    """Return the text. Half of a surrogate pair, which no encoding takes, becomes U+FFFD."""
    if not isinstance(value, str):
        raise InvalidObject(found=value, want="text")
    return value if value.isascii() else _SURROGATES.sub("\ufffd", value)


def read_integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidObject(found=value, want="an integer")
    if not INT64_MIN <= value <= INT64_MAX:
        raise InvalidObject(found=value, want="an integer of 64 bits")
    return value


def read_text_map(value: object) -> dict[str, str]:
    texts = read_mapping(value)
    return _read_values(texts, read_text) if texts else NO_LABELS


def read_quantity(value: object) -> str:
    """Return the quantity's text; JSON and YAML may have it as a number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise InvalidObject(found=value, want=QUANTITY)
    try:
        nano(value)
    except InvalidQuantity:
        raise InvalidObject(found=value, want=QUANTITY) from None
    return value


def read_quantities(value: object) -> dict[str, str]:
    return _read_values(read_mapping(value), read_quantity)


def _read_values(raw: Mapping[Any, Any], read: Callable[[Any], str]) -> dict[str, str]:
    """Return the mapping sorted by key."""
    found = {}
    key: Any = None
    try:
        for key in sorted(raw) if len(raw) > 1 else raw:
            found[read_text(key)] = read(raw[key])
    except InvalidObject as error:
        raise error.under(_shown(key)) from None
    except TypeError:  # There are keys that are no text: YAML has them.
        odd = next(key for key in raw if not isinstance(key, str))
        raise InvalidObject(path=_shown(odd), found=odd, want="a key that is text") from None
    return found


def _read_boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidObject(found=value, want="true or false")
    return value


def _read_texts(value: object) -> tuple[str, ...]:
    found = []
    for index, item in enumerate(read_list(value)):
        try:
            found.append(read_text(item))
        except InvalidObject as error:
            raise error.at(index) from None
    return tuple(found)


def _complaint(found: object, want: str) -> str:
    match found:
        case None:
            return f"{want} is missing"
        case dict():
            shown = "a mapping"
        case list():
            shown = "a list"
        case _:
            shown = _cut(repr(found))
    if want == QUANTITY:
        return f"invalid quantity {shown}"
    return f"want {want}, found {shown}"


def _shown(key: object) -> str:
    """Return the key as a part of a path: on one line, whatever it is."""
    return key if isinstance(key, str) and _PLAIN_KEY.fullmatch(key) else _cut(repr(key))


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_LENGTH_MAX else f"{text[:SHOWN_LENGTH_MAX]}…"


def _default(field: "dataclasses.Field[Any]") -> object:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return _REQUIRED if field.default is dataclasses.MISSING else field.default
