"""How fast the core decides: `python -m bench.core --workload basic-5000 [--seconds 10] [-o json]`.

What is timed is `Engine.attempt` with the whole outcome built: filters, scores, rejections, the
best five, and the assume. Queue, ledger and cluster are not part of it. Pods' classes are known,
as they are when a pod has been in the queue. A pod that preempts is nominated; its victims go, and
it is tried again, with the others of its tick: it counts once, with all that is done for it.
"""

import argparse
import json
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count, cycle, islice
from typing import Any, Final

from bench.workloads.openb_like import openb_like
from decklog.core.cache import Cache
from decklog.core.framework.config import DEFAULT_PROFILE
from decklog.core.framework.interface import PostFilterResult
from decklog.core.framework.resolve import default_config
from decklog.core.nominator import Nominator
from decklog.core.plugins.registry import build_profiles
from decklog.core.schedule import Engine, Placed
from decklog.core.tick import CYCLES_MAX
from decklog.objects.kinds import KIND_BY_NAME
from decklog.objects.node import Node
from decklog.objects.pod import (
    Affinity,
    Container,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from decklog.objects.policy import Namespace
from decklog.objects.reduce import reduce_object
from decklog.objects.selectors import LabelSelector

PODS_PER_NODE_MAX: Final = 30
"""Three quarters of what a node takes: the cluster fills, and no pod is refused."""
SHAPES: Final = 100
HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
ZONES: Final = ("moon-1", "moon-2", "moon-3")
GREEN: Final = {"color": "green"}
TEAM: Final = {"team": "devops"}
NAMESPACES: Final = 100
MAX_SKEW: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    workload: str
    nodes: int
    pods: int
    placed: int
    seconds: float
    pods_per_s: float
    pods_per_cpu_s: float
    rss_max_bytes: int


@dataclass(frozen=True, slots=True)
class Workload:
    nodes: list[Node]
    pods: list[Pod]
    namespaces: Sequence[Namespace] = ()
    placed: Sequence[Pod] = ()
    """Pods that are there from the start."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.core", description=__doc__)
    parser.add_argument("--workload", choices=sorted(WORKLOADS), default="basic-5000")
    parser.add_argument("--seconds", type=float, default=10.0, help="stop after so long")
    parser.add_argument("-o", "--output", choices=["json"], default="json")
    given = parser.parse_args(arguments)
    print(json.dumps(asdict(measure(given.workload, seconds=given.seconds)), indent=2))


def measure(name: str, *, seconds: float) -> Measured:
    workload = WORKLOADS[name]()
    config = default_config()
    cache = Cache()
    for node in workload.nodes:
        cache.add_node(node)
    for namespace in workload.namespaces:
        cache.set_object("Namespace", namespace.name, namespace)
    engine = Engine(config, cache, build_profiles(config), Nominator())
    for pod in workload.placed:
        cache.add_pod(pod)
    for pod in workload.pods:
        cache.columns.pod_class(pod)
    tried = placed = 0
    cpu, start = time.process_time(), time.perf_counter()
    end = start + seconds
    for first in range(0, len(workload.pods), CYCLES_MAX):
        tick = workload.pods[first : first + CYCLES_MAX]
        placed += _tick(engine, tick)
        tried += len(tick)
        if time.perf_counter() >= end:
            break
    took, cpu = time.perf_counter() - start, time.process_time() - cpu
    return Measured(
        workload=name,
        nodes=len(workload.nodes),
        pods=tried,
        placed=placed,
        seconds=round(took, 3),
        pods_per_s=round(tried / took, 1),
        pods_per_cpu_s=round(tried / cpu, 1),
        rss_max_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )


def _tick(engine: Engine, pods: Sequence[Pod]) -> int:
    """Try the pods, do what preemption asks for, try the preemptors again; return the placed."""
    placed = 0
    preemptors: list[tuple[Pod, PostFilterResult]] = []
    for pod in pods:
        outcome = engine.attempt(pod, attempt=1)
        if isinstance(outcome, Placed):
            placed += 1
        elif outcome.victims is not None and outcome.victims.victims:
            engine.nominator.add(pod, outcome.victims.nominate)
            preemptors.append((pod, outcome.victims))
    for pod, made in preemptors:
        for victim in made.victims:
            if engine.cache.node_of(victim.uid) is not None:
                engine.cache.remove_pod(victim)
        again = replace(pod, nominated_node_name=made.nominate or "")
        if isinstance(engine.attempt(again, attempt=2), Placed):
            engine.nominator.delete(pod.uid)
            placed += 1
    return placed


def _basic(node_count: int, shapes: int = 1) -> Workload:
    """Equal nodes; pods of one shape, or of several that differ in what they ask for, in turn."""
    pods = _pods(f"{100 + shape}m" for shape in cycle(range(shapes)))
    return Workload(_nodes(node_count), list(islice(pods, node_count * PODS_PER_NODE_MAX)))


def _unschedulable(node_count: int) -> Workload:
    """Pods that no node is big enough for."""
    return Workload(_nodes(node_count), list(islice(_pods(cycle(["9"])), 100_000)))


def _preemption(node_count: int) -> Workload:
    """Nodes full of four small pods each; big ones that need three of four to go."""
    small = islice(_pods(cycle(["900m"])), node_count * 4)
    placed = [
        replace(pod, uid=f"low-{at}", name=f"low-{at}", node_name=f"node-{at % node_count}")
        for at, pod in enumerate(small)
    ]
    high = (replace(pod, priority=10) for pod in _pods(cycle(["3"])))
    return Workload(_nodes(node_count), list(islice(high, node_count)), placed=placed)


def _openb_like() -> Workload:
    nodes, pods = openb_like(scheduler_name=DEFAULT_PROFILE)
    return Workload(
        [held for raw in nodes if isinstance(held := _reduced("Node", raw), Node)],
        [held for raw in pods if isinstance(held := _reduced("Pod", raw), Pod)],
    )


def _reduced(kind: str, raw: object) -> object:
    assert isinstance(raw, dict)
    return reduce_object(KIND_BY_NAME[kind], raw)


def _near(node_count: int, zones: Sequence[str] = ZONES[:1]) -> Workload:
    """Pods that must be in a zone with one of their own."""
    affinity = Affinity(pod=PodAffinity(required=(_term(ZONE),)))
    return Workload(_nodes(node_count, zones), list(_green(node_count, affinity=affinity)))


def _prefer(node_count: int) -> Workload:
    """Pods that would rather be on a node with one of their own."""
    preferred = WeightedPodAffinityTerm(weight=1, term=_term(HOSTNAME))
    affinity = Affinity(pod=PodAffinity(preferred=(preferred,)))
    return Workload(_nodes(node_count), list(_green(node_count, affinity=affinity)))


def _apart(node_count: int, pod_count: int) -> Workload:
    """Pods that must not share a node."""
    affinity = Affinity(pod_anti=PodAffinity(required=(_term(HOSTNAME),)))
    return Workload(_nodes(node_count), list(_green(pod_count, affinity=affinity)))


def _apart_in_namespaces(node_count: int, pod_count: int) -> Workload:
    """The same over a hundred namespaces, which a selector names."""
    term = _term(HOSTNAME, namespace_selector=LabelSelector(match_labels=TEAM))
    affinity = Affinity(pod_anti=PodAffinity(required=(term,)))
    names = [f"team-{number}" for number in range(NAMESPACES)]
    pods = [
        replace(pod, namespace=name)
        for pod, name in zip(_green(pod_count, affinity=affinity), cycle(names), strict=False)
    ]
    return Workload(
        _nodes(node_count), pods, [Namespace(uid=n, name=n, labels=TEAM) for n in names]
    )


def _spread(node_count: int, when: str) -> Workload:
    """Pods that are spread over three zones."""
    constraint = TopologySpreadConstraint(
        topology_key=ZONE,
        max_skew=MAX_SKEW,
        when_unsatisfiable=when,
        label_selector=LabelSelector(match_labels=GREEN),
    )
    pods = _green(node_count, topology_spread_constraints=(constraint,))
    return Workload(_nodes(node_count, ZONES), list(pods))


def _term(key: str, **fields: Any) -> PodAffinityTerm:
    selector = LabelSelector(match_labels=GREEN)
    return PodAffinityTerm(topology_key=key, label_selector=selector, **fields)


def _green(number: int, **fields: Any) -> Iterator[Pod]:
    for pod in islice(_pods(cycle(["100m"])), number):
        yield replace(pod, labels=dict(GREEN), **fields)


def _nodes(number: int, zones: Sequence[str] = ()) -> list[Node]:
    allocatable = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return [
        Node(
            uid=f"node-{index}",
            name=f"node-{index}",
            allocatable=allocatable,
            labels={HOSTNAME: f"node-{index}"}
            | ({ZONE: zones[index % len(zones)]} if zones else {}),
        )
        for index in range(number)
    ]


def _pods(cpus: "Iterator[str]") -> Iterator[Pod]:
    for index, cpu in zip(count(), cpus, strict=False):
        container = Container(name="pause", requests={"cpu": cpu, "memory": "500Mi"})
        yield Pod(
            uid=f"pod-{index}",
            namespace="default",
            name=f"pod-{index}",
            scheduler_name=DEFAULT_PROFILE,
            containers=(container,),
        )


WORKLOADS: Final[dict[str, Callable[[], Workload]]] = {
    "basic-500": lambda: _basic(500),
    "basic-5000": lambda: _basic(5_000),
    "basic-15000": lambda: _basic(15_000),
    "shapes-5000": lambda: _basic(5_000, SHAPES),
    "unschedulable-5000": lambda: _unschedulable(5_000),
    "anti-host-5000": lambda: _apart(5_000, 2_000),
    "anti-namespaces-5000": lambda: _apart_in_namespaces(5_000, 2_000),
    "affinity-zone-5000": lambda: _near(5_000),
    "prefer-host-5000": lambda: _prefer(5_000),
    "spread-zone-5000": lambda: _spread(5_000, "DoNotSchedule"),
    "spread-zone-soft-5000": lambda: _spread(5_000, "ScheduleAnyway"),
    "preemption-500": lambda: _preemption(500),
    "preemption-5000": lambda: _preemption(5_000),
    "openb-like": _openb_like,
}

if __name__ == "__main__":
    main()
