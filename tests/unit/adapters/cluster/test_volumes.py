"""Claims and volumes of the simulated cluster come together as a volume controller does it."""

from typing import Any

import pytest

from decklog.adapters.cluster.simulated import SimulatedCluster
from decklog.adapters.cluster.volumes import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    VolumeBinder,
)
from tests.contract.cluster_worlds import ManualClock, make_node

Raw = dict[str, Any]


class Cluster:
    """A cluster of one node and three classes, whose volume binder the test steps."""

    def __init__(self) -> None:
        self.server = SimulatedCluster(ManualClock(), seed=7)
        self.binder = VolumeBinder(self.server)
        self.server.create("Node", make_node("n1"))
        self._add_class("fast", provisioner="csi.example.com")
        self._add_class("local", provisioner="kubernetes.io/no-provisioner")
        self._add_class(
            "late", provisioner="csi.example.com", volumeBindingMode="WaitForFirstConsumer"
        )

    def _add_class(self, name: str, **parts: Any) -> None:
        self.server.create("StorageClass", {"metadata": {"name": name}, **parts})

    def claim(self, storage_class: str, *, annotations: Raw | None = None, **spec: Any) -> Raw:
        metadata = {"name": "data", "namespace": "default", "annotations": annotations or {}}
        full = {
            "storageClassName": storage_class,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
            **spec,
        }
        return dict(
            self.server.create("PersistentVolumeClaim", {"metadata": metadata, "spec": full})
        )

    def volume(self, name: str, storage_class: str, size: str, **spec: Any) -> None:
        full = {
            "storageClassName": storage_class,
            "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
            "capacity": {"storage": size},
            **spec,
        }
        metadata = {"name": name, "labels": {"tier": "gold"}}
        self.server.create("PersistentVolume", {"metadata": metadata, "spec": full})

    def settled(self) -> Raw:
        """Step until nothing changes; return the claim."""
        while self.binder.step():
            pass
        claim = self.server.get("PersistentVolumeClaim", "data")
        assert claim is not None
        return dict(claim)

    def phase_of(self, volume: str) -> str:
        found = self.server.get("PersistentVolume", volume)
        return "gone" if found is None else found["status"]["phase"]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_claim_of_an_immediate_class_gets_a_new_volume(cluster: Cluster) -> None:
    cluster.claim("fast")
    claim = cluster.settled()
    assert claim["status"]["phase"] == "Bound"
    assert claim["metadata"]["annotations"] == {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
    assert cluster.phase_of(claim["spec"]["volumeName"]) == "Bound"


@pytest.mark.parametrize(
    ("claim", "want"),
    [
        pytest.param({}, "small", id="the smallest that fits"),
        pytest.param({"resources": {"requests": {"storage": "15Gi"}}}, "large", id="by size"),
        pytest.param({"selector": {"matchLabels": {"tier": "gold"}}}, "small", id="by label"),
        pytest.param({"selector": {"matchLabels": {"tier": "tin"}}}, "", id="no such label"),
        pytest.param({"accessModes": ["ReadWriteMany"]}, "", id="no such mode"),
        pytest.param({"volumeMode": "Block"}, "", id="another volume mode"),
    ],
)
def test_existing_volumes_are_matched(cluster: Cluster, claim: Raw, want: str) -> None:
    for name, size in (("tiny", "5Gi"), ("large", "20Gi"), ("small", "10Gi")):
        cluster.volume(name, "local", size)
    cluster.claim("local", **claim)
    assert cluster.settled()["spec"].get("volumeName", "") == want


def test_a_waiting_claim_gets_its_volume_where_the_scheduler_says(cluster: Cluster) -> None:
    claim = cluster.claim("late")
    assert cluster.settled()["status"]["phase"] == "Pending"
    select(cluster, claim, "n1")
    claim = cluster.settled()
    volume = cluster.server.get("PersistentVolume", claim["spec"]["volumeName"])
    assert volume is not None
    (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["z1"]


def test_a_selected_node_that_does_not_exist_is_taken_back(cluster: Cluster) -> None:
    select(cluster, cluster.claim("late"), "ghost")
    claim = cluster.settled()
    assert SELECTED_NODE not in claim["metadata"]["annotations"]
    assert claim["status"]["phase"] == "Pending"


def test_a_volume_that_names_the_claim_is_bound_to_it(cluster: Cluster) -> None:
    cluster.claim("late")
    cluster.volume("mine", "late", "10Gi", claimRef={"namespace": "default", "name": "data"})
    assert cluster.settled()["spec"]["volumeName"] == "mine"


def test_a_claim_that_names_a_volume_gets_it_unless_it_is_taken(cluster: Cluster) -> None:
    cluster.volume("mine", "", "1Gi")
    cluster.claim("", volumeName="mine")
    assert cluster.settled()["status"]["phase"] == "Bound"


@pytest.mark.parametrize(("policy", "want"), [("Delete", "gone"), ("Retain", "Released")])
def test_a_volume_is_released_with_its_claim(cluster: Cluster, policy: str, want: str) -> None:
    cluster.volume("v", "local", "10Gi", persistentVolumeReclaimPolicy=policy)
    cluster.claim("local")
    cluster.settled()
    cluster.server.delete("PersistentVolumeClaim", "data")
    while cluster.binder.step():
        pass
    assert cluster.phase_of("v") == want


def test_a_claim_whose_volume_is_gone_is_lost(cluster: Cluster) -> None:
    cluster.claim("fast")
    claim = cluster.settled()
    cluster.server.delete("PersistentVolume", claim["spec"]["volumeName"])
    assert cluster.settled()["status"]["phase"] == "Lost"


def test_nothing_is_written_while_nothing_changes(cluster: Cluster) -> None:
    cluster.claim("fast")
    cluster.settled()
    cluster.server.restart()
    version = cluster.server.store.version
    cluster.settled()
    assert cluster.server.store.version == version


def select(cluster: Cluster, claim: Raw, node: str) -> None:
    metadata = {**claim["metadata"], "annotations": {SELECTED_NODE: node}}
    metadata.pop("resourceVersion")
    cluster.server.update("PersistentVolumeClaim", {**claim, "metadata": metadata})
