import pytest

from decklog.core.framework.interface import PASS, CycleState
from decklog.core.framework.status import SUCCESS, Status, unresolvable, unschedulable
from decklog.core.plugins.node_resources_fit import NodeResourcesFit
from decklog.core.plugins.scoring_strategy import make_strategy
from decklog.objects.pod import Pod
from tests.builders import make_container, make_node, make_pod
from tests.unit.core.columns_builders import make_columns
from tests.unit.core.plugins.judging import judged, scored

GPU = "example.com/gpu"
PLACED = make_pod("placed", milli_cpu=3000, memory="6Gi", more={GPU: "1"}, node_name="node")
NODE = make_node("node", milli_cpu=4000, memory="8Gi", pods=2, more={GPU: "2"})


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(make_pod(milli_cpu=1000, memory="2Gi"), SUCCESS, id="just fits"),
        pytest.param(make_pod(milli_cpu=1001), unschedulable("Insufficient cpu"), id="cpu"),
        pytest.param(make_pod(memory="3Gi"), unschedulable("Insufficient memory"), id="memory"),
        pytest.param(
            make_pod(milli_cpu=4001),
            unresolvable("Insufficient cpu"),
            id="more than the node has",
        ),
        pytest.param(
            make_pod(milli_cpu=5000, memory="3Gi"),
            unresolvable("Insufficient cpu", "Insufficient memory"),
            id="one that is hopeless makes all of it so",
        ),
        pytest.param(
            make_pod(memory="3Gi", more={GPU: "2", "a.b/c": "1", "ephemeral-storage": "1"}),
            unresolvable(
                "Insufficient memory",
                "Insufficient ephemeral-storage",
                "Insufficient a.b/c",
                f"Insufficient {GPU}",
            ),
            id="scalar resources come last, by name",
        ),
        pytest.param(make_pod(), SUCCESS, id="nothing asked"),
        pytest.param(make_pod(more={GPU: "0"}), SUCCESS, id="zero is never short"),
    ],
)
def test_filter(pod: Pod, want: Status) -> None:
    assert judged(NodeResourcesFit(), pod, [NODE], [PLACED]) == [want]


def test_too_many_pods_comes_first() -> None:
    full = make_node("node", pods=1)
    found = judged(NodeResourcesFit(), make_pod(milli_cpu=2000), [full], [PLACED])
    assert found == [unschedulable("Too many pods", "Insufficient cpu")]


def test_only_what_is_asked_for_can_be_short() -> None:
    """On a node whose cpu is over-committed a pod that asks for memory alone fits."""
    greedy = make_pod("greedy", milli_cpu=9000, node_name="node")
    pods = [make_pod(memory="1Gi"), make_pod(milli_cpu=0, memory="1Gi"), make_pod()]
    assert [judged(NodeResourcesFit(), pod, [NODE], [greedy]) for pod in pods] == [[SUCCESS]] * 3


def test_ignored_extended_resources_are_not_looked_at() -> None:
    pod = make_pod(more={GPU: "9", "other.io/x": "1", "hugepages-2Mi": "2Mi"})
    ignoring = NodeResourcesFit(
        ignored=frozenset({GPU, "hugepages-2Mi"}), ignored_groups=frozenset({"other.io"})
    )
    assert judged(ignoring, pod, [NODE]) == [unresolvable("Insufficient hugepages-2Mi")]


def test_equal_reasons_share_a_code() -> None:
    plugin = NodeResourcesFit()
    columns = make_columns([make_node("a", milli_cpu=1), NODE, make_node("b", milli_cpu=1)])
    codes = plugin.filter(CycleState(), make_pod(milli_cpu=100), columns).tolist()
    assert codes[0] == codes[2] != PASS
    assert codes[1] == PASS


ASKING = make_pod(
    containers=(
        make_container("one", milli_cpu=1000, memory="2000"),
        make_container("two", milli_cpu=2000, memory="3000"),
    )
)
SHAPE = {"shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]}
BOTH = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]


