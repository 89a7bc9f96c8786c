"""The whole of decklog in one process, on the simulated cluster, with a clock that tests move.

A `World` runs the real services through the real loop. Each service opens the store for itself, as
a process of its own would, so that a test can let one die and start another:

    with make_world(tmp_path) as world:
        world.create(make_raw_node("a"), make_raw_pod("web"))
        world.run_until_quiet()
        world.crash("scheduler")
        world.start("scheduler", name="standby")
        world.run_until_quiet()

Nothing in it depends on the machine's time: the same calls give the same log and the same ledger,
byte for byte.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Protocol

from decklog.adapters.cluster.kubelet import Kubelet
from decklog.adapters.cluster.simulated import SimulatedCluster
from decklog.adapters.cluster.volumes import VolumeBinder
from decklog.adapters.ledger.migrate import upgrade
from decklog.adapters.ledger.sql import SqlLedger
from decklog.adapters.log.embedded import EmbeddedLog
from decklog.auditor.service import AuditorService
from decklog.binder.service import BinderService, BinderSettings
from decklog.core.framework.config import SchedulerConfig
from decklog.core.framework.resolve import default_config
from decklog.core.queued_pod import Place
from decklog.ports.clock import Clock
from decklog.ports.ledger import Ledger
from decklog.ports.log import Log
from decklog.runner import IDLE_DELAY, Loop, Paced, Service
from decklog.scheduler.service import SchedulerService, SchedulerSettings
from decklog.watcher.service import WatcherService

CLUSTER: Final = "test"
SERVICES: Final = ("watcher", "scheduler", "binder", "auditor")
"""In the order in which the loop steps them: each has what the one before it wrote."""
QUIET_WITHIN: Final = timedelta(minutes=2)
"""Of the world's time: back-offs, sweeps and take-overs are over by then."""
NOW_MS: Final = 1_800_000_000_000
STRIDE_MAX: Final = timedelta(milliseconds=400)
"""How far time moves at once when nothing happens: each idle turn moves it twice as far."""
_BEAT_MS: Final = 1_000
_NOTHING: Final = timedelta(0)

Raw = dict[str, Any]


