"""The machine's clocks."""

import threading
import time
from datetime import timedelta


class SystemClock:
    """Real time. `wake` ends a sleep, and every later one at once: the process is to stop."""

    def __init__(self) -> None:
        self._woken = threading.Event()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def sleep(self, duration: timedelta) -> None:
        self._woken.wait(duration.total_seconds())

    def wake(self) -> None:
        self._woken.set()
