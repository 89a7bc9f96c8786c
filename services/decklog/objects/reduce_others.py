"""The kinds beside pods and nodes, from decoded JSON."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from decklog.objects.meta import KubeObject, OwnerReference
from decklog.objects.policy import (
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from decklog.objects.quantity import InvalidQuantity, parse
from decklog.objects.raw import (
    Raw,
    boolean,
    integer,
    items,
    mapping,
    optional_text,
    string_map,
    text,
    texts,
    wrong,
)
from decklog.objects.reduce_selectors import label_selector, node_selector
from decklog.objects.storage import (
    ClaimRef,
    CSIDriver,
    CSINode,
    CSINodeDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorTerm,
    VolumeAttachment,
    VolumeSource,
)

Common = dict[str, Any]
_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_IN_TREE: Final[Mapping[str, str]] = {
    "awsElasticBlockStore": "volumeID",
    "gcePersistentDisk": "pdName",
    "azureDisk": "diskName",
    "cinder": "volumeID",
    "portworxVolume": "volumeID",
    "vsphereVolume": "volumePath",
    "azureFile": "shareName",
}


def _quantities(raw: Raw, key: str, path: str) -> dict[str, str]:
    found = mapping(raw, key, path)
    return {name: _quantity(found, name, f"{path}.{key}") or "0" for name in sorted(found)}


def _quantity(raw: Raw, key: str, path: str) -> str | None:
    value = raw.get(key)
    if value is None:
        return None
    shown = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(shown, str):
        raise wrong(path, key, found=value, want="a quantity")
    try:
        parse(shown)
    except InvalidQuantity as error:
        raise wrong(path, key, found=value, want="a quantity") from error
    return shown


def _namespace(raw: Raw, metadata: Raw, common: Common) -> Namespace:
    return Namespace(**common)


def _persistent_volume(raw: Raw, metadata: Raw, common: Common) -> PersistentVolume:
    spec = mapping(raw, "spec", "")
    claim = mapping(spec, "claimRef", "spec")
    affinity = mapping(spec, "nodeAffinity", "spec")
    return PersistentVolume(
        **common,
        deleted=optional_text(metadata, "deletionTimestamp", "metadata"),
        capacity=_quantities(spec, "capacity", "spec"),
        access_modes=texts(spec, "accessModes", "spec"),
        storage_class=common["annotations"].get(_BETA_CLASS)
        or text(spec, "storageClassName", "spec"),
        volume_mode=optional_text(spec, "volumeMode", "spec"),
        volume_attributes_class=optional_text(spec, "volumeAttributesClassName", "spec"),
        claim_ref=ClaimRef(
            namespace=text(claim, "namespace", "spec.claimRef"),
            name=text(claim, "name", "spec.claimRef"),
            uid=text(claim, "uid", "spec.claimRef"),
        )
        if claim
        else None,
        node_affinity=node_selector(affinity, "required", "spec.nodeAffinity"),
        source=_source(spec),
        phase=text(mapping(raw, "status", ""), "phase", "status"),
    )


def _source(spec: Raw) -> VolumeSource | None:
    if spec.get("csi") is not None:
        csi = mapping(spec, "csi", "spec")
        return VolumeSource(
            kind="csi",
            driver=text(csi, "driver", "spec.csi"),
            handle=text(csi, "volumeHandle", "spec.csi"),
        )
    for kind, key in _IN_TREE.items():
        if spec.get(kind) is not None:
            handle = text(mapping(spec, kind, "spec"), key, f"spec.{kind}")
            return VolumeSource(kind=kind, handle=handle)
    return None


def _claim(raw: Raw, metadata: Raw, common: Common) -> PersistentVolumeClaim:
    spec = mapping(raw, "spec", "")
    beta = common["annotations"].get(_BETA_CLASS)
    resources = mapping(spec, "resources", "spec")
    return PersistentVolumeClaim(
        **common,
        deleted=optional_text(metadata, "deletionTimestamp", "metadata"),
        owner=_owner(metadata),
        storage_class=beta if beta is not None else optional_text(spec, "storageClassName", "spec"),
        volume_name=text(spec, "volumeName", "spec"),
        volume_mode=optional_text(spec, "volumeMode", "spec"),
        volume_attributes_class=optional_text(spec, "volumeAttributesClassName", "spec"),
        access_modes=texts(spec, "accessModes", "spec"),
        requests=_quantities(resources, "requests", "spec.resources"),
        selector=label_selector(spec, "selector", "spec"),
        phase=text(mapping(raw, "status", ""), "phase", "status"),
    )


def _owner(metadata: Raw) -> OwnerReference | None:
    for reference in items(metadata, "ownerReferences", "metadata"):
        if reference.get("controller"):
            return OwnerReference(
                api_version=text(reference, "apiVersion", "metadata.ownerReferences"),
                kind=text(reference, "kind", "metadata.ownerReferences"),
                name=text(reference, "name", "metadata.ownerReferences"),
                uid=text(reference, "uid", "metadata.ownerReferences"),
            )
    return None


def _storage_class(raw: Raw, metadata: Raw, common: Common) -> StorageClass:
    return StorageClass(
        **common,
        provisioner=text(raw, "provisioner", ""),
        volume_binding_mode=optional_text(raw, "volumeBindingMode", ""),
        allowed_topologies=tuple(
            TopologySelectorTerm(
                expressions=tuple(
                    (
                        text(one, "key", "allowedTopologies"),
                        texts(one, "values", "allowedTopologies"),
                    )
                    for one in items(term, "matchLabelExpressions", "allowedTopologies")
                )
            )
            for term in items(raw, "allowedTopologies", "")
        ),
    )


def _csi_node(raw: Raw, metadata: Raw, common: Common) -> CSINode:
    drivers = items(mapping(raw, "spec", ""), "drivers", "spec")
    return CSINode(
        **common,
        drivers=tuple(
            CSINodeDriver(name=text(driver, "name", "spec.drivers"), count=_count(driver))
            for driver in drivers
        ),
    )


def _count(driver: Raw) -> int | None:
    allocatable = mapping(driver, "allocatable", "spec.drivers")
    if allocatable.get("count") is None:
        return None
    return integer(allocatable, "count", "spec.drivers.allocatable")


def _csi_driver(raw: Raw, metadata: Raw, common: Common) -> CSIDriver:
    spec = mapping(raw, "spec", "")
    return CSIDriver(
        **common,
        storage_capacity=boolean(spec, "storageCapacity", "spec"),
        prevent_pod_scheduling_if_missing=boolean(spec, "preventPodSchedulingIfMissing", "spec"),
    )


def _csi_storage_capacity(raw: Raw, metadata: Raw, common: Common) -> CSIStorageCapacity:
    return CSIStorageCapacity(
        **common,
        storage_class=text(raw, "storageClassName", ""),
        capacity=_quantity(raw, "capacity", ""),
        maximum_volume_size=_quantity(raw, "maximumVolumeSize", ""),
        node_topology=label_selector(raw, "nodeTopology", ""),
    )


def _volume_attachment(raw: Raw, metadata: Raw, common: Common) -> VolumeAttachment:
    spec, status = mapping(raw, "spec", ""), mapping(raw, "status", "")
    source = mapping(spec, "source", "spec")
    return VolumeAttachment(
        **common,
        attacher=text(spec, "attacher", "spec"),
        node_name=text(spec, "nodeName", "spec"),
        volume_name=optional_text(source, "persistentVolumeName", "spec.source"),
        attached=boolean(status, "attached", "status"),
    )


def _budget(raw: Raw, metadata: Raw, common: Common) -> PodDisruptionBudget:
    status = mapping(raw, "status", "")
    return PodDisruptionBudget(
        **common,
        selector=label_selector(mapping(raw, "spec", ""), "selector", "spec"),
        disruptions_allowed=integer(status, "disruptionsAllowed", "status"),
        disrupted_pods=tuple(sorted(mapping(status, "disruptedPods", "status"))),
    )


def _priority_class(raw: Raw, metadata: Raw, common: Common) -> PriorityClass:
    return PriorityClass(
        **common,
        value=integer(raw, "value", ""),
        global_default=boolean(raw, "globalDefault", ""),
        preemption_policy=text(raw, "preemptionPolicy", ""),
    )


def _replica_set(raw: Raw, metadata: Raw, common: Common) -> ReplicaSet:
    return ReplicaSet(
        **common, selector=label_selector(mapping(raw, "spec", ""), "selector", "spec")
    )


def _stateful_set(raw: Raw, metadata: Raw, common: Common) -> StatefulSet:
    return StatefulSet(
        **common, selector=label_selector(mapping(raw, "spec", ""), "selector", "spec")
    )


def _replication_controller(raw: Raw, metadata: Raw, common: Common) -> ReplicationController:
    return ReplicationController(**common, selector=_label_map(raw))


def _service(raw: Raw, metadata: Raw, common: Common) -> Service:
    return Service(**common, selector=_label_map(raw))


def _label_map(raw: Raw) -> dict[str, str] | None:
    spec = mapping(raw, "spec", "")
    return None if spec.get("selector") is None else string_map(spec, "selector", "spec")


REDUCERS: Final[Mapping[str, Callable[[Raw, Raw, Common], KubeObject]]] = {
    "Namespace": _namespace,
    "PersistentVolume": _persistent_volume,
    "PersistentVolumeClaim": _claim,
    "StorageClass": _storage_class,
    "CSINode": _csi_node,
    "CSIDriver": _csi_driver,
    "CSIStorageCapacity": _csi_storage_capacity,
    "VolumeAttachment": _volume_attachment,
    "PodDisruptionBudget": _budget,
    "PriorityClass": _priority_class,
    "ReplicaSet": _replica_set,
    "StatefulSet": _stateful_set,
    "ReplicationController": _replication_controller,
    "Service": _service,
}
