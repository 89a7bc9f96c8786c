"""The demo in one process: a simulated cluster and every service, on an embedded store."""

import os
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, cast

from decklog.adapters.clock import SystemClock
from decklog.adapters.cluster.pods import ZONE
from decklog.auditor.service import AuditorService
from decklog.bootstrap.metrics import Metrics
from decklog.bootstrap.noted import Note, noted
from decklog.bootstrap.operations import Health
from decklog.bootstrap.outcome import Outcome, Proof, fates, prove
from decklog.bootstrap.plan import Begun, Plan, Progress, Spectator
from decklog.bootstrap.services import EMBEDDED, Parts, make_service, scheduler_config
from decklog.bootstrap.serving import operations
from decklog.bootstrap.settings import Settings
from decklog.bootstrap.stopping import Stop
from decklog.bootstrap.storage import Storage, embedded_storage
from decklog.bootstrap.world import World, make_world
from decklog.history.source import Source
from decklog.ports.clock import Clock
from decklog.runner import IDLE_DELAY, Loop, Paced
from decklog.scheduler.service import SchedulerService
from decklog.watcher.service import WatcherService

PROGRESS_MS: Final = 200
"""How often somebody who looks on is told."""
PATIENCE_MS: Final = 2_000
"""What the auditor gets to catch up when somebody stops the demo."""


def run_embedded(plan: Plan, settings: Settings, spectator: Spectator) -> Outcome:
    """Run the story to its end, or until asked to stop, and say what became of it."""
    clock = SystemClock()
    stop = Stop(clock)
    stop.on_signals()
    with ExitStack() as stack:
        folder = stack.enter_context(_folder(plan.folder))
        storage = stack.enter_context(
            embedded_storage(folder, settings.cluster, clock, is_kept=plan.folder is not None)
        )
        world = make_world(plan.story, clock, version=_version(storage, settings.cluster, clock))
        ship = _Ship(settings, storage, world, clock)
        metrics = Metrics(ship.loop.services, storage.events)
        stack.enter_context(operations(settings, Health(clock, stop, ship.loop), metrics))
        note = Note(pid=os.getpid(), cluster=settings.cluster, folder=folder)
        stack.enter_context(noted(note))
        for line in world.refused:
            spectator.note(line)
        spectator.begun(_begun(plan, settings, world))
        ship.sail(stop, spectator)
        if not plan.verifies:
            ship.wait_for_the_auditor(PATIENCE_MS if stop() else None)
        ship.moor()
        return ship.outcome(plan)


def _begun(plan: Plan, settings: Settings, world: World) -> Begun:
    where = "embedded log, temporary, removed at exit"
    if plan.folder is not None:
        where = f"embedded log in {plan.folder}"
    nodes = world.cluster.raw_objects("Node")
    zones = {node["metadata"].get("labels", {}).get(ZONE) for node in nodes} - {None}
    return Begun(
        where=where,
        cluster=settings.cluster,
        story=plan.story,
        nodes=len(nodes),
        zones=len(zones),
        example=world.example,
    )


