"""Durations as people write them."""

from datetime import timedelta

import pytest

from decklog.bootstrap.durations import parse_duration
from decklog.core.errors import BadConfiguration


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("0", timedelta(0)),
        ("30s", timedelta(seconds=30)),
        ("500ms", timedelta(milliseconds=500)),
        ("2h30m", timedelta(hours=2, minutes=30)),
        ("1.5s", timedelta(seconds=1.5)),
        ("7d", timedelta(days=7)),
    ],
)
def test_durations(text: str, want: timedelta) -> None:
    assert parse_duration(text) == want


@pytest.mark.parametrize("text", ["", "30", "-30s", "30 s", "s", "1x", "30sm"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(BadConfiguration, match="write it as 30s"):
        parse_duration(text)