class ManualClock:
    """Time that goes on when somebody sleeps, or when the test says so."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self._started_ms = now_ms
        self._ms = 0

    def now_ms(self) -> int:
        return self._started_ms + self._ms

    def monotonic_ms(self) -> int:
        return self._ms

    def sleep(self, duration: timedelta) -> None:
        self.advance(duration)

    def advance(self, duration: timedelta) -> None:
        self._ms += duration // timedelta(milliseconds=1)


class BeatingLedger(Ledger, Protocol):
    """A ledger without a thread of its own: the world beats for whoever opened it."""

    def beat(self) -> None: ...


class Stores(Protocol):
    """Where a world keeps its truth. Each call opens it anew; whoever opened it closes it."""

    def events(self) -> Log: ...
    def decisions(self) -> Log: ...
    def ledger(self) -> BeatingLedger: ...


@dataclass(frozen=True)
class EmbeddedStores:
    """Both logs and the ledger on SQLite, in one folder."""

    folder: Path
    clock: Clock

    def __post_init__(self) -> None:
        upgrade(self.url)

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder / 'decklog.db'}"

    def events(self) -> EmbeddedLog:
        return EmbeddedLog(self.folder, f"{CLUSTER}.events", synchronous="OFF")

    def decisions(self) -> EmbeddedLog:
        return EmbeddedLog(self.folder, f"{CLUSTER}.decisions", synchronous="OFF")

    def ledger(self) -> SqlLedger:
        return SqlLedger(self.url, clock=self.clock, durable=False, beat_interval=None)


@dataclass(frozen=True)
class Opened:
    """What one service has opened."""

    events: Log
    decisions: Log
    ledger: BeatingLedger

    def close(self) -> None:
        self.ledger.close()
        self.decisions.close()
        self.events.close()


@dataclass(frozen=True)
class Running:
    kind: str
    service: Service
    opened: Opened


Disturb = Callable[[str, BeatingLedger], BeatingLedger]
"""(name of a service, its ledger) → the ledger that it gets: how a test lets calls fail."""


@dataclass(kw_only=True)
class World:
    """A cluster, a store, and the services that run now, by name."""

    stores: Stores
    clock: ManualClock
    cluster: SimulatedCluster
    config: SchedulerConfig
    disturb: Disturb = lambda _, ledger: ledger
    running: dict[str, Running] = field(default_factory=dict)
    ledger: BeatingLedger = field(init=False)
    """The test's own, to look into."""
    events: Log = field(init=False)
    loop: Loop = field(init=False)
    _machines: Sequence[Kubelet | VolumeBinder] = field(init=False)
    _beaten_at_ms: int = 0
    _stride: timedelta = IDLE_DELAY

    def __post_init__(self) -> None:
        self.ledger = self.stores.ledger()
        self.events = self.stores.events()
        self.loop = Loop([], self.clock)
        self._machines = (Kubelet(self.cluster), VolumeBinder(self.cluster))

    # -- services ------------------------------------------------------------------------------

    def start(self, kind: str, *, name: str = "") -> Service:
        """Start a service; its name is also its instance's, for leaders and claims."""
        name = name or kind
        assert name not in self.running, f"{name} is running"
        stores = self.stores
        opened = Opened(stores.events(), stores.decisions(), self.disturb(name, stores.ledger()))
        service = self._make(kind, name, opened)
        self.running[name] = Running(kind, service, opened)
        self._line_up()
        return service

    def stop(self, name: str) -> None:
        """Have the service end as SIGTERM does."""
        self.running[name].service.stop()
        self.crash(name)

    def crash(self, name: str) -> None:
        """Have the service end as SIGKILL does: it says good-bye to nobody."""
        self.running.pop(name).opened.close()
        self._line_up()

    def service(self, name: str) -> Any:
        return self.running[name].service

    @property
    def scheduler(self) -> SchedulerService:
        """The scheduler that leads; if none does, any."""
        services = [running.service for running in self.running.values()]
        found = [service for service in services if isinstance(service, SchedulerService)]
        return next((one for one in found if one.metrics.leading), found[0])

    # -- the cluster ---------------------------------------------------------------------------

    def create(self, *objects: Mapping[str, Any]) -> None:
        for raw in objects:
            self.cluster.create(raw["kind"], raw)

    def pod(self, name: str, namespace: str = "default") -> Mapping[str, Any]:
        found = self.cluster.get("Pod", name, namespace)
        assert found is not None, f"no pod {namespace}/{name}"
        return found

    def node_of(self, name: str, namespace: str = "default") -> str:
        """Return where the pod is bound; empty: nowhere."""
        return str(self.pod(name, namespace)["spec"].get("nodeName", ""))

    # -- time ----------------------------------------------------------------------------------

    def turn(self) -> bool:
        """Let everything that runs do one step; say whether anything was to do."""
        if self.clock.monotonic_ms() - self._beaten_at_ms >= _BEAT_MS:
            self._beaten_at_ms = self.clock.monotonic_ms()
            for running in self.running.values():
                running.opened.ledger.beat()
        moved = [machine.step() for machine in self._machines]
        return any([self.loop.turn(), *moved])

    def run_for(self, duration: timedelta) -> None:
        """Let the time pass, and everything in it happen."""
        end_ms = self.clock.monotonic_ms() + duration // timedelta(milliseconds=1)
        while self.clock.monotonic_ms() < end_ms:
            self._pass(is_busy=self.turn())

    def run_until_quiet(self, within: timedelta = QUIET_WITHIN) -> None:
        """Run until nobody has anything to do and nothing waits but pods that fit nowhere."""
        end_ms = self.clock.monotonic_ms() + within // timedelta(milliseconds=1)
        while True:
            is_busy = self.turn()
            self._pass(is_busy=is_busy)
            if is_busy:
                continue
            noise = self.noise()
            if not noise:
                return
            assert self.clock.monotonic_ms() < end_ms, f"not quiet: {noise}"

    def noise(self) -> str:
        """Say what is not at rest yet; nothing: all is quiet."""
        kinds = {running.kind for running in self.running.values()}
        failing = [paced.failing for paced in self.loop.services if paced.failing]
        if failing:
            return failing[0]
        checks = (self._watcher_noise, self._scheduler_noise, self._binder_noise, self._audit_noise)
        for kind, check in zip(SERVICES, checks, strict=True):
            if kind in kinds and (noise := check()):
                return noise
        return ""

    def close(self) -> None:
        for name in list(self.running):
            self.crash(name)
        self.ledger.close()
        self.events.close()

    # -- leaves --------------------------------------------------------------------------------

    def _pass(self, *, is_busy: bool) -> None:
        """Let time pass after a turn in which nothing happened."""
        if is_busy:
            self._stride = IDLE_DELAY
            return
        self.clock.sleep(self._stride)
        self._stride = min(self._stride * 2, STRIDE_MAX)

    def _line_up(self) -> None:
        """Have the loop step what runs now; whoever was there keeps its back-off."""
        paced = {id(one.service): one for one in self.loop.services}
        in_order = sorted(self.running.values(), key=lambda running: SERVICES.index(running.kind))
        self.loop.services = [
            paced.get(id(running.service)) or Paced(running.service) for running in in_order
        ]

    def _make(self, kind: str, name: str, opened: Opened) -> Service:
        if kind == "watcher":
            return WatcherService(
                cluster=CLUSTER, reader=self.cluster, log=opened.events, clock=self.clock
            )
        if kind == "scheduler":
            return self._make_scheduler(name, opened)
        if kind == "binder":
            return self._make_binder(name, opened)
        assert kind == "auditor", kind
        return AuditorService(
            cluster=CLUSTER, log=opened.events, ledger=opened.ledger, clock=self.clock
        )

    def _make_scheduler(self, name: str, opened: Opened) -> SchedulerService:
        settings = SchedulerSettings(
            cluster=CLUSTER, config=self.config, holder=name, code_version="test", patience=_NOTHING
        )
        return SchedulerService(
            settings=settings,
            events_log=opened.events,
            decisions_log=opened.decisions,
            ledger=opened.ledger,
            clock=self.clock,
        )

    def _make_binder(self, name: str, opened: Opened) -> BinderService:
        settings = BinderSettings(
            cluster=CLUSTER, owner=name, code_version="test", patience=_NOTHING
        )
        return BinderService(
            settings=settings,
            decisions_log=opened.decisions,
            events_log=opened.events,
            ledger=opened.ledger,
            writer=self.cluster,
            clock=self.clock,
        )

    def _watcher_noise(self) -> str:
        for running in self.running.values():
            if running.kind == "watcher" and (missing := running.service.readiness()["lists"]):
                return missing
        return ""

    def _scheduler_noise(self) -> str:
        scheduler = self.scheduler
        state = scheduler.state
        if not scheduler.metrics.leading:
            return "nobody leads"
        if state.position != self.events.bounds()[1]:
            return f"the leader is at position {state.position}"
        waiting = [
            queued.pod.key
            for queued in state.queue.pods()
            if queued.place not in (Place.UNSCHEDULABLE, Place.IN_FLIGHT)
        ]
        return f"{waiting[0]} is queued" if waiting else ""

    def _binder_noise(self) -> str:
        if opened := self.ledger.open_assumes(CLUSTER):
            return f"the assume of {opened[0].pod} is open"
        unfinished = self.ledger.unfinished_effects(CLUSTER, limit=1)
        return "an effect is unfinished" if unfinished else ""

    def _audit_noise(self) -> str:
        head = self.ledger.head(CLUSTER)
        cursor = self.ledger.consumer_cursor(CLUSTER, "auditor")
        if head is None or head.tick == 0:
            return ""
        is_behind = cursor is None or cursor[1] < head.tick
        return "the auditor is behind" if is_behind else ""


