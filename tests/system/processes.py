"""decklog's services as processes, over a real broker and database and a simulated API server."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from sqlalchemy.engine import make_url

from decklog.adapters.clock import SystemClock
from decklog.adapters.ledger.sql import SqlLedger
from decklog.ports.ledger import DecisionFilter
from tests.stack.process import free_ports

SERVICES: Final = ("watcher", "scheduler", "binder", "auditor")
START_SECONDS: Final = 30
STOP_SECONDS: Final = 15
POLL_SECONDS: Final = 0.05


@dataclass
class Processes:
    """Child processes by name; each keeps a log file of its own in the folder."""

    folder: Path
    env: dict[str, str]
    stream: str
    api: str
    dsn: str
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a decklog command to its end."""
        done = subprocess.run(
            [sys.executable, "-m", "decklog", *arguments],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert not check or done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done

    def start(self, name: str, *arguments: str) -> None:
        """Start a process that goes on until it is stopped; `run NAME` unless told otherwise."""
        (port,) = free_ports(1)
        self.ports[name] = port
        log = (self.folder / f"{name}.log").open("ab")
        self.running[name] = subprocess.Popen(
            [sys.executable, "-m", "decklog", *(arguments or ("run", name))],
            env={
                **self.env,
                "DECKLOG_INSTANCE": f"{name}-{port}",
                "DECKLOG_OPERATIONS__PORT": str(port),
                "DECKLOG_OPERATIONS__HOST": "127.0.0.1",
            },
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        log.close()

    def start_another(self, name: str, kind: str) -> None:
        self.start(name, "run", kind)

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def stop(self, name: str) -> int:
        process = self.running.pop(name)
        process.terminate()
        return process.wait(timeout=STOP_SECONDS)

    def is_ready(self, name: str) -> bool:
        assert self.running[name].poll() is None, self.tail(name)
        return answers(f"http://127.0.0.1:{self.ports[name]}/readyz")

    def wait_ready(self, *names: str) -> None:
        for name in names:
            wait_until(partial(self.is_ready, name), f"{name} is ready", START_SECONDS)

    def tail(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")[-3_000:]

    def create(self, plural: str, raw: dict[str, Any], namespace: str = "") -> None:
        place = f"namespaces/{namespace}/{plural}" if namespace else plural
        request = urllib.request.Request(
            f"{self.api}/api/v1/{place}",
            data=json.dumps(raw).encode(),
            headers={"Content-Type": "application/json"},
            method="POST",
        )
        with urllib.request.urlopen(request, timeout=10) as response:
            assert response.status == 201

    def pods(self) -> dict[str, str]:
        """Return each pod's node as the API server has it; empty: unbound."""
        with urllib.request.urlopen(f"{self.api}/api/v1/pods", timeout=10) as response:
            listed = json.load(response)["items"]
        return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in listed}

    @contextmanager
    def ledger(self) -> Iterator[SqlLedger]:
        opened = SqlLedger(self.dsn, clock=SystemClock())
        try:
            yield opened
        finally:
            opened.close()

    def at_rest(self, ledger: SqlLedger, bound: int) -> bool:
        placed = sum(bool(node) for node in self.pods().values())
        if placed < bound or ledger.open_assumes(self.stream):
            return False
        return ledger.unfinished_effects(self.stream, limit=1) == 0

    def assert_bound_once(self, ledger: SqlLedger) -> None:
        """No pod has two assumes that were both confirmed, and every bind was decided."""
        rows = ledger.select(
            self.stream, where=DecisionFilter(kind="PodAssumed"), limit=100_000, newest_first=False
        )
        unreserved = {
            row.closes_seq
            for row in ledger.select(
                self.stream, where=DecisionFilter(kind="PodUnreserved"), limit=100_000
            )
        }
        confirmed: dict[str, list[str]] = {}
        for row in rows:
            if row.seq not in unreserved:
                confirmed.setdefault(row.pod, []).append(row.node or "")
        for pod, node in self.pods().items():
            if node:
                assert confirmed.get(pod) == [node], f"{pod} is on {node}: {confirmed.get(pod)}"

    def close(self) -> None:
        for name in list(self.running):
            self.kill(name)


def wait_until(ready: Callable[[], bool], what: str, seconds: float) -> None:
    """Wait for a condition; fail with what it was when it does not come in time."""
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(POLL_SECONDS)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except OSError:
        return False


@contextmanager
def make_processes(
    folder: Path, *, bootstrap: str, dsn: str, stream: str, sim: tuple[str, ...]
) -> Iterator[Processes]:
    """Set up database and topics, start the simulated API server, and end everything at the end."""
    url = make_url(dsn)
    (port,) = free_ports(1)
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("DECKLOG_")},
        "DECKLOG_CLUSTER": stream,
        "DECKLOG_KAFKA__BOOTSTRAP": bootstrap,
        "DECKLOG_PG__HOST": str(url.host or url.query.get("host", "")),
        "DECKLOG_PG__PORT": str(url.port or 5432),
        "DECKLOG_PG__USER": str(url.username),
        "DECKLOG_PG__DATABASE": str(url.database),
        "DECKLOG_KUBE__SERVER": f"http://127.0.0.1:{port}",
    }
    made = Processes(folder, env, stream, f"http://127.0.0.1:{port}", dsn)
    try:
        made.run("migrate", "up")
        made.run("topics", "apply")
        made.start("cluster", "sim", "serve", "--listen", f"127.0.0.1:{port}", *sim)
        wait_until(lambda: answers(f"{made.api}/readyz"), "the simulated API server", START_SECONDS)
        yield made
    finally:
        made.close()
