"""decklog's commands, run as a person runs them."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def decklog(
    *arguments: str | Path, env: Mapping[str, str] | None = None, seconds: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, with no settings but those given."""
    return subprocess.run(
        [sys.executable, "-m", "decklog", *map(str, arguments)],
        env={**_plain(), **(env or {})},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def start_decklog(
    *arguments: str | Path, env: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start a command that goes on until it is stopped."""
    return subprocess.Popen(
        [sys.executable, "-m", "decklog", *map(str, arguments)],
        env={**_plain(), **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _plain() -> dict[str, str]:
    given = {name: value for name, value in os.environ.items() if not name.startswith("DECKLOG_")}
    return {**given, "COLUMNS": "80"}
