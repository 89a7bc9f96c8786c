"""What administrators do before services run: schema and topics."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from decklog.adapters.clock import SystemClock
from decklog.bootstrap.commands import command_settings
from decklog.bootstrap.durations import parse_duration
from decklog.bootstrap.settings import Settings
from decklog.bootstrap.starting import wait_for
from decklog.bootstrap.storage import kafka_security, pg_url, sqlite_url
from decklog.core.errors import BadConfiguration, Refused

T = TypeVar("T")


def migrate_up(config: Path | None, data: Path | None, wait: str) -> tuple[Any, Any]:
    """Run the missing migrations; return where the schema stood before, and stands now."""
    from decklog.adapters.ledger.migrate import status, upgrade
    from decklog.adapters.log.embedded import StoreLock

    settings, patience = command_settings(config), parse_duration(wait)
    if data is not None:
        with StoreLock(data):
            url = sqlite_url(data)
            return status(url), upgrade(url)
    url = _url(settings)
    return _patiently(patience, lambda: (status(url), upgrade(url)))


def migrate_down(config: Path | None, data: Path | None, wait: str, revision: str) -> Any:
    from decklog.adapters.ledger.migrate import downgrade
    from decklog.adapters.log.embedded import StoreLock

    settings, patience = command_settings(config), parse_duration(wait)
    if data is not None:
        with StoreLock(_existing(data)):
            return downgrade(sqlite_url(data), revision)
    url = _url(settings)
    return _patiently(patience, lambda: downgrade(url, revision))


def schema_status(config: Path | None, data: Path | None, wait: str) -> tuple[Any, str]:
    """Return where the schema stands, and why this code can't use it; empty if it can."""
    from decklog.adapters.ledger.schema import check, status

    settings, patience = command_settings(config), parse_duration(wait)
    url = sqlite_url(_existing(data)) if data is not None else _url(settings)
    found = _patiently(patience, lambda: status(url))
    try:
        check(found)
    except Refused as error:
        return found, str(error)
    return found, ""


def schema_facts(found: Any) -> dict[str, Any]:
    return {
        "schema": found.revision,
        "readableFrom": found.readable_from,
        "code": found.code_revision,
        "current": found.is_current,
    }


def apply_topics(config: Path | None, wait: str) -> Sequence[Mapping[str, Any]]:
    """Create the topics that are missing; say what is there and how it differs."""
    from decklog.adapters.log import topics

    settings, patience = command_settings(config), parse_duration(wait)
    bootstrap = _bootstrap(settings)
    security = kafka_security(settings.kafka)
    found = _patiently(
        patience,
        lambda: topics.apply_topics(
            bootstrap, settings.cluster, settings.kafka.replication, security=security
        ),
    )
    return [_result(each) for each in found]


def describe_topics(config: Path | None, wait: str) -> Sequence[Mapping[str, Any]]:
    from decklog.adapters.log import topics

    settings, patience = command_settings(config), parse_duration(wait)
    bootstrap = _bootstrap(settings)
    security = kafka_security(settings.kafka)
    found = _patiently(
        patience,
        lambda: topics.describe_topics(
            bootstrap, settings.cluster, settings.kafka.replication, security=security
        ),
    )
    return [_result(each) for each in found]


def list_topics(config: Path | None, wait: str) -> Sequence[Mapping[str, Any]]:
    """Return decklog's topics of all clusters."""
    from decklog.adapters.log import topics

    settings, patience = command_settings(config), parse_duration(wait)
    bootstrap = _bootstrap(settings)
    security = kafka_security(settings.kafka)
    found = _patiently(patience, lambda: topics.list_topics(bootstrap, security=security))
    return [
        {
            "name": topic.name,
            "partitions": topic.partitions,
            "replication": topic.replication,
            "cleanup": topic.configs.get("cleanup.policy", ""),
            "retentionMs": topic.configs.get("retention.ms", ""),
        }
        for topic in found
    ]


def _result(each: Any) -> dict[str, Any]:
    return {"name": each.name, "state": each.state.value, "drift": list(each.drift)}


def _url(settings: Settings) -> str:
    if not settings.pg.host:
        msg = "which ledger? Set DECKLOG_PG__HOST, or name an embedded store by --data"
        raise BadConfiguration(msg)
    return pg_url(settings.pg)


def _bootstrap(settings: Settings) -> str:
    if not settings.kafka.bootstrap:
        msg = "no broker is set: set DECKLOG_KAFKA__BOOTSTRAP to HOST:PORT"
        raise BadConfiguration(msg)
    return settings.kafka.bootstrap


def _existing(data: Path) -> Path:
    if not data.is_dir():
        msg = f"there is no data folder {str(data)!r}"
        raise BadConfiguration(msg)
    return data


def _patiently(patience: timedelta, attempt: Callable[[], T]) -> T:
    results: list[T] = []
    clock = SystemClock()
    wait_for(lambda: results.append(attempt()), clock, lambda: False, patience=patience)
    return results[0]
