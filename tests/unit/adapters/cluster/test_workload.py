"""The demo's workload: the same for a seed, of several kinds, and at the rate asked for."""

from collections import Counter
from datetime import timedelta
from itertools import islice

from decklog.adapters.cluster.kubelet import Kubelet
from decklog.adapters.cluster.simulated import SimulatedCluster
from decklog.adapters.cluster.workload import APPS, Load, Workload
from tests.contract.cluster_worlds import ManualClock, binding


def test_a_seed_gives_the_same_workload() -> None:
    one, other = Workload(seed=3), Workload(seed=3)
    assert one.foundation() == other.foundation()
    assert list(islice(one.pods(), 200)) == list(islice(other.pods(), 200))
    assert list(islice(Workload(seed=4).pods(), 200)) != list(islice(one.pods(), 200))


def test_it_has_something_of_everything() -> None:
    pods = list(islice(Workload().pods(), 600))
    names = [pod["metadata"]["name"] for pod in pods]
    assert len(set(names)) == len(names)
    apps = Counter(pod["metadata"]["labels"]["app"] for pod in pods)
    assert set(apps) == {app.name for app in APPS}
    nodes = [raw for raw in Workload().foundation() if raw["kind"] == "Node"]
    assert len(nodes) == 48
    assert sum(node["spec"].get("unschedulable", False) for node in nodes) == 1
    assert len({node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes}) == 3


def test_a_cluster_takes_all_of_it() -> None:
    cluster = SimulatedCluster(ManualClock())
    workload = Workload()
    assert cluster.load([*workload.foundation(), *islice(workload.pods(), 300)]) == []
    critical = [
        pod for pod in cluster.raw_objects("Pod") if pod["metadata"]["labels"]["app"] == "checkout"
    ]
    assert {pod["spec"]["priority"] for pod in critical} == {10_000}


def test_a_load_keeps_its_rate_and_clears_away_what_ended() -> None:
    clock = ManualClock()
    cluster = SimulatedCluster(clock)
    workload = Workload(node_count=4)
    cluster.load(workload.foundation())
    load, kubelet = Load(cluster, workload, rate=5), Kubelet(cluster)
    for _ in range(600):
        clock.advance(timedelta(seconds=1))
        load.step()
        pending = [pod for pod in cluster.raw_objects("Pod") if not pod["spec"].get("nodeName")]
        cluster.perform([binding(pod, node="node-000") for pod in pending[::2]])
        kubelet.step()
    assert load.created == 3_000
    phases = Counter(pod["status"]["phase"] for pod in cluster.raw_objects("Pod"))
    assert phases["Running"] > 100
    assert phases.total() < 1500, "ended and forgotten pods are cleared away"


def test_a_pause_is_made_good_in_portions() -> None:
    clock = ManualClock()
    cluster = SimulatedCluster(clock)
    workload = Workload()
    cluster.load(workload.foundation())
    load = Load(cluster, workload, rate=100)
    clock.advance(timedelta(minutes=1))
    assert load.step()
    assert len(cluster.raw_objects("Pod")) == 1_000
