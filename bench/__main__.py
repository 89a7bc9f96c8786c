"""Every bench, one after the other: `make bench`, or `python -m bench [--openb DIR] [NAME…]`.

Prints one JSON object: each bench's figures by its name, and what they were measured on. Figures
of a machine that does something else meanwhile say little: `load_1m` tells.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench import core, latency, ledger, log, loop
from decklog.version import __version__

CORE_SECONDS: Final = 4.0
RATE: Final = 50


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHES)}")
    parser.add_argument("--openb", type=Path, help="folder of the trace's two CSV files")
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.names) - set(BENCHES))
    if unknown:
        parser.error(f"no bench is called {unknown[0]!r}: there are {', '.join(BENCHES)}")
    found: dict[str, Any] = {"machine": _machine()}
    for name in given.names or BENCHES:
        print(f"{name}…", file=sys.stderr, flush=True)
        found[name] = BENCHES[name](given.openb)
    print(json.dumps(found, indent=2))


def _machine() -> dict[str, Any]:
    return {
        "version": __version__,
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "load_1m": round(os.getloadavg()[0], 2),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _core(_: Path | None) -> dict[str, Any]:
    """Each workload has a process of its own, so that its memory is its own too."""
    command = [sys.executable, "-m", "bench.core", "--seconds", str(CORE_SECONDS), "--workload"]
    return {
        name: json.loads(
            subprocess.run([*command, name], check=True, stdout=subprocess.PIPE).stdout
        )
        for name in core.WORKLOADS
    }


def _logs(_: Path | None) -> dict[str, Any]:
    return {adapter: log.measure(adapter) for adapter in ("embedded", "kafka")}


def _ledgers(_: Path | None) -> dict[str, Any]:
    return {adapter: ledger.measure(adapter) for adapter in ("sqlite", "postgresql")}


BENCHES: Final[dict[str, Callable[[Path | None], Any]]] = {
    "loop-embedded": lambda openb: loop.measure("embedded", openb),
    "loop-services": lambda openb: loop.measure("services", openb),
    "latency": lambda _: latency.measure(RATE),
    "core": _core,
    "log": _logs,
    "ledger": _ledgers,
}

if __name__ == "__main__":
    main()
