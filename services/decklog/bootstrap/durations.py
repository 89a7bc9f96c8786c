"""Durations as people write them: 30s, 2h30m, 500ms."""

import re
from datetime import timedelta
from typing import Final

from decklog.core.errors import BadConfiguration

_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


def parse_duration(text: str) -> timedelta:
    """Parse a duration; 0 needs no unit."""
    parts = _PART.findall(text)
    if "".join(number + unit for number, unit in parts) != text or not parts:
        if text == "0":
            return timedelta(0)
        msg = f"cannot read the duration {text!r}: write it as 30s, 2h30m or 500ms"
        raise BadConfiguration(msg)
    total_ms = sum(float(number) * _UNITS_MS[unit] for number, unit in parts)
    return timedelta(milliseconds=total_ms)
