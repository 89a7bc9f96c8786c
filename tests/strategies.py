"""Hypothesis strategies for objects as `reduce_object` makes them: sorted, checked, nothing more.

They prefer few and colliding names, because selectors and claims that meet nothing test nothing.
"""

from dataclasses import replace
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from decklog.objects.kinds import KINDS, Kind
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
from decklog.objects.pod_shape import DISK_PARTS
from decklog.objects.policy import (
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from decklog.objects.reduce import ANNOTATION_KEYS, MIGRATED_PLUGINS
from decklog.objects.selectors import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    Taint,
    Toleration,
)
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

RESOURCES: Final = ("cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu")
LABEL_KEYS: Final = ("app", "tier", "example.com/x", "topology.kubernetes.io/zone")
SUFFIXES: Final = ("", "n", "u", "m", "k", "M", "G", "Ki", "Mi", "Gi", "Ti", "e0", "e3", "E-2")

names = st.sampled_from(("a", "b", "c", "web-0", "node-1"))
namespaces = st.sampled_from(("default", "prod", "kube-system"))
texts = st.text(max_size=8)
times = st.sampled_from(("2026-01-01T00:00:00Z", "2026-01-02T03:04:05Z"))
flags = st.booleans()
integers = st.integers(-(2**63), 2**63 - 1)
counts = st.integers(0, 1000)
weights = st.integers(-100, 100)
label_values = st.sampled_from(("", "1", "2", "10", "007", "web", "db", "x-1"))


def tuples(of: SearchStrategy[Any], *, max_size: int = 2) -> SearchStrategy[tuple[Any, ...]]:
    return st.lists(of, max_size=max_size).map(tuple)


