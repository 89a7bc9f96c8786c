"""The log: where events, and copies of decisions, are written in order."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol

ENTRY_BYTES_MAX: Final = 1_000_000
"""Key, value and attributes of one entry: what every adapter takes, and no adapter more.

Kafka's default takes batches of 1 MiB; the rest is for framing.
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One CloudEvent in binary mode: attributes beside an opaque body.

    An entry that was not written by decklog may lack attributes; they are empty then.
    """

    key: str
    type: str
    id: str
    time: str
    """RFC 3339, for display only: nothing is ordered by it."""
    value: bytes
    source: str = ""


class Log(Protocol):
    """An append-only, totally ordered sequence of entries: a cluster's events, or its decisions.

    It carries bytes; `events/codec.py` gives them meaning, so one entry that cannot be
    decoded stops nobody. Adapters keep four promises, each with a test in
    tests/contract/test_log.py: position n is never visible before n - 1; one append keeps
    its order; a read from an old position returns the same entries for as long as they
    are retained; after append() returns, the entries survive a crash.

    Positions start at 0 and rise, but need not be dense: never compute the next one.
    """

    def append(self, entries: Sequence[Entry]) -> int:
        """Append the entries in order and return the position of the last one.

        Raises:
            LogUnavailable: any prefix of the entries may have been appended. Append them
                all again: readers take an entry that they know for harmless.
            EntryTooLarge: none of the entries was appended, and trying again does not help.
        """
        ...

    def read(self, *, after: int, limit: int, timeout: timedelta) -> Sequence[tuple[int, Entry]]:
        """Return up to `limit` entries after position `after`; empty if none came in time.

        Raises:
            LogUnavailable: the log did not answer.
            PositionLost: entries after `after` are gone (retention), or the log ends before it.
        """
        ...

    def bounds(self) -> tuple[int, int]:
        """Return the first and the last position that can be read; (0, -1) of an empty log.

        Raises:
            LogUnavailable: the log did not answer.
        """
        ...

    def identity(self) -> str:
        """Return what changes when the log is re-created: positions of another one mean nothing.

        Raises:
            LogUnavailable: the log did not answer.
        """
        ...

    def close(self) -> None: ...
