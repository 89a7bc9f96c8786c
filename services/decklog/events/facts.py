"""Every fact that decklog writes down, as frozen data.

Two families. *Events* are what the scheduler is told; their order is their position in the events
log. *Decisions* are what it decided; their order is `seq`, in the ledger. A default value is not
written, so every field with a default is optional on the wire.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, NamedTuple

from annotated_types import Ge, Len

from decklog.objects.node import Node
from decklog.objects.pod import Pod
from decklog.objects.policy import (
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from decklog.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

NonEmpty = Annotated[str, Len(1)]
Seq = Annotated[int, Ge(1)]
Count = Annotated[int, Ge(0)]

# ---------------------------------------------------------------------------------------------
# Events: objects


@dataclass(frozen=True, slots=True, kw_only=True)
class PodUpserted:
    """The pod exists as given: it was created, changed, or named by a relist."""

    ce_type: ClassVar[str] = "dev.decklog.pod.upserted.v1"
    pod: Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUpserted:
    """The node exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.node.upserted.v1"
    node: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceUpserted:
    """The namespace exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.namespace.upserted.v1"
    namespace: Namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistentVolumeUpserted:
    """The volume exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.persistentvolume.upserted.v1"
    persistent_volume: PersistentVolume


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistentVolumeClaimUpserted:
    """The claim exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.persistentvolumeclaim.upserted.v1"
    persistent_volume_claim: PersistentVolumeClaim


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageClassUpserted:
    """The storage class exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.storageclass.upserted.v1"
    storage_class: StorageClass


@dataclass(frozen=True, slots=True, kw_only=True)
class CSINodeUpserted:
    """The CSI node exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.csinode.upserted.v1"
    csi_node: CSINode


@dataclass(frozen=True, slots=True, kw_only=True)
class CSIDriverUpserted:
    """The CSI driver exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.csidriver.upserted.v1"
    csi_driver: CSIDriver


@dataclass(frozen=True, slots=True, kw_only=True)
class CSIStorageCapacityUpserted:
    """The storage capacity exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.csistoragecapacity.upserted.v1"
    csi_storage_capacity: CSIStorageCapacity


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeAttachmentUpserted:
    """The attachment exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.volumeattachment.upserted.v1"
    volume_attachment: VolumeAttachment


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDisruptionBudgetUpserted:
    """The budget exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.poddisruptionbudget.upserted.v1"
    pod_disruption_budget: PodDisruptionBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClassUpserted:
    """The priority class exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.priorityclass.upserted.v1"
    priority_class: PriorityClass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSetUpserted:
    """The replica set exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.replicaset.upserted.v1"
    replica_set: ReplicaSet


@dataclass(frozen=True, slots=True, kw_only=True)
class StatefulSetUpserted:
    """The stateful set exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.statefulset.upserted.v1"
    stateful_set: StatefulSet


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationControllerUpserted:
    """The replication controller exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.replicationcontroller.upserted.v1"
    replication_controller: ReplicationController


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceUpserted:
    """The service exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.service.upserted.v1"
    service: Service


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectDeleted:
    """The object is gone. A delete has a body: it is an event, never a tombstone."""

    ce_type: ClassVar[str] = "dev.decklog.object.deleted.v1"
    kind: NonEmpty
    namespace: str = ""
    name: NonEmpty
    uid: str
    resource_version: str = ""
    final_state_unknown: bool = False
    """The watch missed the delete; a relist found the object missing."""


ObjectUpserted = (
    PodUpserted
    | NodeUpserted
    | NamespaceUpserted
    | PersistentVolumeUpserted
    | PersistentVolumeClaimUpserted
    | StorageClassUpserted
    | CSINodeUpserted
    | CSIDriverUpserted
    | CSIStorageCapacityUpserted
    | VolumeAttachmentUpserted
    | PodDisruptionBudgetUpserted
    | PriorityClassUpserted
    | ReplicaSetUpserted
    | StatefulSetUpserted
    | ReplicationControllerUpserted
    | ServiceUpserted
)

# ---------------------------------------------------------------------------------------------
# Events: outcomes, resyncs, leaders


@dataclass(frozen=True, slots=True, kw_only=True)
class BindSucceeded:
    """The pod is on the node that decision `seq` chose; this confirms the assume."""

    ce_type: ClassVar[str] = "dev.decklog.bind.succeeded.v1"
    seq: Seq
    pod_uid: NonEmpty
    node: NonEmpty


