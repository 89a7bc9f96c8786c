"""Pod, cut down to what scheduling reads: no env, no args, no secrets, few annotations.

Quantities are kept as the text that the API server stores; `quantity.py` turns them into
amounts, exactly and once per text. Times are RFC 3339 text, for comparison and display.
"""

from dataclasses import dataclass, field

from decklog.objects.meta import OwnerReference
from decklog.objects.selectors import (
    LabelSelector,
    NodeSelector,
    PreferredSchedulingTerm,
    Toleration,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerPort:
    host_port: int = 0
    host_ip: str = ""
    protocol: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    name: str
    image: str = ""
    requests: dict[str, str] | None = None
    """None: none were given. An explicit zero is kept: scoring tells it from nothing."""
    limits: dict[str, str] | None = None
    ports: tuple[ContainerPort, ...] = ()
    """Only those with a host port."""
    restart_policy: str = ""
    """`Always` makes an init container a sidecar; empty for all others."""
    restarts_all_containers: bool = False
    """Has a restart policy rule with action RestartAllContainers."""
    resource_claims: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerStatus:
    """What an in-place resize left in the status: only containers that report resources."""

    name: str
    requests: dict[str, str] = field(default_factory=dict)
    allocated: dict[str, str] = field(default_factory=dict)
    has_resources: bool = True
    """Whether `resources` is set in the status at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodResources:
    """Requests and limits of the pod as a whole, or what its status says of them."""

    requests: dict[str, str] = field(default_factory=dict)
    limits: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAffinityTerm:
    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedPodAffinityTerm:
    weight: int
    term: PodAffinityTerm


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAffinity:
    """Affinity or anti-affinity to other pods."""

    required: tuple[PodAffinityTerm, ...] = ()
    preferred: tuple[WeightedPodAffinityTerm, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAffinity:
    required: NodeSelector | None = None
    preferred: tuple[PreferredSchedulingTerm, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Affinity:
    node: NodeAffinity | None = None
    pod: PodAffinity | None = None
    pod_anti: PodAffinity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologySpreadConstraint:
    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineDisk:
    """A disk named in the pod itself, of a kind that two pods cannot share at will.

    `kind` is gcePersistentDisk, awsElasticBlockStore, iscsi or rbd, or another in-tree kind that
    counts against attach limits; `parts` are the fields that identify it, in the kind's order.
    """

    kind: str
    parts: tuple[str, ...] = ()
    monitors: tuple[str, ...] = ()
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """At most one of the sources is set; volumes of other kinds are not kept."""

    name: str
    claim_name: str | None = None
    ephemeral: bool = False
    """Its claim is `<pod>-<volume>`."""
    disk: InlineDisk | None = None
    csi_driver: str | None = None
    """Driver of an inline CSI volume."""
    image: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodCondition:
    """Only PodScheduled, DisruptionTarget and PodResizePending are kept, in their order."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodResourceClaim:
    name: str
    claim_name: str | None = None
    template_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceClaimStatus:
    name: str
    claim_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    uid: str
    namespace: str
    name: str
    resource_version: str = ""
    generation: int = 0
    created: str = ""
    deleted: str | None = None
    """`metadata.deletionTimestamp`."""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner: OwnerReference | None = None

    scheduler_name: str = "default-scheduler"
    node_name: str = ""
    priority: int = 0
    preemption_policy: str = ""
    host_network: bool = False
    host_users: bool | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: dict[str, str] = field(default_factory=dict)
    resources: PodResources | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[str, ...] = ()
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()

    phase: str = ""
    start_time: str = ""
    nominated_node_name: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    status_resources: PodResources | None = None
    status_allocated: dict[str, str] | None = None
    resource_claim_statuses: tuple[ResourceClaimStatus, ...] = ()

    @property
    def key(self) -> str:
        """`namespace/name`, the name under which the queue and people know the pod."""
        return f"{self.namespace}/{self.name}"

    @property
    def finished(self) -> bool:
        """Whether the pod ran to its end; the scheduler does not see such a pod."""
        return self.phase in ("Succeeded", "Failed")
