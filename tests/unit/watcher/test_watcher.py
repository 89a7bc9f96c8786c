from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from decklog.adapters.clock import SystemClock
from decklog.adapters.cluster.simulated import SimulatedCluster
from decklog.adapters.log.embedded import EmbeddedLog
from decklog.core.errors import LogUnavailable
from decklog.events.digests import Digests
from decklog.events.facts import (
    Event,
    ObjectDeleted,
    PodUpserted,
    ResyncFinished,
    ResyncRequested,
    ResyncStarted,
)
from decklog.objects.kinds import KINDS, Kind
from decklog.ports.cluster import KindNotServed, Listing, PatchPodStatus, Watch
from decklog.ports.entries import event_entry, read_records
from decklog.watcher import service
from decklog.watcher.service import REOPEN_MS, RESYNC_MS_MIN, WatcherService


class SteppedClock(SystemClock):
    """Real wall time, and a monotonic time that tests move."""

    def __init__(self) -> None:
        super().__init__()
        self.monotonic = 0

    def monotonic_ms(self) -> int:
        return self.monotonic


class World:
    def __init__(self, folder: Path) -> None:
        self.clock = SteppedClock()
        self.cluster = SimulatedCluster(self.clock)
        self.log = EmbeddedLog(folder, "events", synchronous="OFF")
        self.watcher = self.new_watcher()
        self.read_to = -1

    def new_watcher(self) -> WatcherService:
        return WatcherService("test", self.cluster, self.log, self.clock)

    def settle(self) -> list[Event]:
        """Step until nothing is left to do; return the new events."""
        while self.watcher.step():
            pass
        return self.news()

    def news(self) -> list[Event]:
        read = read_records(self.log, after=self.read_to, limit=10_000, timeout=timedelta(0))
        if read:
            self.read_to = read[-1][0].position
        return [record.fact for record, _ in read]

    def wrong(self) -> list[str]:
        """Fold the whole log and return what its resyncs show wrong."""
        digests, found = Digests(), []
        for record, entry in read_records(self.log, after=-1, limit=100_000, timeout=timedelta(0)):
            finding = digests.apply(record.fact, entry.key, entry.value)
            if finding is not None:
                found.append(finding)
        return found


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.watcher.stop()
    made.log.close()


def raw_pod(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "annotations": {"secret": "s3cret"}},
        "spec": {
            "schedulerName": "decklog",
            "containers": [{"name": "c", "image": "i", "env": [{"name": "A", "value": "s3cret"}]}],
            **spec,
        },
    }


def pods(events: list[Event]) -> list[str]:
    return [event.pod.name for event in events if isinstance(event, PodUpserted)]


def test_a_start_lists_every_kind_between_its_markers(world: World) -> None:
    world.cluster.create("Pod", raw_pod("a"))
    events = world.settle()
    started = [event.kind for event in events if isinstance(event, ResyncStarted)]
    finished = [event.kind for event in events if isinstance(event, ResyncFinished)]
    assert started == finished == [kind.name for kind in KINDS]
    assert pods(events) == ["a"]
    assert world.wrong() == []


def test_nothing_private_reaches_the_log(world: World) -> None:
    world.cluster.create("Pod", raw_pod("a"))
    world.settle()
    entries = world.log.read(after=-1, limit=1_000, timeout=timedelta(0))
    assert not any(b"s3cret" in entry.value for _, entry in entries)


def test_a_change_that_scheduling_does_not_read_is_not_written(world: World) -> None:
    made = world.cluster.create("Pod", raw_pod("a"))
    world.settle()
    condition = {"type": "Ready", "status": "True"}
    world.cluster.perform(
        [
            PatchPodStatus(
                namespace="shop",
                name="a",
                uid=made["metadata"]["uid"],
                patch={"conditions": [condition]},
            )
        ]
    )
    assert world.settle() == []
    assert world.watcher.metrics.unchanged == 1


def test_a_delete_is_an_event_with_a_body(world: World) -> None:
    made = world.cluster.create("Pod", raw_pod("a"))
    world.settle()
    world.cluster.delete("Pod", "a", namespace="shop")
    deleted = [event for event in world.settle() if isinstance(event, ObjectDeleted)]
    assert [(event.kind, event.name, event.uid) for event in deleted] == [
        ("Pod", "a", made["metadata"]["uid"])
    ]


