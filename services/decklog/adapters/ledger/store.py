"""How the ledger reaches its database: engines, transactions, and what an error means.

A `Store` gives connections in three ways: `read` (statements that each stand alone), `write_once`
(one statement that is its own transaction) and `write` (many statements, one transaction). On
SQLite everything that writes begins with BEGIN IMMEDIATE: a transaction that reads first and
writes later is refused at once when somebody else has written, however long it would have waited.
"""

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event, make_url
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from decklog.core.errors import LedgerDamaged, LedgerUnavailable
from decklog.ports.clock import Clock

BUSY_TIMEOUT_SECONDS: Final = 5.0
"""How long a writer of an embedded store waits for another; a tick takes milliseconds."""
BEAT_TIMEOUT_SECONDS: Final = 1.0
"""A beat that waits longer is given up: the next one is due."""
CONNECT_TIMEOUT_SECONDS: Final = 5
STATEMENT_TIMEOUT_MS: Final = 30_000
"""The longest statement, a sweep on a cold database, takes less than a second."""
LOCK_TIMEOUT_MS: Final = 10_000
IDLE_TIMEOUT_MS: Final = 5_000
"""A leader that stops in the middle of a commit may hold the head for no longer than it leads."""
NETWORK_TIMEOUT_MS: Final = 15_000
"""A connection whose peer no longer acknowledges is lost after this time, not after minutes."""
POOL_SIZE: Final = 5
CHECKPOINT_PAGES: Final = 4_000
"""16 MB of WAL. Uids hit pages at random, and a page that many ticks hit is then moved once."""
CACHE_KIB: Final = 16_384
"""The indexes of the pods of a day; the default, 2 MB, is too small for 20,000 decisions."""
SQLITE_MINIMUM: Final = (3, 35)
"""The first that has RETURNING."""

_SQLITE_UNAVAILABLE: Final = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PROTOCOL,
}
_SQLITE_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_SQLSTATE_DAMAGED: Final = {"XX001", "XX002"}
"""data_corrupted, index_corrupted."""
# Connection lost, told to go away, too busy, out of locks or memory, deadlock. Not among them: a
# full disk (53100), which waiting does not mend.
_SQLSTATE_UNAVAILABLE: Final = re.compile("08...|57...|40...|53[023]..|55P03")
_DISK_FULL: Final = "53100"


