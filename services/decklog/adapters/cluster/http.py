"""The API server over HTTP: lists, watches and writes through a raw urllib3 pool.

The generated Kubernetes client costs several times the CPU of a raw request, so nothing of it
is used; where a cluster asks for credentials, they come in as `Credentials`. No error of
urllib3 leaves this module: what a server or a network does is an answer, or one of our errors.
"""

import contextlib
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec
import urllib3
from urllib3.exceptions import HTTPError, ReadTimeoutError

from decklog.adapters.cluster.answers import reader_error
from decklog.adapters.cluster.requests import ApiRequest, Verb, to_request
from decklog.adapters.cluster.resources import RESOURCES, Resource
from decklog.adapters.cluster.watching import LineWatch, StreamSilent
from decklog.core.errors import BadConfiguration, ClusterUnavailable
from decklog.objects.kinds import Kind
from decklog.ports.cluster import Answer, Call, KindNotServed, Listing, RawObject
from decklog.version import __version__

WORKERS: Final = 8
"""Calls in flight. More only add latency: measured against a real API server."""
READERS_MAX: Final = 2
"""Lists and questions for readiness at the same time as calls."""
LIST_PAGE_OBJECTS_MAX: Final = 5_000
"""Lists come whole in nearly every cluster; in a huge one no answer is larger than some 10 MB."""
LIST_TRIES_MAX: Final = 3
SERVER_TIMEOUT: Final = "10s"
"""Sent with writes: the server gives up before we do, which turns most unknowns into answers."""
CALL_TIMEOUT: Final = urllib3.Timeout(connect=3, read=12)
LIST_TIMEOUT: Final = urllib3.Timeout(connect=3, read=60)
READY_TIMEOUT: Final = urllib3.Timeout(connect=2, read=3)
WATCH_SILENCE_MAX: Final = timedelta(seconds=85)
"""A bookmark comes every minute, and a server that stops is silent for one: longer is a loss."""
WATCH_SECONDS: Final = (1_500, 2_400)
"""When a watch asks to be ended; drawn, so that watches do not all end at once."""

