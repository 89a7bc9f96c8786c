"""One PostgreSQL server: found on this machine, run as another user, in a temporary folder."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import psycopg
from psycopg import sql

from tests.stack import process
from tests.stack.process import LOOPBACK, Missing, StackError

OWNER: Final = "decklog_owner"
DATABASE: Final = "decklog"
START_SECONDS_MAX: Final = 30.0  # 0.1 s is usual; recovery after a kill took up to 4 s.
STOP_SECONDS_MAX: Final = 15.0
DEBIAN: Final = Path("/usr/lib/postgresql")
READY_LINE: Final = 7  # The eighth line of postmaster.pid is the server's state.
# The path of the unix socket has to fit into 107 bytes, and the server's user has to reach it.
SHORT: Final = "/tmp"
# A killed server loses nothing that the operating system has: tests needn't wait for the disk.
FAST: Final = ("-c", "fsync=off")


class PostgresServer:
    """A server in a temporary folder, on a port that it keeps over restarts.

    Everyone on loopback is trusted, under any role. `user` owns what the migrations make.
    """

    host = LOOPBACK
    user = OWNER

    def __init__(self, *, detached: bool = False) -> None:
        self._detached = detached
        self._process: subprocess.Popen[bytes] | None = None
        self._bin = find_binaries()
        self._run_as = _unprivileged()
        (self.port,) = process.free_ports(1)
        self.folder = Path(tempfile.mkdtemp(prefix="decklog-pg-", dir=SHORT))
        self.log = self.folder / "server.log"
        self._data = self.folder / "data"

    @property
    def pid(self) -> int:
        if self._process is None:
            msg = "the PostgreSQL server is not running"
            raise StackError(msg)
        return self._process.pid

    def start(self) -> Self:
        """Start the server and wait until it takes connections."""
        if not self._data.exists():
            self._initialise()
        self._process = process.spawn(
            self._server(), log=self.log, detached=self._detached, identity=self._identity()
        )
        try:
            process.wait_until(
                self._is_ready, what="PostgreSQL", process=self._process, seconds=START_SECONDS_MAX
            )
        except StackError as error:
            self.kill()
            msg = f"{error}; its log ends:\n{process.tail(self.log)}"
            raise StackError(msg) from error
        return self

    def stop(self) -> None:
        """Shut the server down; open connections are closed."""
        if self._process is not None:
            process.stop(self._process, by=signal.SIGINT, seconds=STOP_SECONDS_MAX)
            self._process = None

    def kill(self) -> None:
        """Kill the server with SIGKILL, as a crash would; its children follow by themselves."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        """Start the server again over the same data: after `kill()`, or after stopping it here."""
        self.stop()
        self.start()

    def remove(self) -> None:
        """Stop the server and delete its data."""
        self.stop()
        process.remove_folder(self.folder)

    def dsn(self, database: str, *, user: str = OWNER) -> str:
        """Return the address of a database, as libpq and SQLAlchemy both read it."""
        return f"postgresql://{user}@{self.host}:{self.port}/{database}"

    def create_database(self, name: str, *, template: str = "template0") -> str:
        """Create a database as a copy of another one, and return its address."""
        self._maintain(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
        return self.dsn(name)

    def drop_database(self, name: str) -> None:
        """Drop a database; whoever is still connected is disconnected."""
        self._maintain(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )

    def __enter__(self) -> Self:
        try:
            return self.start()
        except StackError:
            self.remove()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()

    def _maintain(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(statement)

    def _initialise(self) -> None:
        if self._run_as is not None:
            os.chown(self.folder, self._run_as.pw_uid, self._run_as.pw_gid)
        options = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        done = subprocess.run(
            [
                *process.setpriv(self._identity()),
                self._bin / "initdb",
                "-D",
                self._data,
                "-U",
                self.user,
                *options,
            ],
            capture_output=True,
            text=True,
            check=False,
            env=process.clean_env(),
        )
        if done.returncode != 0:
            msg = f"initdb failed: {done.stdout}{done.stderr}"
            raise StackError(msg)

    def _server(self) -> list[str]:
        listen = [
            "-c",
            f"listen_addresses={self.host}",
            "-p",
            str(self.port),
            "-k",
            str(self.folder),
        ]
        durability = () if self._detached else FAST
        return [str(self._bin / "postgres"), "-D", str(self._data), *listen, *durability]

    def _identity(self) -> list[str]:
        """The server refuses to run as root."""
        if self._run_as is None:
            return []
        ids = [f"--reuid={self._run_as.pw_uid}", f"--regid={self._run_as.pw_gid}"]
        return [*ids, "--clear-groups"]

    def _is_ready(self) -> bool:
        """Whether postmaster.pid says so, in a file of our process: a killed server leaves one."""
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return (
            len(lines) > READY_LINE
            and lines[READY_LINE].strip() == "ready"
            and int(lines[0]) == self.pid
        )


def find_binaries() -> Path:
    """Return the folder of `initdb` and `postgres`: the one on the path, or Debian's newest.

    Raises:
        Missing: there is none on this machine.
    """
    on_path = shutil.which("initdb")
    if on_path is not None:
        return Path(on_path).resolve().parent
    packaged = [folder for folder in DEBIAN.glob("*/bin") if (folder / "initdb").exists()]
    if not packaged:
        msg = "no PostgreSQL server: run `apt-get install postgresql` as root"
        raise Missing(msg)
    return max(packaged, key=lambda folder: float(folder.parent.name))


def _unprivileged() -> pwd.struct_passwd | None:
    """Return the user to run the server as, if we are root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    msg = "neither user postgres nor user nobody exists, and PostgreSQL refuses root"
    raise Missing(msg)
