"""Kubernetes quantities: exact amounts such as `500m`, `1.5Gi` or `1e3`.

A quantity is `mantissa * 10**exponent`, never finer than 1n. Texts are read and printed as
Kubernetes does, its oddities included: text without a digit is 0, an exponent is cut to 32 bits,
what is finer than 1n is rounded away from zero, and what has a binary suffix ends at 2**63 - 1.
Work is bounded whatever the exponent says: nothing is ever written out that is far beyond int64.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache, total_ordering
from typing import Final

INT64_MAX: Final = 2**63 - 1
TEXT_LENGTH_MAX: Final = 1_000
"""Characters of a quantity. The API server stores canonical text, which has under thirty."""
DIGITS_APART_MAX: Final = 2_000
"""Two amounts further apart are not aligned to be added; the smaller one changes no int64."""
AMOUNTS_CACHED: Final = 1 << 16
"""Pairs of resource and text, some 15 MB; a cluster has a few thousand."""

NANO_DIGITS_MAX: Final = 60
"""Digits up to which `nano` is exact, int64 having 28 in this unit; 10**60 stands for all above."""

_NANO: Final = -9
_NANOS_IN_UNIT: Final = 10**9
_NANOS_IN_MILLI: Final = 10**6
_INT64_DIGITS: Final = 19
_FAST_DIGITS: Final = 18
"""Upstream holds up to so many digits in an int64, and keeps the text of such a quantity."""
_SHAPE: Final = re.compile(
    r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII
)
_EXPONENT: Final = re.compile(r"[eE]([-+]?[0-9]+)", re.ASCII)
_PATTERN: Final = r"'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


class Format(StrEnum):
    """The family of suffixes in which an amount is printed."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


_DECIMAL_SUFFIXES: Final = {
    -9: "n",
    -6: "u",
    -3: "m",
    0: "",
    3: "k",
    6: "M",
    9: "G",
    12: "T",
    15: "P",
    18: "E",
}
_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SUFFIXES: Final = {
    **{text: (10, exponent, Format.DECIMAL_SI) for exponent, text in _DECIMAL_SUFFIXES.items()},
    **{
        text: (2, 10 * number, Format.BINARY_SI)
        for number, text in enumerate(_BINARY_SUFFIXES)
        if text
    },
}


class InvalidQuantity(ValueError):
    """The text is no quantity; `reason` is what Kubernetes says about it."""

    def __init__(self, text: str, reason: str) -> None:
        self.text = text
        self.reason = reason
        shown = text if len(text) <= 60 else f"{text[:60]}…"
        super().__init__(f"invalid quantity {shown!r}")


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An exact amount. Equality and order are those of the amount; format and text don't count."""

    mantissa: int
    """Without trailing zeros."""
    exponent: int = 0
    """Of ten, at least -9; 0 when the mantissa is 0."""
    format: Format = Format.DECIMAL_SI
    written: str = ""
    """The text as it was parsed, where Kubernetes keeps it; empty: it prints the canonical one."""

    @property
    def text(self) -> str:
        """The text that Kubernetes stores and prints."""
        return self.written or _canonical(self)

    def value(self) -> int:
        """Return the amount as an integer, rounded away from zero, held within int64."""
        return self._scaled(0)

    def milli_value(self) -> int:
        """Return the amount in thousandths, rounded away from zero, held within int64."""
        return self._scaled(-3)

    def exact(self, scale: int) -> int | None:
        """Return the amount in units of `10**scale` if it is a whole number within int64."""
        shift = self.exponent - scale
        if shift < 0 or self.digits + shift > _INT64_DIGITS:
            return None
        scaled = self.mantissa * _power(shift)
        return scaled if abs(scaled) <= INT64_MAX else None

    def compare(self, other: "Quantity") -> int:
        """Return -1, 0 or 1, as this amount is less than, equal to or greater than the other."""
        mine, theirs = self._order(), other._order()
        if mine != theirs:
            return -1 if mine < theirs else 1
        # Of equal sign and size, so the exponents differ by no more than there are digits.
        lowest = min(self.exponent, other.exponent)
        left = self.mantissa * _power(self.exponent - lowest)
        right = other.mantissa * _power(other.exponent - lowest)
        return (left > right) - (left < right)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self.mantissa == other.mantissa and self.exponent == other.exponent

    def __hash__(self) -> int:
        return hash((self.mantissa, self.exponent))

    def __lt__(self, other: "Quantity") -> bool:
        return self.compare(other) < 0

    def __neg__(self) -> "Quantity":
        return Quantity(-self.mantissa, self.exponent, self.format)

    def __add__(self, other: "Quantity") -> "Quantity":
        """Add; the sum is printed like the left amount, or like the right one if that is 0."""
        form = self.format if self.mantissa else other.format
        for big, small in ((self, other), (other, self)):
            if not small.mantissa or big.exponent - small.exponent > DIGITS_APART_MAX:
                return Quantity(big.mantissa, big.exponent, form)
        lowest = min(self.exponent, other.exponent)
        mantissa = self.mantissa * _power(self.exponent - lowest)
        mantissa += other.mantissa * _power(other.exponent - lowest)
        return _normal(mantissa, lowest, form)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return self + (-other)

    def _scaled(self, scale: int) -> int:
        shift = self.exponent - scale
        if shift >= 0:
            if self.digits + shift > _INT64_DIGITS:
                return INT64_MAX if self.mantissa > 0 else -INT64_MAX
            scaled = self.mantissa * _power(shift)
        else:
            scaled = _rounded_away(self.mantissa, -shift)
        return max(-INT64_MAX, min(scaled, INT64_MAX))

    @property
    def digits(self) -> int:
        return len(str(abs(self.mantissa)))

    def _order(self) -> tuple[int, int]:
        """Return sign and size, by which amounts far apart are told apart without arithmetic."""
        if not self.mantissa:
            return 0, 0
        sign = 1 if self.mantissa > 0 else -1
        return sign, sign * (self.digits + self.exponent)


