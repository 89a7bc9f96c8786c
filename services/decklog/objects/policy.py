"""Namespaces, budgets, priorities, and the controllers whose selectors give default spreading."""

from dataclasses import dataclass, field

from decklog.objects.selectors import LabelSelector


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    uid: str
    name: str
    namespace: str = ""
    resource_version: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDisruptionBudget:
    uid: str
    namespace: str
    name: str
    resource_version: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    selector: LabelSelector | None = None
    disruptions_allowed: int = 0
    disrupted_pods: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClass:
    uid: str
    name: str
    namespace: str = ""
    resource_version: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    value: int = 0
    global_default: bool = False
    preemption_policy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSet:
    uid: str
    namespace: str
    name: str
    resource_version: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    selector: LabelSelector | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatefulSet:
    uid: str
    namespace: str
    name: str
    resource_version: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    selector: LabelSelector | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationController:
    uid: str
    namespace: str
    name: str
    resource_version: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    selector: dict[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    uid: str
    namespace: str
    name: str
    resource_version: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    selector: dict[str, str] | None = None
