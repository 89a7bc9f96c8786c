"""Run migrations: one transaction for each, one migrator at a time, and nobody waits for long.

The program calls this through `decklog.adapters.ledger.migrate` and brings its connection; on the
command line the address is given as `-x url=…`.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from alembic import context
from alembic.runtime.migration import MigrationContext, MigrationInfo
from alembic.script import Script
from sqlalchemy import Connection, Engine, text

from decklog.adapters.ledger.store import Access, open_engine
from decklog.adapters.ledger.tables import metadata

MIGRATION_LOCK: Final = 0x6465636B6C6F67  # "decklog", as a number of its own in pg_locks.
LOCK_TIMEOUT: Final = "5s"
"""A migration that waits for a table makes everybody behind it wait too."""
QUEUE_TIMEOUT: Final = "120s"
"""How long one migrator waits for another; the longest migration is shorter than that."""
STATEMENT_TIMEOUT: Final = "60s"


def run() -> None:
    given = context.config.attributes.get("connection")
    if isinstance(given, Connection):
        migrate(given)
        return
    engine = given if isinstance(given, Engine) else _engine_of_the_command_line()
    with engine.connect().execution_options(begin="BEGIN IMMEDIATE") as connection:
        migrate(connection)


def migrate(connection: Connection) -> None:
    postgresql = connection.dialect.name == "postgresql"
    context.configure(
        connection=connection,
        target_metadata=metadata,
        include_object=include_object,
        transactional_ddl=True,
        transaction_per_migration=True,
        on_version_apply=note_readable_from,
    )
    if not postgresql:
        context.run_migrations()
        return
    _run_alone(connection)


def _run_alone(connection: Connection) -> None:
    connection.execute(text(f"SET lock_timeout = '{QUEUE_TIMEOUT}'"))
    connection.execute(text(f"SET statement_timeout = '{QUEUE_TIMEOUT}'"))
    connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": MIGRATION_LOCK})
    connection.execute(text(f"SET lock_timeout = '{LOCK_TIMEOUT}'"))
    connection.execute(text(f"SET statement_timeout = '{STATEMENT_TIMEOUT}'"))
    connection.commit()
    try:
        context.run_migrations()
    finally:
        connection.rollback()
        connection.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": MIGRATION_LOCK})
        connection.commit()


def include_object(
    item: object, name: str | None, kind: str, reflected: bool, compare_to: object
) -> bool:
    """Leave partitions to the function that makes them, and other programs' tables alone."""
    del compare_to
    if kind == "table" and reflected:
        return name in metadata.tables
    only_postgresql = isinstance(getattr(item, "info", None), Mapping) and bool(
        getattr(item, "info", {}).get("postgresql")
    )
    return not only_postgresql or context.get_context().dialect.name == "postgresql"


def note_readable_from(
    ctx: MigrationContext, step: MigrationInfo, heads: Collection[Any], run_args: Mapping[str, Any]
) -> None:
    """Keep, in the migration's transaction, which code may run on it; `check_schema` asks."""
    del heads, run_args
    assert ctx.connection is not None
    if step.is_upgrade:
        script = step.up_revision
        assert isinstance(script, Script)
        ctx.connection.execute(
            text("INSERT INTO schema_revision (revision, readable_from) VALUES (:new, :oldest)"),
            {"new": script.revision, "oldest": script.module.readable_from},
        )
    elif step.down_revision_ids:  # The first migration's downgrade has dropped the table.
        ctx.connection.execute(
            text("DELETE FROM schema_revision WHERE revision = :old"),
            {"old": step.up_revision_id},
        )


def _engine_of_the_command_line() -> Engine:
    url = context.get_x_argument(as_dictionary=True).get("url")
    if not isinstance(url, str):
        msg = "give the database's address: -x url=…"
        raise SystemExit(msg)
    return open_engine(url, access=Access.OWNER)


run()
