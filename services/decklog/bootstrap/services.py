"""Services, made from ports and plain values."""

import os
import secrets
import socket
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import structlog

from decklog.bootstrap.settings import SchedulerSettings, Settings
from decklog.bootstrap.storage import Storage
from decklog.core.framework.config import SchedulerConfig
from decklog.ports.clock import Clock
from decklog.ports.cluster import ClusterReader, ClusterWriter
from decklog.ports.ledger import Ledger
from decklog.ports.log import Log
from decklog.runner import Service
from decklog.version import __version__

NAMES: Final = ("watcher", "scheduler", "binder", "auditor")
"""In the order in which one process steps them: each has what the one before it wrote."""
NEEDS: Final = {
    "watcher": ("log", "cluster"),
    "scheduler": ("log", "ledger"),
    "binder": ("log", "ledger", "cluster"),
    "auditor": ("log", "ledger"),
}
"""What a service can't work without: the checks of its readiness."""
_log = structlog.get_logger()
EMBEDDED: Final = "embedded"
PATIENCE: Final = timedelta(milliseconds=20)
"""How long a service that has its process for itself waits for the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What services are made of. Whoever needs none of a part may leave it out."""

    cluster: str
    instance: str
    config: SchedulerConfig | None
    storage: Storage
    clock: Clock
    reader: ClusterReader | None = None
    writer: ClusterWriter | None = None
    patience: timedelta = PATIENCE
    """Zero where services share the thread."""

    @property
    def ledger(self) -> Ledger:
        assert self.storage.ledger is not None
        return self.storage.ledger

    @property
    def decisions(self) -> Log:
        assert self.storage.decisions is not None
        return self.storage.decisions


def make_service(name: str, parts: Parts) -> Service:
    """Return a service by its name, importing only that one."""
    makers = {
        "watcher": _watcher,
        "scheduler": _scheduler,
        "binder": _binder,
        "auditor": _auditor,
    }
    return makers[name](parts)


def instance_name(settings: Settings) -> str:
    """Return what tells this process from all others that run now.

    A name that is set survives a restart, and what its holder had claimed is its own again. On an
    embedded store one is enough: the lock sees to it that nobody else writes there.
    """
    if settings.is_embedded:
        return settings.instance or EMBEDDED
    return settings.instance or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


def scheduler_config(settings: SchedulerSettings) -> SchedulerConfig:
    """Return the configuration that decides: of the file, or the built-in one."""
    from decklog.core.framework.resolve import default_config, resolve

    if settings.config is None:
        return default_config(seed=settings.seed)
    from decklog.adapters.manifests import read_document

    config = resolve(read_document(settings.config), seed=settings.seed)
    if not config.percentage_of_nodes_to_score:
        _log.info("Policy scores an adaptive share of the nodes", policy=str(settings.config))
    return config


def _watcher(parts: Parts) -> Service:
    from decklog.watcher.service import WatcherService

    assert parts.reader is not None
    return WatcherService(
        cluster=parts.cluster, reader=parts.reader, log=parts.storage.events, clock=parts.clock
    )


def _scheduler(parts: Parts) -> Service:
    from decklog.scheduler.service import SchedulerService, SchedulerSettings

    assert parts.config is not None
    return SchedulerService(
        settings=SchedulerSettings(
            cluster=parts.cluster,
            config=parts.config,
            holder=parts.instance,
            code_version=__version__,
            patience=parts.patience,
        ),
        events_log=parts.storage.events,
        decisions_log=parts.decisions,
        ledger=parts.ledger,
        clock=parts.clock,
    )


def _binder(parts: Parts) -> Service:
    from decklog.binder.service import BinderService, BinderSettings

    assert parts.writer is not None
    return BinderService(
        settings=BinderSettings(
            cluster=parts.cluster,
            owner=parts.instance,
            code_version=__version__,
            patience=parts.patience,
        ),
        decisions_log=parts.decisions,
        events_log=parts.storage.events,
        ledger=parts.ledger,
        writer=parts.writer,
        clock=parts.clock,
    )


def _auditor(parts: Parts) -> Service:
    from decklog.auditor.service import AuditorService

    return AuditorService(
        cluster=parts.cluster, log=parts.storage.events, ledger=parts.ledger, clock=parts.clock
    )
