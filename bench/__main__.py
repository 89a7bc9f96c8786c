"""Every bench, one after the other: `make bench`, or `python -m bench [--openb DIR] [NAME…]`.

Prints one JSON object: the figures that decklog is held to, each with its limit and the command
that makes it alone; what each bench measured, by its name; and on what. Figures of a machine that
does something else meanwhile say little: `load_1m` tells.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import structlog

from bench import cluster, core, latency, ledger, log
from bench.figures import figures
from bench.loop import Voyage
from decklog.version import __version__

CORE_SECONDS: Final = 4.0
RATE: Final = 50


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHES)}")
    parser.add_argument("--openb", type=Path, help="folder of the trace's two CSV files")
    parser.add_argument("-o", "--output", choices=["json"], default="json")
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.names) - set(BENCHES))
    if unknown:
        parser.error(f"no bench is called {unknown[0]!r}: there are {', '.join(BENCHES)}")
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as folder:
        found = _measure(given.names or list(BENCHES), Voyage(Path(folder), given.openb))
    command = "python -m bench" + (f" --openb {given.openb}" if given.openb else "")
    answer = {"machine": _machine(), "figures": figures(found, command), "measured": found}
    print(json.dumps(answer, indent=2))


def _measure(names: Sequence[str], voyage: Voyage) -> dict[str, Any]:
    found = {}
    for name in names:
        print(f"{name}…", file=sys.stderr, flush=True)
        load = round(os.getloadavg()[0], 2)
        found[name] = BENCHES[name](voyage)
        if isinstance(found[name], dict):
            found[name] = {"load_1m": load, **found[name]}
    return found


def _machine() -> dict[str, Any]:
    return {
        "version": __version__,
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "load_1m": round(os.getloadavg()[0], 2),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _core(_: Voyage) -> dict[str, Any]:
    """Each workload has a process of its own, so that its memory is its own too."""
    command = [sys.executable, "-m", "bench.core", "--seconds", str(CORE_SECONDS), "--workload"]
    return {
        name: json.loads(
            subprocess.run([*command, name], check=True, stdout=subprocess.PIPE).stdout
        )
        for name in core.WORKLOADS
    }


def _logs(_: Voyage) -> dict[str, Any]:
    return {adapter: log.measure(adapter) for adapter in ("embedded", "kafka")}


def _ledgers(_: Voyage) -> dict[str, Any]:
    return {adapter: ledger.measure(adapter) for adapter in ("sqlite", "postgresql")}


BENCHES: Final[dict[str, Callable[[Voyage], Any]]] = {
    "loop-embedded": lambda voyage: voyage.embedded,
    "verify": Voyage.verify,
    "rebuild": Voyage.rebuild,
    "payloads": Voyage.payloads,
    "loop-services": Voyage.services,
    "latency": lambda _: latency.measure(RATE),
    "core": _core,
    "log": _logs,
    "ledger": _ledgers,
    "cluster": lambda _: cluster.measure(),
}

if __name__ == "__main__":
    main()
