"""Reading and printing as Go does, where a result or a message depends on it."""

import json
import re
from collections.abc import Sequence
from typing import Final

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
INTEGER_LENGTH_MAX: Final = 64
"""Longer text is no label value, and takes Python ever longer to read."""

_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_CONTROL: Final = re.compile(r"\\u00([0-7][0-9a-f])")


def parse_int64(text: str) -> int | None:
    """Return the integer as `strconv.ParseInt(text, 10, 64)` reads it; None where that fails."""
    if len(text) > INTEGER_LENGTH_MAX or _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if INT64_MIN <= number <= INT64_MAX else None


def quoted(text: str) -> str:
    """Return the text as `%q` prints it."""
    return _CONTROL.sub(r"\\x\1", json.dumps(text, ensure_ascii=False))


def listed(texts: Sequence[str]) -> str:
    """Return the texts as a list in JSON; none of them print as null."""
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":")) if texts else "null"


def aggregate(messages: Sequence[str]) -> str:
    """Return several errors as one, each message once; empty when there is none."""
    distinct = list(dict.fromkeys(messages))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]" if distinct else ""
