"""Child processes that are kept running: one that dies is started again, and counted."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from decklog.core.errors import Refused
from decklog.ports.clock import Clock

STOP_SECONDS_MAX: Final = 10.0
"""A service finishes its step within 5 s; one that does not is killed."""
RESTARTS_MAX: Final = 20
"""A process that dies more often will not do better the next time."""
RESTART_MS: Final = 200
"""Between a death and the restart, so that a crash at the start does not burn the machine."""
TAIL_LINES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to run, under a name."""

    name: str
    arguments: Sequence[str]
    env: Mapping[str, str]
    niceness: int = 0
    """How far it stands back where the processor is short."""


@dataclass(slots=True)
class _Child:
    program: Program
    process: subprocess.Popen[bytes]
    died_ms: int | None = None


@dataclass(slots=True)
class Fleet:
    """The processes of one demo; what they print goes into files of the folder."""

    folder: Path
    clock: Clock
    restarts: Counter[str] = field(default_factory=Counter)
    _children: list[_Child] = field(default_factory=list)

    def start(self, program: Program) -> None:
        self._children.append(_Child(program, self._spawn(program)))

    def tend(self) -> None:
        """Start again what has died.

        Raises Refused for a process that dies again and again, with the last that it said.
        """
        now = self.clock.monotonic_ms()
        for child in self._children:
            if child.process.poll() is None:
                continue
            if child.died_ms is None:
                child.died_ms = now
            if now - child.died_ms < RESTART_MS:
                continue
            self.restarts[child.program.name] += 1
            if self.restarts[child.program.name] > RESTARTS_MAX:
                msg = (
                    f"{child.program.name} died {RESTARTS_MAX} times, the last time with exit "
                    f"code {child.process.returncode}: {self.last_words(child.program.name)}"
                )
                raise Refused(msg)
            child.process, child.died_ms = self._spawn(child.program), None

    def env_of(self, name: str) -> Mapping[str, str]:
        """Return the variables that the program was given."""
        return next(c.program.env for c in self._children if c.program.name == name)

    def last_words(self, name: str) -> str:
        """Return the end of what the process printed."""
        try:
            lines = self._output(name).read_text(errors="replace").splitlines()
        except OSError:
            return ""
        return " | ".join(line.strip() for line in lines[-TAIL_LINES:])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ask them all to stop, those first that were started last, and wait for each."""
        for child in reversed(self._children):
            if child.process.poll() is None:
                child.process.send_signal(signal.SIGTERM)
        for child in self._children:
            try:
                child.process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                child.process.kill()
                child.process.wait()

    def _spawn(self, program: Program) -> subprocess.Popen[bytes]:
        """Start the process in a session of its own: ^C is for us, and we tell the others."""
        with self._output(program.name).open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "decklog", *program.arguments],
                env={**os.environ, **program.env},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        if program.niceness:
            os.setpriority(os.PRIO_PROCESS, process.pid, program.niceness)
        return process

    def _output(self, name: str) -> Path:
        return self.folder / f"{name}.log"
