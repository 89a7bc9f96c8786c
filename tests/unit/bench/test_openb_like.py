"""The generated stand-in for the openb trace has its size and mix, the same for a seed."""

from collections import Counter
from typing import Any

import pytest

from bench.workloads.openb_like import GPU, MODEL, NODE_COUNT, POD_COUNT, openb_like
from decklog.adapters.cluster.simulated import SimulatedCluster
from tests.contract.cluster_worlds import ManualClock


def amount(text: str) -> int:
    return int(text.rstrip("mMi"))


def asked(pod: Any, resource: str) -> int:
    return amount(pod["spec"]["containers"][0]["resources"]["requests"].get(resource, "0"))


@pytest.mark.parametrize("seed", [1, 2])
def test_size_and_mix(seed: int) -> None:
    nodes, pods = openb_like(seed=seed)
    assert (len(nodes), len(pods)) == (NODE_COUNT, POD_COUNT) == (1_523, 8_152)
    for resource, low, high in (("cpu", 0.65, 0.75), ("memory", 0.45, 0.55), (GPU, 0.95, 1.0)):
        capacity = sum(amount(node["status"]["allocatable"][resource]) for node in nodes)
        demand = sum(asked(pod, resource) for pod in pods)
        assert low < demand / capacity < high, resource
    gpu_pods = [pod for pod in pods if asked(pod, GPU)]
    assert 0.84 < len(gpu_pods) / len(pods) < 0.89
    picky = sum("affinity" in pod["spec"] for pod in pods)
    assert 0.30 < picky / len(gpu_pods) < 0.36
    priorities = Counter(pod["spec"]["priority"] for pod in pods)
    assert set(priorities) == {0, 500, 1000}
    shapes = {repr(pod["spec"]) for pod in pods}
    assert 150 < len(shapes) < 800, "as many classes of equal pods as the trace has"


def test_the_models_asked_for_exist() -> None:
    nodes, pods = openb_like(pods=500)
    models = {node["metadata"]["labels"].get(MODEL) for node in nodes}
    for pod in pods:
        if "affinity" in pod["spec"]:
            required = pod["spec"]["affinity"]["nodeAffinity"]
            (term,) = required["requiredDuringSchedulingIgnoredDuringExecution"][
                "nodeSelectorTerms"
            ]
            assert set(term["matchExpressions"][0]["values"]) <= models


def test_a_seed_gives_the_same_manifests_and_a_cluster_takes_them() -> None:
    nodes, pods = openb_like(seed=5, nodes=30, pods=100)
    assert openb_like(seed=5, nodes=30, pods=100) == (nodes, pods)
    assert SimulatedCluster(ManualClock()).load([*nodes, *pods]) == []
