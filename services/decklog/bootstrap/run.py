"""The edge of the program: every error becomes an exit code and one line here, and nowhere else."""

import gc
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import Final

from decklog.bootstrap import exit_codes
from decklog.core.errors import (
    BadConfiguration,
    Deposed,
    EntryTooLarge,
    PositionLost,
    Refused,
    TransientError,
)
from decklog.history.source import NotFound
from decklog.version import __version__

GARBAGE_THRESHOLDS: Final = (10_000, 20, 100)
"""Most objects live on, and few are ever part of a cycle: by Python's own thresholds a seventh of
the processor's time went into looking for garbage that was not there."""

_CODE_OF: Final[tuple[tuple[type[Exception], int], ...]] = (
    (NotFound, exit_codes.NOT_FOUND),
    (BadConfiguration, exit_codes.USAGE),
    (PositionLost, exit_codes.REFUSED),
    (Deposed, exit_codes.REFUSED),
    (Refused, exit_codes.REFUSED),
    (EntryTooLarge, exit_codes.REFUSED),
    (TransientError, exit_codes.UNAVAILABLE),
)


def guarded(program: Callable[[], int | None]) -> int:
    """Run the program and return its exit code, having said in one line what ended it."""
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    try:
        return program() or exit_codes.OK
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    except BrokenPipeError:
        return _closed_pipe()
    except Exception as error:
        for kind, code in _CODE_OF:
            if isinstance(error, kind):
                return _failed(error, code)
        return _bug(error)


def say(line: str) -> None:
    """Tell the person, beside the data."""
    sys.stderr.write(f"decklog: {line}\n")
    sys.stderr.flush()


def _failed(error: Exception, code: int) -> int:
    say(" ".join(str(error).split()))
    return code


def _closed_pipe() -> int:
    """End quietly: whoever read us has enough. Python would complain when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return exit_codes.OK


def _bug(error: Exception) -> int:
    """Write what is needed to find the bug into a file, and say where it is."""
    with tempfile.NamedTemporaryFile(
        "w", prefix="decklog-report-", suffix=".txt", delete=False
    ) as report:
        report.write(f"decklog {__version__}, Python {sys.version}\n")
        report.write(f"command: {' '.join(sys.argv[1:])}\n\n")
        report.write("".join(traceback.format_exception(error)))
    say(f"a bug: {type(error).__name__}: {str(error).strip()[:200]}; report: {report.name}")
    return exit_codes.BUG
