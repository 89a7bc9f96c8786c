"""Bring a database to the schema that this code knows, or back."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.util import CommandError

import decklog
from decklog.adapters.ledger.schema import SchemaStatus, check_schema, read_status, status
from decklog.adapters.ledger.store import Access, open_engine, translated
from decklog.core.errors import BadConfiguration, Refused

__all__ = ["SchemaStatus", "check_schema", "downgrade", "folder", "status", "upgrade"]

# Alembic keeps its context in a module: one migration at a time in this process. In the database
# migrations/env.py takes a lock.
_ALEMBIC: Final = threading.Lock()
BASE: Final = "base"
HEAD: Final = "head"


def upgrade(url: str, revision: str = HEAD) -> SchemaStatus:
    """Run the migrations that are missing, and return where the database stands.

    Raises:
        LedgerUnavailable: the database did not answer, or somebody holds a table for too long.
        Refused: a newer decklog has migrated it.
        BadConfiguration: there is no such revision.
    """
    return _migrate(url, revision, up=True)


def downgrade(url: str, revision: str = BASE) -> SchemaStatus:
    """Undo migrations down to the revision; `base` drops every table, and what is in it.

    Raises:
        LedgerUnavailable: the database did not answer, or somebody holds a table for too long.
        Refused: a newer decklog has migrated it.
        BadConfiguration: there is no such revision.
    """
    return _migrate(url, revision, up=False)


def folder() -> Path:
    """Return the migrations: inside the package if it was installed, beside it in a checkout."""
    package = Path(decklog.__file__).parent
    installed = package / "migrations"
    return installed if installed.exists() else package.parents[1] / "migrations"


def _migrate(url: str, revision: str, *, up: bool) -> SchemaStatus:
    engine = open_engine(url, access=Access.OWNER)
    try:
        with translated(url), engine.connect() as plain:
            connection = plain.execution_options(begin="BEGIN IMMEDIATE")
            found = read_status(connection)
            connection.rollback()  # Each migration begins its own transaction.
            if found.is_newer:
                msg = (
                    f"cannot migrate the ledger: its schema is {found.revision}, and this version "
                    f"knows {found.code_revision}: use the newer decklog"
                )
                raise Refused(msg)
            config = Config(folder() / "alembic.ini")
            config.attributes["connection"] = connection
            with _ALEMBIC, _one_line(revision):
                (command.upgrade if up else command.downgrade)(config, revision)
            return read_status(connection)
    finally:
        engine.dispose()


@contextmanager
def _one_line(revision: str) -> Iterator[None]:
    try:
        yield
    except CommandError as error:
        msg = f"cannot migrate to revision {revision!r}: {error}"
        raise BadConfiguration(msg) from error
