"""One example of every event and decision, for the reference pages and the golden files.

They tell one short story: web-5d9c7b8f6d-x2x8k comes to a cluster, is placed, and is bound.
"""

from typing import Final

from decklog.events.decisions import (
    BindingAdopted,
    Decision,
    EndReason,
    GangCommitted,
    NodeScore,
    PermitWait,
    PodAssumed,
    PodRef,
    PodSkipped,
    PodUnreserved,
    PodUnschedulable,
    PodWaiting,
    Rejection,
    VictimsSelected,
)
from decklog.events.facts import (
    BindFailed,
    BindSucceeded,
    BindUnknown,
    CSIDriverUpserted,
    CSINodeUpserted,
    CSIStorageCapacityUpserted,
    Event,
    LeaderElected,
    NamespaceUpserted,
    NodeUpserted,
    ObjectDeleted,
    PersistentVolumeClaimUpserted,
    PersistentVolumeUpserted,
    PodDisruptionBudgetUpserted,
    PodUpserted,
    PriorityClassUpserted,
    ReplicaSetUpserted,
    ReplicationControllerUpserted,
    ResyncFinished,
    ResyncRequested,
    ResyncStarted,
    ServiceUpserted,
    StatefulSetUpserted,
    StorageClassUpserted,
    VictimDeleted,
    VictimRefused,
    VolumeAttachmentUpserted,
)
from decklog.objects.meta import OwnerReference
from decklog.objects.node import ContainerImage, Node
from decklog.objects.pod import Container, Pod
from decklog.objects.policy import (
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from decklog.objects.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
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
    VolumeAttachment,
    VolumeSource,
)

_POD: Final = PodRef(
    uid="0f8fad5b-d9cb-469f-a165-70867728950e", namespace="shop", name="web-5d9c7b8f6d-x2x8k"
)
_VICTIM: Final = PodRef(
    uid="7c9e6679-7425-40de-944b-e07fc1f90ae7", namespace="batch", name="report-28461-qk7zt"
)
_WEB: Final = LabelSelector(match_labels={"app": "web"})
_DRIVER: Final = "csi.example.com"
_ZONE: Final = "topology.kubernetes.io/zone"
_TAINTED: Final = Rejection(
    plugin="TaintToleration",
    code=3,
    reasons=("node(s) had untolerated taint(s)",),
    count=3,
    examples=("control-1", "control-2", "control-3"),
)
_FULL: Final = Rejection(
    plugin="NodeResourcesFit",
    code=2,
    reasons=("Insufficient cpu",),
    count=40,
    examples=("node-0001", "node-0002", "node-0003"),
)

