"""Node, cut down to what scheduling reads."""

from dataclasses import dataclass, field

from decklog.objects.selectors import Taint


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerImage:
    names: tuple[str, ...]
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    uid: str
    name: str
    namespace: str = ""
    """Always empty; every object has one."""
    resource_version: str = ""
    created: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    allocatable: dict[str, str] = field(default_factory=dict)
    images: tuple[ContainerImage, ...] = ()
    conditions: dict[str, str] = field(default_factory=dict)
    """Condition type → status."""
    declared_features: tuple[str, ...] = ()