CONTENT_TYPES: Final = {
    Verb.CREATE: "application/json",
    Verb.DELETE: "application/json",
    Verb.PATCH: "application/merge-patch+json",
}
STRATEGIC_MERGE: Final = "application/strategic-merge-patch+json"
METHODS: Final = {
    Verb.GET: "GET",
    Verb.CREATE: "POST",
    Verb.PATCH: "PATCH",
    Verb.DELETE: "DELETE",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Who we are to the server, and by which authority we know it. Empty: a server without."""

    headers: Mapping[str, str] = field(default_factory=dict)
    ca_file: str | None = None
    client_cert_file: str | None = None
    client_key_file: str | None = None


NO_CREDENTIALS: Final = Credentials()


class HttpCluster:
    """A `ClusterReader` and a `ClusterWriter` of any API server that speaks HTTP."""

    def __init__(
        self,
        server_url: str,
        *,
        credentials: Credentials = NO_CREDENTIALS,
        watch_silence_max: timedelta = WATCH_SILENCE_MAX,
    ) -> None:
        self._pool = _pool(server_url, credentials, WORKERS + READERS_MAX)
        # Watches hold their connections, so they have a pool of their own.
        self._watch_pool = _pool(server_url, credentials, len(RESOURCES))
        self._url = server_url
        self._headers = {
            "Accept": "application/json",
            "User-Agent": f"decklog/{__version__}",
            **credentials.headers,
        }
        self._list_headers = {**self._headers, "Accept-Encoding": "gzip"}
        self._silence_max = watch_silence_max
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="cluster-call")
        self._watches: set[LineWatch] = set()

    def list(self, kind: Kind) -> Listing:
        """Return the whole list, read in pages of one state.

        When the server forgets that state between two pages, its newest is read instead.
        """
        for _ in range(LIST_TRIES_MAX):
            if (listing := self._list(kind)) is not None:
                return listing
        msg = f"cannot list {kind.plural} of {self._url}: the pages expire before they are read"
        raise ClusterUnavailable(msg)

    def watch(self, kind: Kind, *, resource_version: str) -> LineWatch:
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(random.randint(*WATCH_SECONDS)),
            "resourceVersion": resource_version,
        }
        timeout = urllib3.Timeout(connect=3, read=self._silence_max.total_seconds())
        target = f"{_path(RESOURCES[kind.name])}?{urlencode(query)}"
        try:
            response = self._watch_pool.urlopen(
                "GET", target, headers=self._headers, timeout=timeout, preload_content=False
            )
            if response.status != 200:
                response.read()
        except HTTPError as error:
            raise self._unavailable(Verb.WATCH, kind, error) from error
        if response.status != 200:
            raise self._reader_error(kind, _answer(response))
        self._watches = {watch for watch in self._watches if not watch.ended}
        opened = LineWatch(_ResponseStream(response), name=kind.plural)
        self._watches.add(opened)
        return opened

    def perform(self, calls: Sequence[Call]) -> Sequence[Answer]:
        """Perform the calls with up to eight in flight.

        Each worker takes the next call until none is left: one hand-over for a worker, not one
        for a call.
        """
        if len(calls) == 1:
            return [self._call(calls[0])]
        answers: list[Answer] = [NO_ANSWER] * len(calls)
        numbers = itertools.count()

        def work() -> None:
            while (number := next(numbers)) < len(calls):
                answers[number] = self._call(calls[number])

        workers = [self._workers.submit(work) for _ in range(min(WORKERS, len(calls)))]
        for worker in workers:
            worker.result()
        return answers

    def ready(self) -> bool:
        try:
            response = self._pool.urlopen(
                "GET", "/readyz", headers=self._headers, timeout=READY_TIMEOUT
            )
        except HTTPError:
            return False
        return response.status == 200

    def close(self) -> None:
        for watch in self._watches:
            watch.close()
        self._workers.shutdown()
        self._pool.close()
        self._watch_pool.close()

    def _list(self, kind: Kind) -> Listing | None:
        query = {"limit": str(LIST_PAGE_OBJECTS_MAX)}
        objects: list[RawObject] = []
        while True:
            answer = self._read_page(kind, query)
            if answer.code == 410 and "continue" in query:
                return None
            if not answer.ok or answer.body is None:
                raise self._reader_error(kind, answer)
            metadata = answer.body.get("metadata") or {}
            objects += answer.body.get("items") or ()
            if not metadata.get("continue"):
                version = metadata.get("resourceVersion", "")
                return Listing(resource_version=version, objects=objects)
            query["continue"] = metadata["continue"]

    def _read_page(self, kind: Kind, query: Mapping[str, str]) -> Answer:
        target = f"{_path(RESOURCES[kind.name])}?{urlencode(query)}"
        try:
            response = self._pool.urlopen(
                "GET", target, headers=self._list_headers, timeout=LIST_TIMEOUT
            )
        except HTTPError as error:
            raise self._unavailable(Verb.LIST, kind, error) from error
        return _answer(response)

    def _call(self, call: Call) -> Answer:
        request = to_request(call)
        target = _target(request)
        headers = dict(self._headers)
        body = None
        if request.verb is not Verb.GET:
            target += f"?timeout={SERVER_TIMEOUT}"
            body = msgspec.json.encode(request.body)
            headers["Content-Type"] = (
                STRATEGIC_MERGE if request.merge_lists else CONTENT_TYPES[request.verb]
            )
        try:
            response = self._pool.urlopen(
                METHODS[request.verb], target, body=body, headers=headers, timeout=CALL_TIMEOUT
            )
        except HTTPError as error:
            return Answer(code=0, message=_one_line(error))
        return _answer(response)

    def _reader_error(self, kind: Kind, answer: Answer) -> Exception:
        error = reader_error(kind, answer)
        if isinstance(error, KindNotServed) and not self.ready():
            # A server that is starting answers 403 to rights that it has not loaded yet.
            return ClusterUnavailable(str(error))
        return error

    def _unavailable(self, verb: Verb, kind: Kind, error: HTTPError) -> ClusterUnavailable:
        what = f"cannot {verb} {kind.plural} of {self._url}"
        return ClusterUnavailable(f"{what}: {_one_line(error)}")


class _ResponseStream:
    """The body of a watch; errors of the vendor end here."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response

    def chunks(self) -> Iterator[bytes]:
        try:
            yield from self._response.stream(READ_BYTES)
        except ReadTimeoutError as error:
            raise StreamSilent from error
        except HTTPError:
            return  # It broke: what came counts, and one goes on from there.
        finally:
            self._response.close()

    def break_off(self) -> None:
        with contextlib.suppress(ValueError, RuntimeError, OSError):  # It has ended by itself.
            self._response.shutdown()


READ_BYTES: Final = 1024 * 1024
NO_ANSWER: Final = Answer(code=0)


def _pool(server_url: str, credentials: Credentials, size: int) -> urllib3.HTTPConnectionPool:
    settings: dict[str, Any] = {"maxsize": size, "retries": False}
    scheme = server_url.partition("://")[0]
    if scheme not in ("http", "https"):
        msg = f"cannot use {server_url!r} as the API server's address: it is no http(s) URL"
        raise BadConfiguration(msg)
    if scheme == "https":
        settings |= {
            "ca_certs": credentials.ca_file,
            "cert_file": credentials.client_cert_file,
            "key_file": credentials.client_key_file,
        }
    try:
        return urllib3.connection_from_url(server_url, **settings)
    except HTTPError as error:
        msg = f"cannot use {server_url!r} as the API server's address: {_one_line(error)}"
        raise BadConfiguration(msg) from error


def _path(resource: Resource, namespace: str = "") -> str:
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    if namespace:
        root += f"/namespaces/{quote(namespace)}"
    return f"{root}/{resource.plural}"


def _target(request: ApiRequest) -> str:
    parts = [_path(RESOURCES[request.kind], request.namespace)]
    if request.name:
        parts.append(quote(request.name, safe=""))
    if request.subresource:
        parts.append(request.subresource)
    return "/".join(parts)


def _answer(response: urllib3.BaseHTTPResponse) -> Answer:
    """Read an answer in any of its forms: an object, a Status whole or bare, text, nothing."""
    data = response.data
    try:
        body = msgspec.json.decode(data)
    except msgspec.DecodeError:
        body = None
    if 200 <= response.status < 300:
        if isinstance(body, dict):
            return Answer(code=response.status, body=body)
        return Answer(code=0, message=f"cannot decode the body of an answer {response.status}")
    retry_after = response.headers.get("Retry-After", "")
    told: dict[str, Any] = body if isinstance(body, dict) else {}
    text = told.get("message") or ("" if told else data.decode(errors="replace").strip())
    return Answer(
        code=response.status,
        reason=told.get("reason") or "",
        message=text[:ERROR_TEXT_MAX],
        retry_after_seconds=float(retry_after) if retry_after.isdigit() else None,
        body=told or None,
    )


ERROR_TEXT_MAX: Final = 2_000  # A proxy may answer with a whole page.


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
