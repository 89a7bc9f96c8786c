"""Asking a process to stop: the first signal is a request, the second one an order."""

import os
import signal
import threading
from types import FrameType
from typing import Final

from decklog.adapters.clock import SystemClock
from decklog.bootstrap.exit_codes import INTERRUPTED, TERMINATED

_CODES: Final = {signal.SIGTERM: TERMINATED, signal.SIGINT: INTERRUPTED}


class Stop:
    """Whether to stop, and what that wakes up."""

    def __init__(self, clock: SystemClock) -> None:
        self._clock = clock
        self._asked = threading.Event()

    def __call__(self) -> bool:
        return self._asked.is_set()

    def ask(self) -> None:
        self._asked.set()
        self._clock.wake()

    def on_signals(self) -> None:
        """Stop on SIGTERM and SIGINT; end at once on the second one."""
        for number in _CODES:
            signal.signal(number, self._signalled)

    def wait(self, seconds: float) -> bool:
        """Wait until asked, or for so long; say whether asked."""
        return self._asked.wait(seconds)

    def _signalled(self, number: int, _frame: FrameType | None) -> None:
        if self():
            os._exit(_CODES[signal.Signals(number)])
        self.ask()
