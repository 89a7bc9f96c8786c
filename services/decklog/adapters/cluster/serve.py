"""A simulated cluster as a Kubernetes API on the network, for other processes and kubectl.

There is no authentication: bind it to loopback. Each connection has a thread; one more steps
the cluster's own parts, such as kubelets and workload.
"""

import contextlib
import select
import socket
import socketserver
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Protocol

import msgspec

from decklog.adapters.cluster.answers import Denied, bad_request, failure
from decklog.adapters.cluster.faults import BodyForm, Fault
from decklog.adapters.cluster.requests import ApiRequest, Verb
from decklog.adapters.cluster.resources import Resource
from decklog.adapters.cluster.routes import Route, discovery, parse_path
from decklog.adapters.cluster.selection import (
    Pages,
    Selects,
    list_body,
    number_of,
    requested_version,
    selector,
)
from decklog.adapters.cluster.simulated import SimulatedCluster
from decklog.adapters.cluster.store import StoreWatch, WatchOptions
from decklog.adapters.cluster.tables import MEDIA, to_table
from decklog.adapters.cluster.wire import (
    TEXT,
    BodyTooLarge,
    HttpRequest,
    HttpResponse,
    MalformedRequest,
    begin_chunks,
    read_request,
    write_chunk,
    write_response,
)
from decklog.ports.cluster import Answer, RawObject, WatchEvent, WatchEventType, WatchExpired

STEP_INTERVAL: Final = timedelta(milliseconds=20)
"""How often the cluster's own parts are stepped: pods run soon after they are bound."""
WATCH_TIMEOUT: Final = timedelta(minutes=30)
"""When a watch that names no end is ended; kube-apiserver takes 30 to 60 minutes."""
WATCH_LOOK_INTERVAL: Final = timedelta(seconds=1)
"""How often an idle watch looks whether its client is still there."""
POLL_SECONDS: Final = 0.05
"""How long the listener takes to see that it should stop."""
WATCH_BATCH_MAX: Final = 500
STRATEGIC_MERGE: Final = "application/strategic-merge-patch+json"
JSON_MERGE: Final = "application/merge-patch+json"


class Part(Protocol):
    """Something of the cluster that moves: kubelets, a volume binder, a workload."""

    def step(self) -> bool: ...


