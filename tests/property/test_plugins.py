"""A vectorised plugin says of every node what the plain reading of its rule says of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decklog.core.columns import NodeColumns
from decklog.core.framework.interface import CycleState, FilterPlugin, ScorePlugin
from decklog.core.framework.per_node import NodeFilter, NodeScore, PerNode, PerNodeScore
from decklog.core.framework.status import Status
from decklog.core.plugins.node_affinity import NodeAffinity
from decklog.core.plugins.node_declared_features import NodeDeclaredFeatures
from decklog.core.plugins.node_name import NodeName
from decklog.core.plugins.node_ports import NodePorts
from decklog.core.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from decklog.core.plugins.node_resources_fit import NodeResourcesFit
from decklog.core.plugins.node_unschedulable import NodeUnschedulable
from decklog.core.plugins.scoring_strategy import ScoringStrategy
from decklog.core.plugins.taint_toleration import TaintToleration
from decklog.objects.node import Node
from decklog.objects.pod import Affinity as PodAffinity
from decklog.objects.pod import Container, ContainerPort, Pod
from decklog.objects.pod import NodeAffinity as PodNodeAffinity
from decklog.objects.selectors import (
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from tests.builders import make_pod
from tests.property.plain_plugins import (
    Affinity,
    Balanced,
    Features,
    Fit,
    Name,
    Placed,
    Ports,
    Taints,
    Unschedulable,
)
from tests.strategies import LABEL_KEYS, label_values, names
from tests.strategies import nodes as any_node
from tests.strategies import pods as any_pod
from tests.unit.core.columns_builders import make_columns

GPU: Final = "example.com/gpu"
clusters = st.lists(any_node, min_size=1, max_size=5, unique_by=lambda node: node.name)

amounts = st.sampled_from(("0", "1", "3", "7", "100m", "1500m", "100", "1Gi"))
resources = st.dictionaries(
    st.sampled_from(("cpu", "memory", "ephemeral-storage", GPU, "hugepages-2Mi")),
    amounts,
    max_size=4,
)
host_ports = st.builds(
    ContainerPort,
    host_port=st.sampled_from((80, 81)),
    host_ip=st.sampled_from(("", "0.0.0.0", "10.0.0.1", "10.0.0.2")),
    protocol=st.sampled_from(("", "TCP", "UDP")),
)
containers = st.builds(
    Container,
    name=st.just("c"),
    requests=st.none() | resources,
    ports=st.lists(host_ports, max_size=2).map(tuple),
)
small_pods = st.builds(
    make_pod,
    containers=st.lists(containers, min_size=1, max_size=2).map(tuple),
    init_containers=st.lists(containers, max_size=1).map(tuple),
    overhead=st.just({}) | resources,
)


@st.composite
def small_clusters(draw: st.DrawFn) -> tuple[list[Node], dict[str, list[Pod]]]:
    """Return nodes that are small enough to be full, and the pods on each."""
    nodes, placed = [], {}
    for number in range(draw(st.integers(1, 4))):
        name = f"n{number}"
        allocatable = draw(resources) | {"pods": draw(st.sampled_from(("1", "2", "9")))}
        nodes.append(Node(uid=name, name=name, allocatable=allocatable))
        pods = draw(st.lists(small_pods, max_size=3))
        placed[name] = [
            replace(pod, uid=f"{name}-{i}", name=f"{name}-{i}", node_name=name)
            for i, pod in enumerate(pods)
        ]
    return nodes, placed


STATIC: Final[Sequence[tuple[FilterPlugin, NodeFilter]]] = (
    (NodeUnschedulable(), Unschedulable()),
    (NodeName(), Name()),
    (TaintToleration(), Taints()),
    (NodeAffinity(), Affinity()),
    (NodeDeclaredFeatures(), Features()),
)


@pytest.mark.parametrize(("plugin", "plain"), STATIC, ids=lambda one: type(one).__name__)
@given(pod=any_pod(), nodes=clusters)
def test_filters_that_look_at_nodes_alone(
    plugin: FilterPlugin, plain: NodeFilter, pod: Pod, nodes: list[Node]
) -> None:
    columns = make_columns(nodes)
    compare_filters(plugin, plain, pod, columns)


@given(pod=small_pods, cluster=small_clusters())
def test_filters_that_look_at_what_pods_use(
    pod: Pod, cluster: tuple[list[Node], dict[str, list[Pod]]]
) -> None:
    nodes, placed = cluster
    columns = columns_of(nodes, placed)
    compare_filters(NodeResourcesFit(), Fit(placed), pod, columns)
    compare_filters(NodePorts(), Ports(placed), pod, columns)


requirements = st.one_of(
    st.builds(
        NodeSelectorRequirement,
        key=st.sampled_from(LABEL_KEYS),
        operator=st.sampled_from(("In", "NotIn")),
        values=st.lists(label_values, min_size=1, max_size=2).map(tuple),
    ),
    st.builds(
        NodeSelectorRequirement,
        key=st.sampled_from(LABEL_KEYS),
        operator=st.sampled_from(("Exists", "DoesNotExist")),
    ),
    st.builds(
        NodeSelectorRequirement,
        key=st.sampled_from(LABEL_KEYS),
        operator=st.sampled_from(("Gt", "Lt")),
        values=st.sampled_from((("1",), ("7",))),
    ),
)
named = st.builds(
    NodeSelectorRequirement,
    key=st.just("metadata.name"),
    operator=st.sampled_from(("In", "NotIn")),
    values=st.tuples(names),
)
preferences = st.builds(
    PreferredSchedulingTerm,
    weight=st.integers(1, 100),
    preference=st.builds(
        NodeSelectorTerm,
        match_expressions=st.lists(requirements, max_size=2).map(tuple),
        match_fields=st.lists(named, max_size=1).map(tuple),
    ),
)


@given(pod=any_pod(), nodes=clusters)
def test_taint_scores(pod: Pod, nodes: list[Node]) -> None:
    compare_scores(TaintToleration(), Taints(), pod, make_columns(nodes))


@given(preferred=st.lists(preferences, max_size=3), nodes=clusters)
def test_affinity_scores(preferred: list[PreferredSchedulingTerm], nodes: list[Node]) -> None:
    affinity = PodNodeAffinity(preferred=tuple(preferred))
    pod = make_pod(affinity=PodAffinity(node=affinity))
    compare_scores(NodeAffinity(), Affinity(), pod, make_columns(nodes))


@given(pod=small_pods, cluster=small_clusters())
def test_scores_that_look_at_what_pods_use(
    pod: Pod, cluster: tuple[list[Node], dict[str, list[Pod]]]
) -> None:
    nodes, placed = cluster
    columns = columns_of(nodes, placed)
    weights = {"memory": 2, "cpu": 3, GPU: 1, "ephemeral-storage": 5}
    for counts in ({"cpu": 1, "memory": 1}, weights):
        strategy = ScoringStrategy(resources=tuple(counts.items()))
        compare_scores(NodeResourcesFit(strategy=strategy), Fit(placed, counts), pod, columns)


@given(pod=small_pods, cluster=small_clusters())
def test_balance_is_the_exact_one_but_for_rounding(
    pod: Pod, cluster: tuple[list[Node], dict[str, list[Pod]]]
) -> None:
    """Floats may come out just below an integer where the exact value is that integer."""
    nodes, placed = cluster
    columns = columns_of(nodes, placed)
    for chosen in (("cpu", "memory"), ("cpu", "memory", GPU), ("cpu", "ephemeral-storage", GPU)):
        plugin = NodeResourcesBalancedAllocation(resources=tuple((name, 1) for name in chosen))
        plain = PerNodeScore(Balanced(placed, chosen))
        got = plugin.score(CycleState(), pod, columns)
        want = plain.score(CycleState(), pod, columns)
        assert np.abs(got - want)[columns.present].max() <= 1


def test_a_plain_reading_that_differs_is_found() -> None:
    """The comparison fails for a plugin that forgets what pods use."""
    nodes = [Node(uid="n", name="n", allocatable={"cpu": "1", "pods": "9"})]
    busy = make_pod("busy", milli_cpu=900, node_name="n")
    columns = columns_of(nodes, {"n": [busy]})
    pod = make_pod(milli_cpu=200)
    compare_filters(NodeResourcesFit(), Fit({"n": [busy]}), pod, columns)
    with pytest.raises(AssertionError):
        compare_filters(NodeResourcesFit(), Fit({"n": []}), pod, columns)
    with pytest.raises(AssertionError):
        compare_scores(NodeResourcesFit(), Fit({"n": []}), pod, columns)


def columns_of(nodes: Sequence[Node], placed: Placed) -> NodeColumns:
    return make_columns(nodes, [pod for pods in placed.values() for pod in pods])


def compare_filters(
    plugin: FilterPlugin, plain: NodeFilter, pod: Pod, columns: NodeColumns
) -> None:
    want = statuses(PerNode(plain), pod, columns)
    assert statuses(plugin, pod, columns) == want
    rows = np.flatnonzero(columns.present)[::-1]
    assert statuses(plugin, pod, columns.take(rows)) == want[::-1]
    assert [statuses(plugin, pod, columns.take(rows[i : i + 1])) for i in range(len(rows))] == [
        [status] for status in want[::-1]
    ]


def statuses(plugin: FilterPlugin, pod: Pod, columns: NodeColumns) -> list[Status]:
    codes = plugin.filter(CycleState(), pod, columns)[columns.present].tolist()
    return [plugin.statuses[code] for code in codes]


def compare_scores(plugin: ScorePlugin, plain: NodeScore, pod: Pod, columns: NodeColumns) -> None:
    state = CycleState()
    pre_score: Any = getattr(plugin, "pre_score", None)
    if pre_score is not None:
        assert pre_score(state, pod, columns, columns.present).is_success
    want = PerNodeScore(plain).score(state, pod, columns)[columns.present].tolist()
    assert plugin.score(state, pod, columns)[columns.present].tolist() == want
    rows = np.flatnonzero(columns.present)[::-1]
    assert plugin.score(state, pod, columns.take(rows)).tolist() == want[::-1]
    for row, score in zip(rows, reversed(want), strict=True):
        assert plugin.score(state, pod, columns.take(np.array([row]))).tolist() == [score]
