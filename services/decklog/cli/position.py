"""Positions as people write them, the same for `--at`, `--from` and `--to`.

    latest                 the newest position
    128431 or @128431      a position in the events log
    2026-11-24T14:03:00Z   what was known at a time; a time without zone is UTC
    -15m, -2h30m           so long ago
    decision/51210         what was known when the decision was taken
    boot                   the `leader.elected` of the current generation
    snapshot/NAME          where a snapshot was taken

Parsing asks nobody: `history.positions` finds out which moment is meant.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from decklog.bootstrap.durations import parse_duration
from decklog.core.errors import BadConfiguration
from decklog.history.positions import (
    AtDecision,
    AtPosition,
    AtSnapshot,
    AtTime,
    Boot,
    Latest,
    Position,
)

GRAMMAR: Final = "latest, 128431, -15m, 2026-11-24T14:03:00Z, decision/51210, boot, snapshot/NAME"
_WORDS: Final[Mapping[str, Position]] = {"latest": Latest(), "boot": Boot()}
_NUMBER: Final = re.compile(r"@?(\d{1,18})")
_DECISION: Final = re.compile(r"decision/(\d{1,18})")
_SNAPSHOT: Final = re.compile(r"snapshot/(\S+)")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")


def parse_position(text: str, *, now_ms: int) -> Position:
    """Parse a position; `now_ms` is what `-15m` counts from."""
    if text in _WORDS:
        return _WORDS[text]
    if match := _NUMBER.fullmatch(text):
        return AtPosition(int(match[1]))
    if match := _DECISION.fullmatch(text):
        return AtDecision(int(match[1]))
    if match := _SNAPSHOT.fullmatch(text):
        return AtSnapshot(match[1])
    if text.startswith("-"):
        return AtTime(now_ms - parse_duration(text[1:]) // timedelta(milliseconds=1))
    if _DATE.fullmatch(text):
        return AtTime(_parse_time(text))
    msg = f"cannot read the position {text!r}: write one of {GRAMMAR}"
    raise BadConfiguration(msg)


def _parse_time(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        msg = f"cannot read the time {text!r}: write it as 2026-11-24T14:03:00Z"
        raise BadConfiguration(msg) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
