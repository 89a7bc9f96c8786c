"""Logs and ledger, opened for one kind of use: an embedded store, or Kafka and PostgreSQL."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from decklog.bootstrap.settings import KafkaSettings, PgSettings, Settings
from decklog.core.errors import BadConfiguration
from decklog.ports.clock import Clock
from decklog.ports.ledger import Ledger
from decklog.ports.log import Log

LEDGER_FILE: Final = "decklog.db"


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """What services keep their truth in. A part that was not asked for is None."""

    events: Log
    decisions: Log | None = None
    ledger: Ledger | None = None


@contextmanager
def embedded_storage(
    folder: Path, cluster: str, clock: Clock, *, is_kept: bool = True
) -> Iterator[Storage]:
    """Open the store in the folder for writing, and bring its schema up to date.

    One process has it at a time. A store that is not kept never waits for the disk.
    """
    from decklog.adapters.ledger.schema import status
    from decklog.adapters.ledger.sql import SqlLedger
    from decklog.adapters.log.embedded import EmbeddedLog, StoreLock

    url = sqlite_url(folder)
    synchronous: Any = "FULL" if is_kept else "OFF"
    with ExitStack() as stack:
        stack.enter_context(_made(folder, StoreLock))
        if not (folder / LEDGER_FILE).exists() or not status(url).is_current:
            from decklog.adapters.ledger.migrate import upgrade

            upgrade(url)
        events = EmbeddedLog(folder, events_name(cluster), synchronous=synchronous)
        stack.callback(events.close)
        decisions = EmbeddedLog(folder, decisions_name(cluster), synchronous=synchronous)
        stack.callback(decisions.close)
        ledger = SqlLedger(url, clock=clock, durable=is_kept)
        stack.callback(ledger.close)
        yield Storage(events=events, decisions=decisions, ledger=ledger)


@contextmanager
def remote_storage(
    settings: Settings,
    clock: Clock,
    *,
    with_ledger: bool,
    with_decisions: bool,
    read_only: bool = False,
) -> Iterator[Storage]:
    """Make the clients of Kafka and PostgreSQL; they connect when they are first used."""
    from decklog.adapters.log.kafka.log import KafkaLog

    if not settings.kafka.bootstrap:
        msg = "no broker is set: set DECKLOG_KAFKA__BOOTSTRAP to HOST:PORT"
        raise BadConfiguration(msg)
    with ExitStack() as stack:
        security = kafka_security(settings.kafka)

        def log(name: str) -> Log:
            opened = KafkaLog(settings.kafka.bootstrap, name, security=security)
            stack.callback(opened.close)
            return opened

        ledger: Ledger | None = None
        if with_ledger:
            from decklog.adapters.ledger.sql import SqlLedger

            ledger = SqlLedger(pg_url(settings.pg), clock=clock, read_only=read_only)
            stack.callback(ledger.close)
        decisions = log(topic_name(settings.cluster, "decisions")) if with_decisions else None
        yield Storage(
            events=log(topic_name(settings.cluster, "events")), decisions=decisions, ledger=ledger
        )


def events_name(cluster: str) -> str:
    """Return the name of a cluster's events log in an embedded store."""
    return f"{cluster}.events"


def decisions_name(cluster: str) -> str:
    return f"{cluster}.decisions"


def topic_name(cluster: str, content: str) -> str:
    from decklog.adapters.log.topics import DECISIONS, EVENTS

    return {"events": EVENTS, "decisions": DECISIONS}[content].name(cluster)


def sqlite_url(folder: Path) -> str:
    return f"sqlite:///{(folder / LEDGER_FILE).absolute()}"


def pg_url(settings: PgSettings) -> str:
    if not settings.host:
        msg = "no database is set: set DECKLOG_PG__HOST, and DECKLOG_PG__USER where it differs"
        raise BadConfiguration(msg)
    password = settings.password.get_secret_value()
    who = quote(settings.user, safe="") + (f":{quote(password, safe='')}" if password else "")
    is_socket = settings.host.startswith("/")
    given = {"sslmode": settings.sslmode, "host": settings.host if is_socket else ""}
    query = urlencode({name: value for name, value in given.items() if value})
    host = "" if is_socket else settings.host
    database = quote(settings.database, safe="")
    url = f"postgresql+psycopg://{who}@{host}:{settings.port}/{database}"
    return f"{url}?{query}" if query else url


def kafka_security(settings: KafkaSettings) -> Mapping[str, Any]:
    """Return kafka-python's own settings for TLS and SASL, where any are set."""
    if settings.security_protocol == "PLAINTEXT":
        return {}
    given = {
        "security_protocol": settings.security_protocol,
        "sasl_mechanism": settings.sasl_mechanism,
        "sasl_plain_username": settings.sasl_username,
        "sasl_plain_password": settings.sasl_password.get_secret_value(),
        "ssl_cafile": settings.ssl_cafile,
    }
    return {name: value for name, value in given.items() if value}


@contextmanager
def _made(folder: Path, make: Callable[[Path], Any]) -> Iterator[None]:
    """Take the folder's lock; a folder that can't be made is a wrong setting."""
    try:
        lock = make(folder)
    except OSError as error:
        msg = f"cannot use {str(folder)!r} as data folder: {error.strerror}"
        raise BadConfiguration(msg) from error
    with lock:
        yield
