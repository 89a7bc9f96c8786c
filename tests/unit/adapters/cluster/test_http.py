"""The HTTP adapter against servers that behave badly."""

import socket
import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from decklog.adapters.cluster.http import Credentials, HttpCluster
from decklog.adapters.cluster.serve import ClusterServer
from decklog.adapters.cluster.simulated import SimulatedCluster
from decklog.core.errors import BadConfiguration, ClusterUnavailable
from decklog.ports.cluster import GetPod, KindNotServed, WatchEventType, WatchExpired
from tests.contract.cluster_worlds import (
    POD,
    ManualClock,
    make_pod,
    read,
    read_to_end,
    wait_until,
)

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
ADDED = b'{"type":"ADDED","object":{"metadata":{"name":"%d","resourceVersion":"%d"}}}\n'
READYZ = "/readyz"


def answer(body: bytes, *, code: bytes = b"200 OK") -> bytes:
    head = b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    return b"HTTP/1.1 %b\r\n%b%b" % (code, head, body)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class OddServer:
    """Says what it was told to, to one connection after the other; then it hangs up, or not."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._answers: dict[str, bytes] = {}
        self.heads: list[str] = []
        self.hangs_up = True
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        host, port = self._socket.getsockname()[:2]
        return f"http://{host}:{port}"

    def say(self, data: bytes, *, at: str = "/api/v1/") -> None:
        """Answer requests of paths that begin so."""
        self._answers[at] = data

    def stop(self) -> None:
        for opened in self._open:
            opened.close()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            head = connection.recv(65_536).decode()
            self.heads.append(head)
            path = head.split()[1]
            said = next((data for at, data in self._answers.items() if path.startswith(at)), b"")
            connection.sendall(said)
            if self.hangs_up:
                connection.close()
            else:
                self._open.append(connection)


@pytest.fixture
def server() -> Iterator[OddServer]:
    started = OddServer()
    yield started
    started.stop()


@pytest.fixture
def cluster(server: OddServer) -> Iterator[HttpCluster]:
    opened = HttpCluster(server.url, watch_silence_max=timedelta(milliseconds=300))
    yield opened
    opened.close()


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
    cluster = HttpCluster(f"http://{address[0]}:{address[1]}")
    assert not cluster.ready()
    with pytest.raises(ClusterUnavailable, match="cannot list pods"):
        cluster.list(POD)
    with pytest.raises(ClusterUnavailable, match="cannot watch pods"):
        cluster.watch(POD, resource_version="1")
    (told,) = cluster.perform([GetPod(namespace="default", name="a1")])
    assert (told.code, told.unknown) == (0, True)
    cluster.close()


@pytest.mark.parametrize("url", ["nonsense://x", "http://[::1"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(BadConfiguration, match="API server's address"):
        HttpCluster(url)


def test_credentials_go_with_every_request(server: OddServer) -> None:
    headers = {"Authorization": "Bearer t"}
    cluster = HttpCluster(server.url, credentials=Credentials(headers=headers))
    server.say(answer(b'{"metadata":{"resourceVersion":"5"},"items":null}'))
    assert cluster.list(POD).objects == []
    cluster.perform([GetPod(namespace="default", name="a1")])
    cluster.ready()
    assert ["Authorization: Bearer t" in head for head in server.heads] == [True] * 3
    cluster.close()


def test_a_403_counts_only_from_a_server_that_is_ready(
    server: OddServer, cluster: HttpCluster
) -> None:
    server.say(answer(b'{"reason":"Forbidden"}', code=b"403 Forbidden"))
    server.say(answer(b"[-]etcd", code=b"500 Internal Server Error"), at=READYZ)
    with pytest.raises(ClusterUnavailable):
        cluster.list(POD)
    server.say(answer(b"ok"), at=READYZ)
    with pytest.raises(KindNotServed):
        cluster.list(POD)


@pytest.mark.parametrize(
    ("said", "code", "message"),
    [
        pytest.param(answer(b'{"a":'), 0, "cannot decode", id="a body that is torn"),
        pytest.param(answer(b"[1]"), 0, "cannot decode", id="a body that is no object"),
        pytest.param(OK + b"Content-Length: 99\r\n\r\n{}", 0, "IncompleteRead", id="cut short"),
        pytest.param(b"nonsense\r\n\r\n", 0, "nonsense", id="not HTTP"),
        pytest.param(answer(b"busy\n", code=b"502 Bad Gateway"), 502, "busy", id="a proxy's text"),
    ],
)
def test_answers_that_are_none(
    server: OddServer, cluster: HttpCluster, said: bytes, code: int, message: str
) -> None:
    server.say(said)
    (told,) = cluster.perform([GetPod(namespace="default", name="a1")])
    assert (told.code, told.unknown) == (code, True)
    assert message in told.message


def test_a_watch_that_breaks_ends_after_what_had_come(
    server: OddServer, cluster: HttpCluster
) -> None:
    """The last line is torn: it was not said, and comes again after the resume."""
    server.say(CHUNKED + chunk(ADDED % (1, 8) + ADDED % (2, 9)) + b"ff\r\n" + ADDED[:20])
    watch = cluster.watch(POD, resource_version="7")
    assert [event.resource_version for event in read_to_end(watch)] == ["8", "9"]


def test_lines_need_not_be_chunks(server: OddServer, cluster: HttpCluster) -> None:
    text = ADDED % (1, 8) + b"\n" + ADDED % (2, 9)
    parts = [text[start : start + 7] for start in range(0, len(text), 7)]
    server.say(CHUNKED + b"".join(chunk(part) for part in parts) + chunk(b""))
    watch = cluster.watch(POD, resource_version="7")
    first = read(watch, 2)[0]
    assert (first.type, first.object["metadata"]["name"]) == (WatchEventType.ADDED, "1")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param(
            b'{"type":"ERROR","object":{"code":410,"message":"too old resource version: 1 (9)"}}\n',
            "too old",
            id="expired",
        ),
        pytest.param(b'{"type":"ERROR","object":{"code":500}}\n', "500", id="another error"),
        pytest.param(b'{"type":"ODD","object":{"metadata":{}}}\n', "cannot decode", id="odd type"),
        pytest.param(b"\xff\n", "cannot decode", id="not JSON"),
        pytest.param(b"3\n", "cannot decode", id="not an object"),
    ],
)
def test_after_an_error_in_the_stream_one_lists_again(
    server: OddServer, cluster: HttpCluster, line: bytes, message: str
) -> None:
    server.say(CHUNKED + chunk(ADDED % (1, 8) + line) + chunk(b""))
    watch = cluster.watch(POD, resource_version="7")
    assert len(read(watch, 1)) == 1
    assert not watch.ended
    with pytest.raises(WatchExpired, match=message):
        read(watch, 1)
    assert watch.ended


def test_a_watch_that_never_said_anything_has_to_be_listed_again(
    server: OddServer, cluster: HttpCluster
) -> None:
    """That is how a resourceVersion of the future looks, after etcd was set back."""
    server.hangs_up = False
    server.say(CHUNKED)
    watch = cluster.watch(POD, resource_version="999999")
    with pytest.raises(WatchExpired, match="silent"):
        read(watch, 1)


def test_a_watch_that_falls_silent_later_only_ends(server: OddServer, cluster: HttpCluster) -> None:
    server.hangs_up = False
    server.say(CHUNKED + chunk(ADDED % (1, 8)))
    watch = cluster.watch(POD, resource_version="7")
    assert len(read_to_end(watch)) == 1


def test_closing_ends_a_watch_that_waits(server: OddServer) -> None:
    server.hangs_up = False
    server.say(CHUNKED)
    cluster = HttpCluster(server.url)
    watch = cluster.watch(POD, resource_version="7")
    cluster.close()
    wait_until(lambda: watch.ended)


def test_pages_of_a_list_are_joined(server: OddServer, cluster: HttpCluster) -> None:
    page = b'{"metadata":{"resourceVersion":"5"%b},"items":[{"metadata":{"name":"%b"}}]}'
    server.say(answer(page % (b"", b"z")), at="/api/v1/pods?limit=5000&continue=more")
    server.say(answer(page % (b',"continue":"more"', b"a")))
    listing = cluster.list(POD)
    assert [item["metadata"]["name"] for item in listing.objects] == ["a", "z"]
    assert listing.resource_version == "5"


def test_a_list_whose_pages_expire_is_begun_again(server: OddServer, cluster: HttpCluster) -> None:
    more = "/api/v1/pods?limit=5000&continue=more"
    server.say(answer(b'{"reason":"Expired"}', code=b"410 Gone"), at=more)
    server.say(answer(b'{"metadata":{"continue":"more"},"items":[]}'))
    with pytest.raises(ClusterUnavailable, match="expire before they are read"):
        cluster.list(POD)
    assert len(server.heads) == 6


def test_a_server_that_comes_back_is_used_again_at_once() -> None:
    """Kept connections of the first server are dead, and none of them may cost an answer."""
    first = SimulatedCluster(ManualClock())
    first.create("Pod", make_pod())
    with ClusterServer(first) as serving:
        cluster = HttpCluster(serving.url)
        watch = cluster.watch(POD, resource_version=cluster.list(POD).resource_version)
        calls = [GetPod(namespace="default", name="a1")] * 20
        assert {told.code for told in cluster.perform(calls)} == {200}
    read_to_end(watch)
    assert {told.code for told in cluster.perform(calls)} == {0}
    port = int(serving.url.rpartition(":")[2])
    with ClusterServer(SimulatedCluster(ManualClock()), port=port):
        assert {told.code for told in cluster.perform(calls)} == {404}
        assert cluster.list(POD).objects == []
        cluster.close()
