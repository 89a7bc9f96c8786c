"""`decklog run`: one service, or all of them, until somebody asks the process to stop."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Final

import structlog

from decklog.adapters.clock import SystemClock
from decklog.bootstrap.facts import version_facts
from decklog.bootstrap.logging import Audience, configure_logging, log_start
from decklog.bootstrap.metrics import Metrics
from decklog.bootstrap.operations import Health, OperationsServer, Pages
from decklog.bootstrap.services import (
    NAMES,
    NEEDS,
    PATIENCE,
    Parts,
    instance_name,
    make_service,
    scheduler_config,
)
from decklog.bootstrap.settings import Settings
from decklog.bootstrap.sources import unknown_variables
from decklog.bootstrap.starting import START_MAX, wait_for
from decklog.bootstrap.stopping import Stop
from decklog.bootstrap.storage import Storage, embedded_storage, pg_url, remote_storage
from decklog.core.errors import BadConfiguration, ClusterUnavailable, TransientError
from decklog.ports.clock import Clock
from decklog.ports.cluster import ClusterReader, ClusterWriter
from decklog.runner import Loop, Paced

ALL: Final = "all"

_log = structlog.get_logger()


def serve(name: str, settings: Settings, *, patience: timedelta = START_MAX) -> int:
    """Run the service until SIGTERM or SIGINT, and return the exit code."""
    clock = SystemClock()
    stop = Stop(clock)
    stop.on_signals()
    configure_logging(settings.log, Audience.SERVICE, cluster=settings.cluster, service=name)
    for unknown in unknown_variables():
        _log.warning("Found a variable that is not a setting", error=str(unknown))
    names = NAMES if name == ALL else (name,)
    health = Health(clock, stop)
    metrics = Metrics()
    with operations(settings, health, metrics), ExitStack() as stack:
        parts = stack.enter_context(_parts(settings, names, clock))
        try:
            wait_for(lambda: check(settings, parts), clock, stop, patience=patience)
        except TransientError:
            if not stop():
                raise
            return 0
        loop = Loop([Paced(make_service(each, parts)) for each in names], clock)
        metrics.services, metrics.events = loop.services, parts.storage.events
        health.loop = loop
        log_start(instance=parts.instance)
        run_loop(loop, stop)
        _log.info("Stopped")
    return 0


def run_loop(loop: Loop, stop: Callable[[], bool]) -> None:
    """Turn until asked to stop. What a service can't finish then, it drops: others take it up."""
    try:
        loop.run(stop)
    except TransientError as error:
        if not stop():
            raise
        _log.warning("Could not finish before stopping", error=str(error))


@contextmanager
def operations(settings: Settings, health: Health, metrics: Metrics) -> Iterator[None]:
    """Have the operations port open, unless it is set to 0."""
    given = settings.operations
    if given.port == 0:
        yield
        return
    pages = Pages(metrics=metrics.text, version=version_facts, settings=settings.masked())
    is_fixed = "port" in given.model_fields_set
    with OperationsServer(health, pages, host=given.host, port=given.port, is_fixed=is_fixed):
        yield


def check(settings: Settings, parts: Parts) -> None:
    """Ask each thing that the services need for a sign of life.

    Raises a TransientError for what may come yet, Refused where the schema does not fit.
    """
    parts.storage.events.bounds()
    if parts.storage.decisions is not None:
        parts.storage.decisions.bounds()
    if parts.storage.ledger is not None and not settings.is_embedded:
        from decklog.adapters.ledger.schema import check_schema

        check_schema(pg_url(settings.pg))
    if parts.writer is not None and not parts.writer.ready():
        msg = f"the API server at {settings.kube.server!r} does not say that it is ready"
        raise ClusterUnavailable(msg)


@contextmanager
def _parts(settings: Settings, names: Sequence[str], clock: Clock) -> Iterator[Parts]:
    with ExitStack() as stack:
        storage = stack.enter_context(_storage(settings, names, clock))
        reader = writer = None
        if any("cluster" in NEEDS[name] for name in names):
            reader, writer = stack.enter_context(_cluster(settings))
        yield Parts(
            cluster=settings.cluster,
            instance=instance_name(settings),
            config=scheduler_config(settings.scheduler) if "scheduler" in names else None,
            storage=storage,
            clock=clock,
            reader=reader,
            writer=writer,
            patience=PATIENCE if len(names) == 1 else timedelta(0),
        )


@contextmanager
def _storage(settings: Settings, names: Sequence[str], clock: Clock) -> Iterator[Storage]:
    if settings.is_embedded:
        folder = settings.store.folder
        if len(names) < len(NAMES) or folder is None:
            msg = (
                f"cannot run {', '.join(names)} without a broker and a database: set "
                "DECKLOG_KAFKA__BOOTSTRAP and DECKLOG_PG__HOST, or `run all --data FOLDER`"
            )
            raise BadConfiguration(msg)
        with embedded_storage(folder, settings.cluster, clock) as storage:
            yield storage
        return
    needs_ledger = any("ledger" in NEEDS[name] for name in names)
    needs_decisions = bool({"scheduler", "binder"}.intersection(names))
    with remote_storage(
        settings, clock, with_ledger=needs_ledger, with_decisions=needs_decisions
    ) as storage:
        yield storage


@contextmanager
def _cluster(settings: Settings) -> Iterator[tuple[ClusterReader, ClusterWriter]]:
    from decklog.adapters.cluster.http import HttpCluster

    server = settings.kube.server
    if not server.startswith(("http://", "https://")):
        msg = "no API server is set: set DECKLOG_KUBE__SERVER to its URL, as `sim serve` prints it"
        raise BadConfiguration(msg)
    cluster = HttpCluster(server)
    try:
        yield cluster, cluster
    finally:
        cluster.close()