@dataclass(frozen=True, slots=True, kw_only=True)
class BindFailed:
    """The bind that decision `seq` asked for was refused for good; the scheduler undoes the assume."""

    ce_type: ClassVar[str] = "dev.decklog.bind.failed.v1"
    seq: Seq
    pod_uid: NonEmpty
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BindUnknown:
    """Nobody knows yet whether the bind of decision `seq` was done; nothing changes until it is known."""

    ce_type: ClassVar[str] = "dev.decklog.bind.unknown.v1"
    seq: Seq
    pod_uid: NonEmpty
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VictimDeleted:
    """The victim that decision `seq` named is being deleted, or is gone."""

    ce_type: ClassVar[str] = "dev.decklog.victim.deleted.v1"
    seq: Seq
    pod_uid: NonEmpty


@dataclass(frozen=True, slots=True, kw_only=True)
class VictimRefused:
    """The victim that decision `seq` named cannot be deleted; its preemptor must not wait for it."""

    ce_type: ClassVar[str] = "dev.decklog.victim.refused.v1"
    seq: Seq
    pod_uid: NonEmpty
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResyncRequested:
    """A reader found something wrong with what it was told of a kind; the watcher answers with a relist."""

    ce_type: ClassVar[str] = "dev.decklog.resync.requested.v1"
    kind: NonEmpty
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResyncStarted:
    """The watcher lists a kind; what the list does not name until `resync.finished` is gone."""

    ce_type: ClassVar[str] = "dev.decklog.resync.started.v1"
    kind: NonEmpty
    resource_version: str
    full: bool = True
    """The whole list follows. False: only what differs from what was published, deletes included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResyncFinished:
    """The list of a kind is complete: so many objects, with this digest."""

    ce_type: ClassVar[str] = "dev.decklog.resync.finished.v1"
    kind: NonEmpty
    resource_version: str
    count: Count
    digest: str
    """Sum modulo 2^128 of the objects' digests, as 32 hex digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElected:
    """A generation begins; its first decision comes after this event was read back."""

    ce_type: ClassVar[str] = "dev.decklog.leader.elected.v1"
    generation: Annotated[int, Ge(1)]
    holder: str
    config_hash: str
    code_version: str
    rules: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecodable:
    """Stands in the log's order for an entry that could not be decoded. Never written."""

    ce_type: ClassVar[str] = ""
    key: str
    type: str
    error: str


Event = (
    ObjectUpserted
    | ObjectDeleted
    | BindSucceeded
    | BindFailed
    | BindUnknown
    | VictimDeleted
    | VictimRefused
    | ResyncRequested
    | ResyncStarted
    | ResyncFinished
    | LeaderElected
    | Undecodable
)


@dataclass(frozen=True, slots=True)
class Record:
    """An event at its place in the events log."""

    position: int
    fact: Event


# ---------------------------------------------------------------------------------------------
# Decisions


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRef:
    uid: NonEmpty
    namespace: NonEmpty
    name: NonEmpty

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Rejection(NamedTuple):
    """So many nodes were first rejected by this plugin, with this code and these reasons."""

    plugin: str
    code: int
    reasons: tuple[str, ...]
    count: int
    examples: tuple[str, ...] = ()


class NodeScore(NamedTuple):
    """A node's total and each score plugin's weighted part, in the profile's score order.

    A plugin that PreScore skipped has None.
    """

    node: str
    total: int
    scores: tuple[int | None, ...] = ()


class PermitWait(NamedTuple):
    """A Permit plugin that told the pod to wait, and until when, in logical time (ms)."""

    plugin: str
    deadline_ms: int


