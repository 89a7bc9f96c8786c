"""A simulated cluster with what moves in it: kubelets, volume binder, and pods that arrive."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from decklog.adapters.cluster.kubelet import Kubelet
from decklog.adapters.cluster.serve import Part
from decklog.adapters.cluster.simulated import SimulatedCluster
from decklog.adapters.cluster.volumes import VolumeBinder
from decklog.adapters.cluster.workload import Load, Workload
from decklog.ports.clock import Clock

RawObject = Mapping[str, Any]

ARRIVALS_A_STEP_MAX: Final = 2_000
"""Pods created at one stroke: about 0.1 s, so that the services come to their turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What the simulated cluster is made of, and what happens in it."""

    seed: int = 42
    node_count: int = 48
    pod_count: int | None = None
    """None: pods arrive, run and end for ever."""
    rate: float = 0.0
    """Pods a second; 0: all at once."""
    objects: Sequence[RawObject] | None = None
    """In place of the built-in nodes and pods: objects of another cluster, with uid and status."""


@dataclass(slots=True)
class World:
    """The cluster in this process, as a part of the loop."""

    cluster: SimulatedCluster
    parts: Sequence[Part]
    arrivals: "Arrivals | Load"
    loaded: int = 0
    """Pods that were there from the beginning."""
    refused: list[str] = field(default_factory=list)
    example: str = ""
    """A pod that is there or will come, as NAMESPACE/NAME."""
    name: str = "cluster"

    def step(self) -> bool:
        busy = [part.step() for part in self.parts]
        return any(busy)

    def readiness(self) -> Mapping[str, str]:
        return {}

    def stop(self) -> None:
        """Do nothing: it ends with the process."""

    @property
    def is_told(self) -> bool:
        """Whether the story has an end, and has come to it."""
        return isinstance(self.arrivals, Arrivals) and self.arrivals.is_over

    @property
    def created(self) -> int:
        """How many pods there have been, those that are gone included."""
        return self.loaded + self.arrivals.created


class Arrivals:
    """Creates the given pods, at a rate or all at once."""

    def __init__(
        self, cluster: SimulatedCluster, pods: Iterable[RawObject], *, rate: float
    ) -> None:
        self._cluster = cluster
        self._pods = iter(pods)
        self._rate = rate
        self._started_ms = cluster.clock.monotonic_ms()
        self.created = 0
        self.is_over = False

    def step(self) -> bool:
        pods = list(islice(self._pods, self._due()))
        for pod in pods:
            self._cluster.create("Pod", pod)
        self.created += len(pods)
        self.is_over = self.is_over or (not pods and self._due() > 0)
        return bool(pods)

    def _due(self) -> int:
        if not self._rate:
            return ARRIVALS_A_STEP_MAX
        elapsed_ms = self._cluster.clock.monotonic_ms() - self._started_ms
        due = int(elapsed_ms * self._rate / 1000) + 1 - self.created
        return min(due, ARRIVALS_A_STEP_MAX)


def make_world(story: Story, clock: Clock, *, version: int = 0) -> World:
    """Make the cluster and create what is there before the pods.

    `version` is where resourceVersions go on, if an earlier cluster of that name had some. Then
    no object of it lives on: all get uids of their own.
    """
    cluster = SimulatedCluster(clock, seed=story.seed + version)
    if version:
        cluster.store.version = version
        cluster.restart()
    workload = Workload(seed=story.seed, node_count=story.node_count)
    refused: list[str] = []
    if story.objects is not None:
        refused = _load(cluster, story.objects, with_uids=not version)
    else:
        for raw in workload.foundation():
            cluster.create(raw["kind"], raw)
    arrivals = _arrivals(cluster, workload, story)
    return World(
        cluster,
        [Kubelet(cluster), VolumeBinder(cluster), arrivals],
        arrivals,
        loaded=len(cluster.raw_objects("Pod")),
        refused=refused,
        example=_example(cluster, workload, story),
    )


def _example(cluster: SimulatedCluster, workload: Workload, story: Story) -> str:
    pods = cluster.raw_objects("Pod") if story.objects is not None else workload.pods()
    metadata = next((pod["metadata"] for pod in pods), None)
    return "" if metadata is None else f"{metadata['namespace']}/{metadata['name']}"


def _arrivals(cluster: SimulatedCluster, workload: Workload, story: Story) -> Arrivals | Load:
    if story.objects is not None:
        return Arrivals(cluster, (), rate=0)
    if story.pod_count is None:
        return Load(cluster, workload, rate=story.rate)
    pods: Iterator[RawObject] = islice(workload.pods(), story.pod_count)
    return Arrivals(cluster, pods, rate=story.rate)


def _load(cluster: SimulatedCluster, objects: Sequence[RawObject], *, with_uids: bool) -> list[str]:
    """Load what the input has, referred-to things first, and the pods in its order."""
    if not with_uids:
        objects = [_without_uid(raw) for raw in objects]
    pods = [raw for raw in objects if raw.get("kind") == "Pod"]
    others = [raw for raw in objects if raw.get("kind") != "Pod"]
    return cluster.load([*others, *pods])


def _without_uid(raw: RawObject) -> RawObject:
    metadata = {name: value for name, value in raw["metadata"].items() if name != "uid"}
    return {**raw, "metadata": metadata}
