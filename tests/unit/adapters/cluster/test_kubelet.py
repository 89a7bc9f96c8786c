"""Kubelets of the simulated cluster: pods run, end, and go when deleted."""

from datetime import timedelta
from typing import Any

import pytest

from decklog.adapters.cluster.kubelet import RUN_SECONDS, Kubelet
from decklog.adapters.cluster.simulated import SimulatedCluster
from tests.contract.cluster_worlds import NOW, ManualClock, binding, make_node, make_pod


class Cluster:
    """A cluster of one node whose kubelet the test steps."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.server = SimulatedCluster(self.clock, seed=7)
        self.server.create("Node", make_node("n1"))
        self.kubelet = Kubelet(self.server)

    def bound(self, name: str = "a1", *, node: str = "n1", **parts: Any) -> None:
        pod = self.server.create("Pod", make_pod(name, **parts))
        (answer,) = self.server.perform([binding(pod, node=node)])
        assert answer.ok

    def phase(self, name: str = "a1") -> str:
        pod = self.server.get("Pod", name)
        return "gone" if pod is None else pod["status"]["phase"]

    def after(self, seconds: float) -> bool:
        self.clock.advance(timedelta(seconds=seconds))
        return self.kubelet.step()


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_bound_pod_runs_and_an_unbound_one_does_not(cluster: Cluster) -> None:
    cluster.server.create("Pod", make_pod("waits"))
    cluster.bound()
    assert cluster.kubelet.step()
    assert (cluster.phase("a1"), cluster.phase("waits")) == ("Running", "Pending")
    pod = cluster.server.get("Pod", "a1")
    assert pod is not None
    assert pod["status"]["startTime"] == NOW
    conditions = {one["type"]: one["status"] for one in pod["status"]["conditions"]}
    assert conditions["PodScheduled"] == conditions["Ready"] == "True"
    assert not cluster.kubelet.step()


def test_a_pod_with_a_run_time_succeeds(cluster: Cluster) -> None:
    cluster.bound(annotations={RUN_SECONDS: "5"})
    cluster.kubelet.step()
    cluster.after(4.9)
    assert cluster.phase() == "Running"
    cluster.after(0.2)
    assert cluster.phase() == "Succeeded"
    assert not cluster.after(100)


def test_a_deleted_pod_goes_when_its_containers_have_stopped(cluster: Cluster) -> None:
    cluster.bound()
    cluster.kubelet.step()
    cluster.server.delete("Pod", "a1")
    cluster.kubelet.step()
    assert cluster.phase() == "Running"
    cluster.after(1.1)
    assert cluster.phase() == "gone"


def test_a_pod_deleted_before_it_started_never_starts(cluster: Cluster) -> None:
    cluster.bound()
    cluster.server.delete("Pod", "a1")
    cluster.kubelet.step()
    assert cluster.phase() == "Pending"
    cluster.after(1.1)
    assert cluster.phase() == "gone"


def test_a_pod_on_a_node_that_does_not_exist_waits_for_it(cluster: Cluster) -> None:
    cluster.bound(node="ghost")
    assert not cluster.kubelet.step()
    cluster.server.create("Node", make_node("ghost"))
    assert cluster.kubelet.step()
    assert cluster.phase() == "Running"


def test_a_deleted_pod_on_no_node_goes_when_its_grace_is_over(cluster: Cluster) -> None:
    cluster.bound(node="ghost", grace_seconds=20)
    cluster.server.delete("Pod", "a1")
    cluster.kubelet.step()
    cluster.after(19)
    assert cluster.phase() == "Pending"
    cluster.after(2)
    assert cluster.phase() == "gone"


def test_a_pod_made_again_does_not_end_when_the_first_would_have(cluster: Cluster) -> None:
    cluster.bound(annotations={RUN_SECONDS: "5"})
    cluster.kubelet.step()
    cluster.server.delete("Pod", "a1", grace_seconds=0)
    cluster.after(3)
    cluster.bound(annotations={RUN_SECONDS: "5"})
    cluster.kubelet.step()
    cluster.after(3)
    assert cluster.phase() == "Running"


def test_kubelets_go_on_after_a_restart_of_the_server(cluster: Cluster) -> None:
    cluster.bound("a1", annotations={RUN_SECONDS: "5"})
    cluster.kubelet.step()
    cluster.bound("a2")
    cluster.server.restart()
    cluster.kubelet.step()
    cluster.after(5)
    assert (cluster.phase("a1"), cluster.phase("a2")) == ("Succeeded", "Running")
