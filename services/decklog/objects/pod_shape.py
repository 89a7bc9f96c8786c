"""Which keys of a pod are kept: no env, no args, no secrets, none but scheduling's volumes."""

from typing import Any, Final

from decklog.objects.pod import (
    Affinity,
    Container,
    ContainerPort,
    ContainerStatus,
    InlineDisk,
    NodeAffinity,
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
from decklog.objects.selector_shapes import (
    LABEL_SELECTOR,
    NODE_SELECTOR,
    PREFERRED_TERM,
    TOLERATION,
)
from decklog.objects.shape import (
    Entry,
    boolean,
    each,
    inside,
    integer,
    quantities,
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

ALWAYS: Final = "Always"
DISK_PARTS: Final = {
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "iscsi": ("iqn",),
    "rbd": ("pool", "image"),
    "azureDisk": ("diskURI",),
    "azureFile": ("shareName",),
    "cinder": ("volumeID",),
    "portworxVolume": ("volumeID",),
    "vsphereVolume": ("volumePath",),
}
"""In-tree kinds of disk, and the keys that make up `InlineDisk.parts`."""
_CONDITIONS: Final = ("PodScheduled", "DisruptionTarget", "PodResizePending")
_RESTART_ALL: Final = "RestartAllContainers"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def _names(name: str) -> Entry:
    """A list of mappings of which only the name is kept."""
    return Entry(
        name,
        lambda value: read_each(value, _name_of),
        lambda names: [{"name": one} for one in names],
    )


def _name_of(raw: object) -> str:
    found = {"name": ""}
    read_into(found, raw, {"name": text("name")})
    return found["name"]


def _has_host_port(port: dict[str, Any]) -> bool:
    number = port.get("hostPort")
    return number is not None and (not isinstance(number, int) or number > 0)


def _read_restart_policy(value: object) -> str:
    return ALWAYS if read_text(value) == ALWAYS else ""


def _restarts_all(rules: object) -> bool:
    return any(read_each(rules, lambda rule: rule.get("action") == _RESTART_ALL))


_PORT: Final = shape(
    ContainerPort,
    {
        "hostPort": integer("host_port"),
        "hostIP": text("host_ip"),
        "protocol": text("protocol"),
    },
)
_CONTAINER_TABLE: Final = {
    "name": text("name"),
    "image": text("image"),
    "resources": section(
        {
            "requests": quantities("requests"),
            "limits": quantities("limits"),
            "claims": _names("resource_claims"),
        }
    ),
    "ports": each("ports", _PORT, keep=_has_host_port),
    "restartPolicyRules": Entry(
        "restarts_all_containers", _restarts_all, lambda _: [{"action": _RESTART_ALL}]
    ),
}
_CONTAINER: Final = shape(Container, _CONTAINER_TABLE, name="")
_INIT_CONTAINER: Final = shape(
    Container,
    {**_CONTAINER_TABLE, "restartPolicy": Entry("restart_policy", _read_restart_policy)},
    name="",
)
CONTAINER_STATUS: Final = shape(
    ContainerStatus,
    {
        "name": text("name"),
        "resources": section({"requests": quantities("requests")}),
        "allocatedResources": quantities("allocated"),
    },
    name="",
)
_RESOURCES: Final = shape(
    PodResources, {"requests": quantities("requests"), "limits": quantities("limits")}
)

_AFFINITY_TERM: Final = shape(
    PodAffinityTerm,
    {
        "topologyKey": text("topology_key"),
        "labelSelector": inside("label_selector", LABEL_SELECTOR),
        "namespaces": texts("namespaces"),
        "namespaceSelector": inside("namespace_selector", LABEL_SELECTOR),
    },
    topology_key="",
)
_WEIGHTED_TERM: Final = shape(
    WeightedPodAffinityTerm,
    {"weight": integer("weight"), "podAffinityTerm": inside("term", _AFFINITY_TERM)},
    weight=0,
    term=PodAffinityTerm(topology_key=""),
)
_POD_AFFINITY: Final = shape(
    PodAffinity,
    {_REQUIRED: each("required", _AFFINITY_TERM), _PREFERRED: each("preferred", _WEIGHTED_TERM)},
)
NODE_AFFINITY: Final = shape(
    NodeAffinity,
    {_REQUIRED: inside("required", NODE_SELECTOR), _PREFERRED: each("preferred", PREFERRED_TERM)},
)
_AFFINITY: Final = shape(
    Affinity,
    {
        "nodeAffinity": inside("node", NODE_AFFINITY),
        "podAffinity": inside("pod", _POD_AFFINITY),
        "podAntiAffinity": inside("pod_anti", _POD_AFFINITY),
    },
)
_SPREAD: Final = shape(
    TopologySpreadConstraint,
    {
        "maxSkew": integer("max_skew"),
        "topologyKey": text("topology_key"),
        "whenUnsatisfiable": text("when_unsatisfiable"),
        "labelSelector": inside("label_selector", LABEL_SELECTOR),
        "minDomains": integer("min_domains"),
        "nodeAffinityPolicy": text("node_affinity_policy"),
        "nodeTaintsPolicy": text("node_taints_policy"),
        "matchLabelKeys": texts("match_label_keys"),
    },
    max_skew=0,
    topology_key="",
    when_unsatisfiable="",
)


def _one_text(name: str, key: str) -> Entry:
    """A mapping of which one text is kept; empty when its key is absent."""

    def read(value: object) -> str:
        found = {key: ""}
        read_into(found, value, {key: text(key)})
        return found[key]

    return Entry(name, read, lambda part: {key: part})


def _read_ephemeral(value: object) -> bool:
    read_mapping(value)
    return True


def _disk(kind: str) -> Entry:
    parts = DISK_PARTS[kind]
    table = {
        **{part: text(part) for part in parts},
        "monitors": texts("monitors"),
        "readOnly": boolean("read_only"),
    }

    def read(value: object) -> InlineDisk:
        found: dict[str, Any] = {}
        read_into(found, value, table)
        return InlineDisk(
            kind=kind,
            parts=tuple(found.get(part, "") for part in parts),
            monitors=found.get("monitors", ()),
            read_only=found.get("read_only", False),
        )

    def write(disk: InlineDisk) -> dict[str, Any]:
        written: dict[str, Any] = dict(zip(parts, disk.parts, strict=True))
        if disk.monitors:
            written["monitors"] = list(disk.monitors)
        if disk.read_only:
            written["readOnly"] = True
        return written

    return Entry("disk", read, write, when=lambda disk: bool(disk.kind == kind))


_SOURCES: Final = {
    "persistentVolumeClaim": _one_text("claim_name", "claimName"),
    "ephemeral": Entry("ephemeral", _read_ephemeral, lambda _: {}),
    "csi": _one_text("csi_driver", "driver"),
    "image": _one_text("image", "reference"),
    **{kind: _disk(kind) for kind in DISK_PARTS},
}
_VOLUME: Final = shape(Volume, {"name": text("name"), **_SOURCES}, name="")
_CONDITION: Final = shape(
    PodCondition,
    {
        "type": text("type"),
        "status": text("status"),
        "reason": text("reason"),
        "message": text("message"),
    },
    type="",
)
_CLAIM: Final = shape(
    PodResourceClaim,
    {
        "name": text("name"),
        "resourceClaimName": text("claim_name"),
        "resourceClaimTemplateName": text("template_name"),
    },
    name="",
)
_CLAIM_STATUS: Final = shape(
    ResourceClaimStatus,
    {"name": text("name"), "resourceClaimName": text("claim_name")},
    name="",
)

POD_SPEC: Final = {
    "schedulerName": text("scheduler_name"),
    "nodeName": text("node_name"),
    "priority": integer("priority"),
    "preemptionPolicy": text("preemption_policy"),
    "hostNetwork": boolean("host_network"),
    "hostUsers": boolean("host_users"),
    "containers": each("containers", _CONTAINER),
    "initContainers": each("init_containers", _INIT_CONTAINER),
    "overhead": quantities("overhead"),
    "resources": inside("resources", _RESOURCES),
    "nodeSelector": text_map("node_selector"),
    "affinity": inside("affinity", _AFFINITY),
    "tolerations": each("tolerations", TOLERATION),
    "topologySpreadConstraints": each("topology_spread_constraints", _SPREAD),
    "schedulingGates": _names("scheduling_gates"),
    "volumes": each("volumes", _VOLUME, keep=lambda volume: not _SOURCES.keys().isdisjoint(volume)),
    "resourceClaims": each("resource_claims", _CLAIM),
}
POD_STATUS: Final = {
    "phase": text("phase"),
    "startTime": text("start_time"),
    "nominatedNodeName": text("nominated_node_name"),
    "conditions": each(
        "conditions", _CONDITION, keep=lambda condition: condition.get("type") in _CONDITIONS
    ),
    "resources": inside("status_resources", _RESOURCES),
    "allocatedResources": quantities("status_allocated"),
    "resourceClaimStatuses": each("resource_claim_statuses", _CLAIM_STATUS),
}
