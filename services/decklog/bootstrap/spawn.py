"""The demo as processes: each service one, and the simulated cluster another, over real servers."""

import os
import resource
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final

from decklog.adapters.clock import SystemClock
from decklog.bootstrap.fleet import Fleet, Program
from decklog.bootstrap.noted import Note, noted
from decklog.bootstrap.outcome import Outcome, Proof, any_pending, fates, prove
from decklog.bootstrap.plan import Begun, Plan, Progress, Spectator
from decklog.bootstrap.services import NAMES
from decklog.bootstrap.settings import Settings
from decklog.bootstrap.starting import wait_for
from decklog.bootstrap.stopping import Stop
from decklog.bootstrap.storage import kafka_security, pg_url, remote_storage
from decklog.core.errors import TransientError
from decklog.history.source import Source
from decklog.objects.kinds import KIND_BY_NAME
from decklog.ports.clock import Clock
from decklog.ports.cluster import ClusterReader, RawObject
from decklog.ports.ledger import Ledger
from decklog.ports.log import Log

LOOK: Final = timedelta(milliseconds=200)
"""How often the processes and the position of the ledger are looked at."""
AUDITOR_NICENESS: Final = 10
"""Nobody waits for the auditor, so it does not take the processor from those who are waited for."""
_TRIED: Final = ("active", "backoff")
SETTLE_SECONDS_MAX: Final = 60.0
"""How long the auditor may take to catch up once everything else is at rest."""


def run_spawned(plan: Plan, settings: Settings, spectator: Spectator) -> Outcome:
    """Run the story over the Kafka and PostgreSQL of the settings, and say what became of it."""
    clock = SystemClock()
    stop = Stop(clock)
    stop.on_signals()
    if "cluster" not in settings.model_fields_set:
        settings = settings.model_copy(update={"cluster": f"demo-{clock.now_ms() // 1000:x}"})
    _prepare(settings, clock, stop)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="decklog-spawn-")))
        stack.enter_context(noted(Note(pid=os.getpid(), cluster=settings.cluster)))
        fleet = stack.enter_context(Fleet(folder, clock))
        url = _start(fleet, plan, settings, folder)
        watch = stack.enter_context(_watching(settings, url, clock, fleet))
        spectator.begun(_begun(plan, settings))
        watch.expected = _expected(plan)
        watch.follow(stop, spectator)
        if not plan.verifies:
            watch.wait_for_the_auditor(stop)
        outcome = watch.outcome(plan)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return replace(
        outcome,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        rss_max_bytes=usage.ru_maxrss * 1024,
    )


def _prepare(settings: Settings, clock: Clock, stop: Stop) -> None:
    """Bring schema and topics into being; both are left as they are where they exist."""
    from decklog.adapters.ledger.migrate import upgrade
    from decklog.adapters.log.topics import apply_topics

    def prepare() -> None:
        upgrade(pg_url(settings.pg))
        apply_topics(
            settings.kafka.bootstrap,
            settings.cluster,
            settings.kafka.replication,
            security=kafka_security(settings.kafka),
        )

    wait_for(prepare, clock, stop)


def _start(fleet: Fleet, plan: Plan, settings: Settings, folder: Path) -> str:
    """Start the cluster and the services; return the cluster's address."""
    url = f"http://127.0.0.1:{_free_port()}"
    port = url.rpartition(":")[2]
    quiet = {"DECKLOG_OPERATIONS__PORT": "0", "DECKLOG_LOG__FORMAT": "json"}
    arguments = ["sim", "serve", "--listen", f"127.0.0.1:{port}", *_story_arguments(plan, folder)]
    fleet.start(Program(name="cluster", arguments=arguments, env=quiet))
    for name in NAMES:
        env = {
            **quiet,
            "DECKLOG_CLUSTER": settings.cluster,
            "DECKLOG_INSTANCE": f"{name}-of-{settings.cluster}",
            "DECKLOG_KUBE__SERVER": url,
            "DECKLOG_OPERATIONS__HOST": "127.0.0.1",
            "DECKLOG_OPERATIONS__PORT": str(_free_port()),
            "DECKLOG_SCHEDULER__SEED": str(settings.scheduler.seed),
        }
        niceness = AUDITOR_NICENESS if name == "auditor" else 0
        fleet.start(Program(name=name, arguments=["run", name], env=env, niceness=niceness))
    return url


