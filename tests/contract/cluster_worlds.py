"""A simulated cluster with a hand-driven clock, reached in process or over HTTP."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from decklog.adapters.cluster.faults import Fault
from decklog.adapters.cluster.http import HttpCluster
from decklog.adapters.cluster.kubelet import Kubelet
from decklog.adapters.cluster.requests import ApiRequest
from decklog.adapters.cluster.serve import ClusterServer
from decklog.adapters.cluster.simulated import SimulatedCluster
from decklog.adapters.cluster.store import Limits
from decklog.objects.kinds import KIND_BY_NAME
from decklog.ports.cluster import (
    Answer,
    BindPod,
    Call,
    RawObject,
    Watch,
    WatchEvent,
)

Raw = dict[str, Any]

POD: Final = KIND_BY_NAME["Pod"]
NODE: Final = KIND_BY_NAME["Node"]
NOW_MS: Final = 1_800_000_000_000
NOW: Final = "2027-01-15T08:00:00Z"
WAIT: Final = timedelta(seconds=10)
"""How long a test waits for what must come; long, because it is never waited for in vain."""


class ManualClock:
    """Time that goes on when the test says so."""

    def __init__(self) -> None:
        self._ms = 0

    def now_ms(self) -> int:
        return NOW_MS + self._ms

    def monotonic_ms(self) -> int:
        return self._ms

    def sleep(self, duration: timedelta) -> None:
        self.advance(duration)

    def advance(self, duration: timedelta) -> None:
        self._ms += duration // timedelta(milliseconds=1)


@dataclass(slots=True)
class ScriptedFaults:
    """Faults for the next requests, in order; after them all goes well."""

    before_next: list[Fault] = field(default_factory=list)
    after_next: list[Fault] = field(default_factory=list)

    def before(self, request: ApiRequest) -> Fault | None:
        assert request.kind
        return self.before_next.pop(0) if self.before_next else None

    def after(self, request: ApiRequest, answer: Answer) -> Fault | None:
        assert request.kind
        assert answer.code
        return self.after_next.pop(0) if self.after_next else None


@dataclass(slots=True)
class World:
    """The cluster as it is, and the adapter under test that looks at it."""

    cluster: SimulatedCluster
    clock: ManualClock
    faults: ScriptedFaults
    adapter: SimulatedCluster | HttpCluster
    kubelet: Kubelet

    def perform(self, call: Call) -> Answer:
        (answer,) = self.adapter.perform([call])
        return answer

    def make_pod(self, name: str = "a1", **parts: Any) -> RawObject:
        return self.cluster.create("Pod", make_pod(name, **parts))

    def pod(self, name: str = "a1") -> RawObject:
        found = self.cluster.get("Pod", name)
        assert found is not None
        return found

    def bind(self, name: str = "a1", node: str = "n1") -> None:
        assert self.perform(binding(self.pod(name), node=node)).ok

    def watch_pods(self, since: str | None = None) -> Watch:
        version = since or self.adapter.list(POD).resource_version
        return self.adapter.watch(POD, resource_version=version)


@contextlib.contextmanager
def open_world(how: str, *, limits: Limits | None = None) -> Iterator[World]:
    """Open a world of nodes n1 and n2, whose adapter is `simulated` or `http`."""
    clock, faults = ManualClock(), ScriptedFaults()
    cluster = SimulatedCluster(clock, seed=7, limits=limits or Limits(), faults=faults)
    cluster.create("Namespace", {"metadata": {"name": "default"}})
    for name in ("n1", "n2"):
        cluster.create("Node", make_node(name))
    kubelet = Kubelet(cluster)
    if how == "simulated":
        yield World(cluster, clock, faults, cluster, kubelet)
        return
    with ClusterServer(cluster) as server:
        adapter = HttpCluster(server.url)
        try:
            yield World(cluster, clock, faults, adapter, kubelet)
        finally:
            adapter.close()


def make_node(name: str, *, zone: str = "z1") -> Raw:
    labels = {"topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": "r1"}
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
    }


def make_pod(
    name: str = "a1",
    *,
    annotations: Mapping[str, str] | None = None,
    gates: Sequence[str] = (),
    grace_seconds: int = 30,
) -> Raw:
    metadata: Raw = {"name": name, "namespace": "default", "labels": {"app": "web"}}
    if annotations:
        metadata["annotations"] = dict(annotations)
    spec: Raw = {
        "containers": [{"name": "main", "image": "web:1"}],
        "terminationGracePeriodSeconds": grace_seconds,
    }
    if gates:
        spec["schedulingGates"] = [{"name": gate} for gate in gates]
    return {"metadata": metadata, "spec": spec}


def binding(
    pod: RawObject,
    *,
    node: str = "n1",
    uid: str | None = None,
    resource_version: str = "",
    annotations: Mapping[str, str] | None = None,
) -> BindPod:
    metadata = pod["metadata"]
    return BindPod(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"] if uid is None else uid,
        resource_version=resource_version,
        node=node,
        annotations=annotations or {},
    )


def read(watch: Watch, count: int) -> list[WatchEvent]:
    """Return the next events of a watch, bookmarks left out, as many as must come."""
    got: list[WatchEvent] = []
    wait_until(lambda: _read_some(watch, got) >= count)
    assert len(got) == count
    return got


def _read_some(watch: Watch, got: list[WatchEvent]) -> int:
    events = watch.poll(limit=1000, timeout=timedelta(milliseconds=50))
    got += [event for event in events if event.type != "BOOKMARK"]
    return len(got)


def read_to_end(watch: Watch) -> list[WatchEvent]:
    got: list[WatchEvent] = []
    wait_until(lambda: _read_some(watch, got) >= 0 and watch.ended)
    return got


def wait_until(holds: Callable[[], bool]) -> None:
    """Ask until it holds. What is asked waits by itself for the change that it asks about."""
    deadline = time.monotonic() + WAIT.total_seconds()
    while not holds():
        assert time.monotonic() < deadline, "what must come did not come"
