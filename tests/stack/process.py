"""Operating system processes: started, waited for, stopped by pid."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

LOOPBACK: Final = "127.0.0.1"
POLL_SECONDS: Final = 0.02
LOG_TAIL_CHARACTERS: Final = 3000


class StackError(Exception):
    """Kafka or PostgreSQL could not be started; the message is one line for a person."""


class Missing(StackError):
    """Something that this machine would have to have is not installed."""


def spawn(
    argv: Sequence[str], *, log: Path, detached: bool, identity: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    """Start a server that writes to `log`, as the user that `identity` names to setpriv.

    Unless detached, the kernel kills it when the thread that started it ends: a Python that
    dies by a signal can't run its clean-up, and would leave the server behind. One setpriv
    sets both, because a later change of the user would clear the signal again.
    """
    bound = [] if detached else ["--pdeathsig", "KILL"]
    with log.open("ab") as output:
        return subprocess.Popen(
            [*setpriv([*identity, *bound]), *argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=clean_env(),
            start_new_session=detached,
        )


def setpriv(options: Sequence[str]) -> list[str]:
    """Return what to put before a command to run it with these options."""
    if not options:
        return []
    program = shutil.which("setpriv")
    if program is None:
        msg = "no setpriv: install util-linux"
        raise Missing(msg)
    return [program, *options]


def clean_env() -> dict[str, str]:
    """Return our environment without PG…: a person's own database may not be meant."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}


def wait_until(
    ready: Callable[[], bool], *, what: str, process: subprocess.Popen[bytes], seconds: float
) -> None:
    """Wait for a condition, and for no longer than the process that has to bring it about."""
    deadline = time.monotonic() + seconds
    while not ready():
        if process.poll() is not None:
            msg = f"{what} ended with exit code {process.returncode}"
            raise StackError(msg)
        if time.monotonic() > deadline:
            msg = f"{what} was not ready after {seconds:.0f} s"
            raise StackError(msg)
        time.sleep(POLL_SECONDS)


def stop(process: subprocess.Popen[bytes], *, by: signal.Signals, seconds: float) -> None:
    """Ask the process to end, wait for it, and kill it if it does not."""
    process.send_signal(by)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_ports(count: int) -> list[int]:
    """Return loopback ports that nobody listens on at this moment, all different."""
    held = [socket.socket() for _ in range(count)]
    try:
        for each in held:
            each.bind((LOOPBACK, 0))
        return [int(each.getsockname()[1]) for each in held]
    finally:
        for each in held:
            each.close()


def answers(port: int) -> bool:
    """Whether someone accepts connections on a loopback port."""
    try:
        socket.create_connection((LOOPBACK, port), timeout=1.0).close()
    except OSError:
        return False
    return True


def tail(log: Path) -> str:
    """Return the end of a log: what a person needs to see why the server did not start."""
    if not log.exists():
        return ""
    return log.read_text(errors="replace")[-LOG_TAIL_CHARACTERS:]


def started_at(pid: int) -> str | None:
    """Return the kernel's start time of a process: with the pid, it names one process for ever."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    is_zombie = fields[0] == "Z"
    return None if is_zombie else fields[19]


def stop_foreign(pid: int, *, by: signal.Signals, seconds: float) -> None:
    """Stop a process that an earlier command started, and that is not our child."""
    born = started_at(pid)
    if born is None:
        return
    os.kill(pid, by)
    deadline = time.monotonic() + seconds
    while started_at(pid) == born:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(POLL_SECONDS)


def remove_folder(folder: Path) -> None:
    """Delete a folder of ours, also when half of it is gone already."""
    shutil.rmtree(folder, ignore_errors=True)
