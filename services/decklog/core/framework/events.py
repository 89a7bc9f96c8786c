"""Cluster events: what changed, in kube-scheduler's terms, and what an update amounts to.

An event is a resource and a set of actions. A plugin registers the events that may make a pod
schedulable that it rejected; an incoming event matches a registration when resource and actions
meet and no incoming action is higher than the registered ones (kube-scheduler's `Match`, with
its consequence that a generic update wakes only those who registered for all updates).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from decklog.objects import requests
from decklog.objects.matching import InvalidSelector
from decklog.objects.node import Node
from decklog.objects.pod import Pod
from decklog.objects.selectors import Taint

ADD: Final = 1 << 0
DELETE: Final = 1 << 1
UPDATE_NODE_ALLOCATABLE: Final = 1 << 2
UPDATE_NODE_LABEL: Final = 1 << 3
UPDATE_NODE_TAINT: Final = 1 << 4
UPDATE_NODE_CONDITION: Final = 1 << 5
UPDATE_NODE_ANNOTATION: Final = 1 << 6
UPDATE_NODE_DECLARED_FEATURE: Final = 1 << 7
UPDATE_POD_LABEL: Final = 1 << 8
UPDATE_POD_SCALE_DOWN: Final = 1 << 9
UPDATE_POD_TOLERATION: Final = 1 << 10
UPDATE_POD_SCHEDULING_GATES_ELIMINATED: Final = 1 << 11
UPDATE_POD_GENERATED_RESOURCE_CLAIM: Final = 1 << 12
ALL: Final = (1 << 13) - 1
UPDATE: Final = ALL & ~(ADD | DELETE)

_ACTION_NAMES: Final = {
    ADD: "Add",
    DELETE: "Delete",
    UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    UPDATE_NODE_LABEL: "UpdateNodeLabel",
    UPDATE_NODE_TAINT: "UpdateNodeTaint",
    UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    UPDATE_NODE_ANNOTATION: "UpdateNodeAnnotation",
    UPDATE_NODE_DECLARED_FEATURE: "UpdateNodeDeclaredFeature",
    UPDATE_POD_LABEL: "UpdatePodLabel",
    UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    UPDATE_POD_TOLERATION: "UpdatePodToleration",
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
    UPDATE_POD_GENERATED_RESOURCE_CLAIM: "UpdatePodGeneratedResourceClaim",
    UPDATE: "Update",
    ALL: "All",
}

ACTIONS: Final = {name: action for action, name in _ACTION_NAMES.items()}
"""Action by the name that Kubernetes gives it."""

POD: Final = "Pod"
ASSIGNED_POD: Final = "AssignedPod"
UNSCHEDULABLE_POD: Final = "UnschedulablePod"
NODE: Final = "Node"
WILDCARD: Final = "*"
_STORAGE_KINDS: Final = (
    "CSIDriver",
    "CSINode",
    "CSIStorageCapacity",
    "StorageClass",
    "VolumeAttachment",
)
_PODS: Final = (POD, ASSIGNED_POD, UNSCHEDULABLE_POD)


def resource_of(kind: str) -> str:
    """Return the name under which events of a kind are registered."""
    return f"storage.k8s.io/{kind}" if kind in _STORAGE_KINDS else kind


@dataclass(frozen=True, slots=True)
class Happening:
    """An incoming event. `custom_label` names those that are not a change of an object."""

    resource: str
    action: int
    custom_label: str = ""

    @property
    def label(self) -> str:
        return self.custom_label or self.resource + _ACTION_NAMES.get(self.action, "")

    @property
    def is_wildcard(self) -> bool:
        return self.resource == WILDCARD and self.action == ALL


NODE_ADD: Final = Happening(NODE, ADD)
NODE_DELETE: Final = Happening(NODE, DELETE)
ASSIGNED_POD_ADD: Final = Happening(ASSIGNED_POD, ADD)
ASSIGNED_POD_DELETE: Final = Happening(ASSIGNED_POD, DELETE)
UNSCHEDULABLE_POD_ADD: Final = Happening(UNSCHEDULABLE_POD, ADD)
UNSCHEDULABLE_POD_UPDATE: Final = Happening(UNSCHEDULABLE_POD, UPDATE)
UNSCHEDULABLE_TIMEOUT: Final = Happening(WILDCARD, ALL, "UnschedulableTimeout")
FORCE_ACTIVATE: Final = Happening(WILDCARD, ALL, "ForceActivate")


Hint = Callable[[Pod, Any, Any], bool]
"""(waiting pod, old, new) → whether the event may help it."""


@dataclass(frozen=True, slots=True)
class Registration:
    """A plugin's registered event. Without a hint the pod is always queued."""

    plugin: str
    resource: str
    action: int
    hint: Hint | None = None

    def matches(self, happening: Happening) -> bool:
        if self.resource == WILDCARD and self.action == ALL:
            return True
        if not _same_resource(self.resource, happening.resource):
            return False
        return bool(self.action & happening.action) and happening.action <= self.action

    def helps(self, pod: Pod, old: Any, new: Any) -> bool:
        """Ask the hint; where there is none, or it cannot tell, the event may help."""
        if self.hint is None:
            return True
        try:
            return self.hint(pod, old, new)
        except InvalidSelector:
            return True