class Access(Enum):
    """What a connection is for; it decides its timeouts and what it may do."""

    WRITER = "writer"
    READER = "reader"
    OWNER = "owner"
    """Migrations: their timeouts are set by migrations/env.py."""
    HEART = "heart"


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement in the words of both databases, with `:name` for parameters.

    `instant(x)` means now and x seconds: the server's clock on PostgreSQL, which all share; the
    store's clock on SQLite, whose users share a machine.
    """

    sqlite: str
    postgresql: str


def both(text: str) -> Statement:
    return Statement(sqlite=text, postgresql=_to_postgresql(text))


def each(*, sqlite: str, postgresql: str) -> Statement:
    return Statement(sqlite=sqlite, postgresql=_to_postgresql(postgresql))


class Store:
    """One database, opened for one kind of access. Threads may share it."""

    def __init__(
        self, url: str, *, clock: Clock, access: Access = Access.WRITER, durable: bool = True
    ) -> None:
        self.clock = clock
        self._engine = open_engine(url, access=access, durable=durable, clock=clock)
        self.is_postgresql = self._engine.dialect.name == "postgresql"
        if self.is_postgresql:
            self._single = self._engine.execution_options(isolation_level="AUTOCOMMIT")
            self._writer = self._engine
        else:
            self._single = self._writer = self._engine.execution_options(begin="BEGIN IMMEDIATE")
        self._reader = self._single if self.is_postgresql else self._engine
        self._url = url

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a connection for statements that read, each by itself."""
        with translated(self._url), self._reader.connect() as connection:
            yield connection

    @contextmanager
    def write_once(self) -> Iterator[Connection]:
        """Open a connection for one statement, which is committed when it returns."""
        with translated(self._url), self._single.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a transaction: everything in it is committed, or nothing is."""
        with translated(self._url), self._writer.begin() as connection:
            yield connection

    def run(self, connection: Connection, statement: Statement, **parameters: Any) -> Any:
        """Run the statement and return the cursor's result."""
        text = statement.postgresql if self.is_postgresql else statement.sqlite
        return connection.exec_driver_sql(text, parameters)

    def fetch(
        self, connection: Connection, statement: Statement, **parameters: Any
    ) -> Sequence[Any]:
        """Run the statement and return its rows."""
        return cast("Sequence[Any]", self.run(connection, statement, **parameters).fetchall())

    def insert(
        self,
        connection: Connection,
        table: str,
        columns: Sequence[str],
        rows: Sequence[tuple[Any, ...]],
    ) -> None:
        """Insert the rows, by one statement for each."""
        mark = "%s" if self.is_postgresql else "?"
        marks = ", ".join([mark] * len(columns))
        text = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"
        connection.exec_driver_sql(text, list(rows))

    def copy(
        self,
        connection: Connection,
        table: str,
        columns: Sequence[str],
        rows: Sequence[tuple[Any, ...]],
    ) -> None:
        """Insert the rows by COPY, in the connection's transaction; PostgreSQL only."""
        text = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
        dbapi = self._engine.dialect.loaded_dbapi
        driver: Any = connection.connection.driver_connection
        try:
            with driver.cursor() as cursor, cursor.copy(text) as copy:
                for row in rows:
                    copy.write_row(row)
        except dbapi.Error as error:
            lost = self._engine.dialect.is_disconnect(error, driver, None)
            if lost:
                connection.invalidate(error)
                self._engine.dispose()  # What else is in the pool goes the same way.
            raise DBAPIError.instance(
                text, None, error, dbapi.Error, hide_parameters=True, connection_invalidated=lost
            ) from error

    def instant(self, value: Any) -> datetime | None:
        """Read a moment as the database gives it; None where SQLite's text is none."""
        if not isinstance(value, str):
            return cast("datetime | None", value)
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            return None

    def now(self) -> Any:
        """Return this machine's moment, as the database takes it."""
        moment = _moment(self.clock)
        return moment if self.is_postgresql else _to_text(moment)

    def close(self) -> None:
        self._engine.dispose()


@contextmanager
def translated(url: str) -> Iterator[None]:
    """Turn what may pass by itself into LedgerUnavailable; let everything else through.

    Damaged files have an error of their own: `verify` says where they begin to be.
    """
    try:
        yield
    except DBAPIError as error:
        if _is_damaged(error):
            raise LedgerDamaged(_message(url, error.orig)) from error
        if not _is_unavailable(error):
            raise
        raise LedgerUnavailable(_message(url, error.orig)) from error
    except PoolTimeoutError as error:
        raise LedgerUnavailable(_message(url, error)) from error


def open_engine(
    url: str,
    *,
    access: Access,
    durable: bool = True,
    clock: Clock | None = None,
) -> Engine:
    """Open the database; nothing is asked of it before the first statement."""
    if make_url(url).get_backend_name() == "sqlite":
        return _open_sqlite(url, access, durable=durable, clock=clock)
    return _open_postgresql(url, access)


def exists(url: str) -> bool:
    """Return whether there is a database; of a server this is only known when it is asked."""
    parsed = make_url(url)
    return parsed.get_backend_name() != "sqlite" or Path(parsed.database or "").exists()


def _open_postgresql(url: str, access: Access) -> Engine:
    settings = {
        "search_path": "public",
        "TimeZone": "UTC",
        "lock_timeout": str(LOCK_TIMEOUT_MS),
        "statement_timeout": str(STATEMENT_TIMEOUT_MS),
        "idle_in_transaction_session_timeout": str(IDLE_TIMEOUT_MS),
    }
    if access is Access.READER:
        settings["default_transaction_read_only"] = "on"
    if access is Access.HEART:
        settings["statement_timeout"] = str(int(BEAT_TIMEOUT_SECONDS * 1000))
    return create_engine(
        url,
        pool_size=1 if access is Access.HEART else POOL_SIZE,
        hide_parameters=True,
        use_native_hstore=False,
        connect_args={
            "application_name": f"decklog {access.value}",
            "connect_timeout": CONNECT_TIMEOUT_SECONDS,
            "tcp_user_timeout": NETWORK_TIMEOUT_MS,
            "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
        },
    )


