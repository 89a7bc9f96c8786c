"""Reading decoded JSON whose form nobody has checked: each reader says what it wants and where."""

from collections.abc import Mapping
from typing import Any, Final

from decklog.objects.meta import NO_LABELS

Raw = Mapping[str, Any]
_NOTHING: Final[Raw] = {}
_SHOWN_MAX: Final = 60


class InvalidObject(ValueError):
    """A field is not what the API says it is. One line: where, what was found, what is wanted."""

    def __init__(self, path: str, *, found: object, want: str) -> None:
        self.path = path
        self.found = found
        self.want = want
        shown = repr(found)
        if len(shown) > _SHOWN_MAX:
            shown = shown[:_SHOWN_MAX] + "…"
        super().__init__(f"{path}: found {shown}, want {want}")


def wrong(path: str, key: str, *, found: object, want: str) -> InvalidObject:
    return InvalidObject(f"{path}.{key}" if path else key, found=found, want=want)


def text(raw: Raw, key: str, path: str) -> str:
    """Return the text; empty when there is none."""
    value = raw.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise wrong(path, key, found=value, want="a string")
    return value


def optional_text(raw: Raw, key: str, path: str) -> str | None:
    return None if raw.get(key) is None else text(raw, key, path)


def integer(raw: Raw, key: str, path: str) -> int:
    value = raw.get(key)
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong(path, key, found=value, want="an integer")
    return value


def boolean(raw: Raw, key: str, path: str) -> bool:
    value = raw.get(key)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise wrong(path, key, found=value, want="true or false")
    return value


def mapping(raw: Raw, key: str, path: str) -> Raw:
    value = raw.get(key)
    if value is None:
        return _NOTHING
    if not isinstance(value, Mapping):
        where = f"{path}.{key}" if path else key
        raise InvalidObject(where, found=value, want="a mapping")
    return value


def items(raw: Raw, key: str, path: str) -> list[Raw]:
    """Return a list of mappings."""
    value = raw.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise wrong(path, key, found=value, want="a list")
    for index, item in enumerate(value):
        if not isinstance(item, Mapping):
            raise wrong(path, f"{key}[{index}]", found=item, want="a mapping")
    return value


def texts(raw: Raw, key: str, path: str) -> tuple[str, ...]:
    value = raw.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise wrong(path, key, found=value, want="a list of strings")
    return tuple(value)


def string_map(raw: Raw, key: str, path: str) -> dict[str, str]:
    """Return a mapping of strings, sorted by key: equal contents have equal bytes."""
    value = raw.get(key)
    if not value:
        return NO_LABELS
    if not isinstance(value, Mapping):
        raise wrong(path, key, found=value, want="a mapping")
    for name, one in value.items():
        if not isinstance(one, str) or not isinstance(name, str):
            raise wrong(path, f"{key}.{name}", found=one, want="a string")
    return dict(sorted(value.items()))
