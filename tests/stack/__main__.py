"""`python -m tests.stack prepare|up|down`: the commands behind make's targets."""

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.stack import process
from tests.stack.kafka import KafkaBroker
from tests.stack.postgres import DATABASE, PostgresServer
from tests.stack.prepare import prepare
from tests.stack.process import StackError

ROOT: Final = Path(__file__).parents[2]
STATE: Final = ROOT / ".stack" / "state.json"
ENV: Final = ROOT / ".stack" / "env"
STOP_SECONDS_MAX: Final = 30.0
USAGE: Final = 2
UNAVAILABLE: Final = 5


def main(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    commands: dict[str, Callable[[], int]] = {"prepare": run_prepare, "up": up, "down": down}
    if len(arguments) != 1 or arguments[0] not in commands:
        say(f"usage: python -m tests.stack {'|'.join(commands)}")
        return USAGE
    try:
        return commands[arguments[0]]()
    except StackError as error:
        say(str(error))
        return UNAVAILABLE


def run_prepare() -> int:
    """Fetch what is missing; what can't be had is said, and its tests are skipped."""
    for line in prepare(say):
        say(f"{line}; its tests will be skipped")
    return 0


def up() -> int:
    """Start both, unless they run already, and print the settings that lead to them."""
    if not _is_up():
        down()
        missing = prepare(say)
        if missing:
            raise StackError("; ".join(missing))
        _start()
    print(ENV.read_text(), end="")
    return 0


def down() -> int:
    """Stop what `up` started and delete its data."""
    if STATE.exists():
        for server in json.loads(STATE.read_text()):
            _stop(server)
        STATE.unlink()
    ENV.unlink(missing_ok=True)
    return 0


def _start() -> None:
    STATE.parent.mkdir(exist_ok=True)
    started: list[dict[str, object]] = []
    broker = KafkaBroker(detached=True)
    server = PostgresServer(detached=True)
    for each, by in ((broker, signal.SIGTERM), (server, signal.SIGINT)):
        each.start()
        born = process.started_at(each.pid)
        started.append(
            {"pid": each.pid, "born": born, "signal": int(by), "folder": str(each.folder)}
        )
        STATE.write_text(
            json.dumps(started)
        )  # After each, so that a failed start leaves no orphan.
    server.create_database(DATABASE)
    settings = {
        "DECKLOG_KAFKA__BOOTSTRAP": broker.bootstrap,
        "DECKLOG_PG__HOST": server.host,
        "DECKLOG_PG__PORT": str(server.port),
        "DECKLOG_PG__USER": server.user,
        "DECKLOG_PG__DATABASE": DATABASE,
    }
    ENV.write_text("".join(f"export {name}={value}\n" for name, value in settings.items()))


def _is_up() -> bool:
    if not (STATE.exists() and ENV.exists()):
        return False
    servers = json.loads(STATE.read_text())
    return all(process.started_at(server["pid"]) == server["born"] for server in servers)


def _stop(server: dict[str, object]) -> None:
    pid = int(str(server["pid"]))
    if process.started_at(pid) == server["born"]:
        by = signal.Signals(int(str(server["signal"])))
        process.stop_foreign(pid, by=by, seconds=STOP_SECONDS_MAX)
    process.remove_folder(Path(str(server["folder"])))


def say(line: str) -> None:
    """Tell the person; standard output is for the shell that evaluates it."""
    print(f"stack: {line}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
