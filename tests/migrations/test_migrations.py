"""The schema can be reached, undone, and is what tables.py says, on both databases."""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from pytest_alembic.plugin.fixtures import alembic_runner
from pytest_alembic.tests import (
    test_model_definitions_match_ddl,
    test_single_head_revision,
    test_up_down_consistency,
    test_upgrade,
)
from sqlalchemy import Engine, Table, create_engine, inspect

import decklog
from decklog.adapters.ledger import migrate
from decklog.adapters.ledger.store import Access, open_engine
from decklog.adapters.ledger.tables import REVISION, REVISION_NEEDED, metadata
from decklog.core.errors import BadConfiguration, LedgerUnavailable, Refused
from tests.contract.ledgers import Decided, Ledgers, check_history, decide

__all__ = [  # What pytest collects from here, and isn't written here.
    "alembic_runner",
    "test_model_definitions_match_ddl",
    "test_single_head_revision",
    "test_up_down_consistency",
    "test_upgrade",
]

FRESH_SECONDS_MAX: Final = 0.3
"""Every demo begins with it."""
REFERENCE: Final = Path(__file__).parents[2] / "docs" / "reference" / "ledger.md"
LOCK_SECONDS_MAX: Final = 15.0
UPGRADE: Final = (
    "import sys; from decklog.adapters.ledger import migrate;"
    "print(migrate.upgrade(sys.argv[1]).revision)"
)
REVISIONS: Final = [
    script.revision
    for script in ScriptDirectory.from_config(
        Config(migrate.folder() / "alembic.ini")
    ).walk_revisions()
]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    dsn: str = request.getfixturevalue("postgres_dsn")
    return dsn


@pytest.fixture
def alembic_config() -> Config:
    return Config(migrate.folder() / "alembic.ini")


@pytest.fixture
def alembic_engine(url: str) -> Iterator[Engine]:
    engine = open_engine(url, access=Access.OWNER)
    yield engine
    engine.dispose()


def test_the_code_knows_the_newest_migration() -> None:
    assert max(REVISIONS) == REVISION
    assert REVISION_NEEDED in REVISIONS


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_migration_says_what_it_must(revision: str) -> None:
    directory = ScriptDirectory.from_config(Config(migrate.folder() / "alembic.ini"))
    script = directory.get_revision(revision)
    assert script is not None
    assert script.module.readable_from <= revision
    assert len(script.doc) > 0
    name = Path(script.path).name
    assert name.startswith(f"{revision}_")
    assert "tables" not in Path(script.path).read_text().split('"""', 2)[2].split("def ")[0]


def test_up_and_down_and_up_again_with_history_in_it(url: str) -> None:
    assert migrate.upgrade(url).is_current
    ledgers = Ledgers(url=url, owner_url=url)
    try:
        decide(ledgers.open(), [Decided()] * 12)
        assert migrate.upgrade(url).is_current
        assert len(check_history(ledgers.open())[1]) == 12
    finally:
        ledgers.close()
    down = migrate.downgrade(url)
    assert (down.revision, down.readable_from) == (None, None)
    assert _tables(url) == {"alembic_version"}
    assert migrate.upgrade(url).is_current
    assert set(metadata.tables) < _tables(url)


def test_the_status_of_an_empty_database_is_no_revision(url: str) -> None:
    found = migrate.status(url)
    assert (found.revision, found.readable_from, found.is_current) == (None, None, False)
    with pytest.raises(Refused, match="run `decklog migrate up`"):
        migrate.check_schema(url)


def test_asking_for_the_status_makes_no_database(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    assert migrate.status(f"sqlite:///{path}").revision is None
    assert not path.exists()
    path.touch()
    assert migrate.status(f"sqlite:///{path}").revision is None


def test_a_revision_that_does_not_exist_is_said_in_one_line(url: str) -> None:
    for change in (migrate.upgrade, migrate.downgrade):
        with pytest.raises(BadConfiguration, match="cannot migrate to revision '7777': ") as raised:
            change(url, "7777")
        assert "\n" not in str(raised.value)


def test_the_status_of_a_migrated_one_is_current(url: str) -> None:
    migrate.upgrade(url)
    found = migrate.status(url)
    assert (found.revision, found.readable_from) == (REVISION, REVISION_NEEDED)
    migrate.check_schema(url)


def test_nobody_migrates_what_a_newer_decklog_has_migrated(url: str) -> None:
    migrate.upgrade(url)
    Ledgers(url=url, owner_url=url).set_revision("9999", "0001")
    migrate.check_schema(url)
    for change in (migrate.upgrade, migrate.downgrade):
        with pytest.raises(Refused, match="its schema is 9999"):
            change(url)


def test_a_fresh_embedded_store_is_ready_at_once(tmp_path: Path) -> None:
    began = time.perf_counter()
    migrate.upgrade(f"sqlite:///{tmp_path}/ledger.db")
    assert time.perf_counter() - began < FRESH_SECONDS_MAX


def test_threads_may_migrate_at_once(tmp_path: Path) -> None:
    """Alembic keeps its context in a module, so ours take turns."""
    urls = [f"sqlite:///{tmp_path}/{number}.db" for number in range(4)]
    with ThreadPoolExecutor() as pool:
        assert all(status.is_current for status in pool.map(migrate.upgrade, urls))


def test_migrators_wait_for_each_other(url: str) -> None:
    command = [sys.executable, "-c", UPGRADE, url]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate()[0] for process in running] == [f"{REVISION}\n"] * 3


@pytest.mark.postgres
def test_a_migration_waits_for_a_table_only_for_a_while(postgres_dsn: str) -> None:
    """Or everybody who comes after it waits too."""
    migrate.upgrade(postgres_dsn)
    engine = create_engine(postgres_dsn)
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("SELECT count(*) FROM decision")
            began = time.monotonic()
            with pytest.raises(LedgerUnavailable):
                migrate.downgrade(postgres_dsn)
            assert time.monotonic() - began < LOCK_SECONDS_MAX
    finally:
        engine.dispose()
    assert migrate.status(postgres_dsn).is_current


def test_the_migrations_are_found_in_an_installed_package(tmp_path: Path) -> None:
    """Laid out as the wheel is: the folder is inside the package."""
    package = tmp_path / "site" / "decklog"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(decklog.__file__).parent, package, ignore=ignore)
    shutil.copytree(migrate.folder(), package / "migrations", ignore=ignore)
    done = subprocess.run(
        [sys.executable, "-c", f"{UPGRADE}; print(migrate.folder())", f"sqlite:///{tmp_path}/x.db"],
        env={"PYTHONPATH": str(tmp_path / "site")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [REVISION, str(package / "migrations")]


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=str)
def test_the_reference_names_every_table_and_column(table: Table) -> None:
    rows = re.findall(r"^\| `(\w+)` \| ((?:`\w+` ?)+)\|", REFERENCE.read_text(), re.M)
    columns = {name: re.findall(r"\w+", named) for name, named in rows}
    assert columns[table.name] == [column.name for column in table.columns]


def _tables(url: str) -> set[str]:
    engine = open_engine(url, access=Access.READER)
    try:
        return set(inspect(engine).get_table_names())
    finally:
        engine.dispose()
