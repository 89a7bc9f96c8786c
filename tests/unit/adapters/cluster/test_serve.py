"""The simulated cluster on the network: paths, pages, selectors, forms of errors, slow clients."""

import gzip
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest

from decklog.adapters.cluster.kubelet import Kubelet
from decklog.adapters.cluster.serve import ClusterServer
from decklog.adapters.cluster.simulated import SimulatedCluster
from decklog.adapters.cluster.store import Limits
from decklog.adapters.cluster.tables import age
from tests.contract.cluster_worlds import (
    NOW,
    NOW_MS,
    ManualClock,
    binding,
    make_node,
    make_pod,
    wait_until,
)

Raw = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"


class Client:
    """A plain HTTP client of one server, and the cluster behind it."""

    def __init__(self, cluster: SimulatedCluster, url: str) -> None:
        self.cluster = cluster
        parts = urlsplit(url)
        assert parts.hostname is not None
        self.address = (parts.hostname, parts.port or 0)
        self.connection = http.client.HTTPConnection(*self.address, timeout=10)

    def send(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> http.client.HTTPResponse:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, path, body=body, headers=names)
        return self.connection.getresponse()

    def ask(self, method: str, path: str, body: Raw | None = None, **headers: str) -> Raw:
        data = None if body is None else json.dumps(body).encode()
        response = self.send(method, path, data, **headers)
        answer: Raw = json.loads(response.read())
        return answer


@pytest.fixture
def client() -> Iterator[Client]:
    cluster = SimulatedCluster(ManualClock(), seed=7, limits=Limits(backlog_events_max=300))
    cluster.create("Node", make_node("n1"))
    for name in ("a1", "a2", "a3"):
        cluster.create("Pod", make_pod(name))
    with ClusterServer(cluster) as server:
        opened = Client(cluster, server.url)
        yield opened
        opened.connection.close()


def names(listing: Raw) -> list[str]:
    return [item["metadata"]["name"] for item in listing["items"]]


@pytest.mark.parametrize(
    ("path", "code", "text"),
    [
        pytest.param("/readyz", 200, "ok", id="ready"),
        pytest.param("/livez", 200, "ok", id="alive"),
        pytest.param("/healthz", 200, "ok", id="healthy"),
        pytest.param("/version", 200, '"minor":"36"', id="version"),
        pytest.param("/api", 200, '"versions":["v1"]', id="core versions"),
        pytest.param("/apis", 200, '"groupVersion":"apps/v1"', id="groups"),
        pytest.param("/api/v1", 200, '"shortNames":["po"]', id="core resources"),
        pytest.param("/apis/apps/v1", 200, '"name":"statefulsets"', id="resources of a group"),
        pytest.param("/apis/events.k8s.io/v1/events", 200, '"kind":"EventList"', id="events"),
        pytest.param("/api/v1/pods", 200, '"name":"a3"', id="pods of all namespaces"),
        pytest.param(f"{PODS}/a1", 200, '"kind":"Pod"', id="a pod"),
        pytest.param("/api/v1/nodes/n1", 200, '"kind":"Node"', id="a node"),
        pytest.param("/api/v1/namespaces/default", 200, '"phase":"Active"', id="a namespace"),
        pytest.param("/api/v1/namespaces/other/pods", 200, '"items":[]', id="an empty namespace"),
        pytest.param(f"{PODS}/nope", 404, '"reason":"NotFound"', id="no such pod"),
        pytest.param("/apis/apps/v1/deployments", 404, "404 page not found", id="not served"),
        pytest.param("/apis/apps/v9", 404, "404 page not found", id="no such version"),
        pytest.param("/api/v1/pods/a1", 404, "404 page not found", id="a pod of no namespace"),
        pytest.param(f"{PODS}/a1/log", 404, "could not find", id="a part that is not served"),
        pytest.param(f"{PODS}?fieldSelector=spec.hostname%3Dx", 400, "not supported", id="field"),
        pytest.param(f"{PODS}?continue=page-99", 410, "Expired", id="a page that is forgotten"),
        pytest.param(f"{PODS}?resourceVersion=abc", 500, "invalid syntax", id="not a version"),
        pytest.param(f"{PODS}?resourceVersion=999", 504, "Too large", id="a future version"),
        pytest.param(f"{PODS}?resourceVersionMatch=Exact", 422, "Forbidden", id="match alone"),
        pytest.param(
            f"{PODS}?resourceVersion=2&resourceVersionMatch=Exact", 410, "too old", id="old state"
        ),
        pytest.param(f"{PODS}?limit=many", 400, "not a number", id="not a number"),
        pytest.param(f"{PODS}?watch=1&timeoutSeconds=x", 400, "not a number", id="nor of a watch"),
        pytest.param(f"{PODS}?watch=1&labelSelector=a%3Db", 400, "watches by", id="watched label"),
    ],
)
def test_get(client: Client, path: str, code: int, text: str) -> None:
    response = client.send("GET", path)
    body = response.read().decode()
    assert (response.status, text in body) == (code, True), body