def _story_arguments(plan: Plan, folder: Path) -> list[str]:
    from decklog.adapters.manifests import dump_manifests

    story = plan.story
    if story.objects is not None:
        file = folder / "objects.json"
        dump_manifests(story.objects, file)
        return ["--manifests", str(file)]
    arguments = ["--seed", str(story.seed), "--nodes", str(story.node_count)]
    arguments += ["--rate", str(story.rate)]
    if story.pod_count is not None:
        arguments += ["--pods", str(story.pod_count)]
    return arguments


def _begun(plan: Plan, settings: Settings) -> Begun:
    where = f"Kafka {settings.kafka.bootstrap}, PostgreSQL {settings.pg.host}:{settings.pg.port}"
    objects = plan.story.objects
    nodes = [raw for raw in objects or () if raw.get("kind") == "Node"]
    return Begun(
        where=where,
        cluster=settings.cluster,
        story=plan.story,
        nodes=plan.story.node_count if objects is None else len(nodes),
        zones=0,
    )


def _expected(plan: Plan) -> int | None:
    if plan.story.objects is not None:
        return len([raw for raw in plan.story.objects if raw.get("kind") == "Pod"])
    return plan.story.pod_count


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _watching(settings: Settings, url: str, clock: Clock, fleet: Fleet) -> Iterator["_Watch"]:
    from decklog.adapters.cluster.http import HttpCluster

    with remote_storage(
        settings, clock, with_ledger=True, with_decisions=False, read_only=True
    ) as storage:
        cluster = HttpCluster(url)
        try:
            assert storage.ledger is not None
            ports = fleet.env_of("scheduler"), fleet.env_of("auditor")
            yield _Watch(
                stream=settings.cluster,
                events=storage.events,
                ledger=storage.ledger,
                cluster=cluster,
                fleet=fleet,
                clock=clock,
                scheduler_port=int(ports[0]["DECKLOG_OPERATIONS__PORT"]),
                auditor_port=int(ports[1]["DECKLOG_OPERATIONS__PORT"]),
            )
        finally:
            cluster.close()


