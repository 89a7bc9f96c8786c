"""Which keys of nodes, volumes, policies and controllers are kept."""

from typing import Any, Final

from decklog.objects.node import ContainerImage
from decklog.objects.pod_shape import DISK_PARTS
from decklog.objects.selector_shapes import LABEL_SELECTOR, NODE_SELECTOR, TAINT
from decklog.objects.shape import (
    Entry,
    Table,
    boolean,
    each,
    inside,
    integer,
    quantities,
    quantity,
    read_each,
    read_into,
    read_mapping,
    read_text,
    section,
    shape,
    text,
    text_map,
    texts,
)
from decklog.objects.storage import ClaimRef, CSINodeDriver, TopologySelectorTerm, VolumeSource


def _read_conditions(value: object) -> dict[str, str]:
    """Return type → status, sorted like all mappings."""
    table = {"type": text("type"), "status": text("status")}

    def read(raw: object) -> tuple[str, str]:
        found = {"type": "", "status": ""}
        read_into(found, raw, table)
        return found["type"], found["status"]

    return dict(sorted(read_each(value, read)))


def _write_conditions(conditions: dict[str, str]) -> list[dict[str, str]]:
    return [{"type": kind, "status": status} for kind, status in conditions.items()]


_IMAGE: Final = shape(
    ContainerImage, {"names": texts("names"), "sizeBytes": integer("size_bytes")}, names=()
)
_NODE: Final = {
    "spec": section({"unschedulable": boolean("unschedulable"), "taints": each("taints", TAINT)}),
    "status": section(
        {
            "allocatable": quantities("allocatable"),
            "images": each("images", _IMAGE),
            "conditions": Entry("conditions", _read_conditions, _write_conditions),
            "declaredFeatures": texts("declared_features"),
        }
    ),
}


def _source(kind: str, handle: str) -> Entry:
    """A volume's source; `csi` has a driver as well."""
    table = {"driver": text("driver"), handle: text("handle")}

    def read(value: object) -> VolumeSource:
        found: dict[str, Any] = {}
        read_into(found, value, table if kind == "csi" else {handle: table[handle]})
        return VolumeSource(kind=kind, **found)

    def write(source: VolumeSource) -> dict[str, Any]:
        written = {"driver": source.driver, handle: source.handle}
        return {key: part for key, part in written.items() if part}

    return Entry("source", read, write, when=lambda source: bool(source.kind == kind))


_CLAIM_REF: Final = shape(
    ClaimRef,
    {"namespace": text("namespace"), "name": text("name"), "uid": text("uid")},
    namespace="",
    name="",
)
_PERSISTENT_VOLUME: Final = {
    "spec": section(
        {
            "capacity": quantities("capacity"),
            "accessModes": texts("access_modes"),
            "storageClassName": text("storage_class"),
            "volumeMode": text("volume_mode"),
            "volumeAttributesClassName": text("volume_attributes_class"),
            "claimRef": inside("claim_ref", _CLAIM_REF),
            "nodeAffinity": section({"required": inside("node_affinity", NODE_SELECTOR)}),
            "csi": _source("csi", "volumeHandle"),
            **{kind: _source(kind, parts[-1]) for kind, parts in DISK_PARTS.items()},
        }
    ),
    "status": section({"phase": text("phase")}),
}
_PERSISTENT_VOLUME_CLAIM: Final = {
    "spec": section(
        {
            "storageClassName": text("storage_class"),
            "volumeName": text("volume_name"),
            "volumeMode": text("volume_mode"),
            "volumeAttributesClassName": text("volume_attributes_class"),
            "accessModes": texts("access_modes"),
            "resources": section({"requests": quantities("requests")}),
            "selector": inside("selector", LABEL_SELECTOR),
        }
    ),
    "status": section({"phase": text("phase")}),
}