def test_a_list_in_pages_shows_one_state(client: Client) -> None:
    first = client.ask("GET", f"{PODS}?limit=2")
    assert first["metadata"]["remainingItemCount"] == 1
    client.cluster.create("Pod", make_pod("a4"))
    rest = client.ask("GET", f"{PODS}?limit=2&continue={first['metadata']['continue']}")
    assert names(first) + names(rest) == ["a1", "a2", "a3"]
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert "continue" not in rest["metadata"]


@pytest.mark.parametrize(
    ("query", "want"),
    [
        ("fieldSelector=metadata.name%3Da2", ["a2"]),
        ("fieldSelector=spec.nodeName%3D", ["a2", "a3"]),
        ("fieldSelector=spec.nodeName!%3D", ["a1"]),
        ("fieldSelector=metadata.name!%3Da2,spec.nodeName%3D", ["a3"]),
        ("labelSelector=app%3D%3Dweb", ["a1", "a2", "a3"]),
        ("labelSelector=app!%3Dweb", []),
        ("labelSelector=topology.kubernetes.io/zone", ["a1"]),
        ("labelSelector=!topology.kubernetes.io/zone", ["a2", "a3"]),
    ],
)
def test_selectors(client: Client, query: str, want: list[str]) -> None:
    pod = client.cluster.get("Pod", "a1")
    assert pod is not None
    client.cluster.perform([binding(pod)])
    assert names(client.ask("GET", f"{PODS}?{query}")) == want


JSON = "application/json"


@pytest.mark.parametrize(
    ("call", "body", "content_type", "code"),
    [
        pytest.param(f"POST {PODS}", b"{", JSON, 400, id="not JSON"),
        pytest.param(f"POST {PODS}", b"[]", JSON, 400, id="not an object"),
        pytest.param(f"PATCH {PODS}/a1", b"[]", "application/json-patch+json", 415, id="form"),
        pytest.param(f"POST {PODS}/a1", b"{}", JSON, 405, id="create in a pod"),
        pytest.param(f"DELETE {PODS}", b"{}", JSON, 405, id="delete a collection"),
        pytest.param(f"BREW {PODS}/a1", b"", JSON, 405, id="odd method"),
        pytest.param(
            f"POST {PODS}",
            b'{"metadata":{"name":"b1","namespace":"x"}}',
            JSON,
            400,
            id="another namespace in the body",
        ),
        pytest.param(f"POST {PODS}", b" " * 3_200_000, JSON, 413, id="too large"),
    ],
)
def test_requests_that_are_refused(
    client: Client, call: str, body: bytes, content_type: str, code: int
) -> None:
    method, path = call.split()
    response = client.send(method, path, body, Content_Type=content_type)
    assert (response.status, json.loads(response.read())["code"]) == (code, code)


def test_kubectl_s_writes(client: Client) -> None:
    merge = "application/strategic-merge-patch+json"
    assert client.ask("POST", PODS, make_pod("b1"))["kind"] == "Pod"
    cordon = {"spec": {"unschedulable": True}}
    node = client.ask("PATCH", "/api/v1/nodes/n1", cordon, Content_Type=merge)
    assert node["spec"] == {"unschedulable": True}
    status = {"status": {"phase": "Failed"}}
    put = client.ask("PUT", f"{PODS}/b1/status", client.ask("GET", f"{PODS}/b1") | status)
    assert put["status"]["phase"] == "Failed"
    assert client.ask("DELETE", f"{PODS}/b1?gracePeriodSeconds=0")["kind"] == "Pod"
    assert client.cluster.get("Pod", "b1") is None


def test_large_lists_are_compressed_for_those_who_read_it(client: Client) -> None:
    for number in range(400):
        client.cluster.create("Pod", make_pod(f"b{number}"))
    plain = client.send("GET", PODS).read()
    response = client.send("GET", PODS, Accept_Encoding="gzip")
    assert response.getheader("Content-Encoding") == "gzip"
    assert gzip.decompress(response.read()) == plain


def test_a_head_has_no_body(client: Client) -> None:
    assert client.send("HEAD", f"{PODS}/a1").read() == b""
    assert client.ask("GET", f"{PODS}/a1")["kind"] == "Pod"


def test_a_body_in_chunks_is_read(client: Client) -> None:
    data = json.dumps(make_pod("b1")).encode()
    client.connection.request("POST", PODS, body=iter([data[:9], data[9:]]), encode_chunked=True)
    assert json.loads(client.connection.getresponse().read())["metadata"]["name"] == "b1"


