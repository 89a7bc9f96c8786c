"""The one loop: it steps services, backs off where the world fails, and stops when asked.

The loop knows no service, and a service knows no loop. Several services may share a loop and its
thread: each has its own back-off, and nobody waits while anybody has something to do.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Protocol

import structlog
from tenacity import RetryCallState, Retrying, wait_random_exponential

from decklog.core.errors import TransientError
from decklog.ports.clock import Clock

IDLE_DELAY: Final = timedelta(milliseconds=5)
"""Between steps when nobody had anything to do: bounds the latency that polling adds."""
RETRY_DELAY_SECONDS_MAX: Final = 10.0
"""A broker or database that is back is noticed within this time."""

_log = structlog.get_logger()


class Service(Protocol):
    """A part of decklog that works in bounded steps."""

    @property
    def name(self) -> str: ...

    def step(self) -> bool:
        """Do one bounded piece of work; say whether there was anything to do.

        A step that is called again after an error continues; it does not repeat.
        """
        ...

    def readiness(self) -> Mapping[str, str]:
        """Return what the service needs, and for each what is missing; empty: fine."""
        ...

    def stop(self) -> None:
        """Finish or drop what is in flight and give up what others may take over."""
        ...


@dataclass(slots=True)
class Paced:
    """A service with its own back-off: retried for ever, slower each time, never in a hurry."""

    service: Service
    failures: int = 0
    not_before_ms: int = 0
    failing: str = ""
    """The last error, while it lasts."""
    error: TransientError | None = None
    _wait: Any = field(
        default_factory=lambda: wait_random_exponential(multiplier=0.1, max=RETRY_DELAY_SECONDS_MAX)
    )

    def step(self, clock: Clock) -> bool:
        if clock.monotonic_ms() < self.not_before_ms:
            return False
        try:
            busy = self.service.step()
        except TransientError as error:
            self._back_off(clock, error)
            return False
        if self.failures:
            _log.info("Recovered", service=self.service.name, attempt=self.failures)
        self.failures, self.failing, self.error = 0, "", None
        return busy

    def _back_off(self, clock: Clock, error: TransientError) -> None:
        self.failures += 1
        self.failing, self.error = str(error), error
        state = RetryCallState(Retrying(), None, (), {})
        state.attempt_number = self.failures
        delay_seconds = float(self._wait(state))
        self.not_before_ms = clock.monotonic_ms() + int(delay_seconds * 1000)
        _log.warning(
            "Could not finish a step, will try again",
            service=self.service.name,
            error=self.failing,
            attempt=self.failures,
            duration_seconds=round(delay_seconds, 3),
        )


@dataclass(slots=True)
class Loop:
    """Steps the services in turn. A TransientError is retried; any other error ends the loop."""

    services: Sequence[Paced]
    clock: Clock
    beat_ms: int = 0
    """When the loop last came round, in monotonic time: `/livez` looks at it."""

    def turn(self) -> bool:
        """Step every service once; say whether any of them had something to do."""
        self.beat_ms = self.clock.monotonic_ms()
        busy = [paced.step(self.clock) for paced in self.services]
        return any(busy)

    def run(self, stopping: Callable[[], bool]) -> None:
        """Turn until asked to stop, then stop the services in the reverse order."""
        while not stopping():
            if not self.turn():
                self.clock.sleep(IDLE_DELAY)
        for paced in reversed(self.services):
            paced.service.stop()
