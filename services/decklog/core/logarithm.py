"""The natural logarithm, exactly rounded, so that every machine gets the same bits."""

from decimal import Context, Decimal
from functools import lru_cache
from typing import Final

_EXACTLY: Final = Context(prec=50)
"""Far more digits than a float has: rounding once more gives the nearest float."""


@lru_cache(maxsize=65_536)
def ln(n: int) -> float:
    return float(_EXACTLY.ln(Decimal(n)))
