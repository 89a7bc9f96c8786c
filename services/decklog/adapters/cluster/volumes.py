"""The volume controller and the provisioners of the simulated cluster.

    claim ── has a volume in mind, or a volume has it ───────────────▶ bound
      ├── its class binds at once ── fitting volume, else a new one ─▶ bound
      └── its class waits ── scheduler selects a node ── new volume ─▶ bound

A scheduler that picks an existing volume for a waiting claim writes the claim into the volume;
that is the first case. A node that does not exist makes provisioning fail: the selection is
taken back, so that the scheduler chooses again.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from decklog.adapters.cluster.pods import ZONE
from decklog.adapters.cluster.simulated import SimulatedCluster
from decklog.adapters.cluster.store import Raw, StoreWatch, WatchOptions
from decklog.objects import quantity
from decklog.objects.matching import matches_labels
from decklog.objects.selectors import LabelSelector, LabelSelectorRequirement
from decklog.ports.cluster import WatchExpired

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
WAITS: Final = "WaitForFirstConsumer"
CLAIM: Final = "PersistentVolumeClaim"
VOLUME: Final = "PersistentVolume"
CLASS: Final = "StorageClass"
_BATCH: Final = 10_000


class VolumeBinder:
    """Binds claims and makes volumes, each time it is stepped and something has changed."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._store = cluster.store
        self._watches: dict[str, StoreWatch] = {}

    def step(self) -> bool:
        """Bring claims and volumes up to date; say whether anything had to be written."""
        if not self._has_news():
            return False
        with self._store.lock:
            version = self._store.version
            for claim in self._store.objects(CLAIM):
                self._bring_up(claim)
            for volume in self._store.objects(VOLUME):
                self._sort(volume)
            return self._store.version != version

    def _has_news(self) -> bool:
        news = [self._changed(kind) for kind in (CLAIM, VOLUME, CLASS)]  # Every watch moves on.
        return any(news)

    def _changed(self, kind: str) -> bool:
        watch = self._watches.get(kind)
        if watch is None or watch.ended:
            options = WatchOptions(bookmarks=False, never_cut=True)
            watch = self._watches[kind] = self._store.watch(kind, options)
        changed = False
        try:
            while watch.poll(limit=_BATCH, timeout=timedelta(0)):
                changed = True
        except WatchExpired:
            changed = True
        return changed

    def _bring_up(self, claim: Raw) -> None:
        if claim["spec"].get("volumeName") and _phase(claim) == "Bound":
            if self._store.get(VOLUME, "", claim["spec"]["volumeName"]) is None:
                self._put(claim, status={"phase": "Lost"})
            return
        volume = self._volume_in_mind(claim)
        if volume is None and not claim["spec"].get("volumeName"):
            volume = self._volume_to_have(claim)
        if volume is not None:
            self._bind(claim, volume)

    def _volume_in_mind(self, claim: Raw) -> Raw | None:
        """Return the volume that the claim names or that names the claim."""
        name = claim["spec"].get("volumeName")
        if name:
            volume = self._store.get(VOLUME, "", name)
            return volume if volume is not None and _is_free_for(volume, claim) else None
        named = (volume for volume in self._store.objects(VOLUME) if _names(volume, claim))
        return next(named, None)

    def _volume_to_have(self, claim: Raw) -> Raw | None:
        """Return a fitting volume or a new one, if the claim's class lets it have one now."""
        storage_class = self._store.get(CLASS, "", claim["spec"].get("storageClassName") or "")
        if storage_class is None or storage_class.get("volumeBindingMode") != WAITS:
            fitting = [volume for volume in self._store.objects(VOLUME) if _fits(volume, claim)]
            if fitting:
                return min(fitting, key=_capacity)
            return self._provision(claim, storage_class, None) if storage_class else None
        node_name = _annotations(claim).get(SELECTED_NODE)
        if not node_name:
            return None
        node = self._store.get("Node", "", node_name)
        if node is None:
            kept = {key: text for key, text in _annotations(claim).items() if key != SELECTED_NODE}
            self._put(claim, annotations=kept)
            return None
        return self._provision(claim, storage_class, node)

    def _provision(
        self, claim: Raw, storage_class: Raw, node: Mapping[str, Any] | None
    ) -> Raw | None:
        provisioner = storage_class.get("provisioner", NO_PROVISIONER)
        if provisioner == NO_PROVISIONER:
            return None
        name = f"pvc-{claim['metadata']['uid']}"
        spec: Raw = {
            "capacity": {"storage": _request(claim)},
            "accessModes": claim["spec"].get("accessModes", ["ReadWriteOnce"]),
            "storageClassName": storage_class["metadata"]["name"],
            "volumeMode": claim["spec"].get("volumeMode", "Filesystem"),
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
            "csi": {"driver": provisioner, "volumeHandle": name},
        }
        zone = ((node or {}).get("metadata", {}).get("labels") or {}).get(ZONE)
        if zone is not None:
            here = {"key": ZONE, "operator": "In", "values": [zone]}
            terms = [{"matchExpressions": [here]}]
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
        return {
            "apiVersion": "v1",
            "kind": VOLUME,
            "metadata": {
                "name": name,
                "uid": f"pv-{claim['metadata']['uid']}",
                "annotations": {PROVISIONED_BY: provisioner},
                "creationTimestamp": claim["metadata"]["creationTimestamp"],
            },
            "spec": spec,
        }

    def _bind(self, claim: Raw, volume: Raw) -> None:
        name = volume["metadata"]["name"]
        marks = dict(_annotations(volume))
        if not _names(volume, claim):
            marks[BOUND_BY_CONTROLLER] = "yes"
        self._put(
            volume,
            spec={"claimRef": _reference(claim)},
            annotations=marks,
            status={"phase": "Bound"},
        )
        marks = {**_annotations(claim), BIND_COMPLETED: "yes"}
        if claim["spec"].get("volumeName") != name:
            marks[BOUND_BY_CONTROLLER] = "yes"
        self._put(
            claim,
            spec={"volumeName": name},
            annotations=marks,
            status={
                "phase": "Bound",
                "accessModes": volume["spec"].get("accessModes", []),
                "capacity": volume["spec"].get("capacity", {}),
            },
        )

    def _sort(self, volume: Raw) -> None:
        """Say of a volume that is not bound whether it can be had; drop one that is done with."""
        reference = volume["spec"].get("claimRef")
        phase = "Available"
        if reference and reference.get("uid"):
            claim = self._store.get(CLAIM, reference["namespace"], reference["name"])
            if claim is not None and claim["metadata"]["uid"] == reference["uid"]:
                return
            if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
                self._store.remove(VOLUME, volume)
                return
            phase = "Released"
        if _phase(volume) != phase:
            self._put(volume, status={"phase": phase})

    def _put(
        self,
        obj: Raw,
        *,
        spec: Mapping[str, Any] | None = None,
        annotations: Mapping[str, str] | None = None,
        status: Mapping[str, Any] | None = None,
    ) -> None:
        metadata = dict(obj["metadata"])
        if annotations is not None:
            metadata["annotations"] = dict(annotations)
        new = {**obj, "metadata": metadata, "spec": {**obj["spec"], **(spec or {})}}
        if status is not None:
            new["status"] = dict(status)
        self._store.put(obj["kind"], new)