def test_after_410_only_what_differs_is_told(world: World) -> None:
    for name in ("a", "b", "c"):
        world.cluster.create("Pod", raw_pod(name))
    world.settle()
    world.clock.monotonic += REOPEN_MS
    world.cluster.create("Namespace", {"metadata": {"name": "later"}})
    world.cluster.restart()
    world.cluster.delete("Pod", "a", namespace="shop")
    world.cluster.create("Pod", raw_pod("d"))
    events = world.settle()
    gone = [event for event in events if isinstance(event, ObjectDeleted)]
    assert pods(events) == ["d"]
    assert [(event.name, event.final_state_unknown) for event in gone] == [("a", True)]
    assert world.wrong() == []


def test_a_new_watcher_tells_the_whole_list_and_readers_drop_what_it_lacks(world: World) -> None:
    for name in ("a", "b"):
        world.cluster.create("Pod", raw_pod(name))
    world.settle()
    world.watcher.stop()
    world.cluster.delete("Pod", "a", namespace="shop")
    world.watcher = world.new_watcher()
    events = world.settle()
    assert pods(events) == ["b"]
    assert world.wrong() == []


def test_a_resync_that_a_reader_asks_for_is_answered(world: World) -> None:
    world.cluster.create("Pod", raw_pod("a"))
    world.settle()
    request = ResyncRequested(kind="Pod", reason="test")
    world.log.append([event_entry(request, cluster="test", time_ms=0)])
    world.clock.monotonic += RESYNC_MS_MIN
    world.watcher.step()
    assert pods(world.settle()) == ["a"]


def test_a_resync_asked_for_too_soon_is_answered_when_it_may_be(world: World) -> None:
    """A reader asks once: what a list itself shows to be wrong must not be forgotten."""
    world.cluster.create("Pod", raw_pod("a"))
    world.settle()
    world.clock.monotonic += 1_000
    ask(world, "Pod")
    assert pods(world.settle()) == []
    world.clock.monotonic += RESYNC_MS_MIN - 2_000
    assert pods(world.settle()) == []
    world.clock.monotonic += 1_000
    assert pods(world.settle()) == ["a"]
    world.clock.monotonic += 10 * RESYNC_MS_MIN
    assert pods(world.settle()) == []


def test_a_resync_of_a_kind_that_nobody_watches_is_nobodys_to_answer(world: World) -> None:
    world.settle()
    world.clock.monotonic += RESYNC_MS_MIN
    ask(world, "Secret")
    world.settle()
    world.clock.monotonic += RESYNC_MS_MIN
    assert [event for event in world.settle() if isinstance(event, ResyncStarted)] == []


def ask(world: World, kind: str) -> None:
    request = ResyncRequested(kind=kind, reason="test")
    world.log.append([event_entry(request, cluster="test", time_ms=0)])
    world.read_to = world.log.bounds()[1]


def test_a_reader_that_asks_again_and_again_does_not_flood_the_log(world: World) -> None:
    world.settle()
    request = event_entry(ResyncRequested(kind="Pod", reason="x"), cluster="test", time_ms=0)
    world.clock.monotonic += RESYNC_MS_MIN
    for _ in range(10):
        world.log.append([request])
        world.clock.monotonic += 250
        world.watcher.step()
    started = [event for event in world.settle() if isinstance(event, ResyncStarted)]
    assert len(started) == 1


class FailingLog:
    """Fails every other append, before or after it was done."""

    def __init__(self, log: EmbeddedLog, *, after: bool) -> None:
        self._log = log
        self._after = after
        self._calls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def append(self, entries: Any) -> int:
        self._calls += 1
        fails = self._calls % 2 == 1
        if fails and not self._after:
            msg = "lost before"
            raise LogUnavailable(msg)
        position = self._log.append(entries)
        if fails:
            msg = "lost after"
            raise LogUnavailable(msg)
        return position


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_append_that_fails_loses_nothing(world: World, after: bool) -> None:
    world.watcher = WatcherService(
        "test", world.cluster, FailingLog(world.log, after=after), world.clock
    )
    for name in ("a", "b"):
        world.cluster.create("Pod", raw_pod(name))
    quiet = 0
    while quiet < 2:
        try:
            quiet = 0 if world.watcher.step() else quiet + 1
        except LogUnavailable:
            quiet = 0
    assert set(pods(world.news())) == {"a", "b"}
    assert world.wrong() == []


