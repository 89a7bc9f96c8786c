"""`decklog --help` answers at once, and so does the health check of containers."""

import subprocess
import sys

import pytest

HEAVY = ("fastapi", "kubernetes", "kafka", "numpy", "sqlalchemy", "pydantic_settings")


@pytest.mark.parametrize("arguments", [["--help"], ["doctor", "--probe", "livez", "--port", "1"]])
def test_nothing_heavy_is_imported(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "decklog", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "typer" in imported
    assert not [name for name in imported if name.partition(".")[0] in HEAVY]
