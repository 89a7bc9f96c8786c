"""The demo: the whole loop as one command."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import pytest

from tests.system.commands import decklog, start_decklog

KEYS: Final = {
    "nodes",
    "pods",
    "bound",
    "unschedulable",
    "pending",
    "deleted",
    "events",
    "ticks",
    "decisions",
    "open_assumes",
    "verified",
    "divergences",
    "wall_seconds",
    "cpu_seconds",
    "rss_max_bytes",
}


def summary(*arguments: str | Path, want: int = 0) -> dict[str, Any]:
    done = decklog("demo", "--output", "json", *arguments)
    assert done.returncode == want, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_check_proves_that_every_pod_is_bound_or_explained() -> None:
    done = decklog("demo", "--check", "--pods", "120")
    assert done.returncode == 0, done.stderr
    assert "Verified. 120 decisions" in done.stdout
    assert "seed 42 · embedded log, temporary, removed at exit" in done.stdout
    assert done.stderr == ""


def test_json_is_one_object_with_the_numbers() -> None:
    found = summary("--check", "--pods", "60", "--nodes", "20")
    assert set(found) >= KEYS
    assert (found["nodes"], found["pods"], found["pending"]) == (20, 60, 0)
    assert found["bound"] + found["unschedulable"] == 60
    assert (found["open_assumes"], found["verified"], found["divergences"]) == (0, True, 0)
    assert found["apiVersion"] == "decklog.dev/v1alpha1"


def test_the_same_seed_gives_the_same_decisions(tmp_path: Path) -> None:
    numbers = []
    for name in ("first", "second"):
        found = summary("--pods", "80", "--seed", "7", "--data", tmp_path / name)
        numbers.append((found["bound"], found["unschedulable"], found["decisions"]))
    assert numbers[0] == numbers[1]


def test_without_nodes_every_pod_is_explained() -> None:
    found = summary("--check", "--nodes", "0", "--pods", "10")
    assert (found["bound"], found["unschedulable"]) == (0, 10)


def test_a_kept_store_goes_on_where_it_ended(tmp_path: Path) -> None:
    first = summary("--check", "--pods", "40", "--data", tmp_path)
    second = summary("--check", "--pods", "30", "--data", tmp_path)
    assert second["decisions"] == first["decisions"] + 30
    assert second["events"] > first["events"]


def test_a_store_whose_demo_was_killed_is_whole(tmp_path: Path) -> None:
    killed = start_decklog("demo", "--data", tmp_path, "--rate", "200")
    _wait_for((tmp_path / "decklog.db").exists)
    time.sleep(1.0)
    killed.kill()
    killed.communicate()
    found = summary("--check", "--pods", "20", "--data", tmp_path)
    assert found["verified"] is True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stream_ends_with_a_summary_when_asked(number: signal.Signals, tmp_path: Path) -> None:
    running = start_decklog("demo", "--rate", "40", "--data", tmp_path)
    _wait_for((tmp_path / "decklog.db").exists)
    time.sleep(1.0)
    running.send_signal(number)
    out, err = running.communicate(timeout=20)
    assert running.returncode == 0, err
    assert "40 pods/s …  ^C stops" in out
    assert "Verified" in out


def test_one_writer_has_a_folder_and_anybody_may_read(tmp_path: Path) -> None:
    running = start_decklog("demo", "--rate", "20", "--data", tmp_path)
    _wait_for((tmp_path / "decklog.db").exists)
    time.sleep(1.0)
    second = decklog("demo", "--check", "--data", tmp_path)
    assert second.returncode == 6
    assert second.stderr == (
        f"decklog: data folder '{tmp_path}' is in use by another writer, pid {running.pid}\n"
    )
    status = decklog("migrate", "status", "--data", tmp_path)
    assert status.returncode == 0, status.stderr
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=20)


def test_the_temporary_store_is_removed(tmp_path: Path) -> None:
    done = decklog("demo", "--check", "--pods", "5", env={"TMPDIR": str(tmp_path)})
    assert done.returncode == 0
    assert not list(tmp_path.glob("decklog-demo-*"))


def test_progress_is_shown_on_a_terminal_only(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-m", "decklog", "demo", "--pods", "300", "--rate", "300"],
        stdout=subprocess.PIPE,
        stderr=slave,
        env={**os.environ, "TERM": "xterm", "TMPDIR": str(tmp_path)},
        text=True,
    )
    os.close(slave)
    out, _ = running.communicate(timeout=60)
    shown = os.read(master, 65_536).decode(errors="replace")
    os.close(master)
    assert running.returncode == 0
    assert "decisions · position" in shown
    assert "decisions · position" not in out


def _wait_for(condition: Any, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come in time"
        time.sleep(0.02)
