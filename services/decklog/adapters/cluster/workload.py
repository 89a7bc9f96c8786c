"""A small company's cluster, made from a seed: what the demo and `sim serve` run.

Nodes of four sizes in three zones, some with taints, one cordoned; pods of several apps with
priorities, and a few that fit nowhere, each for another reason, so that there is something to
explain. The same seed gives the same names, sizes and order.
"""

import contextlib
import heapq
import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from decklog.adapters.cluster.kubelet import RUN_SECONDS
from decklog.adapters.cluster.pods import REGION, ZONE
from decklog.adapters.cluster.simulated import SimulatedCluster
from decklog.core.errors import Refused

Raw = dict[str, Any]

GPU: Final = "example.com/gpu"
ZONES: Final = ("sim-a", "sim-b", "sim-c")
PRIORITIES: Final = {"critical": 10_000, "standard": 1_000, "batch": 0}
LOOK_INTERVAL_MS: Final = 30_000  # Long enough to see an ended or a waiting pod with kubectl.
CREATED_PER_STEP_MAX: Final = 1_000  # After a pause the cluster is filled, but not at one stroke.
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456"
_STRIDE: Final = 4_870_847  # Any number without a common divisor with 24.
_GPU_TAINT: Final = {"key": GPU, "value": "true", "effect": "NoSchedule"}
_BATCH_TAINT: Final = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeShape:
    name: str
    share: int
    cpu: int
    memory_gi: int
    disk: str
    gpus: int = 0
    taint: Mapping[str, str] | None = None


NODE_SHAPES: Final = (
    NodeShape(name="small", share=8, cpu=8, memory_gi=32, disk="hdd"),
    NodeShape(name="large", share=8, cpu=32, memory_gi=128, disk="ssd"),
    NodeShape(name="batch", share=2, cpu=16, memory_gi=32, disk="hdd", taint=_BATCH_TAINT),
    NodeShape(name="gpu", share=2, cpu=32, memory_gi=256, disk="ssd", gpus=4, taint=_GPU_TAINT),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """Pods of one kind. Those with a `flaw` fit nowhere, because of it."""

    namespace: str
    name: str
    share: int
    milli_cpu: int
    memory_mi: int
    priority: str = "standard"
    run_seconds: tuple[int, int] = (30, 180)
    gpus: int = 0
    tolerates: Mapping[str, str] | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)
    zones: tuple[str, ...] = ()
    prefers_disk: str = ""
    host_port: int = 0
    flaw: str = ""


