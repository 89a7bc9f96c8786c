"""Heartbeats of leader and workers, in one thread with a connection of its own.

Liveness only: nothing that is written depends on a beat. The thread starts with the first to beat
for, and a beat that fails is followed by the next.
"""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Final

import structlog

from decklog.adapters.ledger import statements
from decklog.adapters.ledger.store import Store
from decklog.core.errors import LedgerUnavailable

BEAT_INTERVAL: Final = timedelta(seconds=1)
STEP_SECONDS_MAX: Final = 60
"""A leader whose step has not returned for so long hangs: another one should lead."""
JOIN_SECONDS_MAX: Final = 5.0
WARN_AFTER: Final = 2
"""Beats in a row: one may lose against a busy writer, and harms nobody."""

_log = structlog.get_logger()


class Heart:
    """Beats for whoever is registered. With no interval only its owner's calls to `beat` count."""

    def __init__(
        self, open_store: Callable[[], Store], *, interval: timedelta | None = BEAT_INTERVAL
    ) -> None:
        self._open_store = open_store
        self._interval = interval
        self._store: Store | None = None
        self._lock = threading.Lock()
        self._leading: dict[str, int] = {}
        self._working: dict[tuple[str, str], str] = {}
        self._alive_at_ms = 0
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def lead(self, stream: str, generation: int) -> None:
        with self._lock:
            self._start()
            self.alive()
            self._leading[stream] = generation

    def work(self, stream: str, owner: str, kind: str) -> None:
        with self._lock:
            self._start()
            self._working[stream, owner] = kind

    def stop_leading(self, stream: str) -> None:
        with self._lock:
            self._leading.pop(stream, None)

    def alive(self) -> None:
        if self._store is not None:
            self._alive_at_ms = self._store.clock.monotonic_ms()

    def beat(self) -> None:
        """Beat once for everyone.

        Raises:
            LedgerUnavailable: the ledger did not answer.
        """
        with self._lock:
            if self._store is None:
                return
            hangs = self._store.clock.monotonic_ms() - self._alive_at_ms > STEP_SECONDS_MAX * 1000
            for stream, generation in list(self._leading.items()):
                if not hangs and not _beat_leader(self._store, stream, generation):
                    del self._leading[stream]  # Another generation leads; the next commit says so.
            for (stream, owner), kind in self._working.items():
                _beat_worker(self._store, stream, owner, kind)

    def close(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(JOIN_SECONDS_MAX)
        if self._store is not None:
            self._store.close()

    def _start(self) -> None:
        if self._store is None:
            self._store = self._open_store()
        if self._thread is None and self._interval is not None:
            self._thread = threading.Thread(
                target=self._run, args=(self._interval,), name="ledger-heart", daemon=True
            )
            self._thread.start()

    def _run(self, interval: timedelta) -> None:
        failed = 0
        while not self._stopping.wait(interval.total_seconds()):
            try:
                self.beat()
                failed = 0
            except LedgerUnavailable as error:
                failed += 1
                if failed == WARN_AFTER:
                    _log.warning("Could not beat in the ledger", error=str(error))


def _beat_leader(store: Store, stream: str, generation: int) -> bool:
    """Beat, and say whether this generation still leads."""
    with store.write_once() as connection:
        beaten = store.run(connection, statements.BEAT_LEADER, stream=stream, generation=generation)
        return bool(beaten.rowcount == 1)


def _beat_worker(store: Store, stream: str, owner: str, kind: str) -> None:
    with store.write_once() as connection:
        store.run(connection, statements.BEAT_WORKER, stream=stream, owner=owner, kind=kind)
