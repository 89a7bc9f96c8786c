"""The simulated server's connections, a thread each: requests one after the other, or a watch."""

import contextlib
import select
import socket
import socketserver
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import msgspec

from decklog.adapters.cluster.answers import Denied, failure
from decklog.adapters.cluster.exchange import (
    Asked,
    asked,
    encoded,
    faulty,
    to_api_request,
    watch_options,
)
from decklog.adapters.cluster.faults import Fault
from decklog.adapters.cluster.requests import Verb
from decklog.adapters.cluster.routes import Route, discovery, parse_path
from decklog.adapters.cluster.selection import Pages, list_body
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
from decklog.ports.cluster import RawObject, WatchEvent, WatchEventType, WatchExpired

WATCH_LOOK_INTERVAL: Final = timedelta(seconds=1)
"""How often an idle watch looks whether its client is still there."""
WATCH_BATCH_MAX: Final = 500


class Listener(socketserver.ThreadingTCPServer):
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
        if self.stopping.is_set():  # It was accepted last, and is not among those closed.
            _shut(connection)

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
                _shut(connection)


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # The client was quicker.
        connection.shutdown(socket.SHUT_RDWR)


class _ConnectionBroken(Exception):
    """A fault asks for it: the client gets nothing more."""


class _Connection(socketserver.StreamRequestHandler):
    """One client's connection: requests one after the other, or a watch."""

    server: Listener
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
            response = encoded(denied.answer)
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
        told = self.server.cluster.handle(to_api_request(route, request))
        if isinstance(told, Fault):
            return self._fault(told)
        if request.method == "GET" and told.ok and told.body is not None:
            return self._shown(route, request, told.body)
        return encoded(told)

    def _shown(self, route: Route, request: HttpRequest, body: Mapping[str, Any]) -> HttpResponse:
        """Answer as JSON, or as a table where that is asked for."""
        if MEDIA in request.headers.get("accept", ""):
            body = to_table(route.resource.kind, body, self.server.cluster.clock.now_ms())
        return HttpResponse(code=200, body=msgspec.json.encode(body))

    def _fault(self, fault: Fault) -> HttpResponse:
        if not fault.code:
            raise _ConnectionBroken
        return faulty(fault)

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
        what = asked(route, request)
        with self.server.open_watch(route.resource.kind, watch_options(request)) as watch:
            begin_chunks(self.wfile)
            try:
                self._stream(watch, what)
            except WatchExpired as expired:
                status = failure(410, "Expired", str(expired)).body
                self._send([{"type": "ERROR", "object": status}])
        write_chunk(self.wfile, b"")

    def _stream(self, watch: StoreWatch, what: Asked) -> None:
        while not self.server.stopping.is_set():
            events = watch.poll(limit=WATCH_BATCH_MAX, timeout=WATCH_LOOK_INTERVAL)
            lines = [
                {"type": event.type.value, "object": self._watched(event, what)}
                for event in events
                if event.type is WatchEventType.BOOKMARK or what.selects(event.object)
            ]
            if lines:
                self._send(lines)
            elif watch.ended or self._client_is_gone():
                return

    def _watched(self, event: WatchEvent, what: Asked) -> RawObject:
        resource = what.resource
        if event.type is WatchEventType.BOOKMARK:
            return {"kind": resource.kind, "apiVersion": resource.api_version, **event.object}
        if what.as_table:
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
        write_response(self.wfile, request, encoded(told))
