"""What the whole loop takes: `python -m bench.loop --adapter embedded|services [--openb DIR]`.

All pods of the workload are created at once and run for ever. Embedded, everything is one process
on SQLite; with services, every service is a process over a Kafka and a PostgreSQL that share the
cores. `verify`, the rebuild of a scheduler and the ledger's bytes are measured on the embedded
run's store. Without `--openb` the workload is generated, of the trace's size and mix.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from sqlalchemy.engine import make_url

from bench.workloads.openb_like import openb_like
from decklog.adapters.clock import SystemClock
from decklog.adapters.ledger.sql import SqlLedger
from decklog.adapters.log.embedded import EmbeddedLog
from decklog.adapters.manifests import dump_manifests
from decklog.core.framework.resolve import default_config
from decklog.ports.ledger import DecisionFilter
from decklog.scheduler.service import SchedulerService, SchedulerSettings
from tests.stack.kafka import KafkaBroker
from tests.stack.postgres import PostgresServer

CLUSTER: Final = "bench"
SECONDS_MAX: Final = 600
NO_LIMIT: Final = 1_000_000

Measured = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.loop", description=__doc__)
    parser.add_argument("--adapter", choices=["embedded", "services"], default="embedded")
    parser.add_argument("--openb", type=Path, help="folder of the trace's two CSV files")
    parser.add_argument("-o", "--output", choices=["json"], default="json")
    given = parser.parse_args(arguments)
    print(json.dumps(measure(given.adapter, given.openb), indent=2))


def measure(adapter: str, openb: Path | None = None) -> Measured:
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as name:
        folder = Path(name)
        manifests = folder / "manifests.json"
        _write_manifests(manifests, openb)
        if adapter == "services":
            return {"loop": _services(manifests)}
        store = folder / "store"
        return {
            "loop": _decklog(_ENV, "demo", "--manifests", str(manifests), "--data", str(store)),
            "verify": _verify(store),
            "rebuild": _rebuild(store),
            "ledger_bytes": _ledger_bytes(store),
        }


def _write_manifests(path: Path, openb: Path | None) -> None:
    if openb is None:
        nodes, pods = openb_like()
        dump_manifests([*nodes, *pods], path)
        return
    files = [
        openb / name for name in ("openb_node_list_all_node.csv", "openb_pod_list_default.csv")
    ]
    command = [sys.executable, "-m", "decklog", "import", "openb", *map(str, files)]
    subprocess.run([*command, "--out", str(path)], check=True, stdout=subprocess.DEVNULL)


def _services(manifests: Path) -> Measured:
    with KafkaBroker() as broker, PostgresServer() as server:
        dsn = server.create_database(CLUSTER)
        env = _ENV | {"DECKLOG_KAFKA__BOOTSTRAP": broker.bootstrap} | _pg_settings(dsn)
        return _decklog(env, "demo", "--spawn", "--manifests", str(manifests))


def _pg_settings(dsn: str) -> dict[str, str]:
    url = make_url(dsn)
    return {
        "DECKLOG_PG__HOST": str(url.host or url.query.get("host", "")),
        "DECKLOG_PG__PORT": str(url.port or 5432),
        "DECKLOG_PG__USER": str(url.username),
        "DECKLOG_PG__DATABASE": str(url.database),
    }


def _verify(store: Path) -> Measured:
    start = time.perf_counter()
    found = _decklog(_ENV, "verify", "--data", str(store))
    return {"wall_seconds": round(time.perf_counter() - start, 2), **found}


def _decklog(env: dict[str, str], *arguments: str) -> Measured:
    done = subprocess.run(
        [sys.executable, "-m", "decklog", *arguments, "-o", "json"],
        env=env,
        stdout=subprocess.PIPE,
        timeout=SECONDS_MAX,
        check=True,
    )
    answer: Measured = json.loads(done.stdout)
    return answer


def _rebuild(store: Path) -> Measured:
    """Time a new scheduler from its start until it leads with all of the history applied."""
    clock = SystemClock()
    with (
        closing(EmbeddedLog(store, f"{CLUSTER}.events")) as events,
        closing(EmbeddedLog(store, f"{CLUSTER}.decisions")) as decisions,
        closing(SqlLedger(f"sqlite:///{store / 'decklog.db'}", clock=clock)) as ledger,
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


def _ledger_bytes(store: Path) -> Measured:
    """Return how many bytes a row's payload takes, by kind; a repeat names an equal decision."""
    sizes: dict[str, list[int]] = defaultdict(list)
    with closing(SqlLedger(f"sqlite:///{store / 'decklog.db'}", clock=SystemClock())) as ledger:
        for row in ledger.select(CLUSTER, where=DecisionFilter(), limit=NO_LIMIT):
            repeats = " (repeat)" if b'"same_as"' in row.payload else ""
            sizes[row.kind + repeats].append(len(row.payload))
    return {
        kind: {"rows": len(found), "p50": round(statistics.median(found)), "max": max(found)}
        for kind, found in sorted(sizes.items())
    }


_ENV: Final = {
    **{name: value for name, value in os.environ.items() if not name.startswith("DECKLOG_")},
    "DECKLOG_CLUSTER": CLUSTER,
}

if __name__ == "__main__":
    main()