Plan = Mapping[str, Any]
"""What Reserve plugins planned, by plugin: plain data, recorded with the assume."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAssumed:
    """The scheduler placed the pod; the API server has not confirmed it yet.

    The placement counts against the node from this decision on, so the next cycle cannot
    hand out the same room twice. `bind.succeeded` confirms it; `PodUnreserved` undoes it.
    """

    ce_type: ClassVar[str] = "dev.decklog.pod.assumed.v1"

    pod: PodRef
    node: NonEmpty
    resource_version: str = ""
    """The pod's when it was decided on: precondition of the bind."""
    profile: str = ""
    attempt: Annotated[int, Ge(1)] = 1
    feasible_count: Annotated[int, Ge(1)]
    evaluated_count: Annotated[int, Ge(1)]
    tie_count: Annotated[int, Ge(1)] = 1
    """Nodes that shared the best total; the hash of name, seed, uid and attempt chose among them."""
    rejected: tuple[Rejection, ...] = ()
    top: tuple[NodeScore, ...] = ()
    """The best five nodes, best first. Without scores when there was only one to take."""
    plan: dict[str, Any] = field(default_factory=dict)
    closes_seq: int | None = None
    """The PodWaiting whose place this takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodWaiting:
    """The scheduler placed the pod, and a Permit plugin wants it to wait. It is an assume."""

    ce_type: ClassVar[str] = "dev.decklog.pod.waiting.v1"

    pod: PodRef
    node: NonEmpty
    resource_version: str = ""
    profile: str = ""
    attempt: Annotated[int, Ge(1)] = 1
    feasible_count: Annotated[int, Ge(1)]
    evaluated_count: Annotated[int, Ge(1)]
    tie_count: Annotated[int, Ge(1)] = 1
    rejected: tuple[Rejection, ...] = ()
    top: tuple[NodeScore, ...] = ()
    plan: dict[str, Any] = field(default_factory=dict)
    waits: tuple[PermitWait, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodUnschedulable:
    """An attempt ended without a placement. `reason` is the PodScheduled condition's.

    The condition's message is not stored: `core.framework.diagnosis` writes it from the counts.
    """

    ce_type: ClassVar[str] = "dev.decklog.pod.unschedulable.v1"

    pod: PodRef
    reason: str = "Unschedulable"
    resource_version: str = ""
    generation: int = 0
    """`metadata.generation` of the pod, for `observedGeneration`."""
    profile: str = ""
    attempt: Annotated[int, Ge(1)] = 1
    node_count: Count = 0
    rejected: tuple[Rejection, ...] = ()
    absent: tuple[str, ...] = ()
    """Reasons that count for every node without a status of its own."""
    absent_count: Count = 0
    pre_filter_message: str = ""
    post_filter_message: str = ""
    error: str = ""
    """The whole message, where the attempt did not end in a FitError."""
    unschedulable_plugins: tuple[str, ...] = ()
    pending_plugins: tuple[str, ...] = ()
    nominated_node: str | None = None
    """None: the nomination stays as it is; empty: it is cleared."""
    same_as: int | None = None
    """The earlier decision of the same pod with an equal diagnosis; what is absent here stands there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSkipped:
    """The pod was popped and not tried: it is being deleted, or it is assumed already."""

    ce_type: ClassVar[str] = "dev.decklog.pod.skipped.v1"

    pod: PodRef
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VictimsSelected:
    """Preemption chose a node for the pod and asks for these pods to be deleted from it."""

    ce_type: ClassVar[str] = "dev.decklog.victims.selected.v1"

    pod: PodRef
    node: NonEmpty
    victims: tuple[PodRef, ...]
    pdb_violations: Count = 0
    candidate_count: Count = 0
    tie_count: Count = 0
    nominations_cleared: tuple[PodRef, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodUnreserved:
    """An assume ended without its confirmation, and the room is free again."""

    ce_type: ClassVar[str] = "dev.decklog.pod.unreserved.v1"

    pod: PodRef
    node: NonEmpty
    closes_seq: Seq
    reason: str
    """One of `EndReason`."""
    message: str = ""
    pending: bool = False
    """The pod still exists unbound and was put back into the queue."""
    generation: int = 0
    residue: tuple[str, ...] = ()
    """What could not be undone, such as a volume already provisioned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangCommitted:
    """The assumes `seq_first` … `seq_last` stand or fall together. Reserved: no code writes it yet."""

    ce_type: ClassVar[str] = "dev.decklog.gang.committed.v1"

    seq_first: Seq
    seq_last: Seq


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingAdopted:
    """The pod was seen bound without a decision of this ledger that asked for it."""

    ce_type: ClassVar[str] = "dev.decklog.binding.adopted.v1"

    pod: PodRef
    node: NonEmpty
    was: str
    """`stamped`, `queued` or `assumed`: why the binding concerns us."""
    stamp: str = ""


Decision = (
    PodAssumed
    | PodWaiting
    | PodUnschedulable
    | PodSkipped
    | VictimsSelected
    | PodUnreserved
    | GangCommitted
    | BindingAdopted
)


class EndReason:
    """Why an assume ended without its confirmation. Values are written to the ledger."""

    DELETED: Final = "Deleted"
    RECREATED: Final = "Recreated"
    BOUND_ELSEWHERE: Final = "BoundElsewhere"
    REJECTED: Final = "BindRejected"
    PERMIT_REJECTED: Final = "PermitRejected"
    PERMIT_TIMED_OUT: Final = "PermitTimedOut"
