"""Every error ends as one line and one exit code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from decklog.bootstrap.run import guarded
from decklog.core.errors import (
    BadConfiguration,
    Deposed,
    EntryTooLarge,
    IllegalTransition,
    LedgerUnavailable,
    PositionLost,
    Refused,
)
from decklog.history.source import NotFound


@pytest.mark.parametrize(
    ("error", "want"),
    [
        (BadConfiguration("x"), 2),
        (NotFound("x"), 4),
        (LedgerUnavailable("x"), 5),
        (Refused("x"), 6),
        (Deposed("s", generation=1, found=2), 6),
        (PositionLost(after=1, first=5, last=9), 6),
        (EntryTooLarge("k", size_bytes=2, size_bytes_max=1), 6),
        (IllegalTransition("x"), 70),
        (ZeroDivisionError("x"), 70),
        (KeyboardInterrupt(), 130),
    ],
)
def test_exit_codes(error: BaseException, want: int) -> None:
    def program() -> int:
        raise error

    assert guarded(program) == want


def test_an_error_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def program() -> int:
        msg = "cannot do it:\n  because"
        raise Refused(msg)

    guarded(program)
    assert capsys.readouterr() == ("", "decklog: cannot do it: because\n")


def test_a_bug_names_a_report_that_holds_the_trace(capsys: pytest.CaptureFixture[str]) -> None:
    def program() -> int:
        return 1 // 0

    assert guarded(program) == 70
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    report = Path(said.rpartition("report: ")[2].strip())
    assert "ZeroDivisionError" in report.read_text()
    report.unlink()


def test_a_command_s_code_is_the_program_s() -> None:
    assert guarded(lambda: 3) == 3
    assert guarded(lambda: None) == 0


def test_a_closed_pipe_ends_quietly() -> None:
    """As in `decklog … | head`: no trace, and no error code."""
    code = (
        "import sys; from decklog.bootstrap.run import guarded\n"
        "def program():\n  print('x' * 200_000); sys.stdout.flush()\n"
        "sys.exit(guarded(program))\n"
    )
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=write, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")
