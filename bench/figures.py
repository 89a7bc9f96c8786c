"""The figures that decklog is held to: where each is found in what was measured, and its limit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Requirement:
    """A figure must not be above its limit."""

    bench: str
    field: tuple[str, ...]
    """The way to the value in the bench's result."""
    unit: str
    limit: float
    per: tuple[str, ...] | None = None
    """The value is divided by the value there."""
    factor: float = 1.0

    @property
    def name(self) -> str:
        per = f" / {self.per[-1]}" if self.per else ""
        return f"{self.bench}: {' '.join(self.field)}{per}"


REQUIREMENTS: Final = (
    Requirement("loop-embedded", ("wall_seconds",), "s", 10),
    Requirement("loop-embedded", ("rss_max_bytes",), "MB", 500, factor=1e-6),
    Requirement("loop-embedded", ("wall_seconds",), "ms", 1.2, per=("pods",), factor=1e3),
    Requirement("loop-services", ("wall_seconds",), "s", 20),
    Requirement("verify", ("wall_seconds",), "s", 8),
    Requirement("rebuild", ("wall_seconds",), "s", 3),
    Requirement("latency", ("p50_ms",), "ms", 50),
    Requirement("latency", ("p99_ms",), "ms", 500),
    Requirement("payloads", ("PodAssumed", "p50"), "B", 700),
    Requirement("payloads", ("PodUnschedulable", "p50"), "B", 600),
    Requirement("payloads", ("PodUnschedulable (repeat)", "p50"), "B", 150),
    Requirement("payloads", ("tick", "p50"), "B", 200),
)


def figures(found: Mapping[str, Any], command: str) -> list[dict[str, Any]]:
    """Return each figure of the benches that ran, with its limit and the command that makes it.

    A kind of decision that the workload did not bring has none.
    """
    return [
        {
            "name": each.name,
            "value": value,
            "unit": each.unit,
            "requirement": f"<= {each.limit:g}",
            "met": value <= each.limit,
            "command": f"{command} {each.bench}",
        }
        for each in REQUIREMENTS
        if (value := _value(found.get(each.bench, {}), each)) is not None
    ]


def _value(result: Mapping[str, Any], requirement: Requirement) -> float | None:
    value = _at(result, requirement.field)
    if value is None:
        return None
    divisor = _at(result, requirement.per) if requirement.per else 1.0
    assert divisor
    return round(value * requirement.factor / divisor, 2)


def _at(result: Any, path: tuple[str, ...]) -> float | None:
    for name in path:
        result = result.get(name)
        if result is None:
            return None
    return float(result)
