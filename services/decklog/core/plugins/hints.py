"""Queueing hints: whether an event may make schedulable what a plugin rejected.

Each hint gets (waiting pod, old, new), of which one is None for what was added or deleted, and
answers whether to queue the pod. Source: kube-scheduler v1.36; where its hints look odd (one
about anti-affinity wants *all* terms to match), so do these.
"""

from typing import Any, Final

from decklog.objects import requests
from decklog.objects.matching import first_untolerated, required_node_affinity, tolerates
from decklog.objects.node import Node
from decklog.objects.pod import Pod
from decklog.objects.quantity import amount
from decklog.objects.selectors import Taint
from decklog.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

_CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_ZONE_LABELS: Final = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)
_MIGRATED: Final = "storage.alpha.kubernetes.io/migrated-plugins"
ATTACHERS: Final = {
    "awsElasticBlockStore": "ebs.csi.aws.com",
    "gcePersistentDisk": "pd.csi.storage.gke.io",
    "azureDisk": "disk.csi.azure.com",
    "cinder": "cinder.csi.openstack.org",
    "portworxVolume": "pxd.portworx.com",
    "vsphereVolume": "csi.vsphere.vmware.com",
    "azureFile": "file.csi.azure.com",
}
"""In-tree volume → the CSI driver that it is migrated to."""


def own(pod: Pod, old: Any, new: Any) -> bool:
    """The event is an update of the waiting pod itself."""
    return isinstance(new, Pod) and new.uid == pod.uid


def never(pod: Pod, old: Any, new: Any) -> bool:
    return False


def was_placed(pod: Pod, old: Any, new: Any) -> bool:
    """The deleted pod held room, or had it promised."""
    return isinstance(old, Pod) and bool(old.node_name or old.nominated_node_name)


# -- nodes ---------------------------------------------------------------------------------------


def node_unschedulable(pod: Pod, old: Any, new: Any) -> bool:
    if not isinstance(new, Node):
        return True
    return not new.unschedulable and (old is None or old.unschedulable)


def node_unschedulable_own(pod: Pod, old: Any, new: Any) -> bool:
    return own(pod, old, new) and any(tolerates(one, _CORDON) for one in new.tolerations)


def taint_toleration(pod: Pod, old: Any, new: Any) -> bool:
    """The node carries no untolerated taint, and is new or did carry one."""
    if not isinstance(new, Node):
        return True
    was_tainted = old is None or first_untolerated(old.taints, pod.tolerations) is not None
    return was_tainted and first_untolerated(new.taints, pod.tolerations) is None


def node_affinity(pod: Pod, old: Any, new: Any) -> bool:
    """The node satisfies the pod's affinity now, and is new or did not before."""
    if not isinstance(new, Node):
        return True
    required = required_node_affinity(pod)
    matched, problem = required.judge(new.labels, new.name)
    if problem:
        return True
    if not matched:
        return False
    return old is None or not required.matches(old.labels, old.name)


def node_ports(pod: Pod, old: Any, new: Any) -> bool:
    if not was_placed(pod, old, new):
        return False
    freed = requests.host_ports(old)
    return any(requests.ports_conflict(port, freed) for port in requests.host_ports(pod))


def room_freed(pod: Pod, old: Any, new: Any) -> bool:
    """A placed pod is gone, a running one gave up some of what the pod wants, or it wants less."""
    if not isinstance(old, Pod):
        return True
    if not isinstance(new, Pod):
        return was_placed(pod, old, new)
    if new.uid == pod.uid:
        return True
    if not new.node_name:
        return False
    was, now = requests.accounted(old), requests.accounted(new)
    asked = requests.incoming(pod)
    return any(
        amount_ != 0 and was.get(name, 0) > now.get(name, 0) for name, amount_ in asked.items()
    )


def fits_node(pod: Pod, old: Any, new: Any) -> bool:
    """The empty node would do, and is new or has more of something that the pod asks for."""
    if not isinstance(new, Node):
        return True
    asked = _asked(pod)
    now = _allocatable(new)
    if now.get("pods", 0) < 1 or any(value > now.get(name, 0) for name, value in asked.items()):
        return False
    if old is None:
        return True
    was = _allocatable(old)
    return now.get("pods", 0) > was.get("pods", 0) or any(
        now.get(name, 0) > was.get(name, 0) for name in asked
    )


def _asked(pod: Pod) -> dict[str, int]:
    native = ("cpu", "memory", "ephemeral-storage")
    return {
        name: value
        for name, value in requests.incoming(pod).items()
        if value > 0 and (name in native or requests.is_scalar_resource(name))
    }


def _allocatable(node: Node) -> dict[str, int]:
    return {name: amount(name, text) for name, text in node.allocatable.items()}


def declared_features(pod: Pod, old: Any, new: Any) -> bool:
    """The node declares all that the pod requires; an update must have brought that about."""
    if not isinstance(new, Node):
        return True
    required = requests.required_features(pod)
    if not required <= set(new.declared_features):
        return False
    return old is None or not required <= set(old.declared_features)


def declared_features_own(pod: Pod, old: Any, new: Any) -> bool:
    if not own(pod, old, new):
        return False
    return requests.required_features(old) != requests.required_features(new)