def _phase(obj: Mapping[str, Any]) -> str:
    phase: str = (obj.get("status") or {}).get("phase", "Pending")
    return phase


def _annotations(obj: Mapping[str, Any]) -> Mapping[str, str]:
    found: Mapping[str, str] = obj["metadata"].get("annotations") or {}
    return found


def _reference(claim: Mapping[str, Any]) -> Raw:
    metadata = claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": CLAIM,
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }


def _names(volume: Mapping[str, Any], claim: Mapping[str, Any]) -> bool:
    """Whether the volume is reserved for the claim: by name, and by uid where it has one."""
    reference = volume["spec"].get("claimRef") or {}
    want = _reference(claim)
    same = (reference.get("namespace"), reference.get("name")) == (want["namespace"], want["name"])
    return same and reference.get("uid", "") in ("", want["uid"])


def _is_free_for(volume: Mapping[str, Any], claim: Mapping[str, Any]) -> bool:
    return not volume["spec"].get("claimRef") or _names(volume, claim)


def _fits(volume: Mapping[str, Any], claim: Mapping[str, Any]) -> bool:
    """Whether an unclaimed volume is what the claim asks for."""
    has, wants = volume["spec"], claim["spec"]
    return (
        not has.get("claimRef")
        and (has.get("storageClassName") or "") == (wants.get("storageClassName") or "")
        and has.get("volumeMode", "Filesystem") == wants.get("volumeMode", "Filesystem")
        and set(wants.get("accessModes", ())) <= set(has.get("accessModes", ()))
        and _capacity(volume) >= _bytes(_request(claim))
        and _is_selected(volume, wants.get("selector"))
    )


def _capacity(volume: Mapping[str, Any]) -> int:
    return _bytes(volume["spec"].get("capacity", {}).get("storage", "0"))


def _bytes(text: str) -> int:
    try:
        return quantity.parse(text).value()
    except quantity.InvalidQuantity:
        return 0  # A real API server does not store such an object.


def _request(claim: Mapping[str, Any]) -> str:
    resources: Mapping[str, Any] = claim["spec"].get("resources") or {}
    text: str = (resources.get("requests") or {}).get("storage", "0")
    return text


def _is_selected(volume: Mapping[str, Any], selector: Mapping[str, Any] | None) -> bool:
    if selector is None:
        return True
    requirements = tuple(_requirements(selector.get("matchExpressions") or ()))
    wanted = LabelSelector(
        match_labels=dict(selector.get("matchLabels") or {}), match_expressions=requirements
    )
    return matches_labels(wanted, volume["metadata"].get("labels") or {})


def _requirements(raw: Sequence[Mapping[str, Any]]) -> Iterator[LabelSelectorRequirement]:
    for one in raw:
        yield LabelSelectorRequirement(
            key=one.get("key", ""),
            operator=one.get("operator", ""),
            values=tuple(one.get("values") or ()),
        )
