"""A state as plain data: nodes with what is allocated on them, pods, and the queue."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from decklog.core.columns import CPU, Int64s
from decklog.core.resource_names import NATIVE, PODS
from decklog.core.state import SchedulerState
from decklog.history.standing import Stage, Standing, standing
from decklog.objects.pod import Pod
from decklog.ports.entries import to_rfc3339

_WAITS: Final = (Stage.QUEUED, Stage.BACKING_OFF, Stage.UNSCHEDULABLE, Stage.GATED)


def cluster(state: SchedulerState) -> dict[str, Any]:
    """Return the state's nodes by name, its pods by namespace and name, and its queue in order."""
    pods = sorted(state.store.objects("Pod").values(), key=lambda pod: (pod.namespace, pod.name))
    standings = {pod.uid: standing(state, pod) for pod in pods}
    return {
        "nodes": sorted(_nodes(state), key=lambda node: str(node["name"])),
        "pods": [_pod(pod, standings[pod.uid]) for pod in pods],
        "queue": [
            _waiting(pod, standings[pod.uid])
            for pod in sorted(pods, key=lambda pod: (-pod.priority, pod.namespace, pod.name))
            if standings[pod.uid].stage in _WAITS
        ],
    }


def stages(state: SchedulerState) -> Counter[str]:
    """Count the pods by where they stand."""
    return Counter(standing(state, pod).stage.value for pod in state.store.objects("Pod").values())


def _nodes(state: SchedulerState) -> Iterator[dict[str, Any]]:
    table = state.cache.columns
    for row, name in enumerate(table.names):
        pods = table.pods(row)
        if not name:
            continue
        node = table.node(row)
        yield {
            "name": name,
            "exists": bool(table.present[row]),
            "unschedulable": node.unschedulable,
            "taints": [f"{taint.key}={taint.value}:{taint.effect}" for taint in node.taints],
            "allocatable": {
                **_amounts(table.resource_names, table.allocatable[:, row]),
                PODS: str(table.allowed_pods[row]),
            },
            "requested": {
                **_amounts(table.resource_names, table.requested[:, row]),
                PODS: str(table.pod_count[row]),
            },
            "pods": sorted(pod.key for pod in pods),
        }


def _amounts(names: Sequence[str], amounts: Int64s) -> dict[str, str]:
    """Return what there is of each resource, as Kubernetes writes it."""
    return {
        name: f"{amount}m" if name == NATIVE[CPU] else str(amount)
        for name, amount in zip(names, amounts.tolist(), strict=False)
        if amount
    }


def _pod(pod: Pod, where: Standing) -> dict[str, Any]:
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "schedulerName": pod.scheduler_name,
        "priority": pod.priority,
        "stage": where.stage.value,
        "node": where.node or None,
    }


def _waiting(pod: Pod, where: Standing) -> dict[str, Any]:
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "stage": where.stage.value,
        "priority": pod.priority,
        "attempts": where.attempts,
        "since": None if where.since_ms is None else to_rfc3339(where.since_ms),
        "backoffUntil": None if where.until_ms is None else to_rfc3339(where.until_ms),
        "plugins": list(where.plugins),
    }
