from typing import Any, NamedTuple

import pytest

from decklog.core.framework.interface import CycleState
from decklog.core.framework.status import SKIP, SUCCESS
from decklog.core.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from decklog.objects.pod import Pod
from tests.builders import make_node, make_pod
from tests.unit.core.columns_builders import make_columns
from tests.unit.core.plugins.judging import scored

GPU = "example.com/gpu"
THREE = tuple((name, 1) for name in ("cpu", "memory", GPU))


class Amounts(NamedTuple):
    milli_cpu: int
    memory_bytes: int

    def pod(self, name: str, **fields: Any) -> Pod:
        return make_pod(name, milli_cpu=self.milli_cpu, memory=str(self.memory_bytes), **fields)


@pytest.mark.parametrize(
    ("has", "used", "asked", "balance", "change"),
    [
        pytest.param((4000, 10000), (0, 0), (3000, 5000), 87, 68, id="uneven"),
        pytest.param((6000, 10000), (0, 0), (3000, 5000), 100, 75, id="even"),
        pytest.param((4000, 8000), (3000, 1000), (0, 5000), 100, 91, id="made even"),
        pytest.param((6000, 10000), (0, 0), (6000, 0), 50, 50, id="all of one"),
        pytest.param((4000, 8000), (0, 0), (8000, 1000), 56, 53, id="more than there is"),
        pytest.param((0, 8000), (0, 0), (0, 1000), 100, 75, id="only one that the node has"),
    ],
)
def test_score(
    has: tuple[int, int], used: tuple[int, int], asked: tuple[int, int], balance: int, change: int
) -> None:
    nodes = [make_node("node", milli_cpu=has[0], memory=str(has[1]))]
    placed = [Amounts(*used).pod("placed", node_name="node")]
    pod = Amounts(*asked).pod("pod")
    assert scored(NodeResourcesBalancedAllocation(), pod, nodes, placed) == [change]
    before_1_36 = NodeResourcesBalancedAllocation(by_change=False)
    assert scored(before_1_36, pod, nodes, placed) == [balance]


def test_of_three_resources_the_deviation_counts() -> None:
    plugin = NodeResourcesBalancedAllocation(resources=THREE, by_change=False)
    nodes = [
        make_node("node", milli_cpu=1000, memory="1000", more={GPU: "10"}),
        make_node("bare", milli_cpu=1000, memory="1000"),
    ]
    pod = make_pod(milli_cpu=100, memory="200", more={GPU: "9"})
    # Fractions 0.1, 0.2, 0.9: the deviation is 0.3559; without the third 0.05.
    assert scored(plugin, pod, nodes) == [64, 95]


def test_a_scalar_resource_counts_only_if_it_is_asked_for() -> None:
    plugin = NodeResourcesBalancedAllocation(resources=THREE, by_change=False)
    nodes = [make_node("node", milli_cpu=1000, memory="1000", more={GPU: "10"})]
    assert scored(plugin, make_pod(milli_cpu=500, memory="500"), nodes) == [100]


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(make_pod(), SKIP, id="asks for nothing"),
        pytest.param(make_pod(milli_cpu=0), SKIP, id="asks for zero"),
        pytest.param(make_pod(more={GPU: "1"}), SKIP, id="asks for others only"),
        pytest.param(make_pod(milli_cpu=1), SUCCESS, id="asks for cpu"),
    ],
)
def test_pre_score_skips_best_effort_pods(pod: Pod, want: object) -> None:
    columns = make_columns([make_node()])
    plugin = NodeResourcesBalancedAllocation()
    assert plugin.pre_score(CycleState(), pod, columns, columns.present) == want


def test_one_resource_is_always_even() -> None:
    plugin = NodeResourcesBalancedAllocation(resources=(("cpu", 1),))
    assert scored(plugin, make_pod(milli_cpu=500), [make_node()]) == [75]
