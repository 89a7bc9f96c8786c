"""The operations port: probes, metrics, version and settings of the services of one process.

    /livez     the loop comes round; nothing else, so that a broker's failure restarts nobody
    /readyz    what the services need is there, and nobody has asked the process to stop
    /startupz  the services have been made

Each takes `?verbose` and `?exclude=NAME`, and `/readyz/NAME` asks for one check.
"""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import structlog

from decklog.bootstrap.services import NEEDS
from decklog.core.errors import (
    ClusterUnavailable,
    LedgerUnavailable,
    LogUnavailable,
    Refused,
)
from decklog.ports.clock import Clock
from decklog.runner import Loop, Paced

LIVE_MS_MAX: Final = 60_000
"""A loop that has not come round for so long hangs: the heartbeat of a leader stops then too."""
PORTS_TRIED: Final = 20
"""How many ports after the usual one are tried where several services share a machine."""
TEXT: Final = "text/plain; charset=utf-8"
METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"
JSON: Final = "application/json"
PROBES: Final = {"livez", "readyz", "startupz"}

Checks = Mapping[str, str]
"""Name → what is missing; empty: fine."""

_log = structlog.get_logger()


@dataclass(slots=True)
class Health:
    """What the probes ask. Filled in as the process starts."""

    clock: Clock
    stopping: Callable[[], bool]
    loop: Loop | None = None

    def livez(self) -> Checks:
        if self.loop is None:
            return {"ping": ""}
        age_ms = self.clock.monotonic_ms() - self.loop.beat_ms
        hangs = self.loop.beat_ms > 0 and age_ms > LIVE_MS_MAX
        return {"loop": f"has not come round for {age_ms // 1000} s" if hangs else ""}

    def startupz(self) -> Checks:
        return {"start": "" if self.loop is not None else "waits for what it needs"}

    def readyz(self) -> Checks:
        checks = {**self.startupz(), "shutdown": "was asked to stop" if self.stopping() else ""}
        if self.loop is None:
            return checks
        several = len(self.loop.services) > 1
        for paced in self.loop.services:
            prefix = f"{paced.service.name}-" if several else ""
            for name, missing in _readiness(paced).items():
                checks[prefix + name] = missing
        return checks


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """What the port shows beside health."""

    metrics: Callable[[], bytes]
    version: Callable[[], Mapping[str, Any]]
    settings: Mapping[str, Any]
    """Masked."""


class OperationsServer:
    """Serves in a thread of its own until stopped."""

    def __init__(
        self, health: Health, pages: Pages, *, host: str, port: int, is_fixed: bool
    ) -> None:
        self._server = _listen(health, pages, host, port, is_fixed=is_fixed)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="operations", daemon=True
        )

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def __enter__(self) -> "OperationsServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _listen(health: Health, pages: Pages, host: str, port: int, *, is_fixed: bool) -> "_Server":
    """Take the port; where nobody insists on it and it is taken, one of the next."""
    last = port if is_fixed else port + PORTS_TRIED
    for each in range(port, last + 1):
        try:
            server = _Server((host, each), health, pages)
        except OSError as error:
            if each == last:
                msg = f"cannot listen on {host}:{each} for operations: {error.strerror}"
                raise Refused(msg) from error
            continue
        if each != port:
            _log.warning("Operations port is taken, took another", port=each)
        return server
    raise AssertionError


def _readiness(paced: Paced) -> dict[str, str]:
    checks = dict.fromkeys(NEEDS.get(paced.service.name, ()), "")
    checks.update(paced.service.readiness())
    match paced.error:
        case None:
            return checks
        case LogUnavailable():
            failed = "log"
        case LedgerUnavailable():
            failed = "ledger"
        case ClusterUnavailable():
            failed = "cluster"
        case _:
            failed = "step"
    checks[failed] = paced.failing
    return checks


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], health: Health, pages: Pages) -> None:
        self.health = health
        self.pages = pages
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = parse_qs(url.query, keep_blank_values=True)
        parts = url.path.strip("/").split("/")
        name = "livez" if parts[0] == "healthz" else parts[0]
        if name in PROBES:
            self._probe(name, parts[1:], query)
        elif parts == ["metrics"]:
            self._answer(200, self.server.pages.metrics(), METRICS)
        elif parts == ["version"]:
            self._answer(200, _json(self.server.pages.version()), JSON)
        elif parts == ["configz"]:
            self._answer(200, _json(self.server.pages.settings), JSON)
        else:
            self._answer(404, b"404 page not found\n", TEXT)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: probes come every few seconds."""

    def _probe(self, name: str, rest: Sequence[str], query: Mapping[str, list[str]]) -> None:
        checks = dict(getattr(self.server.health, name)())
        if rest:
            wanted = "/".join(rest)
            if wanted not in checks:
                self._answer(404, b"404 page not found\n", TEXT)
                return
            checks = {wanted: checks[wanted]}
        excluded = {one for each in query.get("exclude", ()) for one in each.split(",")}
        checks = {check: said for check, said in checks.items() if check not in excluded}
        failed = any(checks.values())
        text = "ok"
        if failed or "verbose" in query:
            text = report(name, checks)
        self._answer(503 if failed else 200, text.encode(), TEXT)

    def _answer(self, code: int, body: bytes, content_type: str) -> None:
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)


def report(name: str, checks: Checks) -> str:
    """Say it in the API server's format, but that a failure comes with its reason."""
    lines = [
        f"[-]{check} failed: {missing}" if missing else f"[+]{check} ok"
        for check, missing in checks.items()
    ]
    outcome = "failed" if any(checks.values()) else "passed"
    return "\n".join([*lines, f"{name} check {outcome}", ""])


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"