def _read_topology(raw: object) -> TopologySelectorTerm:
    def read(one: object) -> tuple[str, tuple[str, ...]]:
        found: dict[str, Any] = {"key": "", "values": ()}
        read_into(found, one, {"key": text("key"), "values": texts("values")})
        return found["key"], found["values"]

    found: dict[str, Any] = {}
    entry = Entry("expressions", lambda value: read_each(value, read))
    read_into(found, raw, {"matchLabelExpressions": entry})
    return TopologySelectorTerm(**found)


def _write_topologies(terms: tuple[TopologySelectorTerm, ...]) -> list[dict[str, Any]]:
    return [
        {
            "matchLabelExpressions": [
                {"key": key, "values": list(values)} for key, values in term.expressions
            ]
        }
        for term in terms
    ]


_STORAGE_CLASS: Final = {
    "provisioner": text("provisioner"),
    "volumeBindingMode": text("volume_binding_mode"),
    "allowedTopologies": Entry(
        "allowed_topologies", lambda value: read_each(value, _read_topology), _write_topologies
    ),
}
_DRIVER: Final = shape(
    CSINodeDriver,
    {"name": text("name"), "allocatable": section({"count": integer("count")})},
    name="",
)
_CSI_NODE: Final = {"spec": section({"drivers": each("drivers", _DRIVER)})}
_CSI_DRIVER: Final = {
    "spec": section(
        {
            "storageCapacity": boolean("storage_capacity"),
            "preventPodSchedulingIfMissing": boolean("prevent_pod_scheduling_if_missing"),
        }
    )
}
_CSI_STORAGE_CAPACITY: Final = {
    "storageClassName": text("storage_class"),
    "capacity": quantity("capacity"),
    "maximumVolumeSize": quantity("maximum_volume_size"),
    "nodeTopology": inside("node_topology", LABEL_SELECTOR),
}
_VOLUME_ATTACHMENT: Final = {
    "spec": section(
        {
            "attacher": text("attacher"),
            "nodeName": text("node_name"),
            "source": section({"persistentVolumeName": text("volume_name")}),
        }
    ),
    "status": section({"attached": boolean("attached")}),
}


def _read_disrupted(value: object) -> tuple[str, ...]:
    """Return the names of the pods; the times at which they were evicted do not matter."""
    return tuple(sorted(map(read_text, read_mapping(value))))


def _write_disrupted(pods: tuple[str, ...]) -> dict[str, str]:
    return dict.fromkeys(pods, "1970-01-01T00:00:00Z")


_POD_DISRUPTION_BUDGET: Final = {
    "spec": section({"selector": inside("selector", LABEL_SELECTOR)}),
    "status": section(
        {
            "disruptionsAllowed": integer("disruptions_allowed"),
            "disruptedPods": Entry("disrupted_pods", _read_disrupted, _write_disrupted),
        }
    ),
}
_PRIORITY_CLASS: Final = {
    "value": integer("value"),
    "globalDefault": boolean("global_default"),
    "preemptionPolicy": text("preemption_policy"),
}
_SELECTED: Final = {"spec": section({"selector": inside("selector", LABEL_SELECTOR)})}
_SELECTED_BY_MAP: Final = {"spec": section({"selector": text_map("selector")})}

TABLES: Final[dict[str, Table]] = {
    "Namespace": {},
    "Node": _NODE,
    "PriorityClass": _PRIORITY_CLASS,
    "StorageClass": _STORAGE_CLASS,
    "CSIDriver": _CSI_DRIVER,
    "CSINode": _CSI_NODE,
    "CSIStorageCapacity": _CSI_STORAGE_CAPACITY,
    "PersistentVolume": _PERSISTENT_VOLUME,
    "PersistentVolumeClaim": _PERSISTENT_VOLUME_CLAIM,
    "VolumeAttachment": _VOLUME_ATTACHMENT,
    "PodDisruptionBudget": _POD_DISRUPTION_BUDGET,
    "Service": _SELECTED_BY_MAP,
    "ReplicationController": _SELECTED_BY_MAP,
    "ReplicaSet": _SELECTED,
    "StatefulSet": _SELECTED,
}
"""By kind: what is kept beside metadata; pods have a file of their own."""