def test_an_object_that_cannot_be_read_is_counted_and_the_rest_is_told(world: World) -> None:
    bad = raw_pod("bad")
    bad["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1x"}}
    world.cluster.overwrite("Pod", bad)
    world.cluster.create("Pod", raw_pod("good"))
    assert pods(world.settle()) == ["good"]
    assert world.watcher.metrics.refused == 1


def test_the_end_of_an_object_that_cannot_be_read_is_told(world: World) -> None:
    made = world.cluster.create("Pod", raw_pod("a"))
    world.settle()
    bad = raw_pod("a")
    bad["metadata"] = {**made["metadata"]}
    bad["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1x"}}
    world.cluster.overwrite("Pod", bad)
    assert world.settle() == []
    world.cluster.delete("Pod", "a", namespace="shop")
    [gone] = world.settle()
    assert isinstance(gone, ObjectDeleted)
    assert gone.uid == made["metadata"]["uid"]


def test_the_end_of_what_was_never_told_is_not_told(world: World) -> None:
    world.settle()
    bad = raw_pod("bad")
    bad["metadata"]["uid"] = "uid-bad"
    bad["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1x"}}
    world.cluster.overwrite("Pod", bad)
    world.cluster.delete("Pod", "bad", namespace="shop")
    assert world.settle() == []


class WithoutKind:
    """An API server that does not serve a kind, or forbids it."""

    def __init__(self, cluster: SimulatedCluster, kind: str) -> None:
        self._cluster = cluster
        self._kind = kind
        self.watched: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def list(self, kind: Kind) -> Listing:
        if kind.name == self._kind:
            msg = "no such kind"
            raise KindNotServed(msg)
        return self._cluster.list(kind)

    def watch(self, kind: Kind, *, resource_version: str) -> Watch:
        self.watched.append(kind.name)
        return self._cluster.watch(kind, resource_version=resource_version)


def test_a_kind_that_is_not_served_is_taken_as_empty_and_not_watched(world: World) -> None:
    reader = WithoutKind(world.cluster, "CSIStorageCapacity")
    world.watcher = WatcherService("test", reader, world.log, world.clock)
    finished = [event for event in world.settle() if isinstance(event, ResyncFinished)]
    assert {event.kind: event.count for event in finished}["CSIStorageCapacity"] == 0
    assert world.watcher.readiness() == {"lists": ""}
    assert sorted({*reader.watched, "CSIStorageCapacity"}) == sorted(kind.name for kind in KINDS)
    assert "CSIStorageCapacity" not in reader.watched


def test_what_is_listed_is_appended_in_batches(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "APPEND_MAX", 3)
    for number in range(10):
        world.cluster.create("Pod", raw_pod(f"pod-{number}"))
    assert len(pods(world.settle())) == 10
    assert world.wrong() == []
    assert world.watcher.metrics.published == world.log.bounds()[1] + 1


def test_readiness_names_the_kinds_that_are_not_listed_yet(world: World) -> None:
    assert world.watcher.readiness()["lists"].startswith("not listed yet: ")
    world.settle()
    assert world.watcher.readiness() == {"lists": ""}


def test_a_watch_that_ends_goes_on_from_the_last_version_seen(world: World) -> None:
    world.settle()
    world.clock.monotonic += REOPEN_MS
    world.cluster.create("Pod", raw_pod("a"))
    world.cluster.end_watches()
    world.cluster.create("Pod", raw_pod("b"))
    events = world.settle()
    world.clock.monotonic += REOPEN_MS
    events += world.settle()
    assert pods(events) == ["a", "b"]
    assert not any(isinstance(event, ResyncStarted) for event in events)


def test_an_object_that_no_log_takes_is_refused_and_the_rest_is_told(world: World) -> None:
    selector = {f"key-{number:06}": "x" * 60 for number in range(15_000)}
    world.cluster.create("Pod", raw_pod("huge", nodeSelector=selector))
    world.cluster.create("Pod", raw_pod("good"))
    assert pods(world.settle()) == ["good"]
    assert world.watcher.metrics.refused == 1
    assert world.wrong() == []
