"""A migrated database for each test of the ledger."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from decklog.adapters.ledger import migrate
from decklog.adapters.ledger.sql import SqlLedger
from tests.contract.ledgers import Ledgers
from tests.stack.postgres import PostgresServer

TEMPLATE: Final = "ledger_template"
_NUMBERS: Final = itertools.count(1)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def ledgers(request: pytest.FixtureRequest) -> Ledgers:
    """The suite's place: once on each database."""
    made: Ledgers = request.getfixturevalue(f"{request.param}_ledgers")
    return made


@pytest.fixture
def ledger(ledgers: Ledgers) -> SqlLedger:
    return ledgers.open()


@pytest.fixture
def sqlite_ledgers(tmp_path: Path) -> Iterator[Ledgers]:
    url = f"sqlite:///{tmp_path}/ledger.db"
    migrate.upgrade(url)
    made = Ledgers(url=url, owner_url=url)
    yield made
    made.close()


@pytest.fixture
def postgresql_ledgers(
    postgres_server: PostgresServer, postgresql_template: str
) -> Iterator[Ledgers]:
    """Opened as the role that the services have, which owns nothing."""
    name = f"ledger_{next(_NUMBERS)}"
    owner_url = postgres_server.create_database(name, template=postgresql_template)
    made = Ledgers(
        url=postgres_server.dsn(name, user="decklog_writer"),
        owner_url=owner_url.replace("postgresql:", "postgresql+psycopg:"),
    )
    yield made
    made.close()
    postgres_server.drop_database(name)


@pytest.fixture(scope="session")
def postgresql_template(postgres_server: PostgresServer) -> str:
    """Migrate once; a copy takes a tenth of the time."""
    migrate.upgrade(postgres_server.create_database(TEMPLATE))
    return TEMPLATE
