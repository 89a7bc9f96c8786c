"""What commands print is what the documents show: whole outputs, compared as text.

`pytest -k golden --update-golden` writes them anew; look at the difference before you commit it.
"""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.system.commands import decklog

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "cli"
CASES: Final = {
    "help": ("--help",),
    "run-help": ("run", "--help"),
    "demo-help": ("demo", "--help"),
    "version": ("version", "--output", "json"),
    "demo-check": ("demo", "--check", "--pods", "60", "--nodes", "24"),
    "demo-check-json": ("demo", "--check", "--pods", "60", "--nodes", "24", "--output", "json"),
    "migrate-up": ("migrate", "up", "--data", "{folder}"),
}
VARIES: Final = (
    # What depends on machine and moment, and what stands for it.
    (r"\d+\.\d+\.\d+(?=[ \"])", "VERSION"),
    (r"\d+\.\d+ s\b", "N s"),
    (r"\d+ MB\b", "N MB"),
    (r"(\"(?:wall_seconds|cpu_seconds|rss_max_bytes|events|ticks)\"): [\d.]+", r"\1: N"),
    (r"\d+ events, \d+ ticks", "N events, N ticks"),
)


@pytest.mark.parametrize("name", CASES)
def test_golden_output(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    arguments = [argument.replace("{folder}", str(tmp_path)) for argument in CASES[name]]
    done = decklog(*arguments)
    assert done.returncode == 0, done.stderr
    got = done.stdout
    for pattern, instead in VARIES:
        got = re.sub(pattern, instead, got)
    file = GOLDEN / f"{name}.txt"
    if request.config.getoption("--update-golden"):
        file.write_text(got)
    assert got == file.read_text()