APPS: Final = (
    App(namespace="shop", name="cart", share=20, milli_cpu=500, memory_mi=512),
    App(
        namespace="shop",
        name="checkout",
        share=10,
        milli_cpu=1000,
        memory_mi=1024,
        priority="critical",
        zones=("sim-a", "sim-b"),
    ),
    App(namespace="shop", name="images", share=4, milli_cpu=250, memory_mi=2048, host_port=8091),
    App(
        namespace="search",
        name="index",
        share=8,
        milli_cpu=2000,
        memory_mi=8192,
        node_selector={"disk": "ssd"},
    ),
    App(
        namespace="search",
        name="query",
        share=16,
        milli_cpu=750,
        memory_mi=1536,
        prefers_disk="ssd",
    ),
    App(
        namespace="reports",
        name="nightly",
        share=24,
        milli_cpu=1500,
        memory_mi=2048,
        priority="batch",
        run_seconds=(10, 60),
        tolerates=_BATCH_TAINT,
    ),
    App(
        namespace="ml",
        name="train",
        share=6,
        milli_cpu=4000,
        memory_mi=16384,
        priority="batch",
        gpus=1,
        tolerates=_GPU_TAINT,
    ),
    App(
        namespace="ml",
        name="notebook",
        share=1,
        milli_cpu=1000,
        memory_mi=4096,
        gpus=16,
        tolerates=_GPU_TAINT,
        flaw="asks for more GPUs than a node has",
    ),
    App(
        namespace="search",
        name="archive",
        share=1,
        milli_cpu=500,
        memory_mi=1024,
        node_selector={"disk": "tape"},
        flaw="asks for a label that no node has",
    ),
    App(
        namespace="reports",
        name="monolith",
        share=1,
        milli_cpu=96_000,
        memory_mi=524_288,
        flaw="asks for more CPU and memory than a node has",
    ),
    App(
        namespace="shop",
        name="ledger",
        share=1,
        milli_cpu=500,
        memory_mi=512,
        zones=("sim-d",),
        priority="critical",
        flaw="asks for a zone that does not exist",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Manifests of a cluster and its pods."""

    seed: int = 42
    node_count: int = 48
    scheduler_name: str = "decklog"

    def foundation(self) -> list[Raw]:
        """Return what is there before the pods: priority classes, namespaces, nodes."""
        names = sorted({app.namespace for app in APPS})
        return [
            *(_priority_class(name, value) for name, value in PRIORITIES.items()),
            *(_object("v1", "Namespace", name) for name in names),
            *self.nodes(),
        ]

    def nodes(self) -> list[Raw]:
        """Return the nodes; the last but one is cordoned."""
        chance = random.Random(f"{self.seed}/nodes")
        shapes = _dealt(NODE_SHAPES, self.node_count, chance)
        cordoned = self.node_count - 2 if self.node_count > 2 else None
        return [
            _node(number, shape, unschedulable=number == cordoned)
            for number, shape in enumerate(shapes)
        ]

    def pods(self, *, ending: bool = False) -> Iterator[Raw]:
        """Yield pods without end. With `ending` each runs only for a while."""
        chance = random.Random(f"{self.seed}/pods")
        weights = [app.share for app in APPS]
        for number in itertools.count(chance.randrange(len(_LETTERS) ** 5)):
            app = chance.choices(APPS, weights)[0]
            name = f"{app.name}-{_name_end(number)}"
            annotations = {}
            if ending:
                annotations[RUN_SECONDS] = str(chance.randint(*app.run_seconds))
            yield _pod(app, name, annotations, self.scheduler_name)


class Load:
    """Creates pods at a rate, and clears away those that ended or waited in vain."""

    def __init__(self, cluster: SimulatedCluster, workload: Workload, *, rate: float) -> None:
        self._cluster = cluster
        self._pods = workload.pods(ending=True)
        self._rate = rate
        self._started_ms = cluster.clock.monotonic_ms()
        self.created = 0
        """How many pods there have been, those that are gone included."""
        self._looks: list[tuple[int, str, str]] = []
        """When to look after which pod."""

    def step(self) -> bool:
        now_ms = self._cluster.clock.monotonic_ms()
        due = int((now_ms - self._started_ms) * self._rate / 1000) - self.created
        for _ in range(min(due, CREATED_PER_STEP_MAX)):
            self._create(now_ms)
        cleared = 0
        while self._looks and self._looks[0][0] <= now_ms:
            _, namespace, name = heapq.heappop(self._looks)
            cleared += self._look_after(namespace, name, now_ms)
        return due > 0 or cleared > 0

    def _create(self, now_ms: int) -> None:
        pod = next(self._pods)
        metadata = pod["metadata"]
        self.created += 1
        with contextlib.suppress(Refused):  # Somebody has deleted its priority class.
            self._cluster.create("Pod", pod)
        look_ms = now_ms + int(metadata["annotations"][RUN_SECONDS]) * 1000 + LOOK_INTERVAL_MS
        heapq.heappush(self._looks, (look_ms, metadata["namespace"], metadata["name"]))

    def _look_after(self, namespace: str, name: str, now_ms: int) -> bool:
        pod = self._cluster.get("Pod", name, namespace)
        if pod is None:
            return False
        if pod["spec"].get("nodeName") and pod["status"]["phase"] in ("Pending", "Running"):
            heapq.heappush(self._looks, (now_ms + LOOK_INTERVAL_MS, namespace, name))
            return False
        with contextlib.suppress(Refused):  # Somebody was quicker.
            self._cluster.delete("Pod", name, namespace)
        return True


def _dealt(shapes: tuple[NodeShape, ...], count: int, chance: random.Random) -> list[NodeShape]:
    """Deal shapes by their shares, so that a small cluster has some of each."""
    deck = [shape for shape in shapes for _ in range(shape.share)]
    chance.shuffle(deck)
    return [deck[number % len(deck)] for number in range(count)]


def _object(api_version: str, kind: str, name: str) -> Raw:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}


def _priority_class(name: str, value: int) -> Raw:
    made = _object("scheduling.k8s.io/v1", "PriorityClass", name)
    return {**made, "value": value, "preemptionPolicy": "PreemptLowerPriority"}


def _node(number: int, shape: NodeShape, *, unschedulable: bool) -> Raw:
    name = f"node-{number:03d}"
    made = _object("v1", "Node", name)
    made["metadata"]["labels"] = {
        "kubernetes.io/hostname": name,
        "node.kubernetes.io/instance-type": shape.name,
        ZONE: ZONES[number % len(ZONES)],
        REGION: "sim",
        "disk": shape.disk,
    }
    spec: Raw = {}
    if shape.taint:
        spec["taints"] = [dict(shape.taint)]
    if unschedulable:
        spec["unschedulable"] = True
    resources = {"cpu": str(shape.cpu), "memory": f"{shape.memory_gi}Gi", "pods": "110"}
    if shape.gpus:
        resources[GPU] = str(shape.gpus)
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    images = [{"names": [_image("shop", "cart")], "sizeBytes": 400_000_000}]
    status: Raw = {"capacity": resources, "allocatable": resources, "conditions": [ready]}
    if number % 2 == 0:
        status["images"] = images
    return {**made, "spec": spec, "status": status}


def _pod(app: App, name: str, annotations: dict[str, str], scheduler_name: str) -> Raw:
    requests = {"cpu": f"{app.milli_cpu}m", "memory": f"{app.memory_mi}Mi"}
    container: Raw = {"name": app.name, "image": _image(app.namespace, app.name)}
    if app.gpus:
        requests[GPU] = str(app.gpus)
        container["resources"] = {"requests": requests, "limits": {GPU: str(app.gpus)}}
    else:
        container["resources"] = {"requests": requests}
    if app.host_port:
        container["ports"] = [{"containerPort": app.host_port, "hostPort": app.host_port}]
    spec: Raw = {
        "schedulerName": scheduler_name,
        "priorityClassName": app.priority,
        "containers": [container],
    }
    if app.node_selector:
        spec["nodeSelector"] = dict(app.node_selector)
    if app.tolerates:
        spec["tolerations"] = [{"operator": "Equal", **app.tolerates}]
    if affinity := _affinity(app):
        spec["affinity"] = {"nodeAffinity": affinity}
    made = _object("v1", "Pod", name)
    made["metadata"] |= {"namespace": app.namespace, "labels": {"app": app.name}}
    if annotations:
        made["metadata"]["annotations"] = annotations
    return {**made, "spec": spec}


def _affinity(app: App) -> Raw:
    affinity: Raw = {}
    if app.zones:
        terms = [{"matchExpressions": [_is_in(ZONE, app.zones)]}]
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if app.prefers_disk:
        preference = {"matchExpressions": [_is_in("disk", (app.prefers_disk,))]}
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": 50, "preference": preference}
        ]
    return affinity


def _is_in(key: str, values: tuple[str, ...]) -> Raw:
    return {"key": key, "operator": "In", "values": list(values)}


def _image(namespace: str, name: str) -> str:
    return f"registry.example.com/{namespace}/{name}:1"


def _name_end(number: int) -> str:
    """Return five letters that look like chance and do not come again for eight million pods."""
    number = number * _STRIDE % len(_LETTERS) ** 5
    letters = ""
    for _ in range(5):
        number, letter = divmod(number, len(_LETTERS))
        letters += _LETTERS[letter]
    return letters