ZERO: Final = Quantity(0)


def parse(text: str) -> Quantity:
    """Read a quantity; equal to Kubernetes' `ParseQuantity` for every text that ends it."""
    if not text:
        raise InvalidQuantity(text, f"quantities must match the regular expression {_PATTERN}")
    if len(text) > TEXT_LENGTH_MAX:
        raise InvalidQuantity(text, f"quantities have at most {TEXT_LENGTH_MAX} characters")
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise InvalidQuantity(text, f"quantities must match the regular expression {_PATTERN}")
    sign, digits, fraction, suffix = shape.groups(default="")
    base, exponent, form = _suffix(text, suffix)
    mantissa = int((digits or "0") + fraction)
    held = _is_held_as_int64(digits or "0", fraction, base, exponent)
    if not held and not any(char.isdigit() for char in text[: len(text) - len(suffix)]):
        raise InvalidQuantity(text, "unable to parse numeric part of quantity")
    if base == 2:
        quantity = _capped(mantissa << exponent, -len(fraction))
    else:
        quantity = _nano(mantissa, exponent - len(fraction), form)
    signed = -quantity.mantissa if sign == "-" else quantity.mantissa
    kept = held and digits and _has_canonical_suffix(mantissa, base, exponent - len(fraction))
    return Quantity(signed, quantity.exponent, quantity.format, text if kept else "")


@lru_cache(maxsize=AMOUNTS_CACHED)
def amount(resource: str, text: str) -> int:
    """Return the amount as the scheduler counts it: cpu in thousandths, all else in units.

    Rounded away from zero; held at the largest int64 when too large, so that it fits nowhere.
    """
    quantity = parse(text)
    return quantity.milli_value() if resource == "cpu" else quantity.value()


@lru_cache(maxsize=AMOUNTS_CACHED)
def nano(text: str) -> int:
    """Return the exact amount in 10**-9, so that sums of it are exact.

    What is far beyond int64 is held, so that no exponent is ever written out.
    """
    quantity = parse(text)
    places = quantity.exponent - _NANO
    if quantity.digits + places > NANO_DIGITS_MAX:
        return _power(NANO_DIGITS_MAX) if quantity.mantissa > 0 else -_power(NANO_DIGITS_MAX)
    return quantity.mantissa * _power(places)


