"""Builders of objects: a test names only what matters to it."""

from typing import Any, Final

from decklog.objects.node import Node
from decklog.objects.pod import Container, Pod
from decklog.objects.policy import Namespace
from decklog.objects.selectors import LabelSelector, LabelSelectorRequirement, Taint, Toleration
from decklog.objects.storage import PersistentVolume, PersistentVolumeClaim

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"


def make_pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    milli_cpu: int | None = None,
    memory: str | None = None,
    more: dict[str, str] | None = None,
    **fields: Any,
) -> Pod:
    """Return a pod with one container that asks for what is given; `more` are other resources.

    Where `containers` are given, they stand in its place. The uid follows from namespace and name.
    """
    requests = dict(more or {})
    if milli_cpu is not None:
        requests["cpu"] = f"{milli_cpu}m"
    if memory is not None:
        requests["memory"] = memory
    container = Container(name="app", requests=dict(sorted(requests.items())) or None)
    return Pod(
        **{
            "uid": f"uid-{namespace}-{name}",
            "namespace": namespace,
            "name": name,
            "containers": (container,),
            **fields,
        }
    )


def make_container(
    name: str = "app", *, milli_cpu: int | None = None, memory: str | None = None, **fields: Any
) -> Container:
    requests: dict[str, str] = {}
    if milli_cpu is not None:
        requests["cpu"] = f"{milli_cpu}m"
    if memory is not None:
        requests["memory"] = memory
    return Container(**{"name": name, "requests": requests or None, **fields})


def make_sidecar(name: str = "sidecar", **fields: Any) -> Container:
    return make_container(name, restart_policy="Always", **fields)


def make_node(
    name: str = "node",
    *,
    milli_cpu: int = 4000,
    memory: str = "8Gi",
    pods: int = 110,
    zone: str | None = None,
    more: dict[str, str] | None = None,
    **fields: Any,
) -> Node:
    """Return a node with room; its labels are its hostname, its zone if given, and `labels`."""
    allocatable = {"cpu": f"{milli_cpu}m", "memory": memory, "pods": str(pods), **(more or {})}
    labels = {HOSTNAME: name, **({} if zone is None else {ZONE: zone}), **fields.pop("labels", {})}
    return Node(
        **{
            "uid": f"uid-{name}",
            "name": name,
            "labels": dict(sorted(labels.items())),
            "allocatable": dict(sorted(allocatable.items())),
            **fields,
        }
    )


def make_namespace(name: str = "default", **labels: str) -> Namespace:
    return Namespace(uid=f"uid-{name}", name=name, labels=dict(sorted(labels.items())))


def make_claim(
    name: str = "claim", *, namespace: str = "default", storage: str = "1Gi", **fields: Any
) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        **{
            "uid": f"uid-{namespace}-{name}",
            "namespace": namespace,
            "name": name,
            "access_modes": ("ReadWriteOnce",),
            "requests": {"storage": storage},
            **fields,
        }
    )


def make_volume(name: str = "volume", *, storage: str = "1Gi", **fields: Any) -> PersistentVolume:
    return PersistentVolume(
        **{
            "uid": f"uid-{name}",
            "name": name,
            "access_modes": ("ReadWriteOnce",),
            "capacity": {"storage": storage},
            "phase": "Available",
            **fields,
        }
    )


def make_selector(*expressions: tuple[str, str, tuple[str, ...]], **labels: str) -> LabelSelector:
    """Return a selector of labels and of (key, operator, values)."""
    return LabelSelector(
        match_labels=dict(sorted(labels.items())),
        match_expressions=tuple(
            LabelSelectorRequirement(key=key, operator=operator, values=values)
            for key, operator, values in expressions
        ),
    )


def make_taint(key: str = "dedicated", value: str = "", effect: str = "NoSchedule") -> Taint:
    return Taint(key=key, value=value, effect=effect)


def make_toleration(
    key: str = "", value: str = "", *, operator: str = "Equal", effect: str = ""
) -> Toleration:
    return Toleration(key=key, operator=operator, value=value, effect=effect)