@dataclass(slots=True, kw_only=True)
class _Watch:
    """Looks from outside at what the processes do: at log, ledger, API server and metrics."""

    stream: str
    events: Log
    ledger: Ledger
    cluster: ClusterReader
    fleet: Fleet
    clock: Clock
    scheduler_port: int
    auditor_port: int
    expected: int | None = None
    """Pods of the story; None: it has no end."""
    _started_ms: int | None = None
    _seen: tuple[int, int] | None = None
    """The position up to which everything is applied, and since when (ms)."""

    def follow(self, stop: Callable[[], bool], spectator: Spectator) -> None:
        """Keep the processes running until all is at rest, or until asked to stop."""
        while not stop():
            self.fleet.tend()
            try:
                if self._look(spectator):
                    break
            except TransientError:
                pass  # Somebody was just killed; the next look will tell.
            self.clock.sleep(LOOK)

    def wait_for_the_auditor(self, stop: Callable[[], bool]) -> None:
        give_up_ms = self.clock.now_ms() + int(SETTLE_SECONDS_MAX * 1000)
        while not stop() and not self._is_audited() and self.clock.now_ms() < give_up_ms:
            self.fleet.tend()
            self.clock.sleep(LOOK)

    def outcome(self, plan: Plan) -> Outcome:
        head = self.ledger.head(self.stream)
        pods = self._objects("Pod")
        found = fates(pods, self.ledger, self.stream)
        return Outcome(
            nodes=len(self._objects("Node")),
            fates=found,
            deleted=max(0, (self.expected or 0) - len(pods)),
            events=self.events.bounds()[1] + 1,
            ticks=head.tick if head else 0,
            decisions=head.seq if head else 0,
            open_assumes=len(self.ledger.open_assumes(self.stream)),
            proof=self._proof(plan),
            wall_seconds=self._wall_ms() / 1000,
            cpu_seconds=0,
            rss_max_bytes=0,
            refused=plan.refused,
            restarts=dict(self.fleet.restarts),
        )

    def _look(self, spectator: Spectator) -> bool:
        """Look once; say whether nothing is left to do. One cheap question while they work."""
        head = self.ledger.head(self.stream)
        if head is None:
            return False
        now = self.clock.now_ms()
        seconds = (now - (self._start_ms() or now)) / 1000
        spectator.progress(Progress(decisions=head.seq, position=head.cursor, seconds=seconds))
        if self._seen is None or self._seen[0] != head.cursor:
            self._seen = (head.cursor, now)
            return False
        return self.expected is not None and self._is_at_rest(head.cursor, self.expected)

    def _is_at_rest(self, cursor: int, expected: int) -> bool:
        """Whether nothing is left to do. The dearest questions come last."""
        if self.events.bounds()[1] != cursor or not self._queue_is_empty(cursor):
            return False
        if self.ledger.unfinished_effects(self.stream, limit=1):
            return False
        if self.ledger.open_assumes(self.stream):
            return False
        pods = self._objects("Pod")
        if len(pods) < expected:
            return False
        if any_pending(pods, self.ledger, self.stream):
            return False
        return self.events.bounds()[1] == cursor

    def _queue_is_empty(self, position: int) -> bool:
        """Whether the leader has applied everything and would try nobody now."""
        metrics = self._metrics(self.scheduler_port)
        waiting = [metrics.get(f'scheduler_pending_pods{{queue="{q}"}}') for q in _TRIED]
        return waiting == [0.0, 0.0] and metrics.get("decklog_applied_position") == position

    def _proof(self, plan: Plan) -> Proof:
        if plan.verifies and self.ledger.head(self.stream) is not None:
            return prove(
                Source(ledger=self.ledger, events=self.events, stream=self.stream, clock=self.clock)
            )
        divergences = len(self.ledger.divergences(self.stream, limit=1000))
        if divergences or self._metrics(self.auditor_port).get("decklog_chain_breaks_total"):
            return Proof(verified=False, divergences=divergences)
        return Proof(verified=True if self._is_audited() else None)

    def _is_audited(self) -> bool:
        try:
            head = self.ledger.head(self.stream)
            cursor = self.ledger.consumer_cursor(self.stream, "auditor")
        except TransientError:
            return False
        return head is None or (cursor is not None and cursor[1] == head.tick)

    def _objects(self, kind: str) -> Sequence[RawObject]:
        return self.cluster.list(KIND_BY_NAME[kind]).objects

    def _metrics(self, port: int) -> Mapping[str, float]:
        """Read a process's metrics; none of one that was just killed."""
        connection = HTTPConnection("127.0.0.1", port, timeout=2)
        try:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        except (OSError, HTTPException):
            return {}
        finally:
            connection.close()
        lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in lines}

    def _wall_ms(self) -> int:
        ended_ms = self._seen[1] if self._seen else self.clock.now_ms()
        return max(0, ended_ms - (self._start_ms() or ended_ms))

    def _start_ms(self) -> int | None:
        """Return when the first event was published, by its own timestamp."""
        if self._started_ms is None:
            read = self.events.read(after=-1, limit=1, timeout=timedelta(0))
            if read:
                moment = datetime.fromisoformat(read[0][1].time.replace("Z", "+00:00"))
                self._started_ms = int(moment.timestamp() * 1000)
        return self._started_ms
