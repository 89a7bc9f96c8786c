"""The read commands on a recorded voyage: whole outputs, and every exit code."""

import json
import re
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import structlog

from decklog.cli.main import main
from tests.harness import EmbeddedStores, ManualClock
from tests.recording import fill

RECORDED: Final = Path(__file__).parents[2] / "golden"
VOYAGE: Final = RECORDED / "decisions" / "voyage.jsonl"
GOLDEN: Final = RECORDED / "cli" / "history"
CASES: Final = {
    "why-bound": ("why", "shop/web-1"),
    "why-unschedulable": ("why", "default/archive"),
    "why-undone": ("why", "default/refused", "--at", "decision/13"),
    "why-gated": ("why", "default/gated"),
    "why-at-a-position": ("why", "default/giant", "--at", "decision/9"),
    "why-json": ("why", "shop/web-1", "--output", "json"),
    "audit-list": ("audit", "list", "--limit", "5"),
    "audit-list-wide": ("audit", "list", "-n", "shop", "-o", "wide"),
    "audit-list-json": ("audit", "list", "--limit", "1", "-o", "json"),
    "audit-show": ("audit", "show", "12"),
    "replay": ("replay", "--to", "decision/7"),
    "replay-stats": ("replay", "--stats", "--output", "json"),
    "verify": ("verify",),
    "verify-range": ("verify", "--from", "decision/7"),
}
VARIES: Final = (
    # What depends on machine and moment, and what stands for it.
    (r"\b\d+(\.\d+)? s\b", "N s"),
    (r"\([\d,]+ events/s\)", "(N events/s)"),
    (r"(\"(?:seconds|eventsPerSecond)\"): [\d.]+", r"\1: N"),
    (r" +\d+[smhd]$", " AGE"),
    (r" +AGE$", " AGE"),
)


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture(scope="module")
def voyage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with the recorded voyage: outputs change only if a command does."""
    folder = tmp_path_factory.mktemp("voyage")
    stores = EmbeddedStores(folder, ManualClock())
    ledger, events = stores.ledger(), stores.events()
    fill(VOYAGE.read_text(), ledger, events)
    ledger.close()
    events.close()
    return folder


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Run a command in this process, as `python -m decklog` does in one of its own."""

    def run_command(*arguments: str | Path) -> Done:
        monkeypatch.setattr(sys, "argv", ["decklog", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        told = capsys.readouterr()
        return Done(int(ended.value.code or 0), told.out, told.err)

    yield run_command
    structlog.reset_defaults()  # Commands log to this test's standard error.


@pytest.fixture
def damaged(voyage: Path, tmp_path: Path) -> Path:
    shutil.copytree(voyage, tmp_path / "store")
    return tmp_path / "store"


@pytest.mark.parametrize("name", CASES)
def test_golden_output(name: str, voyage: Path, run: Run, request: pytest.FixtureRequest) -> None:
    done = run(*CASES[name], "--data", voyage)
    assert done.code == 0, done.err
    got = done.out
    for pattern, instead in VARIES:
        got = re.sub(pattern, instead, got, flags=re.MULTILINE)
    file = GOLDEN / f"{name}.txt"
    if request.config.getoption("--update-golden"):
        file.write_text(got)
    assert got == file.read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        pytest.param(("why", "shop/nobody"), 4, "no pod 'shop/nobody'", id="no such pod"),
        pytest.param(("why", "nobody"), 4, "NAMESPACE/NAME", id="a name alone"),
        pytest.param(
            ("why", "shop/web-1", "--at", "99999"), 4, "not reached yet", id="no position"
        ),
        pytest.param(("why", "shop/web-1", "--at", "noon"), 2, "'noon'", id="no position at all"),
        pytest.param(("audit", "show", "99999"), 4, "it goes up to", id="no decision"),
        pytest.param(("audit", "list", "-A", "-n", "shop"), 2, "say one of them", id="-A with -n"),
        pytest.param(("replay", "--to", "snapshot/x"), 2, "no snapshots", id="snapshot"),
    ],
)
def test_what_cannot_be_answered_is_one_line(
    voyage: Path, run: Run, arguments: tuple[str, ...], code: int, line: str
) -> None:
    done = run(*arguments, "--data", voyage)
    assert done.code == code
    assert done.out == ""
    assert line in done.err


def test_a_folder_without_history_is_not_found(tmp_path: Path, run: Run) -> None:
    assert run("verify", "--data", tmp_path).code == 4


def test_a_break_is_named_and_exits_1(damaged: Path, run: Run) -> None:
    _execute(damaged / "decklog.db", "DROP TRIGGER decision_refuse_update")
    _execute(damaged / "decklog.db", "UPDATE decision SET node = 'larger' WHERE seq = 5")
    done = run("verify", "--data", damaged)
    assert done.code == 1
    assert "BROKEN at decision 5: column node is 'larger'" in done.out
    assert done.out.rstrip().endswith("exit 1")
    assert run("audit", "show", "5", "--data", damaged).code == 1
    assert run("audit", "show", "4", "--data", damaged).code == 0


def test_events_that_are_gone_exit_6_and_never_1(damaged: Path, run: Run) -> None:
    _execute(damaged / "log.db", 'DELETE FROM "log_test.events" WHERE position > 60')
    done = run("verify", "--data", damaged, "--output", "json")
    told: dict[str, Any] = json.loads(done.out)
    assert done.code == told["exitCode"] == 6
    assert told["verdict"] == "refused"
    (damaged / "log.db").unlink()
    assert run("verify", "--data", damaged).code == 6


def test_a_list_that_was_cut_says_so_beside_the_data(voyage: Path, run: Run) -> None:
    done = run("audit", "list", "--limit", "2", "--data", voyage)
    assert len(done.out.splitlines()) == 3
    assert "there are more" in done.err
    assert run("audit", "list", "--data", voyage).err == ""


def test_a_list_of_nothing_is_no_error(voyage: Path, run: Run) -> None:
    done = run("audit", "list", "--pod", "shop/nobody", "--data", voyage)
    assert (done.code, done.out) == (0, "")


def test_text_and_json_tell_the_same(voyage: Path, run: Run) -> None:
    text = run("why", "shop/web-1", "--data", voyage).out
    told = json.loads(run("why", "shop/web-1", "--data", voyage, "-o", "json").out)
    assert f"{told['result']} to {told['node']}" in text
    assert f"{told['feasible']} of {told['evaluated']} nodes" in text
    assert f"DECISION   {told['decision']}" in text
    assert told["policy"] in text
    for score in told["scores"]:
        assert re.search(rf"{score['node']} +{score['total']}\b", text)
    for group in told["rejected"]:
        assert re.search(rf"{group['nodes']} +{group['plugin']} +.*{group['class']}", text)


def _execute(file: Path, statement: str) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute(statement)
    connection.close()