@contextmanager
def make_world(
    folder: Path,
    *,
    seed: int = 1,
    services: Sequence[str] = SERVICES,
    config: SchedulerConfig | None = None,
    disturb: Disturb = lambda _, ledger: ledger,
) -> Iterator[World]:
    """Make a world on an embedded store in the folder, and start the services."""
    folder.mkdir(parents=True, exist_ok=True)
    clock = ManualClock()
    world = World(
        stores=EmbeddedStores(folder, clock),
        clock=clock,
        cluster=SimulatedCluster(clock, seed=seed),
        config=config or default_config(seed=seed),
        disturb=disturb,
    )
    try:
        for kind in services:
            world.start(kind)
        yield world
    finally:
        world.close()


def make_raw_node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: str = "110",
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> Raw:
    """Return a node as the API has it, ready and with this much room."""
    room = {"cpu": cpu, "memory": memory, "pods": pods}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def make_raw_pod(
    name: str,
    *,
    namespace: str = "default",
    cpu: str = "100m",
    memory: str = "128Mi",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Raw:
    """Return a pod as the API has it, for our profile unless `schedulerName` says otherwise."""
    container = {
        "name": "app",
        "image": "registry.example.com/app:1",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
        },
        "spec": {"schedulerName": "decklog", "containers": [container], **spec},
    }
