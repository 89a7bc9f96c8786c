"""The demo as processes over a real broker and database, with every one of them killed once."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy.engine import make_url

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

SERVICES: Final = ("watcher", "scheduler", "binder", "auditor")
SECONDS_MAX: Final = 120


def test_a_spawned_demo_survives_the_death_of_each_service(
    kafka_bootstrap: str, postgres_dsn: str, tmp_path: Path
) -> None:
    url = make_url(postgres_dsn)
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("DECKLOG_")},
        "DECKLOG_KAFKA__BOOTSTRAP": kafka_bootstrap,
        "DECKLOG_PG__HOST": str(url.host or url.query.get("host", "")),
        "DECKLOG_PG__PORT": str(url.port or 5432),
        "DECKLOG_PG__USER": str(url.username),
        "DECKLOG_PG__DATABASE": str(url.database),
        "XDG_RUNTIME_DIR": str(tmp_path),
    }
    arguments = ["demo", "--spawn", "--check", "--pods", "150", "--rate", "25", "-o", "json"]
    running = subprocess.Popen(
        [sys.executable, "-m", "decklog", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )
    for name in SERVICES:
        _kill(_wait_for_child(running.pid, name))
        time.sleep(0.5)
    out, err = running.communicate(timeout=SECONDS_MAX)
    assert running.returncode == 0, err
    found: dict[str, Any] = json.loads(out)
    assert found["restarts"] == dict.fromkeys(SERVICES, 1)
    assert (found["pods"], found["pending"], found["open_assumes"]) == (150, 0, 0)
    assert found["verified"] is True
    assert _children(running.pid) == {}


def _wait_for_child(parent: int, name: str) -> int:
    deadline = time.monotonic() + SECONDS_MAX
    while name not in (found := _children(parent)):
        assert time.monotonic() < deadline, f"{name} was not started"
        time.sleep(0.05)
    return found[name]


def _children(parent: int) -> dict[str, int]:
    """Return the services that the process runs, by name."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_text().split("\0")
        except OSError:
            continue
        if int(stat[1]) == parent and command[-3:-2] == ["run"]:
            found[command[-2]] = int(folder.name)
    return found


def _kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