@pytest.mark.parametrize("sent", [b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nnonsense\r\n\r\n"])
def test_what_is_not_http_ends_the_connection(client: Client, sent: bytes) -> None:
    with socket.create_connection(client.address, timeout=10) as raw:
        raw.sendall(sent)
        assert raw.recv(1) == b""


def lines(response: http.client.HTTPResponse) -> list[Raw]:
    return [json.loads(line) for line in response.read().splitlines()]


def test_a_streaming_list_marks_the_end_of_what_existed(client: Client) -> None:
    query = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true&timeoutSeconds=1"
    refused = client.ask("GET", f"{PODS}?{query}")
    assert refused["code"] == 422
    response = client.send("GET", f"{PODS}?{query}&resourceVersionMatch=NotOlderThan")
    events = [json.loads(response.readline()) for _ in range(4)]
    assert [event["type"] for event in events] == ["ADDED", "ADDED", "ADDED", "BOOKMARK"]
    metadata = events[-1]["object"]["metadata"]
    assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
    client.connection.close()


def test_a_watch_ends_cleanly_when_its_time_is_up(client: Client) -> None:
    response = client.send("GET", f"{PODS}?watch=1&timeoutSeconds=5")
    assert json.loads(response.readline())["object"]["metadata"]["name"] == "a1"
    clock = client.cluster.clock
    assert isinstance(clock, ManualClock)
    clock.advance(timedelta(seconds=6))
    assert len(lines(response)) == 2
    assert client.send("GET", "/livez").read() == b"ok", "the connection is still good"


def test_a_watch_of_one_object_hears_of_no_other(client: Client) -> None:
    query = "watch=1&fieldSelector=metadata.name%3Da2"
    response = client.send("GET", f"{PODS}?{query}")
    client.cluster.delete("Pod", "a1")
    client.cluster.delete("Pod", "a2")
    types = [json.loads(response.readline())["type"] for _ in range(3)]
    assert types == ["ADDED", "MODIFIED", "DELETED"]
    client.connection.close()


def test_a_client_that_does_not_read_is_cut_off(client: Client) -> None:
    """2,000 events of 20 kB do not fit into the sockets: a few hundred come, then an end."""
    version = client.cluster.store.version
    response = client.send("GET", f"{PODS}?watch=1&resourceVersion={version}")
    wait_until(lambda: client.cluster.calls["watch", "Pod", ""] == 1)  # type: ignore[index]
    for number in range(2_000):
        client.cluster.create("Pod", make_pod(f"b{number}", annotations={"pad": "x" * 20_000}))
    got = lines(response)
    assert 0 < len(got) < 2_000
    assert [event["object"]["metadata"]["name"] for event in got] == [
        f"b{number}" for number in range(len(got))
    ]


def test_parts_are_stepped_and_a_stop_ends_watches_and_threads() -> None:
    cluster = SimulatedCluster(ManualClock())
    cluster.create("Node", make_node("n1"))
    server = ClusterServer(cluster, parts=[Kubelet(cluster)])
    server.start()
    client = Client(cluster, server.url)
    pod = cluster.create("Pod", make_pod())
    response = client.send("GET", f"{PODS}?watch=1")
    cluster.perform([binding(pod)])
    phases = [json.loads(response.readline())["object"]["status"]["phase"] for _ in range(3)]
    assert phases[-1] == "Running"
    server.stop()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("cluster-")]
    assert not server.failed.is_set()
    client.connection.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_part_that_raises_is_noticed() -> None:
    class Broken:
        def step(self) -> bool:
            msg = "broken"
            raise RuntimeError(msg)

    with ClusterServer(SimulatedCluster(ManualClock()), parts=[Broken()]) as server:
        assert server.failed.wait(timeout=10)


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def rows(table: Raw) -> list[list[Any]]:
    assert table["kind"] == "Table"
    assert {len(row["cells"]) for row in table["rows"]} == {len(table["columnDefinitions"])}
    return [row["cells"] for row in table["rows"]]


def test_tables_as_kubectl_asks_for_them(client: Client) -> None:
    pod = client.cluster.get("Pod", "a1")
    assert pod is not None
    client.cluster.perform([binding(pod)])
    Kubelet(client.cluster).step()
    client.cluster.delete("Pod", "a1")
    cells = rows(client.ask("GET", PODS, Accept=TABLE))
    assert cells[0][:5] == ["a1", "1/1", "Terminating", 0, "0s"]
    assert cells[0][6] == "n1"
    assert cells[1][:3] == ["a2", "0/1", "Pending"]
    assert rows(client.ask("GET", f"{PODS}/a2", Accept=TABLE)) == [cells[1]]
    (node,) = rows(client.ask("GET", "/api/v1/nodes", Accept=TABLE))
    assert node == ["n1", "Unknown", "0s", "z1", "<none>"]
    assert client.ask("GET", "/api/v1/namespaces", Accept=TABLE)["kind"] == "NamespaceList"
    response = client.send("GET", f"{PODS}?watch=1", Accept=TABLE)
    assert rows(json.loads(response.readline())["object"]) == [cells[0]]
    client.connection.close()


@pytest.mark.parametrize(
    ("seconds", "want"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (10_799, "179m"), (10_800, "3h"), (172_800, "2d")],
)
def test_age(seconds: int, want: str) -> None:
    assert age(NOW, NOW_MS + seconds * 1000) == want
    assert age(None, NOW_MS) == "<unknown>"
