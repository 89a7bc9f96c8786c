"""Finds the themes of the recorded answers, and prints what became of them."""

from pathlib import Path
from typing import Final

import pytest

from tests.parity.runner import Report, themes

CARRIED: Final = Path(__file__).parent / "golden"
REPORTS: Final = pytest.StashKey[list[Report]]()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "theme_path" in metafunc.fixturenames:
        folder: Path = metafunc.config.getoption("--golden") or CARRIED
        paths = themes(folder)
        names = [path.name.removesuffix(".jsonl.gz") for path in paths]
        metafunc.parametrize("theme_path", paths, ids=names)


@pytest.fixture
def reports(request: pytest.FixtureRequest) -> list[Report]:
    """Where a test puts what the summary shall show."""
    return request.config.stash.setdefault(REPORTS, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    found = terminalreporter.config.stash.get(REPORTS, [])
    if found:
        terminalreporter.section("decisions of kube-scheduler v1.36")
        for report in found:
            terminalreporter.write_line(str(report))
