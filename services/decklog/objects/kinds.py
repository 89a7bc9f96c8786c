"""The kinds that decklog watches: one table, read by the watcher, the codec and the cluster."""

from dataclasses import dataclass
from typing import Final

from decklog.objects.meta import KubeObject
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A watched kind: where the API server serves it and which class holds it."""

    name: str
    group: str
    """Empty for the core group."""
    version: str
    plural: str
    namespaced: bool
    cls: type[KubeObject]

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


def _kind(
    cls: type[KubeObject], group: str, plural: str, *, namespaced: bool, version: str = "v1"
) -> Kind:
    return Kind(
        name=cls.__name__,
        group=group,
        version=version,
        plural=plural,
        namespaced=namespaced,
        cls=cls,
    )


KINDS: Final = (
    _kind(Namespace, "", "namespaces", namespaced=False),
    _kind(Node, "", "nodes", namespaced=False),
    _kind(PriorityClass, "scheduling.k8s.io", "priorityclasses", namespaced=False),
    _kind(StorageClass, "storage.k8s.io", "storageclasses", namespaced=False),
    _kind(CSIDriver, "storage.k8s.io", "csidrivers", namespaced=False),
    _kind(CSINode, "storage.k8s.io", "csinodes", namespaced=False),
    _kind(CSIStorageCapacity, "storage.k8s.io", "csistoragecapacities", namespaced=True),
    _kind(PersistentVolume, "", "persistentvolumes", namespaced=False),
    _kind(PersistentVolumeClaim, "", "persistentvolumeclaims", namespaced=True),
    _kind(VolumeAttachment, "storage.k8s.io", "volumeattachments", namespaced=False),
    _kind(PodDisruptionBudget, "policy", "poddisruptionbudgets", namespaced=True),
    _kind(Service, "", "services", namespaced=True),
    _kind(ReplicationController, "", "replicationcontrollers", namespaced=True),
    _kind(ReplicaSet, "apps", "replicasets", namespaced=True),
    _kind(StatefulSet, "apps", "statefulsets", namespaced=True),
    _kind(Pod, "", "pods", namespaced=True),
)
"""In the order in which the watcher lists them: nodes and what pods refer to before the pods."""

KIND_BY_NAME: Final = {kind.name: kind for kind in KINDS}
