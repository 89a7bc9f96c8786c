"""Metrics: what the services count, read when somebody asks, under the names of the reference.

What kube-scheduler also measures carries its name, so that its dashboards work; our own facts are
`decklog_…`. No label is a pod or a node.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector

from decklog.core.errors import LogUnavailable
from decklog.core.queued_pod import Place
from decklog.core.rules import RULES
from decklog.ports.log import Log
from decklog.runner import Paced, Service
from decklog.version import __version__

if TYPE_CHECKING:
    from decklog.auditor.service import AuditorService
    from decklog.binder.service import BinderService
    from decklog.scheduler.service import SchedulerService
    from decklog.watcher.service import WatcherService

_QUEUE_OF: Final = {
    Place.ACTIVE: "active",
    Place.IN_FLIGHT: "active",
    Place.BACKOFF: "backoff",
    Place.ERROR_BACKOFF: "backoff",
    Place.UNSCHEDULABLE: "unschedulable",
}


@dataclass(slots=True)
class Metrics:
    """All metrics of one process."""

    services: Sequence[Paced] = ()
    events: Log | None = None
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        self.registry.register(_Collected(self))
        ProcessCollector(registry=self.registry)

    def text(self) -> bytes:
        return generate_latest(self.registry)


@dataclass(slots=True, eq=False)
class _Collected:
    """Reads the services anew for each scrape; threads of theirs may go on meanwhile."""

    _metrics: Metrics

    def collect(self) -> Iterator[Metric]:
        build = _gauge("decklog_build_info", "Version of the code.", ["version", "rules"])
        build.add_metric([__version__, str(RULES)], 1)
        yield build
        yield from _loop(self._metrics.services)
        for paced in self._metrics.services:
            yield from _service(paced.service, self._metrics.events)

    def describe(self) -> Iterator[Metric]:
        return iter(())


def _service(service: Service, events: Log | None) -> Iterator[Metric]:
    """Read a service by its name: a process imports only those that it runs."""
    match service.name:
        case "watcher":
            yield from _watcher(cast("WatcherService", service))
        case "scheduler":
            yield from _scheduler(cast("SchedulerService", service))
            yield from _lag(cast("SchedulerService", service), events)
        case "binder":
            yield from _binder(cast("BinderService", service))
        case "auditor":
            yield from _auditor(cast("AuditorService", service))
        case _:
            pass  # The simulated cluster counts nothing.


def _loop(services: Sequence[Paced]) -> Iterator[Metric]:
    failing = _gauge(
        "decklog_step_failures", "Steps in a row that failed and will be tried again.", ["service"]
    )
    for paced in services:
        failing.add_metric([paced.service.name], paced.failures)
    yield failing


def _watcher(service: "WatcherService") -> Iterator[Metric]:
    counted = service.metrics
    yield _total("decklog_events_published", "Events appended by the watcher.", counted.published)
    yield _total(
        "decklog_changes_ignored",
        "Changes that touched nothing that scheduling reads.",
        counted.unchanged,
    )
    yield _total("decklog_objects_refused", "Objects that could not be read.", counted.refused)
    yield _total("decklog_resyncs", "Kinds listed again.", counted.resyncs)


def _scheduler(service: "SchedulerService") -> Iterator[Metric]:
    counted, state = service.metrics, service.state
    queues = Counter(
        "gated" if pod.gating_plugin else _QUEUE_OF.get(pod.place, "active")
        for pod in list(state.queue.pods())
        if pod.place is not None
    )
    pending = _gauge("scheduler_pending_pods", "Pods that wait, by queue.", ["queue"])
    for queue in ("active", "backoff", "unschedulable", "gated"):
        pending.add_metric([queue], queues[queue])
    yield pending
    cache = _gauge("scheduler_cache_size", "What the cache holds, by type.", ["type"])
    cache.add_metric(["nodes"], state.cache.node_count)
    cache.add_metric(["pods"], state.cache.pod_count)
    cache.add_metric(["assumed_pods"], len(state.cache.assumed))
    yield cache
    yield _total("decklog_ticks", "Ticks committed.", counted.ticks)
    yield _total("decklog_events_applied", "Events applied.", counted.events)
    yield _total("decklog_decisions", "Decisions committed.", counted.decisions)
    yield _total("decklog_cycles", "Scheduling cycles run.", counted.cycles)
    yield _total("decklog_relay_lost", "Decisions that the sweep has to find.", counted.relay_lost)
    yield _value("decklog_open_assumes", "Assumes that nothing ended yet.", len(state.open_assumes))
    yield _value("decklog_unfinished_effects", "Effects that wait.", counted.unfinished)
    yield _value("decklog_foreign_pods", "Pods of no profile of ours.", state.foreign_pods)
    yield _value("decklog_leader", "1 on the leader.", int(counted.leading))
    yield _value("decklog_generation", "Generation of the leader.", counted.generation)
    yield _value("decklog_applied_position", "Position applied so far.", state.position)


def _lag(service: "SchedulerService", events: Log | None) -> Iterator[Metric]:
    if events is None:
        return
    try:
        last = events.bounds()[1]
    except LogUnavailable:
        return  # Better no value than an old one.
    yield _value("decklog_log_head_position", "Last position of the events log.", last)
    lag = _gauge("decklog_consumer_lag_events", "Positions not applied yet.", ["consumer"])
    lag.add_metric([service.name], max(0, last - service.state.position))
    yield lag


def _binder(service: "BinderService") -> Iterator[Metric]:
    counted = service.metrics
    outcomes = CounterMetricFamily(
        "decklog_bind_outcomes", "What became of binds.", labels=["outcome"]
    )
    for outcome in ("bound", "rejected", "unknown"):
        outcomes.add_metric([outcome], getattr(counted, outcome))
    yield outcomes
    yield _total("decklog_statuses", "Pod conditions written.", counted.statuses)
    yield _total("decklog_effects_dropped", "Overtaken by a later decision.", counted.dropped)
    yield _total("decklog_kube_events_failed", "Kubernetes Events lost.", counted.events_failed)
    yield _total("decklog_dead_letters", "Entries that nobody can read.", counted.dead_letters)


def _auditor(service: "AuditorService") -> Iterator[Metric]:
    counted = service.metrics
    yield _total("decklog_replay_mismatch", "Decisions that differ.", counted.divergences)
    yield _total("decklog_chain_breaks", "Rows that no longer fit.", counted.chain_breaks)
    yield _total("decklog_ticks_redecided", "Ticks decided again.", counted.decided)
    yield _total("decklog_ticks_not_redecided", "Ticks only chain-checked.", counted.not_decided)
    yield _value("decklog_chain_verified_seq", "Last seq audited.", counted.verified_seq)


def _gauge(name: str, text: str, labels: Sequence[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, labels=list(labels))


def _value(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)


def _total(name: str, text: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(name, text, value=value)
