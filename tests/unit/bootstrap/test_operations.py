"""The operations port, asked over HTTP as a probe asks."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection

import pytest

from decklog.adapters.clock import SystemClock
from decklog.bootstrap.operations import LIVE_MS_MAX, Health, OperationsServer, Pages
from decklog.core.errors import (
    ClusterUnavailable,
    LedgerUnavailable,
    LogUnavailable,
    Refused,
    TransientError,
)
from decklog.runner import Loop, Paced

PAGES = Pages(
    metrics=lambda: b"decklog_ticks_total 1.0\n",
    version=lambda: {"version": "0.1.0"},
    settings={"pg": {"password": "**********"}},
)


@dataclass(slots=True)
class FakeService:
    """A service whose troubles are chosen."""

    name: str = "scheduler"
    missing: dict[str, str] = field(default_factory=dict)
    error: TransientError | None = None

    def step(self) -> bool:
        if self.error is not None:
            raise self.error
        return False

    def readiness(self) -> Mapping[str, str]:
        return self.missing

    def stop(self) -> None: ...


Get = Callable[[str], tuple[int, str]]


@contextmanager
def served(
    *services: FakeService, stopping: bool = False, started: bool = True
) -> Iterator[tuple[Get, Loop]]:
    clock = SystemClock()
    loop = Loop([Paced(service) for service in services], clock)
    loop.turn()
    health = Health(clock, lambda: stopping, loop if started else None)
    with OperationsServer(health, PAGES, host="127.0.0.1", port=0, is_fixed=True) as server:

        def get(path: str) -> tuple[int, str]:
            connection = HTTPConnection("127.0.0.1", server.port, timeout=5)
            connection.request("GET", path)
            answer = connection.getresponse()
            text = answer.read().decode()
            connection.close()
            return answer.status, text

        yield get, loop


def test_a_service_that_lacks_nothing_is_ready() -> None:
    with served(FakeService()) as (get, _):
        assert get("/readyz") == (200, "ok")
        assert get("/livez") == get("/healthz") == get("/startupz") == (200, "ok")


def test_verbose_has_the_api_server_s_format() -> None:
    with served(FakeService()) as (get, _):
        want = "[+]start ok\n[+]shutdown ok\n[+]log ok\n[+]ledger ok\nreadyz check passed\n"
        assert get("/readyz?verbose") == (200, want)


def test_what_is_missing_is_said_without_being_asked() -> None:
    service = FakeService(missing={"cluster": "2 kinds were not listed yet"})
    with served(service) as (get, _):
        code, text = get("/readyz")
        assert code == 503
        assert "[-]cluster failed: 2 kinds were not listed yet\n" in text
        assert text.endswith("readyz check failed\n")
        assert get("/livez")[0] == 200


@pytest.mark.parametrize(
    ("error", "want"),
    [
        (LogUnavailable("no broker"), "[-]log failed: no broker"),
        (LedgerUnavailable("no database"), "[-]ledger failed: no database"),
        (ClusterUnavailable("no server"), "[-]cluster failed: no server"),
    ],
)
def test_a_failing_step_names_what_failed(error: TransientError, want: str) -> None:
    with served(FakeService(error=error)) as (get, _):
        code, text = get("/readyz?verbose")
        assert code == 503
        assert want in text


def test_one_check_can_be_asked_for_and_one_left_out() -> None:
    with served(FakeService(missing={"effects": "too many"})) as (get, _):
        assert get("/readyz/log") == (200, "ok")
        assert get("/readyz/effects")[0] == 503
        assert get("/readyz?exclude=effects") == (200, "ok")
        assert get("/readyz/unknown")[0] == 404


def test_several_services_have_their_names_before_their_checks() -> None:
    services = (FakeService(), FakeService(name="watcher", missing={"lists": "pods"}))
    with served(*services) as (get, _):
        text = get("/readyz?verbose")[1]
        assert "[+]scheduler-ledger ok" in text
        assert "[-]watcher-lists failed: pods" in text


def test_who_is_asked_to_stop_is_not_ready_and_is_alive() -> None:
    with served(FakeService(), stopping=True) as (get, _):
        assert get("/readyz")[0] == 503
        assert get("/livez")[0] == 200


def test_before_the_start_only_the_process_lives() -> None:
    with served(FakeService(), started=False) as (get, _):
        assert get("/livez")[0] == 200
        assert get("/startupz")[0] == get("/readyz")[0] == 503


def test_a_loop_that_hangs_is_not_alive() -> None:
    with served(FakeService()) as (get, loop):
        loop.beat_ms = max(1, loop.clock.monotonic_ms() - LIVE_MS_MAX - 1)
        if loop.clock.monotonic_ms() <= LIVE_MS_MAX:
            pytest.skip("this machine was started less than a minute ago")
        code, text = get("/livez")
        assert code == 503
        assert "[-]loop failed: has not come round for 60 s" in text


def test_the_other_pages() -> None:
    with served(FakeService()) as (get, _):
        assert get("/metrics") == (200, "decklog_ticks_total 1.0\n")
        assert json.loads(get("/version")[1]) == {"version": "0.1.0"}
        assert json.loads(get("/configz")[1]) == {"pg": {"password": "**********"}}
        assert get("/favicon.ico")[0] == 404


def test_a_port_that_is_taken_is_refused_only_if_somebody_set_it() -> None:
    health = Health(SystemClock(), lambda: False)
    with OperationsServer(health, PAGES, host="127.0.0.1", port=0, is_fixed=True) as first:
        with pytest.raises(Refused, match="cannot listen on"):
            OperationsServer(health, PAGES, host="127.0.0.1", port=first.port, is_fixed=True)
        second = OperationsServer(health, PAGES, host="127.0.0.1", port=first.port, is_fixed=False)
        with second:
            assert first.port < second.port <= first.port + 20
