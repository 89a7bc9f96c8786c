"""What pods of equal specs share: requests, ports, and the number under which verdicts are kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from decklog.core.interning import Interner
from decklog.core.resource_names import NATIVE
from decklog.objects import requests
from decklog.objects.pod import Container, Pod, PodResources

PODS_MAX: Final = 100_000
"""Pods whose class is remembered: more than are pending at once, some 30 MB."""
CLASSES_MAX: Final = 20_000
"""Classes remembered, some 20 MB; after that all are forgotten and made again as pods come."""

Amounts = npt.NDArray[np.int64]
Amount = tuple[int, int]
"""(resource row, amount)"""
Port = tuple[str, str, int]
"""(ip, protocol, port)"""


@dataclass(slots=True, eq=False, kw_only=True)
class PodClass:
    """Equal for all pods whose specs are equal to a plugin that looks at one node at a time.

    Name, uid, namespace, labels, annotations, owner, priority and claims are no part of it: who
    reads these also reads other objects (`Reads.CLUSTER`), and is shown the pod itself.
    """

    number: int
    requests: Amounts
    """By resource: what the incoming pod asks for (spec only)."""
    scoring: Amounts
    """By resource: the same as scores count it: with defaults for cpu and memory."""
    has_scalar_requests: bool
    """Whether the incoming pod names any scalar resource, even with 0."""
    accounted: Amounts
    """By resource: what the pod counts on its node (its status included)."""
    non_zero: Amounts
    """(milli-CPU, memory) that it counts on its node with defaults."""
    host_ports: tuple[Port, ...]


@dataclass(slots=True)
class PodClasses:
    """Gives pods of equal specs one class; a pod object's is looked up once, at arrival."""

    resources: Interner[str]
    _classes: dict[Any, PodClass] = field(default_factory=dict)
    _of_pod: dict[str, tuple[Pod, PodClass]] = field(default_factory=dict)
    _on_nodes: dict[str, tuple[Pod, PodClass]] = field(default_factory=dict)
    _count: int = 0

    def of(self, pod: Pod) -> PodClass:
        return self._look_up(self._of_pod, pod, pod.node_name)

    def on_node(self, pod: Pod) -> PodClass:
        """Return the class by which the pod counts on its node: which node that is says nothing.

        Otherwise there were as many classes as there are pods, and those of pods that wait were
        soon forgotten.
        """
        return self._look_up(self._on_nodes if pod.node_name else self._of_pod, pod, "")

    def forget(self, uid: str) -> None:
        """Forget the pod; its class stays."""
        self._of_pod.pop(uid, None)
        self._on_nodes.pop(uid, None)

    def grow(self) -> None:
        """Lengthen every class's arrays to the number of resources that are known now."""
        for kind in self._classes.values():
            kind.requests = self._lengthened(kind.requests)
            kind.scoring = self._lengthened(kind.scoring)

    def _look_up(
        self, known_pods: dict[str, tuple[Pod, PodClass]], pod: Pod, node_name: str
    ) -> PodClass:
        known = known_pods.get(pod.uid)
        if known is not None and known[0] is pod:
            return known[1]
        key = (node_name, *spec_key(pod))
        kind = self._classes.get(key)
        if kind is None:
            if len(self._classes) >= CLASSES_MAX:
                self._classes.clear()
                self._of_pod.clear()
                self._on_nodes.clear()
            kind = self._classes[key] = self._make(pod)
        if len(known_pods) >= PODS_MAX:
            known_pods.clear()
        known_pods[pod.uid] = (pod, kind)
        return kind

    def _make(self, pod: Pod) -> PodClass:
        incoming = requests.incoming(pod)
        by_resource = [
            self._amounts(amounts)
            for amounts in (incoming, requests.scoring(pod), requests.accounted(pod))
        ]
        asked, scoring, accounted = map(self._dense, by_resource)
        number = self._count
        self._count += 1
        return PodClass(
            number=number,
            requests=asked,
            scoring=scoring,
            has_scalar_requests=any(requests.is_scalar_resource(name) for name in incoming),
            accounted=accounted,
            non_zero=np.array(requests.non_zero(pod), dtype=np.int64),
            host_ports=tuple(requests.host_ports(pod)),
        )

    def _amounts(self, by_name: Mapping[str, int]) -> list[Amount]:
        return [
            (self.resources.number(name), value)
            for name, value in by_name.items()
            if name in NATIVE or requests.is_scalar_resource(name)
        ]

    def _dense(self, amounts: list[Amount]) -> Amounts:
        dense = np.zeros(len(self.resources), dtype=np.int64)
        for row, value in amounts:
            dense[row] = value
        return dense

    def _lengthened(self, amounts: Amounts) -> Amounts:
        if len(amounts) == len(self.resources):
            return amounts
        longer = np.zeros(len(self.resources), dtype=np.int64)
        longer[: len(amounts)] = amounts
        return longer


def spec_key(pod: Pod) -> tuple[Any, ...]:
    """Return what a class is equal by, beside the node that the pod names.

    Order in a mapping counts: it costs a class, no mistake.
    """
    return (
        tuple(map(_container_key, pod.containers)),
        tuple(map(_container_key, pod.init_containers)),
        tuple(pod.overhead.items()),
        _resources_key(pod.resources),
        None if pod.node_selector is None else tuple(pod.node_selector.items()),
        None if pod.affinity is None else pod.affinity.node,
        pod.tolerations,
        pod.host_network,
        pod.host_users,
        tuple(volume.image for volume in pod.volumes if volume.image),
        _status_key(pod),
    )


def _container_key(container: Container) -> tuple[Any, ...]:
    asked = container.requests
    return (
        container.image,
        None if asked is None else tuple(asked.items()),
        container.ports,
        container.restart_policy,
        container.restarts_all_containers,
    )


def _resources_key(resources: PodResources | None) -> tuple[Any, ...] | None:
    if resources is None:
        return None
    return (tuple(resources.requests.items()), tuple(resources.limits.items()))


def _status_key(pod: Pod) -> tuple[Any, ...] | None:
    """Return what in-place resizes left in the status; None: nothing, as for any pending pod."""
    if not pod.container_statuses and pod.status_resources is None and not pod.status_allocated:
        return None
    return (
        tuple(container.name for container in pod.containers),
        tuple(container.name for container in pod.init_containers),
        tuple(
            (
                status.name,
                tuple(status.requests.items()),
                tuple(status.allocated.items()),
                status.has_resources,
            )
            for status in pod.container_statuses
        ),
        _resources_key(pod.status_resources),
        None if pod.status_allocated is None else tuple(pod.status_allocated.items()),
        tuple(c for c in pod.conditions if c.type == "PodResizePending"),
    )