# -- volumes -------------------------------------------------------------------------------------


def claim_of_pod(pod: Pod, old: Any, new: Any) -> bool:
    """The claim is one that the pod names."""
    return _is_claimed(pod, new, ephemeral=False)


def claim_or_ephemeral(pod: Pod, old: Any, new: Any) -> bool:
    """The claim is one that the pod names, or that an ephemeral volume of it stands for."""
    return _is_claimed(pod, new, ephemeral=True)


def _is_claimed(pod: Pod, claim: Any, *, ephemeral: bool) -> bool:
    if not isinstance(claim, PersistentVolumeClaim) or claim.namespace != pod.namespace:
        return False
    for volume in pod.volumes:
        if volume.claim_name == claim.name:
            return True
        if ephemeral and volume.ephemeral and f"{pod.name}-{volume.name}" == claim.name:
            return True
    return False


def disks_freed(pod: Pod, old: Any, new: Any) -> bool:
    """The deleted pod held a disk or a claim that the waiting one wants."""
    if not isinstance(old, Pod) or old.namespace != pod.namespace:
        return False
    mine = {volume.claim_name for volume in pod.volumes if volume.claim_name is not None}
    theirs = {volume.claim_name for volume in old.volumes if volume.claim_name is not None}
    return bool(mine & theirs) or disks_conflict(pod, old)


def disks_conflict(one: Pod, other: Pod) -> bool:
    """Whether two pods cannot run on one node because of disks that they name themselves."""
    return any(
        mine.disk is not None and theirs.disk is not None and _disk_conflict(mine.disk, theirs.disk)
        for mine in one.volumes
        for theirs in other.volumes
    )


def _disk_conflict(one: Any, other: Any) -> bool:
    if one.kind != other.kind:
        return False
    both_read = one.read_only and other.read_only
    match one.kind:
        case "gcePersistentDisk" | "iscsi":
            return one.parts == other.parts and not both_read
        case "awsElasticBlockStore":
            return bool(one.parts == other.parts)
        case "rbd":
            shared = set(one.monitors) & set(other.monitors)
            return bool(shared) and one.parts == other.parts and not both_read
        case _:
            return False


def attachments_freed(pod: Pod, old: Any, new: Any) -> bool:
    """The deleted pod was placed and had a volume that may count."""
    if not was_placed(pod, old, new):
        return False
    return any(
        volume.claim_name is not None
        or volume.ephemeral
        or (volume.disk is not None and volume.disk.kind in ATTACHERS)
        for volume in old.volumes
    )


def attachment_gone(pod: Pod, old: Any, new: Any) -> bool:
    if not isinstance(old, VolumeAttachment):
        return True
    return any(
        volume.claim_name is not None
        or (volume.disk is not None and ATTACHERS.get(volume.disk.kind) == old.attacher)
        for volume in pod.volumes
    )


def limit_raised(pod: Pod, old: Any, new: Any) -> bool:
    """Some driver on the node may attach more volumes than before."""
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return True
    was = {driver.name: driver.count or 0 for driver in old.drivers}
    return any((driver.count or 0) > was.get(driver.name, 0) for driver in new.drivers)


def topologies_changed(pod: Pod, old: Any, new: Any) -> bool:
    if not isinstance(old, StorageClass) or not isinstance(new, StorageClass):
        return True
    return old.allowed_topologies != new.allowed_topologies


def migration_changed(pod: Pod, old: Any, new: Any) -> bool:
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return True
    return old.annotations.get(_MIGRATED, "") != new.annotations.get(_MIGRATED, "")


def capacity_no_longer_checked(pod: Pod, old: Any, new: Any) -> bool:
    """The pod's inline volume is of a driver that no longer asks for its capacity to be checked."""
    if not isinstance(old, CSIDriver) or not isinstance(new, CSIDriver):
        return True
    if not any(volume.csi_driver == new.name for volume in pod.volumes):
        return False
    return old.storage_capacity and not new.storage_capacity


def capacity_raised(pod: Pod, old: Any, new: Any) -> bool:
    if not isinstance(old, CSIStorageCapacity) or not isinstance(new, CSIStorageCapacity):
        return True
    was, now = _largest(old), _largest(new)
    if now is None:
        return False
    return was is None or amount("storage", now) > amount("storage", was)


def _largest(capacity: CSIStorageCapacity) -> str | None:
    size = capacity.maximum_volume_size
    return size if size is not None else capacity.capacity


def waits_for_consumer(pod: Pod, old: Any, new: Any) -> bool:
    return isinstance(new, StorageClass) and new.volume_binding_mode == "WaitForFirstConsumer"


def zones_changed(pod: Pod, old: Any, new: Any) -> bool:
    if not isinstance(old, PersistentVolume) or not isinstance(new, PersistentVolume):
        return True
    return _zones(old) != _zones(new)


def _zones(volume: PersistentVolume) -> dict[str, frozenset[str]]:
    """Return the zones and regions of the volume; a label that does not parse says nothing."""
    found = {}
    for key in _ZONE_LABELS:
        values = volume.labels.get(key, "").split("__")
        if all(values):
            found[key] = frozenset(values)
    return found
