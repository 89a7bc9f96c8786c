"""The position grammar."""

import pytest

from decklog.cli.position import parse_position
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

NOW_MS = 1_000_000_000_000
NOVEMBER_MS = 1_795_528_980_000


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("latest", Latest()),
        ("128431", AtPosition(128431)),
        ("@128431", AtPosition(128431)),
        ("0", AtPosition(0)),
        ("decision/51210", AtDecision(51210)),
        ("boot", Boot()),
        ("snapshot/2026-11-24T14", AtSnapshot("2026-11-24T14")),
        ("-15m", AtTime(NOW_MS - 900_000)),
        ("-2h30m", AtTime(NOW_MS - 9_000_000)),
        ("2026-11-24T14:03:00Z", AtTime(NOVEMBER_MS)),
        ("2026-11-24T14:03:00.204Z", AtTime(NOVEMBER_MS + 204)),
        ("2026-11-24T15:03:00+01:00", AtTime(NOVEMBER_MS)),
        ("2026-11-24 14:03", AtTime(NOVEMBER_MS)),
        ("1970-01-02", AtTime(86_400_000)),
    ],
)
def test_positions(text: str, want: Position) -> None:
    assert parse_position(text, now_ms=NOW_MS) == want


@pytest.mark.parametrize(
    "text", ["", "newest", "-", "-15", "@", "decision/", "decision/x", "snapshot/", "2026-13-01"]
)
def test_what_is_no_position_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(BadConfiguration) as caught:
        parse_position(text, now_ms=NOW_MS)
    assert "write" in str(caught.value)
    assert "\n" not in str(caught.value)
