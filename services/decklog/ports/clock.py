"""Time, for those who may read it."""

from datetime import timedelta
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Return the wall clock in milliseconds since the epoch; it may jump."""
        ...

    def monotonic_ms(self) -> int:
        """Return milliseconds since some moment; it never goes back."""
        ...

    def sleep(self, duration: timedelta) -> None:
        """Return after the duration, or earlier when the process is asked to stop."""
        ...