def _open_sqlite(url: str, access: Access, *, durable: bool, clock: Clock | None) -> Engine:
    if sqlite3.sqlite_version_info < SQLITE_MINIMUM:
        msg = f"SQLite {sqlite3.sqlite_version} is too old: {SQLITE_MINIMUM} or newer is needed"
        raise RuntimeError(msg)
    path = Path(make_url(url).database or "")
    engine = create_engine(
        "sqlite://",
        creator=lambda: _connect_sqlite(path, access, durable=durable, clock=clock),
        poolclass=QueuePool,
        pool_size=1 if access is Access.HEART else POOL_SIZE,
        pool_use_lifo=True,  # The connection that was used last has the warmest cache.
        hide_parameters=True,
    )
    event.listen(engine, "begin", _begin)
    return engine


def _connect_sqlite(
    path: Path, access: Access, *, durable: bool, clock: Clock | None
) -> sqlite3.Connection:
    heart = access is Access.HEART
    connection = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?{_mode(path, access)}",
        uri=True,
        timeout=BEAT_TIMEOUT_SECONDS
        if heart
        else BUSY_TIMEOUT_SECONDS,  # Before WAL, which needs it.
        isolation_level=None,
        check_same_thread=False,
    )
    if access is Access.READER:
        connection.text_factory = _damaged_text
    else:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    # A beat need not survive a power cut, so it never waits for the disk.
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable and not heart else 'OFF'}")
    if clock is not None:
        connection.create_function("instant", 1, _instant_function(clock))
    return connection


def _damaged_text(value: bytes) -> str:
    """Read text of which a byte was changed: it is for `verify` to say so, and to say where."""
    return value.decode("utf-8", "surrogateescape")


def _mode(path: Path, access: Access) -> str:
    if access is not Access.READER:
        return "mode=rwc"
    writable = os.access(path.parent, os.W_OK)
    if not writable and not path.with_name(f"{path.name}-wal").exists():
        return "mode=ro&immutable=1"  # Reading in WAL mode makes a file, and here none can be made.
    return "mode=ro"


def _begin(connection: Connection) -> None:
    begin = connection.get_execution_options().get("begin")
    if begin is not None:
        connection.exec_driver_sql(begin)


def _instant_function(clock: Clock) -> Callable[[float | None], str | None]:
    def instant(seconds: float | None) -> str | None:
        if seconds is None:
            return None
        return _to_text(_moment(clock) + timedelta(seconds=seconds))

    return instant


def _moment(clock: Clock) -> datetime:
    return datetime.fromtimestamp(clock.now_ms() / 1000, tz=UTC)


def _to_text(moment: datetime) -> str:
    return moment.isoformat(sep=" ", timespec="milliseconds")


def _to_postgresql(text: str) -> str:
    text = re.sub(r"instant\(([^()]+)\)", r"(clock_timestamp() + make_interval(secs => \1))", text)
    # As text, an array's elements would each be escaped by two regular expressions.
    text = re.sub(r"(?<!:):([a-z_]+)(::[a-z ]+\[\])", r"%(\1)b\2", text)
    return re.sub(r"(?<!:):([a-z_]+)", r"%(\1)s", text)


def _is_damaged(error: DBAPIError) -> bool:
    if isinstance(error.orig, sqlite3.Error):
        return getattr(error.orig, "sqlite_errorcode", 0) & 0xFF in _SQLITE_DAMAGED
    return getattr(error.orig, "sqlstate", None) in _SQLSTATE_DAMAGED


def _is_unavailable(error: DBAPIError) -> bool:
    if error.connection_invalidated:
        return True
    if not isinstance(error, OperationalError):
        return False
    if isinstance(error.orig, sqlite3.Error):
        return getattr(error.orig, "sqlite_errorcode", 0) & 0xFF in _SQLITE_UNAVAILABLE
    state: str | None = getattr(error.orig, "sqlstate", None)
    if state is None:  # No connection came about at all.
        return True
    return state != _DISK_FULL and _SQLSTATE_UNAVAILABLE.fullmatch(state) is not None


def _message(url: str, error: BaseException | None) -> str:
    where = make_url(url).render_as_string(hide_password=True)
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"cannot use the ledger at {where}: {lines[0]}"
