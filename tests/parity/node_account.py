"""What a node has given away, kept as kube-scheduler keeps it: one pod after the other.

The plain reading of the rules: decklog's own columns keep the same sums for all nodes at once.
"""

from dataclasses import dataclass, field
from typing import Any

from decklog.objects.pod import Pod
from decklog.objects.requests import (
    HostPort,
    accounted,
    has_affinity,
    has_required_anti_affinity,
    host_ports,
    non_zero,
    pvc_keys,
)


@dataclass(slots=True)
class NodeAccount:
    requested: dict[str, int] = field(default_factory=dict)
    milli_cpu: int = 0
    memory: int = 0
    """These two with defaults for containers that ask for nothing."""
    ports: set[HostPort] = field(default_factory=set)
    claims: dict[str, int] = field(default_factory=dict)
    pods: list[Pod] = field(default_factory=list)
    with_affinity: list[Pod] = field(default_factory=list)
    with_required_anti_affinity: list[Pod] = field(default_factory=list)

    def add(self, pod: Pod) -> bool:
        self._count(pod, 1)
        self.ports.update(host_ports(pod))
        self.pods.append(pod)
        if has_affinity(pod):
            self.with_affinity.append(pod)
        if has_required_anti_affinity(pod):
            self.with_required_anti_affinity.append(pod)
        return True

    def remove(self, pod: Pod) -> bool:
        """Remove the pod, and say whether it was there; `pod` may be another version of it."""
        if has_affinity(pod):
            _take(self.with_affinity, pod)
        if has_required_anti_affinity(pod):
            _take(self.with_required_anti_affinity, pod)
        stored = _take(self.pods, pod)
        if stored is None:
            return False
        self._count(stored, -1)
        self.ports.difference_update(host_ports(stored))
        return True

    def state(self) -> dict[str, Any]:
        return {
            "nonZeroRequested": {"milliCPU": self.milli_cpu, "memory": self.memory},
            "usedPorts": sorted("/".join(map(str, port)) for port in self.ports),
            "pvcRefCounts": self.claims,
            "pods": [pod.name for pod in self.pods],
            "podsWithAffinity": [pod.name for pod in self.with_affinity],
            "podsWithRequiredAntiAffinity": [pod.name for pod in self.with_required_anti_affinity],
        }

    def _count(self, pod: Pod, sign: int) -> None:
        for name, value in accounted(pod).items():
            self.requested[name] = self.requested.get(name, 0) + sign * value
        milli_cpu, memory = non_zero(pod)
        self.milli_cpu += sign * milli_cpu
        self.memory += sign * memory
        for key in pvc_keys(pod):
            self.claims[key] = self.claims.get(key, 0) + sign
            if not self.claims[key]:
                del self.claims[key]


def _take(pods: list[Pod], pod: Pod) -> Pod | None:
    """Remove the version that is stored; the last pod of the list takes its place."""
    for index, stored in enumerate(pods):
        if stored.uid == pod.uid:
            pods[index] = pods[-1]
            pods.pop()
            return stored
    return None
