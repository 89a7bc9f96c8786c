"""Entries as CloudEvents 1.0 in Kafka's binary mode, and how large one may be.

Attributes are headers (`ce_id`, `ce_type`, …) and the body is the value as it is. A record
of somebody else may lack any of them: what is missing or is not UTF-8 reads as text that
stands for it, never as an exception, so one odd record stops nobody.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from decklog.core.errors import EntryTooLarge
from decklog.ports.log import ENTRY_BYTES_MAX, Entry

__all__ = ["ENTRY_BYTES_MAX", "check_sizes", "entry_of", "headers_of", "size_of"]

ATTRIBUTES_BYTES: Final = 200
"""Header names, lengths and the constant attributes: 110 bytes, rounded up."""

Header = tuple[str, bytes]
_CONSTANT: Final[tuple[Header, ...]] = (
    ("ce_specversion", b"1.0"),
    ("content-type", b"application/json"),
)


def headers_of(entry: Entry) -> list[Header]:
    """Return the attributes of an entry as headers."""
    return [
        *_CONSTANT,
        ("ce_id", entry.id.encode()),
        ("ce_source", entry.source.encode()),
        ("ce_type", entry.type.encode()),
        ("ce_time", entry.time.encode()),
    ]


def entry_of(key: bytes | None, value: bytes | None, headers: Iterable[Header]) -> Entry:
    """Return the entry that a record holds; a tombstone is an entry with an empty body."""
    found = dict(headers)
    return Entry(
        key=_text(key),
        type=_text(found.get("ce_type")),
        id=_text(found.get("ce_id")),
        time=_text(found.get("ce_time")),
        source=_text(found.get("ce_source")),
        value=value or b"",
    )


def check_sizes(entries: Sequence[Entry], size_bytes_max: int) -> None:
    """Refuse entries of which one is larger than the log takes."""
    for entry in entries:
        size_bytes = size_of(entry)
        if size_bytes > size_bytes_max:
            raise EntryTooLarge(entry.key, size_bytes=size_bytes, size_bytes_max=size_bytes_max)


def size_of(entry: Entry) -> int:
    """Return the bytes that an entry takes in a log, before compression; never too few."""
    text = entry.key + entry.type + entry.id + entry.time + entry.source
    text_bytes = len(text) if text.isascii() else len(text.encode())
    return ATTRIBUTES_BYTES + text_bytes + len(entry.value)


def _text(raw: bytes | None) -> str:
    return raw.decode(errors="replace") if raw else ""
