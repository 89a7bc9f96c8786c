"""A watch over HTTP: one thread reads, and does nothing else.

The API server cuts off readers that are slow, so the thread only moves bytes from the socket
into a queue, which is bounded; lines are found and decoded where the events are asked for.

    socket ──thread──▶ chunks (bounded in bytes) ──poll──▶ lines ──▶ events
"""

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Final, Protocol

import msgspec

from decklog.ports.cluster import WatchEvent, WatchEventType, WatchExpired

QUEUE_BYTES_MAX: Final = 64 * 1024 * 1024
"""What may wait to be decoded; beyond it the thread stops reading, and the server cuts us off."""


class StreamSilent(Exception):
    """Nothing came for so long that the server can't be there any more."""


class ByteStream(Protocol):
    """The body of an answer that goes on."""

    def chunks(self) -> Iterator[bytes]:
        """Yield what comes, until the stream ends or breaks: for a watch that is the same.

        Raises:
            StreamSilent: nothing came for too long.
        """
        ...

    def break_off(self) -> None:
        """Make `chunks` end, from another thread."""
        ...


class LineWatch:
    """The port's `Watch`, over lines of JSON."""

    def __init__(self, stream: ByteStream, *, name: str) -> None:
        self._stream = stream
        self._chunks: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._changed = threading.Condition()
        self._finished = False
        """Whether the thread has put its last chunk into the queue."""
        self._deaf = False
        """Whether the stream fell silent before anything came at all."""
        self._closing = False
        self._torn = b""
        self._lines: deque[bytes] = deque()
        self._expired: WatchExpired | None = None
        self._thread = threading.Thread(target=self._read, name=f"watch-{name}", daemon=True)
        self._thread.start()

    def poll(self, *, limit: int, timeout: timedelta) -> Sequence[WatchEvent]:
        if not self._lines and self._expired is None:
            self._split(timeout)
        events: list[WatchEvent] = []
        while self._lines and len(events) < limit and self._expired is None:
            self._decode(self._lines.popleft(), events)
        if not events and self._expired is not None:
            expired, self._expired = self._expired, None
            self.close()
            raise expired
        return events

    @property
    def ended(self) -> bool:
        with self._changed:
            return (
                self._finished
                and not self._chunks
                and not self._lines
                and not self._deaf
                and self._expired is None
            )

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._chunks.clear()
            self._lines.clear()
            self._deaf = False
            self._changed.notify_all()
        self._stream.break_off()
        self._thread.join()

    def _read(self) -> None:
        received = False
        deaf = False
        try:
            for chunk in self._stream.chunks():
                received = True
                if not self._enqueue(chunk):
                    break
        except StreamSilent:
            # A watch from a resourceVersion of the future is accepted and silent, bookmarks
            # and all: that is how a server looks whose etcd was set back. List again.
            deaf = not received
        finally:
            with self._changed:
                self._finished = True
                self._deaf = deaf and not self._closing
                self._changed.notify_all()

    def _enqueue(self, chunk: bytes) -> bool:
        """Wait for room and put the chunk there; say whether more is wanted."""
        with self._changed:
            self._changed.wait_for(lambda: self._closing or self._waiting_bytes <= QUEUE_BYTES_MAX)
            if self._closing:
                return False
            self._chunks.append(chunk)
            self._waiting_bytes += len(chunk)
            self._changed.notify_all()
            return True

    def _split(self, timeout: timedelta) -> None:
        """Move what has come from the queue to the lines, waiting for the first of it."""
        with self._changed:
            if not self._chunks and not self._finished and timeout > timedelta(0):
                self._changed.wait_for(
                    lambda: self._chunks or self._finished, timeout.total_seconds()
                )
            if self._deaf and not self._chunks:
                self._deaf = False
                self._expired = WatchExpired(
                    "the watch was silent: its resourceVersion is not known"
                )
            data = self._torn + b"".join(self._chunks)
            self._chunks.clear()
            self._waiting_bytes = 0
            self._changed.notify_all()
        *lines, self._torn = data.split(b"\n")
        self._lines.extend(line for line in lines if line)

    def _decode(self, line: bytes, events: list[WatchEvent]) -> None:
        try:
            change: dict[str, Any] = msgspec.json.decode(line)
            obj = change["object"]
            if change["type"] == "ERROR":
                self._expired = WatchExpired(str(obj.get("message") or obj))
                return
            version = obj["metadata"]["resourceVersion"]
            events.append(WatchEvent(WatchEventType(change["type"]), obj, version))
        except (msgspec.DecodeError, KeyError, TypeError, ValueError, AttributeError):
            self._expired = WatchExpired(f"cannot decode a line of the watch: {line[:80]!r}")