@dataclass(slots=True)
class _Ship:
    """Cluster and services of one demo."""

    settings: Settings
    storage: Storage
    world: World
    clock: Clock
    loop: Loop = field(init=False)
    _idle: Paced = field(init=False)
    """The auditor: it decides again what was decided, when nobody has anything better to do."""
    _scheduler: SchedulerService = field(init=False)
    _watcher: WatcherService = field(init=False)
    _auditor: AuditorService = field(init=False)
    _started_ms: int | None = None
    _applied_ms: int = 0
    _shown_ms: int = 0

    def __post_init__(self) -> None:
        parts = Parts(
            cluster=self.settings.cluster,
            instance=self.settings.instance or EMBEDDED,
            config=scheduler_config(self.settings.scheduler),
            storage=self.storage,
            clock=self.clock,
            reader=self.world.cluster,
            writer=self.world.cluster,
            patience=timedelta(0),
        )
        self._watcher = cast("WatcherService", make_service("watcher", parts))
        self._scheduler = cast("SchedulerService", make_service("scheduler", parts))
        self._auditor = cast("AuditorService", make_service("auditor", parts))
        binder = make_service("binder", parts)
        services = (self.world, self._watcher, self._scheduler, binder)
        self.loop = Loop([Paced(service) for service in services], self.clock)
        self._idle = Paced(self._auditor)

    def sail(self, stop: Callable[[], bool], spectator: Spectator) -> None:
        """Turn until the story is told and all of it is applied, or until asked to stop."""
        while not stop():
            if self._turn(spectator):
                continue
            if self._is_at_rest():
                break
            self._idle_away()

    def wait_for_the_auditor(self, patience_ms: int | None) -> None:
        """Let the auditor catch up; somebody who wants to stop waits only so long."""
        started_ms = self.clock.monotonic_ms()
        while not self._is_audited():
            waited_ms = self.clock.monotonic_ms() - started_ms
            if patience_ms is not None and waited_ms > patience_ms:
                return
            if not self._idle.step(self.clock):
                self.clock.sleep(IDLE_DELAY)

    def moor(self) -> None:
        """Stop the services, in the reverse order."""
        for paced in (self._idle, *reversed(self.loop.services)):
            paced.service.stop()

    def outcome(self, plan: Plan) -> Outcome:
        ledger, stream = self.storage.ledger, self.settings.cluster
        assert ledger is not None
        head = ledger.head(stream)
        found = fates(self.world.cluster.raw_objects("Pod"), ledger, stream)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return Outcome(
            nodes=len(self.world.cluster.raw_objects("Node")),
            fates=found,
            deleted=self.world.created - sum(found.values()),
            events=self.storage.events.bounds()[1] + 1,
            ticks=head.tick if head else 0,
            decisions=head.seq if head else 0,
            open_assumes=len(ledger.open_assumes(stream)),
            proof=self._proof(plan),
            wall_seconds=max(0, self._applied_ms - (self._started_ms or 0)) / 1000,
            cpu_seconds=usage.ru_utime + usage.ru_stime,
            rss_max_bytes=usage.ru_maxrss * 1024,
            refused=plan.refused + len(self.world.refused),
        )

    def _turn(self, spectator: Spectator) -> bool:
        before = self.clock.monotonic_ms()
        busy = self.loop.turn()
        now = self.clock.monotonic_ms()
        if self._started_ms is None and self._watcher.metrics.published:
            self._started_ms = before
        if now - self._shown_ms >= PROGRESS_MS:
            self._shown_ms = now
            spectator.progress(self._progress(now))
        if busy:
            self._applied_ms = now
        return busy

    def _idle_away(self) -> None:
        """Let the auditor work, or sleep. A pod that could be tried waits only for the binder."""
        is_waited_for = self._scheduler.state.queue.peek() is not None
        if is_waited_for or not self._idle.step(self.clock):
            self.clock.sleep(IDLE_DELAY)

    def _is_at_rest(self) -> bool:
        """Whether nothing is left to do: by positions, queue and ledger, never by time."""
        state, ledger = self._scheduler.state, self.storage.ledger
        assert ledger is not None
        return (
            self.world.is_told
            and self._scheduler.metrics.leading
            and state.position == self.storage.events.bounds()[1]
            and state.queue.peek() is None
            and not state.open_assumes
            and ledger.unfinished_effects(self.settings.cluster, limit=1) == 0
            and not any(paced.error for paced in self.loop.services)
        )

    def _is_audited(self) -> bool:
        assert self.storage.ledger is not None
        head = self.storage.ledger.head(self.settings.cluster)
        return head is None or self._auditor.metrics.ticks == head.tick

    def _proof(self, plan: Plan) -> Proof:
        """Have everything decided again from its beginning, or say what the auditor found."""
        ledger, stream = self.storage.ledger, self.settings.cluster
        assert ledger is not None
        if plan.verifies and ledger.head(stream) is not None:
            events = self.storage.events
            return prove(Source(ledger=ledger, events=events, stream=stream, clock=self.clock))
        found = self._auditor.metrics
        if found.divergences or found.chain_breaks:
            return Proof(verified=False, divergences=found.divergences)
        return Proof(verified=True if self._is_audited() else None)

    def _progress(self, now: int) -> Progress:
        binder: Any = self.loop.services[-1].service
        return Progress(
            pods=self.world.created,
            bound=binder.metrics.bound,
            decisions=self._scheduler.metrics.decisions,
            position=self._scheduler.state.position,
            seconds=(now - (self._started_ms or now)) / 1000,
        )


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given
        return
    made = Path(tempfile.mkdtemp(prefix="decklog-demo-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _version(storage: Storage, stream: str, clock: Clock) -> int:
    """Return where resourceVersions go on in a store that has seen an earlier cluster."""
    assert storage.ledger is not None
    has_history = storage.ledger.head(stream) is not None or storage.events.bounds()[1] >= 0
    return clock.now_ms() if has_history else 0
