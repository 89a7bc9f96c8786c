"""Kafka and PostgreSQL for a bench, and what processor time every process of it took."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, Self

from sqlalchemy.engine import make_url

from tests.stack.kafka import KafkaBroker
from tests.stack.postgres import PostgresServer

DATABASE: Final = "bench"
SAMPLE_SECONDS: Final = 0.25
_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
_NAMES: Final = {
    "run watcher": "watcher",
    "run scheduler": "scheduler",
    "run binder": "binder",
    "run auditor": "auditor",
    "sim serve": "cluster",
    "decklog demo": "demo",
}
"""What a command line holds → what the process is called."""


@dataclass(frozen=True, slots=True)
class Servers:
    broker: KafkaBroker
    postgres: PostgresServer
    dsn: str
    """An empty database."""

    @property
    def settings(self) -> dict[str, str]:
        """Return the variables that lead decklog to both."""
        url = make_url(self.dsn)
        return {
            "DECKLOG_KAFKA__BOOTSTRAP": self.broker.bootstrap,
            "DECKLOG_PG__HOST": str(url.host),
            "DECKLOG_PG__PORT": str(url.port),
            "DECKLOG_PG__USER": str(url.username),
            "DECKLOG_PG__DATABASE": str(url.database),
        }


@contextmanager
def servers() -> Iterator[Servers]:
    """Start both; the database writes through to the disk, as one that is relied on does."""
    with KafkaBroker() as broker, PostgresServer(detached=True) as postgres:
        yield Servers(broker, postgres, postgres.create_database(DATABASE))


class _Process(NamedTuple):
    parent: int
    cpu_seconds: float
    command: str


@dataclass(slots=True)
class ProcessorTime:
    """Samples the processor time of process trees while it is entered; Linux only."""

    roots: dict[int, str]
    """Process id → what all of its descendants count for, unless their command has a name."""
    by_name: dict[str, float] = field(default_factory=dict)
    """Seconds, once left."""
    _taken: dict[int, tuple[str, float]] = field(default_factory=dict)
    _before: dict[int, float] = field(default_factory=dict)
    _done: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread = field(init=False)

    def __enter__(self) -> Self:
        self._before = {pid: each.cpu_seconds for pid, each in _processes().items()}
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        for pid, (name, seconds) in self._taken.items():
            took = seconds - self._before.get(pid, 0.0)
            self.by_name[name] = round(self.by_name.get(name, 0.0) + took, 2)

    def _follow(self) -> None:
        while not self._done.wait(SAMPLE_SECONDS):
            self._sample()

    def _sample(self) -> None:
        found = _processes()
        for pid, each in found.items():
            root = self._root_of(pid, found)
            if root is not None and each.command:  # One that has ended has none any more.
                self._taken[pid] = (_name(each.command, self.roots[root]), each.cpu_seconds)

    def _root_of(self, pid: int, found: dict[int, _Process]) -> int | None:
        while pid in found:
            if pid in self.roots:
                return pid
            pid = found[pid].parent
        return None


def _name(command: str, otherwise: str) -> str:
    return next((name for part, name in _NAMES.items() if part in command), otherwise)


def _processes() -> dict[int, _Process]:
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue  # It has just ended.
        seconds = (int(stat[11]) + int(stat[12])) / _TICKS_PER_SECOND
        found[int(folder.name)] = _Process(int(stat[1]), seconds, command)
    return found
