"""HTTP/1.1 as the simulated server speaks it: requests in, answers and chunks out.

The standard library's handler parses headers as if they were mail, which costs more than all
that the server does for a request; this reads the little that Kubernetes clients send.
"""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from io import BufferedIOBase
from typing import Final
from urllib.parse import parse_qsl, unquote

BODY_BYTES_MAX: Final = 3 * 1024 * 1024  # What kube-apiserver takes.
DRAINED_BYTES_MAX: Final = 4 * BODY_BYTES_MAX  # Of a body that is too large, to say so.
HEADERS_MAX: Final = 100
LINE_BYTES_MAX: Final = 65_536
GZIP_BYTES_MIN: Final = 128 * 1024  # Below this kube-apiserver does not compress either.
JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"


class MalformedRequest(Exception):
    """What came is no HTTP request that we read; the connection is closed."""


class BodyTooLarge(Exception):
    """The request's body is larger than the server takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes

    @property
    def takes_gzip(self) -> bool:
        return "gzip" in self.headers.get("accept-encoding", "")

    @property
    def keep_alive(self) -> bool:
        return self.headers.get("connection", "").lower() != "close"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    code: int
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


def read_request(stream: BufferedIOBase) -> HttpRequest | None:
    """Read the next request of a connection; None when the client has closed it.

    Raises:
        MalformedRequest: close the connection.
        BodyTooLarge: answer 413 and close the connection.
    """
    line = stream.readline(LINE_BYTES_MAX)
    if not line:
        return None
    parts = line.decode("latin-1").split()
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        msg = f"cannot read request line {line[:80]!r}"
        raise MalformedRequest(msg)
    method, target, _ = parts
    headers = _read_headers(stream)
    path, _, query = target.partition("?")
    return HttpRequest(
        method=method,
        path=unquote(path),
        query=dict(parse_qsl(query, keep_blank_values=True)) if query else {},
        headers=headers,
        body=_read_body(stream, headers),
    )


def write_response(stream: BufferedIOBase, request: HttpRequest, response: HttpResponse) -> None:
    body = response.body
    headers = {"Content-Type": response.content_type, **response.headers}
    if len(body) >= GZIP_BYTES_MIN and request.takes_gzip:
        body = gzip.compress(body, compresslevel=1)
        headers["Content-Encoding"] = "gzip"
    headers["Content-Length"] = str(len(body))
    if request.method == "HEAD":
        body = b""
    stream.write(_head(response.code, headers) + body)


def begin_chunks(stream: BufferedIOBase) -> None:
    headers = {"Content-Type": JSON, "Transfer-Encoding": "chunked"}
    stream.write(_head(200, headers))


def write_chunk(stream: BufferedIOBase, data: bytes) -> None:
    """Write one chunk; an empty one ends the body."""
    stream.write(b"%x\r\n%b\r\n" % (len(data), data))


def _head(code: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {code} {_PHRASES.get(code, 'Unknown')}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _read_headers(stream: BufferedIOBase) -> dict[str, str]:
    headers: dict[str, str] = {}
    for _ in range(HEADERS_MAX):
        line = stream.readline(LINE_BYTES_MAX)
        if line in (b"\r\n", b"\n"):
            return headers
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon:
            break
        headers[name.lower()] = value.strip()
    msg = "cannot read headers: too many, or not headers"
    raise MalformedRequest(msg)


def _read_body(stream: BufferedIOBase, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return _read_chunks(stream)
    length = headers.get("content-length", "0")
    if not length.isdigit():
        msg = f"cannot read a body of length {length!r}"
        raise MalformedRequest(msg)
    if int(length) > BODY_BYTES_MAX:
        # A client that is still sending would see a broken pipe instead of the answer.
        stream.read(min(int(length), DRAINED_BYTES_MAX))
        raise BodyTooLarge
    return stream.read(int(length)) if int(length) else b""


def _read_chunks(stream: BufferedIOBase) -> bytes:
    body = bytearray()
    while True:
        size_text = stream.readline(LINE_BYTES_MAX).split(b";")[0].strip()
        try:
            size = int(size_text, 16)
        except ValueError:
            msg = f"cannot read a chunk of length {size_text[:20]!r}"
            raise MalformedRequest(msg) from None
        if len(body) + size > BODY_BYTES_MAX:
            raise BodyTooLarge
        body += stream.read(size)
        stream.readline(LINE_BYTES_MAX)
        if not size:
            return bytes(body)


_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}
