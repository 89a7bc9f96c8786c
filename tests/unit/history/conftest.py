"""One recorded voyage for all tests of the read side; each test has a copy for itself."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from decklog.adapters.ledger.sql import SqlLedger
from decklog.adapters.log.embedded import EmbeddedLog
from decklog.history.source import Source
from tests.harness import CLUSTER, EmbeddedStores, ManualClock
from tests.voyage import sail


@dataclass(frozen=True)
class Store:
    """A history in a folder, which a test may read and damage."""

    folder: Path

    @contextmanager
    def source(self) -> Iterator[Source]:
        """Open it as the read commands do."""
        clock = ManualClock()
        stores = EmbeddedStores(self.folder, clock)
        ledger = SqlLedger(stores.url, clock=clock, read_only=True)
        events = EmbeddedLog(self.folder, f"{CLUSTER}.events", read_only=True)
        try:
            yield Source(ledger=ledger, events=events, stream=CLUSTER, clock=clock)
        finally:
            ledger.close()
            events.close()


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("voyage")
    sail(folder)
    return folder


@pytest.fixture
def store(recorded: Path, tmp_path: Path) -> Store:
    shutil.copytree(recorded, tmp_path / "store")
    return Store(tmp_path / "store")


@pytest.fixture
def source(store: Store) -> Iterator[Source]:
    with store.source() as opened:
        yield opened