@pytest.mark.parametrize(
    ("strategy", "milli_cpu", "memory_bytes", "want"),
    [
        pytest.param({"type": "LeastAllocated"}, 4000, 10000, 37, id="least"),
        pytest.param({"type": "LeastAllocated"}, 6000, 10000, 50, id="least, even"),
        pytest.param({"type": "LeastAllocated"}, 2000, 10000, 25, id="least, cpu is short"),
        pytest.param({"type": "MostAllocated"}, 4000, 10000, 62, id="most"),
        pytest.param({"type": "MostAllocated"}, 6000, 10000, 50, id="most, even"),
        pytest.param(
            {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": SHAPE},
            4000,
            10000,
            38,
            id="ratio",
        ),
        pytest.param(
            {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": SHAPE},
            6000,
            10000,
            50,
            id="ratio, even",
        ),
    ],
)
def test_score(strategy: dict[str, object], milli_cpu: int, memory_bytes: int, want: int) -> None:
    plugin = NodeResourcesFit(strategy=make_strategy({"resources": BOTH, **strategy}))
    nodes = [make_node("node", milli_cpu=milli_cpu, memory=str(memory_bytes))]
    assert scored(plugin, ASKING, nodes) == [want]


def test_score_counts_containers_without_requests() -> None:
    """A container that asks for nothing counts as 100m and 200Mi, asked for and in use."""
    nodes = [make_node("node", milli_cpu=1000, memory="2000Mi")]
    placed = [make_pod("placed", node_name="node")]
    assert scored(NodeResourcesFit(), make_pod(), nodes, placed) == [80]


def test_score_leaves_out_scalar_resources_that_are_not_asked_for() -> None:
    resources = [{"name": "cpu", "weight": 1}, {"name": GPU, "weight": 3}]
    plugin = NodeResourcesFit(
        strategy=make_strategy({"type": "MostAllocated", "resources": resources})
    )
    nodes = [make_node("node", milli_cpu=4000, more={GPU: "4"}), make_node("bare", milli_cpu=4000)]
    assert scored(plugin, make_pod(milli_cpu=1000), nodes) == [25, 25]
    assert scored(plugin, make_pod(milli_cpu=1000, more={GPU: "2"}), nodes) == [43, 25]


def test_ratio_leaves_out_resources_that_score_nothing() -> None:
    """Upstream's example: a resource that scores 0 drops out of the weights too."""
    shape = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}
    resources = [{"name": "a.b/foo", "weight": 3}, {"name": "a.b/bar", "weight": 5}]
    plugin = NodeResourcesFit(
        strategy=make_strategy(
            {
                "type": "RequestedToCapacityRatio",
                "resources": resources,
                "requestedToCapacityRatio": shape,
            }
        )
    )
    nodes = [make_node("node", more={"a.b/foo": "800", "a.b/bar": "4"})]
    assert scored(plugin, make_pod(more={"a.b/foo": "1", "a.b/bar": "2"}), nodes) == [50]


def test_score_of_resources_that_nobody_has_is_0() -> None:
    resources = [{"name": "a.b/none", "weight": 1}]
    strategy = make_strategy({"type": "LeastAllocated", "resources": resources})
    assert scored(NodeResourcesFit(strategy=strategy), make_pod(), [NODE]) == [0]


def test_ephemeral_storage_counts_exactly_in_scores() -> None:
    resources = [{"name": "ephemeral-storage", "weight": 1}, {"name": "cpu", "weight": 1}]
    strategy = make_strategy({"type": "MostAllocated", "resources": resources})
    nodes = [make_node("node", milli_cpu=1000, more={"ephemeral-storage": "10"})]
    placed = [make_pod("placed", more={"ephemeral-storage": "2"}, node_name="node")]
    pod = make_pod(milli_cpu=200, more={"ephemeral-storage": "3"})
    assert scored(NodeResourcesFit(strategy=strategy), pod, nodes, placed) == [40]
