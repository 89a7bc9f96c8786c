"""The default plugins' rules, read plainly, node by node: the vector forms must equal them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt
from typing import Final

from decklog.core.framework.interface import CycleState
from decklog.core.framework.status import (
    SUCCESS,
    Code,
    Status,
    unresolvable,
    unschedulable,
)
from decklog.core.plugins.node_unschedulable import CORDON
from decklog.objects import requests
from decklog.objects.matching import (
    count_untolerated_preferences,
    first_untolerated,
    preferred_score,
    preferred_terms,
    required_node_affinity_matches,
    tolerates,
)
from decklog.objects.node import Node
from decklog.objects.pod import Pod
from decklog.objects.quantity import amount

Placed = Mapping[str, Sequence[Pod]]
"""Node → its pods."""
NATIVE: Final = ("cpu", "memory", "ephemeral-storage")


@dataclass(frozen=True)
class Unschedulable:
    name: str = "NodeUnschedulable"

    def filter_node(self, state: CycleState, pod: Pod, node: Node) -> Status:
        if not node.unschedulable or any(tolerates(one, CORDON) for one in pod.tolerations):
            return SUCCESS
        return unresolvable("node(s) were unschedulable")


@dataclass(frozen=True)
class Name:
    name: str = "NodeName"

    def filter_node(self, state: CycleState, pod: Pod, node: Node) -> Status:
        if pod.node_name in ("", node.name):
            return SUCCESS
        return unresolvable("node(s) didn't match the requested node name")


@dataclass(frozen=True)
class Taints:
    name: str = "TaintToleration"

    def filter_node(self, state: CycleState, pod: Pod, node: Node) -> Status:
        if first_untolerated(node.taints, pod.tolerations) is None:
            return SUCCESS
        return unresolvable("node(s) had untolerated taint(s)")

    def score_node(self, state: CycleState, pod: Pod, node: Node) -> int:
        return count_untolerated_preferences(node.taints, pod.tolerations)


@dataclass(frozen=True)
class Affinity:
    name: str = "NodeAffinity"

    def filter_node(self, state: CycleState, pod: Pod, node: Node) -> Status:
        if required_node_affinity_matches(pod, node.labels, node.name):
            return SUCCESS
        return unresolvable("node(s) didn't match Pod's node affinity/selector")

    def score_node(self, state: CycleState, pod: Pod, node: Node) -> int:
        affinity = pod.affinity.node if pod.affinity is not None else None
        terms = preferred_terms((affinity and affinity.preferred) or ())
        return preferred_score(terms, node.labels, node.name)


@dataclass(frozen=True)
class Features:
    name: str = "NodeDeclaredFeatures"

    def filter_node(self, state: CycleState, pod: Pod, node: Node) -> Status:
        if requests.required_features(pod) <= set(node.declared_features):
            return SUCCESS
        return unresolvable("node(s) didn't match Pod's required features")


@dataclass(frozen=True)
class Ports:
    placed: Placed
    name: str = "NodePorts"

    def filter_node(self, state: CycleState, pod: Pod, node: Node) -> Status:
        used = [port for other in self.placed[node.name] for port in requests.host_ports(other)]
        if any(requests.ports_conflict(port, used) for port in requests.host_ports(pod)):
            return unschedulable("node(s) didn't have free ports for the requested pod ports")
        return SUCCESS


@dataclass(frozen=True)
class Fit:
    """Everything that is short, and the score of LeastAllocated over `weights`."""

    placed: Placed
    weights: Mapping[str, int] = field(default_factory=lambda: {"cpu": 1, "memory": 1})
    name: str = "NodeResourcesFit"

    def filter_node(self, state: CycleState, pod: Pod, node: Node) -> Status:
        others = self.placed[node.name]
        found = ["Too many pods"] if len(others) + 1 > has(node, "pods") else []
        hopeless = False
        asked = requests.incoming(pod)
        scalars = sorted(name for name in asked if requests.is_scalar_resource(name))
        for name in (*NATIVE, *scalars):
            wanted = asked.get(name, 0)
            if wanted > 0 and wanted > has(node, name) - used(others, name):
                found.append(f"Insufficient {name}")
                hopeless |= wanted > has(node, name)
        if not found:
            return SUCCESS
        code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if hopeless else Code.UNSCHEDULABLE
        return Status(code, tuple(found))

    def score_node(self, state: CycleState, pod: Pod, node: Node) -> int:
        total = weights = 0
        for name, weight in self.weights.items():
            wanted = requests.scoring(pod).get(name, 0)
            capacity = has(node, name)
            if capacity == 0 or (wanted == 0 and name not in NATIVE):
                continue
            full = wanted + counted(self.placed[node.name], name)
            total += weight * (0 if full > capacity else (capacity - full) * 100 // capacity)
            weights += weight
        return total // weights if weights else 0


@dataclass(frozen=True)
class Balanced:
    """By exact fractions; a root is compared by its square."""

    placed: Placed
    resources: Sequence[str]
    name: str = "NodeResourcesBalancedAllocation"

    def score_node(self, state: CycleState, pod: Pod, node: Node) -> int:
        change = 50 + self._balance(pod, node, with_pod=True)
        change -= self._balance(pod, node, with_pod=False)
        return 50 + (change // 2 if change >= 0 else -(-change // 2))

    def _balance(self, pod: Pod, node: Node, *, with_pod: bool) -> int:
        fractions = []
        for name in self.resources:
            wanted = requests.accounted(pod).get(name, 0)
            capacity = has(node, name)
            if capacity == 0 or (wanted == 0 and name not in NATIVE):
                continue
            full = used(self.placed[node.name], name) + (wanted if with_pod else 0)
            fractions.append(min(Fraction(1), Fraction(full, capacity)))
        if len(fractions) < 2:
            return 100
        mean = sum(fractions, Fraction()) / len(fractions)
        variance = sum(((one - mean) ** 2 for one in fractions), Fraction()) / len(fractions)
        return -ceil_root(variance * 10_000) + 100


def ceil_root(square: Fraction) -> int:
    """Return the least integer whose square is not below this."""
    root = isqrt(square.numerator // square.denominator)
    return root if root * root >= square else root + 1


def has(node: Node, resource: str) -> int:
    text = node.allocatable.get(resource)
    return 0 if text is None else amount(resource, text)


def used(pods: Sequence[Pod], resource: str) -> int:
    return sum(requests.accounted(pod).get(resource, 0) for pod in pods)


def counted(pods: Sequence[Pod], resource: str) -> int:
    """Return what the pods count for in scores: cpu and memory with defaults."""
    if resource in NATIVE[:2]:
        return sum(requests.non_zero(pod)[NATIVE.index(resource)] for pod in pods)
    return used(pods, resource)
