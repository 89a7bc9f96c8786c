"""A piece of work: one effect, as the calls that carry it out and what their answers mean.

A work is a small state machine. It names its next call; the answer moves it on. Nothing here does
I/O or waits: the service performs the calls of many works at once, one for each pod.
"""

from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from decklog.events.facts import Event
from decklog.ports.cluster import Answer, Call
from decklog.ports.ledger import Effect, EffectState, EffectUpdate

RETRY_MS_FIRST: Final = 50
RETRY_MS_MAX: Final = 5_000
"""Bounded pace at which an unknown outcome is re-read; there is no limit in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an answer settled: a new state of the effect, and what the events log is told."""

    state: EffectState
    detail: dict[str, object]
    fact: Event | None = None
    """Published in the events log; None: the outcome stays in the ledger."""
    then: Call | None = None
    """One more call, whose failure is counted and blocks nothing: a Kubernetes Event."""

    @property
    def is_final(self) -> bool:
        return self.state is not EffectState.UNKNOWN

    def update(self, effect: Effect) -> EffectUpdate:
        return EffectUpdate(
            seq=effect.seq,
            n=effect.n,
            state=self.state,
            outcome=msgspec.json.encode(self.detail).decode(),
            publish=self.fact is not None,
        )


class Work(Protocol):
    effect: Effect
    not_before_ms: int
    """Monotonic time before which it has no call to make."""

    @property
    def pod_key(self) -> str: ...

    def call(self) -> Call:
        """Return the next call."""
        ...

    def take(self, answer: Answer, now_ms: int) -> Outcome | None:
        """Take the answer in; return an outcome when there is one. A final one ends the work."""
        ...


def retry_at(now_ms: int, failures: int, answer: Answer) -> int:
    """Return when to try again: what the server asks for, or twice as late as last time."""
    if answer.retry_after_seconds is not None:
        return now_ms + int(answer.retry_after_seconds * 1000)
    return now_ms + min(RETRY_MS_FIRST << min(failures, 10), RETRY_MS_MAX)