def counted(resource: str, nanos: int) -> int:
    """Return a sum of `nano` as the scheduler counts the resource: see `amount`."""
    unit = _NANOS_IN_MILLI if resource == "cpu" else _NANOS_IN_UNIT
    whole = -(-nanos // unit) if nanos > 0 else nanos // unit
    return max(-INT64_MAX, min(whole, INT64_MAX))


def _suffix(text: str, suffix: str) -> tuple[int, int, Format]:
    """Return base, exponent and format."""
    known = _SUFFIXES.get(suffix)
    if known is not None:
        return known
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is not None:
        number = int(exponent[1])
        if -(2**63) <= number < 2**63:
            cut = (number + 2**31) % 2**32 - 2**31
            return 10, cut, Format.DECIMAL_EXPONENT
    raise InvalidQuantity(text, "unable to parse quantity's suffix")


def _is_held_as_int64(number: str, fraction: str, base: int, exponent: int) -> bool:
    """Whether Kubernetes keeps the amount in an int64 with a scale, and not as a big decimal."""
    if base == 2:
        return not fraction and 15 - len(number) - exponent * 3 // 10 - 1 >= 0
    return len(number) + len(fraction) <= _FAST_DIGITS and exponent - len(fraction) >= _NANO


def _has_canonical_suffix(mantissa: int, base: int, exponent: int) -> bool:
    """Whether the canonical text has the same suffix; Kubernetes then keeps the text as it is."""
    if base == 2:
        return mantissa % 1024 != 0
    return mantissa % 1000 != 0 and exponent % 3 == 0


def _capped(mantissa: int, exponent: int) -> Quantity:
    """Return an amount that had a binary suffix."""
    quantity = _nano(mantissa, exponent, Format.BINARY_SI)
    largest = Quantity(INT64_MAX, 0, Format.BINARY_SI)
    if quantity.compare(largest) > 0:
        return largest
    if quantity.mantissa and quantity.compare(Quantity(1)) < 0:
        return Quantity(quantity.mantissa, quantity.exponent, Format.DECIMAL_SI)
    return quantity


def _nano(mantissa: int, exponent: int, form: Format) -> Quantity:
    """Return the amount, what is finer than 1n rounded away from zero."""
    if exponent < _NANO:
        mantissa, exponent = _rounded_away(mantissa, _NANO - exponent), _NANO
    return _normal(mantissa, exponent, form)


def _normal(mantissa: int, exponent: int, form: Format) -> Quantity:
    if not mantissa:
        return Quantity(0, 0, form)
    if mantissa % 10 == 0:
        stripped = str(mantissa).rstrip("0")
        exponent += len(str(mantissa)) - len(stripped)
        mantissa = int(stripped)
    return Quantity(mantissa, exponent, form)


def _rounded_away(mantissa: int, digits: int) -> int:
    """Return the mantissa without its last digits, rounded away from zero."""
    if digits > TEXT_LENGTH_MAX + 3 * _INT64_DIGITS + DIGITS_APART_MAX:  # Longer than any mantissa.
        return (mantissa > 0) - (mantissa < 0)
    whole = -(-abs(mantissa) // _power(digits))
    return whole if mantissa > 0 else -whole


def _power(exponent: int) -> int:
    result: int = 10**exponent
    return result


def _canonical(quantity: Quantity) -> str:
    if not quantity.mantissa:
        return "0"
    if quantity.format is Format.BINARY_SI:
        whole = quantity.exact(0)
        # Small amounts and fractions are printed in decimal, which loses nothing.
        if whole is not None and abs(whole) >= 1024:
            return _binary_text(whole)
    exponent = quantity.exponent - quantity.exponent % 3
    number = quantity.mantissa * _power(quantity.exponent - exponent)
    suffix = _DECIMAL_SUFFIXES.get(exponent)
    if quantity.format is Format.DECIMAL_EXPONENT or suffix is None:
        suffix = f"e{exponent}" if exponent else ""
    return f"{number}{suffix}"


def _binary_text(whole: int) -> str:
    number = 0
    while whole % 1024 == 0 and number < len(_BINARY_SUFFIXES) - 1:
        whole //= 1024
        number += 1
    return f"{whole}{_BINARY_SUFFIXES[number]}"