class ClusterServer:
    """Serves a cluster until stopped. `with ClusterServer(cluster) as server: server.url`."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        parts: Sequence[Part] = (),
    ) -> None:
        self._parts = parts
        self._listener = _Listener((host, port), cluster)
        self._stopping = self._listener.stopping
        self._threads: list[threading.Thread] = []
        self.failed = threading.Event()
        """Set when one of the cluster's parts has raised: nothing moves any more."""

    @property
    def url(self) -> str:
        host, port = self._listener.server_address[:2]
        return f"http://{host!s}:{port}"

    def start(self) -> None:
        self._threads = [
            threading.Thread(
                target=self._listener.serve_forever, args=(POLL_SECONDS,), name="cluster-listener"
            ),
            threading.Thread(target=self._step_parts, name="cluster-parts"),
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Close all connections, end all threads."""
        self._stopping.set()
        self._listener.shutdown()
        self._listener.close_connections()
        self._listener.server_close()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> "ClusterServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _step_parts(self) -> None:
        try:
            while not self._stopping.wait(STEP_INTERVAL.total_seconds()):
                for part in self._parts:
                    part.step()
        finally:
            if not self._stopping.is_set():
                self.failed.set()


class _Listener(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], cluster: SimulatedCluster) -> None:
        self.cluster = cluster
        self.pages = Pages()
        self.stopping = threading.Event()
        self._connections: set[socket.socket] = set()
        self._watches: set[StoreWatch] = set()
        self._lock = threading.Lock()
        super().__init__(address, _Connection)

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.discard(connection)

    @contextlib.contextmanager
    def open_watch(self, kind: str, options: WatchOptions) -> Iterator[StoreWatch]:
        watch = self.cluster.store.watch(kind, options)
        with self._lock:
            self._watches.add(watch)
        try:
            yield watch
        finally:
            watch.close()
            with self._lock:
                self._watches.discard(watch)

    def close_connections(self) -> None:
        with self._lock:
            for watch in self._watches:
                watch.close()
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


class _ConnectionBroken(Exception):
    """A fault asks for it: the client gets nothing more."""


class _Connection(socketserver.StreamRequestHandler):
    """One client's connection: requests one after the other, or a watch."""

    server: _Listener
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.server.opened(self.connection)

    def finish(self) -> None:
        self.server.closed(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def handle(self) -> None:
        with contextlib.suppress(OSError, MalformedRequest, _ConnectionBroken):
            try:
                while (request := read_request(self.rfile)) is not None:
                    self._answer(request)
                    if not request.keep_alive or self.server.stopping.is_set():
                        return
            except BodyTooLarge:
                self._refuse_body()

    def _answer(self, request: HttpRequest) -> None:
        route = parse_path(request.path)
        try:
            if route is None:
                response = self._answer_other(request)
            elif request.method in ("GET", "HEAD") and not route.name:
                if request.query.get("watch") in ("1", "true"):
                    self._watch(route, request)
                    return
                response = self._list(route, request)
            else:
                response = self._perform(route, request)
        except Denied as denied:
            response = _encoded(denied.answer)
        write_response(self.wfile, request, response)

    def _answer_other(self, request: HttpRequest) -> HttpResponse:
        if request.path in ("/livez", "/healthz"):
            return HttpResponse(code=200, body=b"ok", content_type=TEXT)
        if request.path == "/readyz":
            if self.server.cluster.ready():
                return HttpResponse(code=200, body=b"ok", content_type=TEXT)
            return HttpResponse(code=500, body=b"[-]etcd failed\n", content_type=TEXT)
        found = discovery(request.path)
        if found is None:
            return HttpResponse(code=404, body=b"404 page not found\n", content_type=TEXT)
        return HttpResponse(code=200, body=msgspec.json.encode(found))

    def _perform(self, route: Route, request: HttpRequest) -> HttpResponse:
        told = self.server.cluster.handle(_to_api_request(route, request))
        if isinstance(told, Fault):
            return self._fault(told)
        if request.method == "GET" and told.ok and told.body is not None:
            return self._shown(route, request, told.body)
        return _encoded(told)

    def _shown(self, route: Route, request: HttpRequest, body: Mapping[str, Any]) -> HttpResponse:
        """Answer as JSON, or as a table where that is asked for."""
        if MEDIA in request.headers.get("accept", ""):
            body = to_table(route.resource.kind, body, self.server.cluster.clock.now_ms())
        return HttpResponse(code=200, body=msgspec.json.encode(body))

    def _fault(self, fault: Fault) -> HttpResponse:
        if not fault.code:
            raise _ConnectionBroken
        return _faulty(fault)

    def _list(self, route: Route, request: HttpRequest) -> HttpResponse:
        cluster = self.server.cluster
        fault = cluster.read_fault(Verb.LIST, route.resource.kind)
        if fault is not None:
            return self._fault(fault)
        with cluster.store.lock:
            body = list_body(cluster.store, self.server.pages, route, request.query)
        return self._shown(route, request, body)

    def _watch(self, route: Route, request: HttpRequest) -> None:
        cluster = self.server.cluster
        fault = cluster.read_fault(Verb.WATCH, route.resource.kind)
        if fault is not None:
            write_response(self.wfile, request, self._fault(fault))
            return
        asked = _asked(route, request)
        with self.server.open_watch(route.resource.kind, _watch_options(request)) as watch:
            begin_chunks(self.wfile)
            try:
                self._stream(watch, asked)
            except WatchExpired as expired:
                status = failure(410, "Expired", str(expired)).body
                self._send([{"type": "ERROR", "object": status}])
        write_chunk(self.wfile, b"")

    def _stream(self, watch: StoreWatch, asked: "_Asked") -> None:
        while not self.server.stopping.is_set():
            events = watch.poll(limit=WATCH_BATCH_MAX, timeout=WATCH_LOOK_INTERVAL)
            lines = [
                {"type": event.type.value, "object": self._watched(event, asked)}
                for event in events
                if event.type is WatchEventType.BOOKMARK or asked.selects(event.object)
            ]
            if lines:
                self._send(lines)
            elif watch.ended or self._client_is_gone():
                return

    def _watched(self, event: WatchEvent, asked: "_Asked") -> RawObject:
        resource = asked.resource
        if event.type is WatchEventType.BOOKMARK:
            return {"kind": resource.kind, "apiVersion": resource.api_version, **event.object}
        if asked.as_table:
            return to_table(resource.kind, event.object, self.server.cluster.clock.now_ms())
        return event.object

    def _send(self, lines: Sequence[Any]) -> None:
        write_chunk(self.wfile, msgspec.json.Encoder().encode_lines(lines))

    def _client_is_gone(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)

    def _refuse_body(self) -> None:
        told = failure(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")
        request = HttpRequest(method="POST", path="", query={}, headers={}, body=b"")
        write_response(self.wfile, request, _encoded(told))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What a watch is to tell, and how."""

    resource: Resource
    selects: Selects
    as_table: bool


def _asked(route: Route, request: HttpRequest) -> _Asked:
    return _Asked(
        resource=route.resource,
        selects=_watch_selector(route, request),
        as_table=MEDIA in request.headers.get("accept", ""),
    )


def _to_api_request(route: Route, request: HttpRequest) -> ApiRequest:
    merge_lists = _merges_lists(request)
    return ApiRequest(
        verb=_verb(route, request.method),
        kind=route.resource.kind,
        namespace=route.namespace,
        name=route.name,
        subresource=route.subresource,
        body=_body(request),
        merge_lists=merge_lists,
        dry_run=request.query.get("dryRun") == "All",
    )


def _verb(route: Route, method: str) -> Verb:
    verb = _VERBS.get(method)
    # An object is created in its collection, a binding in a pod.
    in_collection = verb is Verb.CREATE and not route.subresource
    if verb is None or in_collection is bool(route.name):
        msg = "the server does not allow this method on the requested resource"
        raise Denied(failure(405, "MethodNotAllowed", msg))
    return verb


_VERBS: Final = {
    "GET": Verb.GET,
    "HEAD": Verb.GET,
    "POST": Verb.CREATE,
    "PUT": Verb.UPDATE,
    "PATCH": Verb.PATCH,
    "DELETE": Verb.DELETE,
}


def _body(request: HttpRequest) -> dict[str, Any]:
    body: Any = {}
    if request.body:
        try:
            body = msgspec.json.decode(request.body)
        except msgspec.DecodeError as error:
            msg = f"cannot decode the request body: {error}"
            raise bad_request(msg) from None
    if not isinstance(body, dict):
        msg = "the request body is not an object"
        raise bad_request(msg)
    if request.method == "DELETE" and "gracePeriodSeconds" in request.query:
        body["gracePeriodSeconds"] = number_of(request.query, "gracePeriodSeconds")
    return body


def _merges_lists(request: HttpRequest) -> bool:
    if request.method != "PATCH":
        return False
    content_type = request.headers.get("content-type", "").partition(";")[0]
    if content_type not in (STRATEGIC_MERGE, JSON_MERGE):
        msg = f"the body of the request was in an unknown format: {content_type}"
        raise Denied(failure(415, "UnsupportedMediaType", msg))
    return content_type == STRATEGIC_MERGE


def _encoded(answer: Answer) -> HttpResponse:
    headers = {}
    if answer.retry_after_seconds is not None:
        headers["Retry-After"] = str(int(answer.retry_after_seconds))
    return HttpResponse(code=answer.code, body=msgspec.json.encode(answer.body), headers=headers)


def _faulty(fault: Fault) -> HttpResponse:
    told: Any = failure(fault.code, fault.reason, fault.message).body
    forms = {
        BodyForm.STATUS: (msgspec.json.encode(told), "application/json"),
        BodyForm.BARE_STATUS: (
            msgspec.json.encode(
                {key: value for key, value in told.items() if key not in ("kind", "apiVersion")}
            ),
            "text/plain",
        ),
        BodyForm.TEXT: (fault.message.encode(), "text/plain; charset=utf-8"),
        BodyForm.EMPTY: (b"", "text/plain"),
    }
    body, content_type = forms[fault.form]
    headers = {}
    if fault.retry_after_seconds is not None:
        headers["Retry-After"] = str(fault.retry_after_seconds)
    return HttpResponse(code=fault.code, body=body, content_type=content_type, headers=headers)


def _watch_selector(route: Route, request: HttpRequest) -> Selects:
    """Objects that stop matching would have to look deleted; so only what never changes selects."""
    query = request.query
    mutable = [
        term
        for term in query.get("fieldSelector", "").split(",")
        if term and not term.startswith(("metadata.name=", "metadata.namespace="))
    ]
    if mutable or query.get("labelSelector"):
        msg = "the simulated cluster watches by metadata.name and metadata.namespace only"
        raise bad_request(msg)
    return selector(route, query)


def _watch_options(request: HttpRequest) -> WatchOptions:
    query = request.query
    version = requested_version(query)
    streaming = query.get("sendInitialEvents") == "true"
    if streaming and query.get("resourceVersionMatch") != "NotOlderThan":
        msg = "resourceVersionMatch: Forbidden: sendInitialEvents requires NotOlderThan"
        raise Denied(failure(422, "Invalid", msg))
    timeout = timedelta(seconds=number_of(query, "timeoutSeconds")) or WATCH_TIMEOUT
    return WatchOptions(
        resource_version=None if streaming or not version else version,
        bookmarks=query.get("allowWatchBookmarks") in ("1", "true"),
        initial_end_bookmark=streaming,
        timeout=timeout,
    )
