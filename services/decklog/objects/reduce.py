"""From an API object, as decoded from JSON or YAML, to the fields that scheduling reads.

Everything else is dropped here, before anything is written: env, args, secrets, managed fields,
and annotations outside an allow-list. What is kept is checked, so that whoever reads it later
need not. `restore.py` is the inverse.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from decklog.objects.kinds import Kind
from decklog.objects.meta import KubeObject, OwnerReference
from decklog.objects.node import ContainerImage, Node
from decklog.objects.pod import (
    Affinity,
    Container,
    ContainerPort,
    ContainerStatus,
    InlineDisk,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodCondition,
    PodResourceClaim,
    PodResources,
    ResourceClaimStatus,
    TopologySpreadConstraint,
    Volume,
    WeightedPodAffinityTerm,
)
from decklog.objects.quantity import InvalidQuantity, parse
from decklog.objects.raw import (
    InvalidObject,
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
from decklog.objects.reduce_others import REDUCERS
from decklog.objects.reduce_selectors import (
    label_selector,
    node_selector,
    node_selector_term,
    toleration,
)
from decklog.objects.selectors import PreferredSchedulingTerm, Taint

__all__ = ["ANNOTATION_KEYS", "InvalidObject", "reduce_object"]

Raw = Mapping[str, Any]
ANNOTATION_KEYS: Final = frozenset(
    {
        "decklog.dev/decision",
        "pv.kubernetes.io/bind-completed",
        "pv.kubernetes.io/bound-by-controller",
        "storage.alpha.kubernetes.io/migrated-plugins",
        "volume.beta.kubernetes.io/storage-class",
        "volume.kubernetes.io/selected-node",
    }
)
_POD_CONDITIONS: Final = ("PodScheduled", "DisruptionTarget", "PodResizePending")
_INLINE_DISKS: Final[Mapping[str, tuple[str, ...]]] = {
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "iscsi": ("iqn",),
    "rbd": ("pool", "image"),
    "azureDisk": ("diskName",),
    "cinder": ("volumeID",),
    "portworxVolume": ("volumeID",),
    "vsphereVolume": ("volumePath",),
    "azureFile": ("shareName",),
}


def reduce_object(
    kind: Kind, raw: Raw, *, annotation_keys: frozenset[str] = frozenset()
) -> KubeObject:
    """Return the object's reduced form.

    `annotation_keys` are kept beside the usual ones: plugins register what they read.

    Raises:
        InvalidObject: a field that scheduling reads is not what the API says it is.
    """
    metadata = mapping(raw, "metadata", "")
    name = text(metadata, "name", "metadata")
    if not name:
        raise wrong("metadata", "name", found=None, want="a name")
    common: dict[str, Any] = {
        "uid": text(metadata, "uid", "metadata"),
        "name": name,
        "resource_version": text(metadata, "resourceVersion", "metadata"),
        "labels": string_map(metadata, "labels", "metadata"),
        "annotations": _annotations(metadata, annotation_keys),
    }
    if kind.namespaced:
        common["namespace"] = text(metadata, "namespace", "metadata") or "default"
    if not common["uid"]:
        common["uid"] = f"{common.get('namespace', '')}/{name}"
    if kind.cls is Pod:
        return _pod(raw, metadata, common)
    if kind.cls is Node:
        return _node(raw, metadata, common)
    return REDUCERS[kind.name](raw, metadata, common)


def _annotations(metadata: Raw, more: frozenset[str]) -> dict[str, str]:
    found = metadata.get("annotations")
    if not found:
        return {}
    kept = string_map(metadata, "annotations", "metadata")
    return {key: kept[key] for key in kept if key in ANNOTATION_KEYS or key in more}


def owner(metadata: Raw) -> OwnerReference | None:
    for reference in items(metadata, "ownerReferences", "metadata"):
        if reference.get("controller"):
            return OwnerReference(
                api_version=str(reference.get("apiVersion", "")),
                kind=str(reference.get("kind", "")),
                name=str(reference.get("name", "")),
                uid=str(reference.get("uid", "")),
            )
    return None


def quantities(raw: Raw, key: str, path: str) -> dict[str, str]:
    """Return resource → quantity text, every text checked."""
    found = mapping(raw, key, path)
    return {name: quantity(value, f"{path}.{key}.{name}") for name, value in sorted(found.items())}


def quantity(value: object, path: str) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise InvalidObject(path, found=value, want="a quantity")
    try:
        parse(value)
    except InvalidQuantity as error:
        raise InvalidObject(path, found=value, want="a quantity") from error
    return value


# ---------------------------------------------------------------------------------------------
# Nodes


def _node(raw: Raw, metadata: Raw, common: dict[str, Any]) -> Node:
    spec, status = mapping(raw, "spec", ""), mapping(raw, "status", "")
    return Node(
        **common,
        created=text(metadata, "creationTimestamp", "metadata"),
        unschedulable=boolean(spec, "unschedulable", "spec"),
        taints=tuple(
            Taint(
                key=text(taint, "key", "spec.taints"),
                value=text(taint, "value", "spec.taints"),
                effect=text(taint, "effect", "spec.taints"),
            )
            for taint in items(spec, "taints", "spec")
        ),
        allocatable=quantities(status, "allocatable", "status"),
        images=tuple(
            ContainerImage(
                names=texts(image, "names", "status.images"),
                size_bytes=integer(image, "sizeBytes", "status.images"),
            )
            for image in items(status, "images", "status")
        ),
        conditions={
            text(condition, "type", "status.conditions"): text(
                condition, "status", "status.conditions"
            )
            for condition in items(status, "conditions", "status")
        },
        declared_features=texts(status, "declaredFeatures", "status"),
    )


# ---------------------------------------------------------------------------------------------
# Pods


def _pod(raw: Raw, metadata: Raw, common: dict[str, Any]) -> Pod:
    spec, status = mapping(raw, "spec", ""), mapping(raw, "status", "")
    fields: dict[str, Any] = {
        **common,
        "generation": integer(metadata, "generation", "metadata"),
        "created": text(metadata, "creationTimestamp", "metadata"),
        "deleted": optional_text(metadata, "deletionTimestamp", "metadata"),
        "owner": owner(metadata),
        "scheduler_name": text(spec, "schedulerName", "spec") or "default-scheduler",
        "node_name": text(spec, "nodeName", "spec"),
        "priority": integer(spec, "priority", "spec"),
        "preemption_policy": text(spec, "preemptionPolicy", "spec"),
        "containers": _containers(spec, "containers"),
        "phase": text(status, "phase", "status"),
        "start_time": text(status, "startTime", "status"),
        "nominated_node_name": text(status, "nominatedNodeName", "status"),
    }
    for key in spec:
        reduce = _SPEC.get(key)
        if reduce is not None:
            reduce(spec, fields)
    for key in status:
        reduce = _STATUS.get(key)
        if reduce is not None:
            reduce(status, fields)
    return Pod(**fields)


def _containers(spec: Raw, key: str) -> tuple[Container, ...]:
    return tuple(
        _container(container, f"spec.{key}[{index}]")
        for index, container in enumerate(items(spec, key, "spec"))
    )


def _container(raw: Raw, path: str) -> Container:
    resources = mapping(raw, "resources", path)
    inside = f"{path}.resources"
    return Container(
        name=text(raw, "name", path),
        image=text(raw, "image", path),
        requests=quantities(resources, "requests", inside) if "requests" in resources else None,
        limits=quantities(resources, "limits", inside) if "limits" in resources else None,
        ports=tuple(
            ContainerPort(
                host_port=integer(port, "hostPort", path),
                host_ip=text(port, "hostIP", path),
                protocol=text(port, "protocol", path),
            )
            for port in items(raw, "ports", path)
            if port.get("hostPort")
        ),
        restart_policy=text(raw, "restartPolicy", path),
        restarts_all_containers=any(
            rule.get("action") == "RestartAllContainers"
            for rule in items(raw, "restartPolicyRules", path)
        ),
        resource_claims=tuple(
            text(claim, "name", inside) for claim in items(resources, "claims", inside)
        ),
    )


def _pod_resources(raw: Raw, key: str, path: str) -> PodResources | None:
    if raw.get(key) is None:
        return None
    found = mapping(raw, key, path)
    inside = f"{path}.{key}"
    return PodResources(
        requests=quantities(found, "requests", inside), limits=quantities(found, "limits", inside)
    )


def _affinity(raw: Raw) -> Affinity | None:
    if raw.get("affinity") is None:
        return None
    found = mapping(raw, "affinity", "spec")
    return Affinity(
        node=_node_affinity(found),
        pod=_pod_affinity(found, "podAffinity"),
        pod_anti=_pod_affinity(found, "podAntiAffinity"),
    )


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def _node_affinity(raw: Raw) -> NodeAffinity | None:
    if raw.get("nodeAffinity") is None:
        return None
    path = "spec.affinity.nodeAffinity"
    found = mapping(raw, "nodeAffinity", "spec.affinity")
    preferred = None
    if found.get(_PREFERRED) is not None:
        preferred = tuple(
            PreferredSchedulingTerm(
                weight=integer(term, "weight", path),
                preference=node_selector_term(mapping(term, "preference", path), path),
            )
            for term in items(found, _PREFERRED, path)
        )
    return NodeAffinity(required=node_selector(found, _REQUIRED, path), preferred=preferred)


def _pod_affinity(raw: Raw, key: str) -> PodAffinity | None:
    if raw.get(key) is None:
        return None
    path = f"spec.affinity.{key}"
    found = mapping(raw, key, "spec.affinity")
    return PodAffinity(
        required=tuple(_pod_affinity_term(term, path) for term in items(found, _REQUIRED, path)),
        preferred=tuple(
            WeightedPodAffinityTerm(
                weight=integer(term, "weight", path),
                term=_pod_affinity_term(mapping(term, "podAffinityTerm", path), path),
            )
            for term in items(found, _PREFERRED, path)
        ),
    )


def _pod_affinity_term(raw: Raw, path: str) -> PodAffinityTerm:
    return PodAffinityTerm(
        topology_key=text(raw, "topologyKey", path),
        label_selector=label_selector(raw, "labelSelector", path),
        namespaces=texts(raw, "namespaces", path),
        namespace_selector=label_selector(raw, "namespaceSelector", path),
    )


def _spread(raw: Raw) -> TopologySpreadConstraint:
    path = "spec.topologySpreadConstraints"
    return TopologySpreadConstraint(
        max_skew=integer(raw, "maxSkew", path),
        topology_key=text(raw, "topologyKey", path),
        when_unsatisfiable=text(raw, "whenUnsatisfiable", path),
        label_selector=label_selector(raw, "labelSelector", path),
        min_domains=integer(raw, "minDomains", path) if raw.get("minDomains") is not None else None,
        node_affinity_policy=optional_text(raw, "nodeAffinityPolicy", path),
        node_taints_policy=optional_text(raw, "nodeTaintsPolicy", path),
        match_label_keys=texts(raw, "matchLabelKeys", path),
    )


def _volumes(spec: Raw) -> tuple[Volume, ...]:
    found = []
    for raw in items(spec, "volumes", "spec"):
        volume = _volume(raw, f"spec.volumes.{raw.get('name', '')}")
        if volume is not None:
            found.append(volume)
    return tuple(found)


def _volume(raw: Raw, path: str) -> Volume | None:
    name = text(raw, "name", path)
    if raw.get("persistentVolumeClaim") is not None:
        claim = mapping(raw, "persistentVolumeClaim", path)
        return Volume(name=name, claim_name=text(claim, "claimName", path))
    if raw.get("ephemeral") is not None:
        return Volume(name=name, ephemeral=True)
    if raw.get("csi") is not None:
        return Volume(name=name, csi_driver=text(mapping(raw, "csi", path), "driver", path))
    if raw.get("image") is not None:
        return Volume(name=name, image=text(mapping(raw, "image", path), "reference", path))
    for kind, parts in _INLINE_DISKS.items():
        if raw.get(kind) is not None:
            disk = mapping(raw, kind, path)
            return Volume(
                name=name,
                disk=InlineDisk(
                    kind=kind,
                    parts=tuple(text(disk, part, path) for part in parts),
                    monitors=texts(disk, "monitors", path),
                    read_only=boolean(disk, "readOnly", path),
                ),
            )
    return None


def _conditions(status: Raw) -> tuple[PodCondition, ...]:
    path = "status.conditions"
    return tuple(
        PodCondition(
            type=condition["type"],
            status=text(condition, "status", path),
            reason=text(condition, "reason", path),
            message=text(condition, "message", path),
        )
        for condition in items(status, "conditions", "status")
        if condition.get("type") in _POD_CONDITIONS
    )


def _container_statuses(status: Raw, key: str) -> tuple[ContainerStatus, ...]:
    path = f"status.{key}"
    found = []
    for raw in items(status, key, "status"):
        if raw.get("resources") is None and not raw.get("allocatedResources"):
            continue
        resources = mapping(raw, "resources", path)
        found.append(
            ContainerStatus(
                name=text(raw, "name", path),
                requests=quantities(resources, "requests", path),
                allocated=quantities(raw, "allocatedResources", path),
                has_resources=raw.get("resources") is not None,
            )
        )
    return tuple(found)


def _add_statuses(status: Raw, fields: dict[str, Any], key: str) -> None:
    known = fields.get("container_statuses", ())
    fields["container_statuses"] = known + _container_statuses(status, key)


def _claims(spec: Raw) -> tuple[PodResourceClaim, ...]:
    path = "spec.resourceClaims"
    return tuple(
        PodResourceClaim(
            name=text(claim, "name", path),
            claim_name=optional_text(claim, "resourceClaimName", path),
            template_name=optional_text(claim, "resourceClaimTemplateName", path),
        )
        for claim in items(spec, "resourceClaims", "spec")
    )


def _claim_statuses(status: Raw) -> tuple[ResourceClaimStatus, ...]:
    path = "status.resourceClaimStatuses"
    return tuple(
        ResourceClaimStatus(
            name=text(claim, "name", path),
            claim_name=optional_text(claim, "resourceClaimName", path),
        )
        for claim in items(status, "resourceClaimStatuses", "status")
    )


def _tolerations(spec: Raw) -> Sequence[Any]:
    return tuple(toleration(raw) for raw in items(spec, "tolerations", "spec"))


def _node_selector_labels(spec: Raw) -> dict[str, str] | None:
    return None if spec.get("nodeSelector") is None else string_map(spec, "nodeSelector", "spec")


def _set(name: str, make: Callable[[Raw], Any]) -> Callable[[Raw, dict[str, Any]], None]:
    def reduce(raw: Raw, fields: dict[str, Any]) -> None:
        fields[name] = make(raw)

    return reduce


_SPEC: Final[Mapping[str, Callable[[Raw, dict[str, Any]], None]]] = {
    "initContainers": _set("init_containers", lambda spec: _containers(spec, "initContainers")),
    "hostNetwork": _set("host_network", lambda spec: boolean(spec, "hostNetwork", "spec")),
    "hostUsers": _set("host_users", lambda spec: spec.get("hostUsers")),
    "overhead": _set("overhead", lambda spec: quantities(spec, "overhead", "spec")),
    "resources": _set("resources", lambda spec: _pod_resources(spec, "resources", "spec")),
    "nodeSelector": _set("node_selector", _node_selector_labels),
    "affinity": _set("affinity", _affinity),
    "tolerations": _set("tolerations", _tolerations),
    "topologySpreadConstraints": _set(
        "topology_spread_constraints",
        lambda spec: tuple(
            _spread(one) for one in items(spec, "topologySpreadConstraints", "spec")
        ),
    ),
    "schedulingGates": _set(
        "scheduling_gates",
        lambda spec: tuple(
            text(gate, "name", "spec.schedulingGates")
            for gate in items(spec, "schedulingGates", "spec")
        ),
    ),
    "volumes": _set("volumes", _volumes),
    "resourceClaims": _set("resource_claims", _claims),
}
_STATUS: Final[Mapping[str, Callable[[Raw, dict[str, Any]], None]]] = {
    "conditions": _set("conditions", _conditions),
    "containerStatuses": lambda status, fields: _add_statuses(status, fields, "containerStatuses"),
    "initContainerStatuses": lambda status, fields: _add_statuses(
        status, fields, "initContainerStatuses"
    ),
    "resources": _set(
        "status_resources", lambda status: _pod_resources(status, "resources", "status")
    ),
    "allocatedResources": _set(
        "status_allocated", lambda status: quantities(status, "allocatedResources", "status")
    ),
    "resourceClaimStatuses": _set("resource_claim_statuses", _claim_statuses),
}