OBJECTS: Final = (
    PodUpserted(
        pod=Pod(
            uid=_POD.uid,
            namespace=_POD.namespace,
            name=_POD.name,
            resource_version="48213",
            generation=1,
            created="2026-02-03T04:05:06Z",
            labels={"app": "web", "pod-template-hash": "5d9c7b8f6d"},
            owner=OwnerReference(
                api_version="apps/v1",
                kind="ReplicaSet",
                name="web-5d9c7b8f6d",
                uid="b5f7cdb4-2a7e-4f1c-9a1e-6f0f6b1d2c3a",
            ),
            priority=1000,
            preemption_policy="PreemptLowerPriority",
            containers=(
                Container(
                    name="web",
                    image="registry.example.com/web:1.8.2",
                    requests={"cpu": "500m", "memory": "512Mi"},
                    limits={"memory": "512Mi"},
                ),
            ),
            tolerations=(
                Toleration(
                    key="node.kubernetes.io/not-ready", operator="Exists", effect="NoExecute"
                ),
            ),
            phase="Pending",
        )
    ),
    NodeUpserted(
        node=Node(
            uid="5f0c7f0e-8b7a-4e57-8c77-1f6f4c1f0a11",
            name="node-0017",
            resource_version="48190",
            created="2026-01-01T00:00:00Z",
            labels={"kubernetes.io/hostname": "node-0017", _ZONE: "eu-1a"},
            taints=(Taint(key="dedicated", value="web", effect="PreferNoSchedule"),),
            allocatable={"cpu": "7910m", "memory": "30145Mi", "pods": "110"},
            images=(
                ContainerImage(names=("registry.example.com/web:1.8.2",), size_bytes=61_234_567),
            ),
            conditions={"Ready": "True"},
        )
    ),
    NamespaceUpserted(
        namespace=Namespace(
            uid="d2a2b1f4-0f0c-4b0f-9d37-3c9d1f3f8a01",
            name="shop",
            resource_version="310",
            labels={"team": "shop"},
        )
    ),
    PersistentVolumeUpserted(
        persistent_volume=PersistentVolume(
            uid="4a1d9f1e-55a3-4c64-9b10-2b1c9d7c0e55",
            name="pvc-0b1c",
            resource_version="47001",
            capacity={"storage": "20Gi"},
            access_modes=("ReadWriteOnce",),
            storage_class="fast",
            volume_mode="Filesystem",
            claim_ref=ClaimRef(
                namespace="shop", name="cart-0", uid="0b1c2d3e-1111-4222-8333-444455556666"
            ),
            node_affinity=NodeSelector(
                terms=(
                    NodeSelectorTerm(
                        match_expressions=(
                            NodeSelectorRequirement(key=_ZONE, operator="In", values=("eu-1a",)),
                        )
                    ),
                )
            ),
            source=VolumeSource(kind="csi", driver=_DRIVER, handle="vol-0b1c"),
            phase="Bound",
        )
    ),
    PersistentVolumeClaimUpserted(
        persistent_volume_claim=PersistentVolumeClaim(
            uid="0b1c2d3e-1111-4222-8333-444455556666",
            namespace="shop",
            name="cart-0",
            resource_version="47002",
            storage_class="fast",
            volume_name="pvc-0b1c",
            volume_mode="Filesystem",
            access_modes=("ReadWriteOnce",),
            requests={"storage": "20Gi"},
            phase="Bound",
        )
    ),
    StorageClassUpserted(
        storage_class=StorageClass(
            uid="9c3d6f00-7c3e-47a5-9d8a-d7a1b3c4d5e6",
            name="fast",
            resource_version="212",
            provisioner=_DRIVER,
            volume_binding_mode="WaitForFirstConsumer",
        )
    ),
    CSINodeUpserted(
        csi_node=CSINode(
            uid="3e9a4b1c-6d2f-4f88-9f5a-0c1d2e3f4a5b",
            name="node-0017",
            resource_version="401",
            drivers=(CSINodeDriver(name=_DRIVER, count=25),),
        )
    ),
    CSIDriverUpserted(
        csi_driver=CSIDriver(
            uid="a8b7c6d5-e4f3-4a2b-8c1d-0e9f8a7b6c5d",
            name=_DRIVER,
            resource_version="211",
            storage_capacity=True,
        )
    ),
    CSIStorageCapacityUpserted(
        csi_storage_capacity=CSIStorageCapacity(
            uid="6d5c4b3a-2f1e-4d0c-9b8a-7f6e5d4c3b2a",
            namespace="kube-system",
            name="csisc-4t8xk",
            resource_version="46990",
            storage_class="fast",
            capacity="840Gi",
            node_topology=LabelSelector(match_labels={_ZONE: "eu-1a"}),
        )
    ),
    VolumeAttachmentUpserted(
        volume_attachment=VolumeAttachment(
            uid="1a2b3c4d-5e6f-4071-8293-a4b5c6d7e8f9",
            name="csi-7f3a",
            resource_version="47010",
            attacher=_DRIVER,
            node_name="node-0017",
            volume_name="pvc-0b1c",
            attached=True,
        )
    ),
    PodDisruptionBudgetUpserted(
        pod_disruption_budget=PodDisruptionBudget(
            uid="c0ffee00-1234-4567-89ab-cdef01234567",
            namespace="shop",
            name="web",
            resource_version="48001",
            selector=_WEB,
            disruptions_allowed=1,
        )
    ),
    PriorityClassUpserted(
        priority_class=PriorityClass(
            uid="e1d2c3b4-a596-4877-8695-a4b3c2d1e0f1",
            name="web",
            resource_version="205",
            value=1000,
            preemption_policy="PreemptLowerPriority",
        )
    ),
    ReplicaSetUpserted(
        replica_set=ReplicaSet(
            uid="b5f7cdb4-2a7e-4f1c-9a1e-6f0f6b1d2c3a",
            namespace="shop",
            name="web-5d9c7b8f6d",
            resource_version="48209",
            selector=_WEB,
        )
    ),
    StatefulSetUpserted(
        stateful_set=StatefulSet(
            uid="f1e2d3c4-b5a6-4978-8a9b-0c1d2e3f4a5c",
            namespace="shop",
            name="cart",
            resource_version="46880",
            selector=LabelSelector(match_labels={"app": "cart"}),
        )
    ),
    ReplicationControllerUpserted(
        replication_controller=ReplicationController(
            uid="08192a3b-4c5d-4e6f-8071-8293a4b5c6d7",
            namespace="shop",
            name="legacy",
            resource_version="512",
            selector={"app": "legacy"},
        )
    ),
    ServiceUpserted(
        service=Service(
            uid="2b3c4d5e-6f70-4812-93a4-b5c6d7e8f90a",
            namespace="shop",
            name="web",
            resource_version="333",
            selector={"app": "web"},
        )
    ),
)

