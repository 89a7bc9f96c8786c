"""Where a database's schema stands, and whether this code may run on it.

Apart from `migrate.py`, so that a service that only asks does not load Alembic.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, inspect, text

from decklog.adapters.ledger.store import Access, exists, open_engine, translated
from decklog.adapters.ledger.tables import REVISION, REVISION_NEEDED
from decklog.core.errors import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaStatus:
    """Where a database stands, against what this code knows."""

    revision: str | None
    """None: no migration has run."""
    readable_from: str | None
    """The oldest code that may run on it."""
    code_revision: str = REVISION

    @property
    def is_current(self) -> bool:
        return self.revision == self.code_revision

    @property
    def is_newer(self) -> bool:
        """Whether a newer decklog has migrated it."""
        return self.revision is not None and self.revision > self.code_revision


def status(url: str) -> SchemaStatus:
    """Return where the database stands; it is only read, and not made if it is not there.

    Raises:
        LedgerUnavailable: the database did not answer.
    """
    if not exists(url):
        return SchemaStatus(revision=None, readable_from=None)
    engine = open_engine(url, access=Access.READER)
    try:
        with translated(url), engine.connect() as connection:
            return read_status(connection)
    finally:
        engine.dispose()


def check_schema(url: str) -> None:
    """Return if this code may run on the database.

    Raises:
        LedgerUnavailable: the database did not answer.
        Refused: its schema is too old or too new.
    """
    check(status(url))


def check(found: SchemaStatus) -> None:
    if found.revision is None:
        msg = "the ledger has no schema yet: run `decklog migrate up`"
        raise Refused(msg)
    if found.revision < REVISION_NEEDED:
        msg = (
            f"the ledger's schema is {found.revision}, and this version needs {REVISION_NEEDED}: "
            "run `decklog migrate up`"
        )
        raise Refused(msg)
    if found.is_newer and (found.readable_from or found.revision) > found.code_revision:
        msg = (
            f"the ledger's schema {found.revision} can be used from code revision "
            f"{found.readable_from} on, and this version is {found.code_revision}: upgrade decklog"
        )
        raise Refused(msg)


def read_status(connection: Connection) -> SchemaStatus:
    if not inspect(connection).has_table("alembic_version"):
        return SchemaStatus(revision=None, readable_from=None)
    row = connection.execute(
        text(
            "SELECT a.version_num, r.readable_from FROM alembic_version a"
            " LEFT JOIN schema_revision r ON r.revision = a.version_num"
        )
        if inspect(connection).has_table("schema_revision")
        else text("SELECT version_num, NULL FROM alembic_version")
    ).first()
    if row is None:  # Everything was migrated down.
        return SchemaStatus(revision=None, readable_from=None)
    return SchemaStatus(revision=row[0], readable_from=row[1])