def optional(of: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return st.none() | of


def mappings(
    keys: SearchStrategy[str], values: SearchStrategy[str], *, max_size: int = 3
) -> SearchStrategy[dict[str, str]]:
    found = st.dictionaries(keys, values, max_size=max_size)
    return found.map(lambda mapping: dict(sorted(mapping.items())))


@st.composite
def quantity_texts(draw: DrawFn) -> str:
    """Draw the text of a quantity, most of them such as people write."""
    number = str(draw(st.integers(0, 4096) | st.integers(-(10**20), 10**20)))
    fraction = draw(st.sampled_from(("", "", "", ".5", ".25", ".001", ".")))
    return number + fraction + draw(st.sampled_from(SUFFIXES))


quantities = mappings(
    # Mostly the same two, so that containers compete for them.
    st.sampled_from((*["cpu", "memory"] * 3, *RESOURCES)),
    quantity_texts(),
)
labels = mappings(st.sampled_from(LABEL_KEYS), label_values)


def requirements(
    cls: type[LabelSelectorRequirement] | type[NodeSelectorRequirement], *more: str
) -> SearchStrategy[Any]:
    """Return requirements of which most parse; `more` are operators with one value."""
    keys = st.sampled_from(LABEL_KEYS)
    some = st.lists(label_values, min_size=1, max_size=2).map(tuple)
    either = st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", *more))
    good = [
        st.builds(cls, key=keys, operator=st.sampled_from(("In", "NotIn")), values=some),
        st.builds(cls, key=keys, operator=st.sampled_from(("Exists", "DoesNotExist"))),
    ]
    if more:
        one = st.sampled_from(("0", "5", "-1")).map(lambda value: (value,))
        good.append(st.builds(cls, key=keys, operator=st.sampled_from(more), values=one))
    odd = st.builds(cls, key=keys, operator=either, values=tuples(label_values))
    return st.one_of(*good, *good, odd)


effects = st.sampled_from(("", "NoSchedule", "PreferNoSchedule", "NoExecute"))

label_selectors = st.builds(
    LabelSelector,
    match_labels=labels,
    match_expressions=tuples(requirements(LabelSelectorRequirement)),
)
_field_requirements = st.builds(
    NodeSelectorRequirement,
    key=st.just("metadata.name"),
    operator=st.sampled_from(("In", "NotIn")),
    values=tuples(names),
)
node_selector_terms = st.builds(
    NodeSelectorTerm,
    match_expressions=tuples(requirements(NodeSelectorRequirement, "Gt", "Lt")),
    match_fields=tuples(_field_requirements, max_size=1),
)
node_selectors = st.builds(NodeSelector, terms=tuples(node_selector_terms))
taints = st.builds(Taint, key=names, value=label_values, effect=effects)
tolerations = st.builds(
    Toleration,
    key=st.just("") | names,
    operator=st.sampled_from(("", "Equal", "Exists", "Lt", "Gt", "Other")),
    value=label_values,
    effect=effects,
)

containers = st.builds(
    Container,
    name=names,
    image=st.sampled_from(("", "nginx", "nginx:1.25", "registry:5000/app")),
    requests=optional(quantities),
    limits=optional(quantities),
    ports=tuples(
        st.builds(
            ContainerPort,
            host_port=st.integers(1, 65_535),
            host_ip=st.sampled_from(("", "0.0.0.0", "10.0.0.1", "::")),
            protocol=st.sampled_from(("", "TCP", "UDP")),
        )
    ),
    restarts_all_containers=flags,
    resource_claims=tuples(names),
)
_sidecars = containers.map(lambda container: replace(container, restart_policy="Always"))
_resources = st.builds(PodResources, requests=quantities, limits=quantities)

_affinity_terms = st.builds(
    PodAffinityTerm,
    topology_key=st.sampled_from(LABEL_KEYS),
    label_selector=optional(label_selectors),
    namespaces=tuples(namespaces),
    namespace_selector=optional(label_selectors),
)
_pod_affinities = st.builds(
    PodAffinity,
    required=tuples(_affinity_terms),
    preferred=tuples(
        st.builds(WeightedPodAffinityTerm, weight=st.integers(1, 100), term=_affinity_terms)
    ),
)
affinities = st.builds(
    Affinity,
    node=optional(
        st.builds(
            NodeAffinity,
            required=optional(node_selectors),
            preferred=optional(
                tuples(
                    st.builds(
                        PreferredSchedulingTerm, weight=weights, preference=node_selector_terms
                    )
                )
            ),
        )
    ),
    pod=optional(_pod_affinities),
    pod_anti=optional(_pod_affinities),
)
_policies = optional(st.sampled_from(("Honor", "Ignore")))
spread_constraints = st.builds(
    TopologySpreadConstraint,
    max_skew=st.integers(1, 5),
    topology_key=st.sampled_from(LABEL_KEYS),
    when_unsatisfiable=st.sampled_from(("DoNotSchedule", "ScheduleAnyway")),
    label_selector=optional(label_selectors),
    min_domains=optional(st.integers(1, 5)),
    node_affinity_policy=_policies,
    node_taints_policy=_policies,
    match_label_keys=tuples(st.sampled_from(LABEL_KEYS)),
)


@st.composite
def disks(draw: DrawFn) -> InlineDisk:
    kind = draw(st.sampled_from(sorted(DISK_PARTS)))
    size = len(DISK_PARTS[kind])
    return InlineDisk(
        kind=kind,
        parts=tuple(draw(st.lists(texts, min_size=size, max_size=size))),
        monitors=draw(tuples(names)),
        read_only=draw(flags),
    )


volumes = st.one_of(
    st.builds(Volume, name=names, claim_name=names),
    st.builds(Volume, name=names, ephemeral=st.just(True)),
    st.builds(Volume, name=names, disk=disks()),
    st.builds(Volume, name=names, csi_driver=texts),
    st.builds(Volume, name=names, image=texts),
)
pod_conditions = st.builds(
    PodCondition,
    type=st.sampled_from(("PodScheduled", "DisruptionTarget", "PodResizePending")),
    status=st.sampled_from(("", "True", "False")),
    reason=st.sampled_from(("", "Infeasible", "Deferred", "Unschedulable")),
    message=texts,
)
owners = st.builds(
    OwnerReference,
    api_version=st.sampled_from(("v1", "apps/v1")),
    kind=st.sampled_from(("ReplicaSet", "StatefulSet", "Job")),
    name=names,
    uid=names,
)


@st.composite
def container_statuses(draw: DrawFn, container: Container) -> ContainerStatus:
    """Draw what a resize left of the container: not just what its spec says again."""
    asked = container.requests or {}
    requests = draw(quantities.filter(lambda given: given != asked))
    return ContainerStatus(name=container.name, requests=requests, allocated=draw(quantities))


def _metadata(kind: type[KubeObject]) -> dict[str, SearchStrategy[Any]]:
    keys = sorted(ANNOTATION_KEYS | ({MIGRATED_PLUGINS} if kind is CSINode else set()))
    return {
        "uid": st.uuids().map(str),
        "name": names,
        "resource_version": st.sampled_from(("", "1", "1000")),
        "labels": labels,
        "annotations": mappings(st.sampled_from(keys), texts, max_size=2),
    }


@st.composite
def pods(draw: DrawFn) -> Pod:
    apps = draw(st.lists(containers, min_size=1, max_size=2, unique_by=lambda one: one.name))
    taken = {one.name for one in apps}
    starts = draw(
        st.lists(containers | _sidecars, max_size=3, unique_by=lambda one: one.name).map(
            lambda found: [one for one in found if one.name not in taken]
        )
    )
    resizable = [*apps, *(one for one in starts if one.restart_policy)]
    statuses = [draw(container_statuses(one)) for one in resizable if draw(st.integers(0, 3)) == 0]
    return Pod(
        **{field: draw(values) for field, values in _POD_FIELDS.items()},
        containers=tuple(apps),
        init_containers=tuple(starts),
        container_statuses=tuple(statuses),
    )


_POD_FIELDS: Final[dict[str, SearchStrategy[Any]]] = {
    **_metadata(Pod),
    "namespace": namespaces,
    "generation": counts,
    "created": times,
    "deleted": optional(times),
    "owner": optional(owners),
    "scheduler_name": st.sampled_from(("default-scheduler", "decklog", "other")),
    "node_name": st.just("") | names,
    "priority": integers,
    "preemption_policy": st.sampled_from(("", "Never", "PreemptLowerPriority")),
    "host_network": flags,
    "host_users": optional(flags),
    "overhead": quantities,
    "resources": optional(_resources),
    "node_selector": optional(labels),
    "affinity": optional(affinities),
    "tolerations": tuples(tolerations),
    "topology_spread_constraints": tuples(spread_constraints),
    "scheduling_gates": tuples(names),
    "volumes": tuples(volumes),
    "resource_claims": tuples(
        st.builds(
            PodResourceClaim,
            name=names,
            claim_name=optional(names),
            template_name=optional(names),
        )
    ),
    "phase": st.sampled_from(("", "Pending", "Running", "Succeeded", "Failed")),
    "start_time": st.just("") | times,
    "nominated_node_name": st.just("") | names,
    "conditions": tuples(pod_conditions),
    "status_resources": optional(_resources),
    "status_allocated": optional(quantities),
    "resource_claim_statuses": tuples(
        st.builds(ResourceClaimStatus, name=names, claim_name=optional(names))
    ),
}

nodes = st.builds(
    Node,
    **_metadata(Node),
    created=times,
    unschedulable=flags,
    taints=tuples(taints),
    allocatable=quantities,
    images=tuples(st.builds(ContainerImage, names=tuples(names), size_bytes=integers)),
    conditions=mappings(st.sampled_from(("Ready", "DiskPressure")), st.sampled_from(("True", ""))),
    declared_features=tuples(names),
)

_OTHERS: Final[dict[type[KubeObject], dict[str, SearchStrategy[Any]]]] = {
    Namespace: {},
    PriorityClass: {
        "value": integers,
        "global_default": flags,
        "preemption_policy": st.sampled_from(("", "Never")),
    },
    StorageClass: {
        "provisioner": texts,
        "volume_binding_mode": optional(st.sampled_from(("Immediate", "WaitForFirstConsumer"))),
        "allowed_topologies": tuples(
            st.builds(
                TopologySelectorTerm,
                expressions=tuples(st.tuples(st.sampled_from(LABEL_KEYS), tuples(label_values))),
            )
        ),
    },
    CSIDriver: {"storage_capacity": flags, "prevent_pod_scheduling_if_missing": flags},
    CSINode: {"drivers": tuples(st.builds(CSINodeDriver, name=names, count=optional(counts)))},
    CSIStorageCapacity: {
        "storage_class": names,
        "capacity": optional(quantity_texts()),
        "maximum_volume_size": optional(quantity_texts()),
        "node_topology": optional(label_selectors),
    },
    PersistentVolume: {
        "deleted": optional(times),
        "capacity": quantities,
        "access_modes": tuples(st.sampled_from(("ReadWriteOnce", "ReadOnlyMany"))),
        "storage_class": st.just("") | names,
        "volume_mode": optional(st.sampled_from(("Filesystem", "Block"))),
        "volume_attributes_class": optional(names),
        "claim_ref": optional(
            st.builds(ClaimRef, namespace=namespaces, name=names, uid=st.just("") | names)
        ),
        "node_affinity": optional(node_selectors),
        "source": optional(
            st.builds(VolumeSource, kind=st.just("csi"), driver=texts, handle=texts)
            | st.builds(VolumeSource, kind=st.sampled_from(sorted(DISK_PARTS)), handle=texts)
        ),
        "phase": st.sampled_from(("", "Available", "Bound")),
    },
    PersistentVolumeClaim: {
        "deleted": optional(times),
        "owner": optional(owners),
        "storage_class": optional(st.just("") | names),
        "volume_name": st.just("") | names,
        "volume_mode": optional(st.sampled_from(("Filesystem", "Block"))),
        "volume_attributes_class": optional(names),
        "access_modes": tuples(st.sampled_from(("ReadWriteOnce", "ReadWriteOncePod"))),
        "requests": quantities,
        "selector": optional(label_selectors),
        "phase": st.sampled_from(("", "Pending", "Bound", "Lost")),
    },
    VolumeAttachment: {
        "attacher": texts,
        "node_name": st.just("") | names,
        "volume_name": optional(names),
        "attached": flags,
    },
    PodDisruptionBudget: {
        "selector": optional(label_selectors),
        "disruptions_allowed": counts,
        "disrupted_pods": st.sets(names, max_size=2).map(lambda found: tuple(sorted(found))),
    },
    Service: {"selector": optional(labels)},
    ReplicationController: {"selector": optional(labels)},
    ReplicaSet: {"selector": optional(label_selectors)},
    StatefulSet: {"selector": optional(label_selectors)},
}


def objects_of(kind: Kind) -> SearchStrategy[KubeObject]:
    """Return a strategy for the reduced objects of one kind."""
    if kind.cls is Pod:
        return pods()
    if kind.cls is Node:
        return nodes
    fields = {**_metadata(kind.cls), **_OTHERS[kind.cls]}
    if kind.namespaced:
        fields["namespace"] = namespaces
    return st.builds(kind.cls, **fields)


objects = st.sampled_from(KINDS).flatmap(lambda kind: st.tuples(st.just(kind), objects_of(kind)))
"""(kind, object)"""
