"""Lines of a watch: found across pieces, decoded when asked for, bounded while nobody asks."""

import queue
import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from decklog.adapters.cluster.watching import LineWatch
from tests.contract.cluster_worlds import WAIT, read_to_end

LINE = b'{"type":"MODIFIED","object":{"metadata":{"resourceVersion":"%d"}}}\n'
SOON = timedelta(seconds=1)


class FedStream:
    """A stream that the test feeds; None ends it."""

    def __init__(self) -> None:
        self._fed: queue.Queue[bytes | None] = queue.Queue()
        self._taken = 0
        self._changed = threading.Condition()

    def feed(self, *chunks: bytes | None) -> None:
        for chunk in chunks:
            self._fed.put(chunk)

    def chunks(self) -> Iterator[bytes]:
        while (chunk := self._fed.get()) is not None:
            with self._changed:
                self._taken += 1
                self._changed.notify_all()
            yield chunk

    def wait_until_taken(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._taken == count, WAIT.total_seconds())

    def break_off(self) -> None:
        self.feed(None)


@pytest.fixture
def stream() -> FedStream:
    return FedStream()


@pytest.fixture
def watch(stream: FedStream) -> Iterator[LineWatch]:
    opened = LineWatch(stream, name="test")
    yield opened
    opened.close()


def versions(watch: LineWatch, *, limit: int = 100) -> list[str]:
    return [event.resource_version for event in watch.poll(limit=limit, timeout=SOON)]


def test_a_line_in_pieces_is_told_when_its_end_has_come(
    stream: FedStream, watch: LineWatch
) -> None:
    text = LINE % 8 + LINE % 9
    stream.feed(text[:20])
    stream.wait_until_taken(1)
    assert versions(watch) == []
    stream.feed(text[20:-5])
    stream.wait_until_taken(2)
    assert versions(watch) == ["8"]
    stream.feed(text[-5:])
    assert versions(watch) == ["9"]


def test_no_more_is_returned_than_asked_for_and_nothing_is_lost(
    stream: FedStream, watch: LineWatch
) -> None:
    stream.feed(b"".join(LINE % version for version in range(5)), None)
    assert versions(watch, limit=2) == ["0", "1"]
    assert not watch.ended
    assert versions(watch, limit=2) == ["2", "3"]
    assert [event.resource_version for event in read_to_end(watch)] == ["4"]


def test_a_reader_that_does_not_ask_stops_the_thread(
    stream: FedStream, watch: LineWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes that wait are bounded: what does not fit stays with the server, which cuts us."""
    monkeypatch.setattr("decklog.adapters.cluster.watching.QUEUE_BYTES_MAX", 3 * len(LINE % 1))
    stream.feed(*(LINE % version for version in range(1, 10)))
    stream.wait_until_taken(5)
    assert versions(watch, limit=1) == ["1"], "asking makes room"
    stream.wait_until_taken(9)


def test_a_watch_is_closed_while_its_queue_is_full(
    stream: FedStream, watch: LineWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("decklog.adapters.cluster.watching.QUEUE_BYTES_MAX", 1)
    stream.feed(LINE % 1, LINE % 2, LINE % 3)
    stream.wait_until_taken(2)
    watch.close()
    assert watch.ended
    assert versions(watch) == []
