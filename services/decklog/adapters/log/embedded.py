"""The log on SQLite: the default, and the reference for what a log promises.

All logs of an embedded store are tables of one file, `log.db` in the store's folder. The
ledger has a file of its own beside it, so that the two never wait for each other's lock.
A position is a row id: 0 for the first entry, then the last one plus 1, taken inside a
transaction that holds the write lock (BEGIN IMMEDIATE). So positions are dense, and nobody
sees n before n - 1, also with several writers.

A reader that waits is woken by an append to the same object, and looks by itself every few
milliseconds for what another process appended.
"""

import fcntl
import os
import re
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

from decklog.adapters.log.envelope import ENTRY_BYTES_MAX, check_sizes
from decklog.core.errors import BadConfiguration, LogUnavailable, PositionLost, Refused
from decklog.ports.log import Entry

FILE: Final = "log.db"
LOCK_FILE: Final = "lock"
POLL_SECONDS: Final = 0.005
"""How late a waiting reader sees an append of another process. One look costs 10 us."""
BUSY_SECONDS_MAX: Final = 5.0
"""How long a writer waits for another one. A batch of 100 takes 6 ms, with a slow disk 0.1 s."""
NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")

Synchronous = Literal["OFF", "NORMAL", "FULL"]


class EmbeddedLog:
    """One log of the embedded store in `folder`; several threads may use it.

    With `read_only` it never writes and needs no lock; the store has to exist.
    `synchronous` is SQLite's: NORMAL may lose the last appends when the power fails, OFF
    also when the system crashes, and neither when only the process dies.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        read_only: bool = False,
        synchronous: Synchronous = "FULL",
    ) -> None:
        if NAME.fullmatch(name) is None:
            msg = f"cannot name a log {name!r}: use a-z, 0-9, '.', '_' and '-'"
            raise BadConfiguration(msg)
        self._name = name
        self._table = f'"log_{name}"'
        self._appended = threading.Condition()
        self._read_lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        with self._translated("open"):
            if not read_only:
                self._writer = _open_writer(folder / FILE, synchronous)
                self._create()
            self._reader = _open_reader(folder / FILE)
        self._identity = self._read_identity(folder)

    def append(self, entries: Sequence[Entry]) -> int:
        if self._writer is None:
            msg = f"cannot append to log {self._name!r}: it is open for reading only"
            raise Refused(msg)
        check_sizes(entries, ENTRY_BYTES_MAX)
        with self._write_lock, self._translated("append to"), _transaction(self._writer) as writer:
            last = self._last(writer)
            writer.executemany(
                f"INSERT INTO {self._table} (position, key, type, id, time, source, value)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    (position, e.key, e.type, e.id, e.time, e.source, e.value)
                    for position, e in enumerate(entries, start=last + 1)
                ),
            )
        with self._appended:
            self._appended.notify_all()
        return last + len(entries)

    def read(self, *, after: int, limit: int, timeout: timedelta) -> Sequence[tuple[int, Entry]]:
        deadline = time.monotonic() + timeout.total_seconds()
        while True:
            found = self._read_now(after, limit)
            remaining = deadline - time.monotonic()
            if found or remaining <= 0:
                return found
            with self._appended:
                self._appended.wait(min(POLL_SECONDS, remaining))

    def bounds(self) -> tuple[int, int]:
        with self._read_lock, self._translated("read"):
            return self._bounds()

    def identity(self) -> str:
        return self._identity

    def close(self) -> None:
        with self._write_lock, self._read_lock:
            self._reader.close()
            if self._writer is not None:
                self._writer.close()

    def _create(self) -> None:
        """Make the log's table, and its identity in the same transaction."""
        assert self._writer is not None
        with _transaction(self._writer) as writer:
            writer.execute(
                "CREATE TABLE IF NOT EXISTS log_identity"
                " (log TEXT PRIMARY KEY, identity TEXT NOT NULL) STRICT"
            )
            writer.execute(
                f"CREATE TABLE IF NOT EXISTS {self._table}"
                " (position INTEGER PRIMARY KEY, key TEXT NOT NULL, type TEXT NOT NULL,"
                " id TEXT NOT NULL, time TEXT NOT NULL, source TEXT NOT NULL,"
                " value BLOB NOT NULL) STRICT"
            )
            writer.execute(
                "INSERT OR IGNORE INTO log_identity VALUES (?, ?)", (self._name, str(uuid.uuid4()))
            )

    def _read_identity(self, folder: Path) -> str:
        with self._translated("open"):
            tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'log_identity'"
            query = "SELECT identity FROM log_identity WHERE log = ?"
            has_any = self._reader.execute(tables).fetchone()[0] > 0
            row = self._reader.execute(query, (self._name,)).fetchone() if has_any else None
        if row is None:
            msg = f"cannot read log {self._name!r}: the store in {str(folder)!r} has none"
            raise BadConfiguration(msg)
        return str(row[0])

    def _read_now(self, after: int, limit: int) -> list[tuple[int, Entry]]:
        query = (
            f"SELECT position, key, type, id, time, value, source FROM {self._table}"
            " WHERE position > ? ORDER BY position LIMIT ?"
        )
        with self._read_lock, self._translated("read"):
            rows = self._reader.execute(query, (after, limit)).fetchall()
            # Dense from the one after: a hole was made by somebody, and is not passed in silence.
            is_lost = rows[-1][0] != after + len(rows) if rows else after > self._last(self._reader)
            if is_lost:
                first, last = self._bounds()
                raise PositionLost(after=after, first=first, last=last)
        return [(row[0], Entry(*row[1:])) for row in rows]

    def _bounds(self) -> tuple[int, int]:
        query = f"SELECT min(position) FROM {self._table}"
        first = self._reader.execute(query).fetchone()[0]
        return (0, -1) if first is None else (first, self._last(self._reader))

    def _last(self, connection: sqlite3.Connection) -> int:
        last = connection.execute(f"SELECT max(position) FROM {self._table}").fetchone()[0]
        return -1 if last is None else int(last)

    @contextmanager
    def _translated(self, doing: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            msg = f"cannot {doing} log {self._name!r}: {error}"
            raise LogUnavailable(msg) from error


class StoreLock:
    """The right to write into the embedded store in `folder`: one process has it at a time.

    The kernel frees it when the process ends, however it ends; the file stays, and means
    nothing by itself.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._file, 20, 0).decode().strip() or "unknown"
            os.close(self._file)
            msg = f"data folder {str(folder)!r} is in use by another writer, pid {holder}"
            raise Refused(msg) from error
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _open_writer(file: Path, synchronous: Synchronous) -> sqlite3.Connection:
    file.parent.mkdir(parents=True, exist_ok=True)
    connection = _connect(f"{file.absolute().as_uri()}?mode=rwc")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    return connection


def _open_reader(file: Path) -> sqlite3.Connection:
    if not file.exists():
        msg = f"no embedded store in {str(file.parent)!r}"
        raise BadConfiguration(msg)
    return _connect(f"{file.absolute().as_uri()}?mode=ro")


def _connect(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        uri, uri=True, timeout=BUSY_SECONDS_MAX, isolation_level=None, check_same_thread=False
    )
    # Again, and before anything else: the change to WAL raises "database is locked" without it.
    connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS_MAX * 1000:.0f}")
    return connection


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Hold the write lock from the start: a plain BEGIN that reads first fails under another."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
