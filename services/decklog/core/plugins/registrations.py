"""Which events may make schedulable what a plugin rejected (EventsToRegister).

The table holds kube-scheduler's registrations for the default plugins; a plugin that is not in it
and implements `events_to_register` says so itself; one that says nothing is taken to depend on
everything. Hints, which narrow a registration to the events that really help, come with the plugin
that has them.
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
    UPDATE_POD_SCALE_DOWN,
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
    UPDATE_POD_TOLERATION,
    Registration,
)
from decklog.core.plugins.not_yet import NotYet
from decklog.objects.node import Node
from decklog.objects.pod import Pod


def _own(pod: Pod, old: Any, new: Any) -> bool:
    """The event is the waiting pod's own update."""
    return isinstance(new, Pod) and new.uid == pod.uid


def _was_placed(pod: Pod, old: Any, new: Any) -> bool:
    """The deleted pod held room, or had it promised."""
    return isinstance(old, Pod) and bool(old.node_name or old.nominated_node_name)


def _scaled_down(pod: Pod, old: Any, new: Any) -> bool:
    return _own(pod, old, new) or (isinstance(new, Pod) and bool(new.node_name))


def _became_schedulable(pod: Pod, old: Any, new: Any) -> bool:
    if not isinstance(new, Node):
        return True
    return not new.unschedulable and (old is None or old.unschedulable)


DEFAULTS: Final[Mapping[str, Sequence[tuple[str, int, Any]]]] = {
    "SchedulingGates": ((POD, UPDATE_POD_SCHEDULING_GATES_ELIMINATED, _own),),
    "NodeUnschedulable": (
        (NODE, ADD | UPDATE_NODE_TAINT, _became_schedulable),
        (POD, UPDATE_POD_TOLERATION, _own),
    ),
    "NodeName": ((NODE, ADD, None),),
    "TaintToleration": (
        (NODE, ADD | UPDATE_NODE_TAINT, None),
        (POD, UPDATE_POD_TOLERATION, _own),
    ),
    "NodeAffinity": ((NODE, ADD | UPDATE_NODE_LABEL, None),),
    "NodePorts": ((POD, DELETE, _was_placed), (NODE, ADD, None)),
    "NodeResourcesFit": (
        (POD, DELETE, _was_placed),
        (POD, UPDATE_POD_SCALE_DOWN, _scaled_down),
        (NODE, ADD | UPDATE_NODE_ALLOCATABLE, None),
    ),
    "NodeResourcesBalancedAllocation": (),
    "ImageLocality": (),
    "NodeDeclaredFeatures": (
        (NODE, ADD | UPDATE_NODE_DECLARED_FEATURE, None),
        (POD, UPDATE, _own),
    ),
    "DefaultPreemption": ((POD, DELETE, lambda pod, old, new: False),),
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
        "CSINode",
        "CSIDriver",
        "CSIStorageCapacity",
        "StorageClass",
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
    if isinstance(plugin, NotYet):
        return []  # No event cures what decklog cannot do.
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
