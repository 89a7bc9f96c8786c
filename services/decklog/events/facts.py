"""Every fact that decklog writes down, as frozen data.

Two families. *Events* are what the scheduler is told; their order is their position in the events
log. *Decisions* are what it decided; their order is `seq`, in the ledger. A default value is not
written, so every field with a default is optional on the wire.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge

from decklog.events.decisions import (
    BindingAdopted,
    Count,
    Decision,
    EndReason,
    GangCommitted,
    NodeScore,
    NonEmpty,
    PermitWait,
    Plan,
    PodAssumed,
    PodRef,
    PodSkipped,
    PodUnreserved,
    PodUnschedulable,
    PodWaiting,
    Rejection,
    Seq,
    VictimsSelected,
)
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

__all__ = [
    "BindFailed",
    "BindSucceeded",
    "BindUnknown",
    "BindingAdopted",
    "CSIDriverUpserted",
    "CSINodeUpserted",
    "CSIStorageCapacityUpserted",
    "Count",
    "Decision",
    "EndReason",
    "Event",
    "GangCommitted",
    "LeaderElected",
    "NamespaceUpserted",
    "NodeScore",
    "NodeUpserted",
    "NonEmpty",
    "ObjectDeleted",
    "ObjectUpserted",
    "PermitWait",
    "PersistentVolumeClaimUpserted",
    "PersistentVolumeUpserted",
    "Plan",
    "PodAssumed",
    "PodDisruptionBudgetUpserted",
    "PodRef",
    "PodSkipped",
    "PodUnreserved",
    "PodUnschedulable",
    "PodUpserted",
    "PodWaiting",
    "PriorityClassUpserted",
    "Record",
    "Rejection",
    "ReplicaSetUpserted",
    "ReplicationControllerUpserted",
    "ResyncFinished",
    "ResyncRequested",
    "ResyncStarted",
    "Seq",
    "ServiceUpserted",
    "StatefulSetUpserted",
    "StorageClassUpserted",
    "Undecodable",
    "VictimDeleted",
    "VictimRefused",
    "VictimsSelected",
    "VolumeAttachmentUpserted",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodUpserted:
    """The pod exists as given: it was created, changed, or named by a relist."""

    ce_type: ClassVar[str] = "dev.decklog.pod.upserted.v1"
    pod: Pod

    @property
    def object(self) -> Pod:
        return self.pod


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUpserted:
    """The node exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.node.upserted.v1"
    node: Node

    @property
    def object(self) -> Node:
        return self.node


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceUpserted:
    """The namespace exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.namespace.upserted.v1"
    namespace: Namespace

    @property
    def object(self) -> Namespace:
        return self.namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistentVolumeUpserted:
    """The volume exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.persistentvolume.upserted.v1"
    persistent_volume: PersistentVolume

    @property
    def object(self) -> PersistentVolume:
        return self.persistent_volume


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistentVolumeClaimUpserted:
    """The claim exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.persistentvolumeclaim.upserted.v1"
    persistent_volume_claim: PersistentVolumeClaim

    @property
    def object(self) -> PersistentVolumeClaim:
        return self.persistent_volume_claim


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageClassUpserted:
    """The storage class exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.storageclass.upserted.v1"
    storage_class: StorageClass

    @property
    def object(self) -> StorageClass:
        return self.storage_class


@dataclass(frozen=True, slots=True, kw_only=True)
class CSINodeUpserted:
    """The CSI node exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.csinode.upserted.v1"
    csi_node: CSINode

    @property
    def object(self) -> CSINode:
        return self.csi_node


@dataclass(frozen=True, slots=True, kw_only=True)
class CSIDriverUpserted:
    """The CSI driver exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.csidriver.upserted.v1"
    csi_driver: CSIDriver

    @property
    def object(self) -> CSIDriver:
        return self.csi_driver


@dataclass(frozen=True, slots=True, kw_only=True)
class CSIStorageCapacityUpserted:
    """The storage capacity exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.csistoragecapacity.upserted.v1"
    csi_storage_capacity: CSIStorageCapacity

    @property
    def object(self) -> CSIStorageCapacity:
        return self.csi_storage_capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeAttachmentUpserted:
    """The attachment exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.volumeattachment.upserted.v1"
    volume_attachment: VolumeAttachment

    @property
    def object(self) -> VolumeAttachment:
        return self.volume_attachment


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDisruptionBudgetUpserted:
    """The budget exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.poddisruptionbudget.upserted.v1"
    pod_disruption_budget: PodDisruptionBudget

    @property
    def object(self) -> PodDisruptionBudget:
        return self.pod_disruption_budget


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClassUpserted:
    """The priority class exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.priorityclass.upserted.v1"
    priority_class: PriorityClass

    @property
    def object(self) -> PriorityClass:
        return self.priority_class


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSetUpserted:
    """The replica set exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.replicaset.upserted.v1"
    replica_set: ReplicaSet

    @property
    def object(self) -> ReplicaSet:
        return self.replica_set


@dataclass(frozen=True, slots=True, kw_only=True)
class StatefulSetUpserted:
    """The stateful set exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.statefulset.upserted.v1"
    stateful_set: StatefulSet

    @property
    def object(self) -> StatefulSet:
        return self.stateful_set


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationControllerUpserted:
    """The replication controller exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.replicationcontroller.upserted.v1"
    replication_controller: ReplicationController

    @property
    def object(self) -> ReplicationController:
        return self.replication_controller


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceUpserted:
    """The service exists as given."""

    ce_type: ClassVar[str] = "dev.decklog.service.upserted.v1"
    service: Service

    @property
    def object(self) -> Service:
        return self.service


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


@dataclass(frozen=True, slots=True, kw_only=True)
class BindSucceeded:
    """The pod is on the node that decision `seq` chose; this confirms the assume."""

    ce_type: ClassVar[str] = "dev.decklog.bind.succeeded.v1"
    seq: Seq
    pod_uid: NonEmpty
    node: NonEmpty


@dataclass(frozen=True, slots=True, kw_only=True)
class BindFailed:
    """The bind that decision `seq` asked for was refused for good; the assume is undone."""

    ce_type: ClassVar[str] = "dev.decklog.bind.failed.v1"
    seq: Seq
    pod_uid: NonEmpty
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BindUnknown:
    """Whether the bind of decision `seq` was done is not known yet; until then nothing changes."""

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
    """The victim that decision `seq` named can't be deleted; its preemptor must not wait for it."""

    ce_type: ClassVar[str] = "dev.decklog.victim.refused.v1"
    seq: Seq
    pod_uid: NonEmpty
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResyncRequested:
    """A reader found something wrong in what it heard of a kind; the watcher lists it again."""

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
    """The whole list follows. False: only what differs from what was published, and deletes."""


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