EVENTS: Final[tuple[Event, ...]] = (
    *OBJECTS,
    ObjectDeleted(
        kind="Pod",
        namespace=_VICTIM.namespace,
        name=_VICTIM.name,
        uid=_VICTIM.uid,
        resource_version="48230",
    ),
    BindSucceeded(seq=1042, pod_uid=_POD.uid, node="node-0017"),
    BindFailed(seq=1042, pod_uid=_POD.uid, reason="Conflict", message="pod is on node-0003"),
    BindUnknown(seq=1042, pod_uid=_POD.uid, message="no answer within 10 s"),
    VictimDeleted(seq=1040, pod_uid=_VICTIM.uid),
    VictimRefused(seq=1040, pod_uid=_VICTIM.uid, reason="Forbidden"),
    ResyncRequested(kind="Pod", reason="digest differs at position 90211"),
    ResyncStarted(kind="Pod", resource_version="48213"),
    ResyncFinished(
        kind="Pod", resource_version="48213", count=1, digest="00c1ad0e7a3f5b6c8d9e0f1a2b3c4d5e"
    ),
    LeaderElected(
        generation=7,
        holder="decklog-0",
        config_hash="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        code_version="0.1.0",
        rules=1,
    ),
)

DECISIONS: Final[tuple[Decision, ...]] = (
    PodAssumed(
        pod=_POD,
        node="node-0017",
        resource_version="48213",
        profile="decklog",
        feasible_count=400,
        evaluated_count=443,
        tie_count=2,
        rejected=(_TAINTED, _FULL),
        top=(
            NodeScore(node="node-0017", total=612, scores=(100, 87, None, 100, 200, 125)),
            NodeScore(node="node-0203", total=612, scores=(100, 87, None, 100, 200, 125)),
            NodeScore(node="node-0044", total=598, scores=(100, 73, None, 100, 200, 125)),
        ),
        plan={"VolumeBinding": {"bind": [["shop/cart-0", "pvc-0b1c"]]}},
    ),
    PodWaiting(
        pod=_POD,
        node="node-0017",
        resource_version="48213",
        profile="decklog",
        feasible_count=1,
        evaluated_count=443,
        top=(NodeScore(node="node-0017", total=0),),
        waits=(PermitWait(plugin="Quota", deadline_ms=1_770_091_536_789),),
    ),
    PodUnschedulable(
        pod=_POD,
        resource_version="48213",
        generation=1,
        profile="decklog",
        node_count=43,
        rejected=(_TAINTED, _FULL),
        post_filter_message=(
            "0/43 nodes are available: 3 Preemption is not helpful for scheduling, "
            "40 No preemption victims found for incoming pod."
        ),
        unschedulable_plugins=("NodeResourcesFit", "TaintToleration"),
    ),
    PodSkipped(pod=_VICTIM, reason="deleting"),
    VictimsSelected(
        pod=_POD, node="node-0017", victims=(_VICTIM,), candidate_count=12, tie_count=1
    ),
    PodUnreserved(
        pod=_POD,
        node="node-0017",
        closes_seq=1042,
        reason=EndReason.REJECTED,
        message="pod is on node-0003",
        pending=True,
        generation=1,
    ),
    GangCommitted(seq_first=1042, seq_last=1049),
    BindingAdopted(pod=_POD, node="node-0003", was="assumed"),
)
