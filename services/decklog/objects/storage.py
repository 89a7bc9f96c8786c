"""Volumes, claims and what limits them."""

from dataclasses import dataclass, field

from decklog.objects.meta import OwnerReference
from decklog.objects.selectors import LabelSelector, NodeSelector


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRef:
    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeSource:
    """Where the volume's data is: a CSI driver with its handle, or an in-tree kind."""

    kind: str
    """`csi`, or the in-tree field's name, such as `gcePersistentDisk`."""
    driver: str = ""
    handle: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistentVolume:
    uid: str
    name: str
    namespace: str = ""
    resource_version: str = ""
    deleted: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    capacity: dict[str, str] = field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    storage_class: str = ""
    volume_mode: str | None = None
    volume_attributes_class: str | None = None
    claim_ref: ClaimRef | None = None
    node_affinity: NodeSelector | None = None
    source: VolumeSource | None = None
    phase: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistentVolumeClaim:
    uid: str
    namespace: str
    name: str
    resource_version: str = ""
    deleted: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner: OwnerReference | None = None
    storage_class: str | None = None
    """None: not given; the beta annotation counts as given."""
    volume_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class: str | None = None
    access_modes: tuple[str, ...] = ()
    requests: dict[str, str] = field(default_factory=dict)
    selector: LabelSelector | None = None
    phase: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologySelectorTerm:
    """`allowedTopologies`: every key must have one of its values."""

    expressions: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageClass:
    uid: str
    name: str
    namespace: str = ""
    resource_version: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CSINodeDriver:
    name: str
    count: int | None = None
    """`allocatable.count`; None: no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CSINode:
    uid: str
    name: str
    namespace: str = ""
    resource_version: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    drivers: tuple[CSINodeDriver, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CSIDriver:
    uid: str
    name: str
    namespace: str = ""
    resource_version: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    storage_capacity: bool = False
    prevent_pod_scheduling_if_missing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CSIStorageCapacity:
    uid: str
    namespace: str
    name: str
    resource_version: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    storage_class: str = ""
    capacity: str | None = None
    maximum_volume_size: str | None = None
    node_topology: LabelSelector | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeAttachment:
    uid: str
    name: str
    namespace: str = ""
    resource_version: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    attacher: str = ""
    node_name: str = ""
    volume_name: str | None = None
    attached: bool = False
