"""Opening somebody's history for reading: the source of every question about the past."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from decklog.adapters.clock import SystemClock
from decklog.bootstrap.commands import command_settings
from decklog.bootstrap.noted import read_note
from decklog.bootstrap.settings import Settings
from decklog.bootstrap.storage import (
    LEDGER_FILE,
    events_name,
    pg_url,
    remote_storage,
    sqlite_url,
)
from decklog.core.errors import BadConfiguration, Refused
from decklog.history.source import NotFound, Source
from decklog.ports.clock import Clock


@contextmanager
def open_source(
    data: Path | None = None, config: Path | None = None, *, stream: str | None = None
) -> Iterator[Source]:
    """Open the history that is meant, and close it at the end.

    Meant is the first of: the folder that is given; what the settings name; the running demo.
    A store may be read at any time, also while its writer runs.
    """
    settings = command_settings(config)
    folder = data or settings.store.folder
    if folder is None and settings.is_embedded:
        folder = _demo_folder()
    clock = SystemClock()
    if folder is not None:
        with _embedded(folder, clock, settings, stream) as source:
            yield source
        return
    with _remote(settings, clock, stream) as source:
        yield source


def _demo_folder() -> Path:
    note = read_note()
    if note is None or note.folder is None:
        msg = (
            "which history? Name a folder by --data, or set DECKLOG_KAFKA__BOOTSTRAP and "
            "DECKLOG_PG__HOST; no demo is running that could be meant"
        )
        raise BadConfiguration(msg)
    return note.folder


@contextmanager
def _embedded(
    folder: Path, clock: Clock, settings: Settings, stream: str | None
) -> Iterator[Source]:
    from decklog.adapters.ledger.schema import check_schema
    from decklog.adapters.ledger.sql import SqlLedger
    from decklog.adapters.log.embedded import FILE, EmbeddedLog

    if not (folder / LEDGER_FILE).exists():
        msg = f"there is no history in {str(folder)!r}: it has no {LEDGER_FILE}"
        raise NotFound(msg)
    if not (folder / FILE).exists():
        msg = f"the history in {str(folder)!r} has lost its events: it has no {FILE}"
        raise Refused(msg)
    url = sqlite_url(folder)
    check_schema(url)
    with ExitStack() as stack:
        ledger = SqlLedger(url, clock=clock, read_only=True)
        stack.callback(ledger.close)
        name = stream or _meant(ledger.streams(), settings, str(folder))
        events = EmbeddedLog(folder, events_name(name), read_only=True)
        stack.callback(events.close)
        yield Source(ledger=ledger, events=events, stream=name, clock=clock)


@contextmanager
def _remote(settings: Settings, clock: Clock, stream: str | None) -> Iterator[Source]:
    from decklog.adapters.ledger.schema import check_schema

    url = pg_url(settings.pg)
    check_schema(url)
    if stream is None and "cluster" in settings.model_fields_set:
        stream = settings.cluster
    if stream is None:
        note = read_note()
        stream = note.cluster if note is not None and note.folder is None else None
    if stream is None:
        from decklog.adapters.ledger.sql import SqlLedger

        ledger = SqlLedger(url, clock=clock, read_only=True)
        stream = _meant(ledger.streams(), settings, settings.pg.database)
        ledger.close()
    settings = settings.model_copy(update={"cluster": stream})
    with remote_storage(
        settings, clock, with_ledger=True, with_decisions=False, read_only=True
    ) as storage:
        assert storage.ledger is not None
        yield Source(ledger=storage.ledger, events=storage.events, stream=stream, clock=clock)


def _meant(names: Sequence[str], settings: Settings, where: str) -> str:
    """Return the one cluster that the ledger knows; of several, the one that the settings name."""
    if not names:
        msg = f"no history yet in {where!r}: nobody has led a stream there"
        raise NotFound(msg)
    if len(names) == 1:
        return names[0]
    if "cluster" in settings.model_fields_set and settings.cluster in names:
        return settings.cluster
    msg = f"which cluster of {where!r}? Set DECKLOG_CLUSTER to one of {', '.join(names)}"
    raise BadConfiguration(msg)