def _same_resource(registered: str, incoming: str) -> bool:
    if registered in (incoming, WILDCARD):
        return True
    return registered == POD and incoming in _PODS


def node_update_events(old: Node, new: Node) -> list[Happening]:
    """Return what the update of a node amounts to; nothing when no scheduler would care."""
    changes = (
        (old.unschedulable and not new.unschedulable, UPDATE_NODE_TAINT),
        (old.allocatable != new.allocatable, UPDATE_NODE_ALLOCATABLE),
        (old.labels != new.labels, UPDATE_NODE_LABEL),
        (_taints(old) != _taints(new), UPDATE_NODE_TAINT),
        (old.conditions != new.conditions, UPDATE_NODE_CONDITION),
        (old.annotations != new.annotations, UPDATE_NODE_ANNOTATION),
        (old.declared_features != new.declared_features, UPDATE_NODE_DECLARED_FEATURE),
    )
    return [Happening(NODE, action) for changed, action in changes if changed]


def _taints(node: Node) -> list[tuple[Taint, str]]:
    return [(taint, taint.time_added) for taint in node.taints]


def pod_update_events(old: Pod, new: Pod) -> list[Happening]:
    """Return what a pod's update amounts to; one generic update if nothing special changed."""
    resource = ASSIGNED_POD if new.node_name else UNSCHEDULABLE_POD
    changes = (
        (old.labels != new.labels, UPDATE_POD_LABEL),
        (_scaled_down(old, new), UPDATE_POD_SCALE_DOWN),
        (
            bool(old.scheduling_gates) and not new.scheduling_gates,
            UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
        ),
        (len(old.tolerations) != len(new.tolerations), UPDATE_POD_TOLERATION),
        (
            old.resource_claim_statuses != new.resource_claim_statuses,
            UPDATE_POD_GENERATED_RESOURCE_CLAIM,
        ),
    )
    special = [Happening(resource, action) for changed, action in changes if changed]
    return special or [Happening(resource, UPDATE)]


def _scaled_down(old: Pod, new: Pod) -> bool:
    if (
        old.containers == new.containers
        and old.init_containers == new.init_containers
        and old.resources == new.resources
        and old.container_statuses == new.container_statuses
        and old.status_resources == new.status_resources
        and old.overhead == new.overhead
        and old.conditions == new.conditions
    ):
        return False
    was, now = requests.accounted(old), requests.accounted(new)
    return any(now.get(name, 0) < amount for name, amount in was.items())
