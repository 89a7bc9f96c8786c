"""Which events may make schedulable what a plugin rejected (EventsToRegister).

The table holds kube-scheduler's registrations for the default plugins; a plugin that is not in it
and implements `events_to_register` says so itself; one that says nothing is taken to depend on
everything. Hints narrow a registration to the events that really help.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from decklog.core.framework.events import (
    ADD,
    ALL,
    DELETE,
    NODE,
    POD,
    UPDATE,
    UPDATE_NODE_ALLOCATABLE,
    UPDATE_NODE_DECLARED_FEATURE,
    UPDATE_NODE_LABEL,
    UPDATE_NODE_TAINT,
    UPDATE_POD_GENERATED_RESOURCE_CLAIM,
    UPDATE_POD_LABEL,
    UPDATE_POD_SCALE_DOWN,
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
    UPDATE_POD_TOLERATION,
    Hint,
    Registration,
)
from decklog.core.plugins import hints, pod_hints

_CSI: Final = "storage.k8s.io/"
_CHANGED: Final = ADD | UPDATE
_CLAIM: Final = "PersistentVolumeClaim"
_DYNAMIC: Final = "resource.k8s.io/"

DEFAULTS: Final[Mapping[str, Sequence[tuple[str, int, Hint | None]]]] = {
    "SchedulingGates": ((POD, UPDATE_POD_SCHEDULING_GATES_ELIMINATED, hints.own),),
    "NodeUnschedulable": (
        (NODE, ADD | UPDATE_NODE_TAINT, hints.node_unschedulable),
        (POD, UPDATE_POD_TOLERATION, hints.node_unschedulable_own),
    ),
    "NodeName": ((NODE, ADD, None),),
    "TaintToleration": (
        (NODE, ADD | UPDATE_NODE_TAINT, hints.taint_toleration),
        (POD, UPDATE_POD_TOLERATION, hints.own),
    ),
    "NodeAffinity": ((NODE, ADD | UPDATE_NODE_LABEL, hints.node_affinity),),
    "NodePorts": ((POD, DELETE, hints.node_ports), (NODE, ADD, None)),
    "NodeResourcesFit": (
        (POD, DELETE | UPDATE_POD_SCALE_DOWN, hints.room_freed),
        (NODE, ADD | UPDATE_NODE_ALLOCATABLE, hints.fits_node),
        (f"{_DYNAMIC}DeviceClass", _CHANGED, hints.never),
    ),
    "NodeResourcesBalancedAllocation": (),
    "ImageLocality": (),
    "VolumeRestrictions": (
        (POD, DELETE, hints.disks_freed),
        (NODE, ADD, None),
        (_CLAIM, ADD, hints.claim_of_pod),
    ),
    "NodeVolumeLimits": (
        (f"{_CSI}CSINode", ADD, None),
        (f"{_CSI}CSINode", UPDATE, hints.limit_raised),
        (POD, DELETE, hints.attachments_freed),
        (_CLAIM, ADD, hints.claim_or_ephemeral),
        (f"{_CSI}VolumeAttachment", DELETE, hints.attachment_gone),
    ),
    "VolumeBinding": (
        (f"{_CSI}StorageClass", _CHANGED, hints.topologies_changed),
        (_CLAIM, _CHANGED, hints.claim_or_ephemeral),
        ("PersistentVolume", _CHANGED, None),
        (NODE, ADD | UPDATE_NODE_LABEL, None),
        (f"{_CSI}CSINode", _CHANGED, hints.migration_changed),
        (f"{_CSI}CSIDriver", UPDATE, hints.capacity_no_longer_checked),
        (f"{_CSI}CSIStorageCapacity", _CHANGED, hints.capacity_raised),
    ),
    "VolumeZone": (
        (f"{_CSI}StorageClass", ADD, hints.waits_for_consumer),
        (NODE, ADD | UPDATE_NODE_LABEL, None),
        (_CLAIM, _CHANGED, hints.claim_of_pod),
        ("PersistentVolume", _CHANGED, hints.zones_changed),
    ),
    "PodTopologySpread": (
        (POD, ADD | DELETE | UPDATE_POD_LABEL | UPDATE_POD_TOLERATION, pod_hints.spread_pod),
        (NODE, ADD | DELETE | UPDATE_NODE_LABEL | UPDATE_NODE_TAINT, pod_hints.spread_node),
    ),
    "InterPodAffinity": (
        (POD, ADD | DELETE | UPDATE_POD_LABEL, pod_hints.affinity_pod),
        (NODE, ADD | UPDATE_NODE_LABEL, pod_hints.affinity_node),
        ("Namespace", _CHANGED, pod_hints.affinity_namespace),  # Ours; upstream has none.
    ),
    "DynamicResources": (
        (NODE, ADD | UPDATE_NODE_LABEL | UPDATE_NODE_ALLOCATABLE, None),
        (f"{_DYNAMIC}ResourceClaim", _CHANGED, hints.never),
        (POD, UPDATE_POD_GENERATED_RESOURCE_CLAIM, hints.own),
        (f"{_DYNAMIC}DeviceClass", _CHANGED, None),
        (f"{_DYNAMIC}ResourceSlice", _CHANGED, None),
    ),
    "NodeDeclaredFeatures": (
        (NODE, ADD | UPDATE_NODE_DECLARED_FEATURE, hints.declared_features),
        (POD, UPDATE, hints.declared_features_own),
    ),
    "DefaultPreemption": ((POD, DELETE, hints.never),),
    "PrioritySort": (),
    "DefaultBinder": (),
}

_ANYTHING: Final = tuple(
    (resource, ALL)
    for resource in (
        POD,
        NODE,
        "PersistentVolume",
        "PersistentVolumeClaim",
        f"{_CSI}CSINode",
        f"{_CSI}CSIDriver",
        f"{_CSI}CSIStorageCapacity",
        f"{_CSI}StorageClass",
    )
)


def registrations_of(plugins: Mapping[str, Sequence[Any]]) -> dict[str, list[Registration]]:
    """Return the registrations of each profile, given its plugins."""
    return {
        profile: [registration for plugin in members for registration in _registrations(plugin)]
        for profile, members in plugins.items()
    }


def _registrations(plugin: Any) -> list[Registration]:
    name = plugin.name
    if hasattr(plugin, "events_to_register"):
        found = [
            Registration(name, event.resource, event.action, event.hint)
            for event in plugin.events_to_register()
        ]
    elif name in DEFAULTS:
        found = [Registration(name, *event) for event in DEFAULTS[name]]
    else:
        found = [Registration(name, resource, action) for resource, action in _ANYTHING]
    return found + _taint_registration(name, found)


def _taint_registration(name: str, found: Sequence[Registration]) -> list[Registration]:
    """Who waits for new nodes is woken by any taint change: a node may come with a taint first."""
    on_nodes = [registration for registration in found if registration.resource == NODE]
    adds = any(registration.action & ADD for registration in on_nodes)
    taints = any(registration.action & UPDATE_NODE_TAINT for registration in on_nodes)
    return [Registration(name, NODE, UPDATE_NODE_TAINT)] if adds and not taints else []
