"""Options, hypothesis profiles, and the real broker and database, one of each for a session."""

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from tests.stack.kafka import KafkaBroker
from tests.stack.postgres import PostgresServer
from tests.stack.process import StackError

Server = TypeVar("Server", KafkaBroker, PostgresServer)
SLOW_MACHINE: Final = [HealthCheck.too_slow]  # Two shared cores say nothing about a strategy.

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile(
    "ci",
    max_examples=300,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=SLOW_MACHINE,
)
settings.register_profile(
    "nightly", max_examples=5000, deadline=None, suppress_health_check=SLOW_MACHINE
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "dev"))


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("decklog")
    group.addoption(
        "--require-services",
        action="store_true",
        help="fail, instead of skip, where Kafka or PostgreSQL can't be started",
    )
    group.addoption(
        "--update-golden",
        action="store_true",
        help="write what the program prints into tests/golden; refused in CI",
    )
    group.addoption(
        "--golden",
        type=Path,
        metavar="DIR",
        help="recorded answers of kube-scheduler (default: tests/parity/golden)",
    )
    group.addoption(
        "--openb",
        type=Path,
        metavar="DIR",
        help="the openb trace's CSV files (default: a generated workload of its size)",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--update-golden") and "CI" in os.environ:
        msg = "--update-golden is refused in CI: a changed golden file is reviewed by a person"
        raise pytest.UsageError(msg)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell that has read .stack/env must not change what the tests test."""
    for name in [name for name in os.environ if name.startswith("DECKLOG_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def kafka_broker(request: pytest.FixtureRequest) -> Iterator[KafkaBroker]:
    """The session's Kafka broker. A test that stops it starts it again."""
    with _started(request, KafkaBroker) as broker:
        yield broker


@pytest.fixture(scope="session")
def postgres_server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """The session's PostgreSQL server. A test that stops it starts it again."""
    with _started(request, PostgresServer) as server:
        yield server


@pytest.fixture
def kafka_bootstrap(kafka_broker: KafkaBroker) -> str:
    """The broker's address. It is shared: give your topics a name of their own."""
    return kafka_broker.bootstrap


@pytest.fixture
def postgres_dsn(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of an empty database that this test has for itself."""
    name = f"test_{next(_DATABASE_NUMBERS)}"
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)


@pytest.fixture(scope="session")
def golden_dir(request: pytest.FixtureRequest) -> Path:
    """Where the recorded answers of kube-scheduler are."""
    given: Path | None = request.config.getoption("--golden")
    return given or Path(__file__).parent / "parity" / "golden"


@pytest.fixture(scope="session")
def openb_dir(request: pytest.FixtureRequest) -> Path | None:
    """Where the openb trace is; None means that a generated workload takes its place."""
    given: Path | None = request.config.getoption("--openb")
    return given


_DATABASE_NUMBERS: Final = itertools.count(1)


@contextmanager
def _started(request: pytest.FixtureRequest, make: Callable[[], Server]) -> Iterator[Server]:
    """Start a server, or skip what needs it; with --require-services it has to start."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(make())
        except StackError as error:
            reason = str(error)
        else:
            yield server
            return
    if request.config.getoption("--require-services"):
        pytest.fail(f"--require-services: {reason}", pytrace=False)
    pytest.skip(reason)
