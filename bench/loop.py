"""What the whole loop takes, and what can be done with its history afterwards.

All pods of the workload are created at once and run for ever. Embedded, everything is one process
on SQLite; with services, every service is a process over a Kafka and a PostgreSQL that share the
cores. `verify`, the rebuild of a scheduler and the ledger's bytes are measured on the embedded
run's store. Without a folder of the openb trace the workload is generated, of the trace's size and
mix. `python -m bench loop-embedded` and so on runs one of them.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from bench.servers import ProcessorTime, servers
from bench.workloads.openb_like import openb_like
from decklog.adapters.clock import SystemClock
from decklog.adapters.ledger.sql import SqlLedger
from decklog.adapters.log.embedded import EmbeddedLog
from decklog.adapters.manifests import dump_manifests
from decklog.core.framework.resolve import default_config
from decklog.ports.ledger import DecisionFilter
from decklog.scheduler.service import SchedulerService, SchedulerSettings

CLUSTER: Final = "bench"
NODES_FILE: Final = "openb_node_list_all_node.csv"
PODS_FILE: Final = "openb_pod_list_default.csv"
SECONDS_MAX: Final = 600
NO_LIMIT: Final = 1_000_000
CENTS: Final = 100

Measured = dict[str, Any]


@dataclass
class Voyage:
    """One workload, and the embedded run of it that the other measurements look at."""

    folder: Path
    openb: Path | None = None

    @cached_property
    def embedded(self) -> Measured:
        """Run the loop in one process; what it leaves is in the store."""
        return _decklog(
            _ENV, "demo", "--manifests", str(self._manifests), "--data", str(self._store)
        )

    def services(self) -> Measured:
        """Run the loop with each service a process, and the servers on the same cores."""
        arguments = ["demo", "--spawn", "--manifests", str(self._manifests)]
        with servers() as apart:
            roots = {os.getpid(): "bench", apart.broker.pid: "kafka"}
            with ProcessorTime(roots | {apart.postgres.pid: "postgresql"}) as processor:
                answer = _decklog(_ENV | apart.settings, *arguments)
        return answer | {"cpu_seconds_of": processor.by_name}

    def verify(self) -> Measured:
        assert self.embedded
        start = time.perf_counter()
        answer = _decklog(_ENV, "verify", "--data", str(self._store))
        return {"wall_seconds": round(time.perf_counter() - start, 2), **answer}

    def rebuild(self) -> Measured:
        """Time a new scheduler from its start until it leads with all of the history applied."""
        assert self.embedded
        clock = SystemClock()
        with (
            closing(EmbeddedLog(self._store, f"{CLUSTER}.events")) as events,
            closing(EmbeddedLog(self._store, f"{CLUSTER}.decisions")) as decisions,
            closing(self._ledger(clock)) as ledger,
        ):
            start, cpu = time.perf_counter(), time.process_time()
            settings = SchedulerSettings(
                cluster=CLUSTER,
                config=default_config(),
                holder="bench",
                code_version="bench",
                patience=timedelta(0),
            )
            service = SchedulerService(settings, events, decisions, ledger, clock)
            while not service.metrics.leading:
                service.step()
            seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
            found = {
                "wall_seconds": round(seconds, 2),
                "cpu_seconds": round(cpu, 2),
                "events": service.state.position + 1,
            }
            service.stop()
        return found

    def payloads(self) -> Measured:
        """Return how many bytes a row's payload takes, by kind."""
        assert self.embedded
        sizes: dict[str, list[int]] = defaultdict(list)
        with closing(self._ledger(SystemClock())) as ledger:
            for row in ledger.select(CLUSTER, where=DecisionFilter(), limit=NO_LIMIT):
                repeats = " (repeat)" if b'"same_as"' in row.payload else ""
                sizes[row.kind + repeats].append(len(row.payload))
            for tick in ledger.ticks(CLUSTER, after=0, limit=NO_LIMIT):
                sizes["tick"].append(len(tick.payload))
        return {kind: _quantiles(found) for kind, found in sorted(sizes.items())}

    @property
    def _store(self) -> Path:
        return self.folder / "store"

    def _ledger(self, clock: SystemClock) -> SqlLedger:
        return SqlLedger(f"sqlite:///{self._store / 'decklog.db'}", clock=clock)

    @cached_property
    def _manifests(self) -> Path:
        path = self.folder / "manifests.json"
        if self.openb is None:
            nodes, pods = openb_like()
            dump_manifests([*nodes, *pods], path)
        else:
            files = [str(self.openb / name) for name in (NODES_FILE, PODS_FILE)]
            command = [sys.executable, "-m", "decklog", "import", "openb", *files]
            subprocess.run([*command, "--out", path], check=True, stdout=subprocess.DEVNULL)
        return path


def _quantiles(sizes: list[int]) -> Measured:
    cuts = (
        statistics.quantiles(sizes, n=CENTS, method="inclusive")
        if len(sizes) > 1
        else sizes * CENTS
    )
    return {"rows": len(sizes), "p50": round(cuts[49]), "p90": round(cuts[89]), "max": max(sizes)}


def _decklog(env: Mapping[str, str], *arguments: str) -> Measured:
    done = subprocess.run(
        [sys.executable, "-m", "decklog", *arguments, "-o", "json"],
        env=env,
        stdout=subprocess.PIPE,
        timeout=SECONDS_MAX,
        check=True,
    )
    answer: Measured = json.loads(done.stdout)
    return answer


_ENV: Final = {
    **{name: value for name, value in os.environ.items() if not name.startswith("DECKLOG_")},
    "DECKLOG_CLUSTER": CLUSTER,
}
