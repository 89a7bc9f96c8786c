"""Rows of the table as columns of their own, or as they would be: what they say of the rest."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from decklog.core.columns import NodeColumns, Rows
from decklog.core.node_subset import NodeSubset
from decklog.core.node_table import NodeTable
from decklog.core.pod_counts import Query
from decklog.core.what_if_rows import WhatIfRows
from decklog.objects.matching import compile_label_selector
from decklog.objects.node import ContainerImage
from decklog.objects.pod import Affinity, ContainerPort, PodAffinity, PodAffinityTerm
from tests.builders import ZONE, make_container, make_node, make_pod, make_selector, make_taint
from tests.unit.core.columns_builders import make_cache

Views = Callable[[NodeTable, Rows], NodeColumns]

TERM = PodAffinityTerm(topology_key=ZONE, label_selector=make_selector(app="web"))
APART = Affinity(pod_anti=PodAffinity(required=(TERM,)))
IMAGE = ContainerImage(names=("web:1",), size_bytes=100)
CONTAINER = make_container(milli_cpu=100, ports=(ContainerPort(host_port=80),))
INCOMING = make_pod("incoming", labels={"app": "web"})


@pytest.fixture
def table() -> NodeTable:
    nodes = [
        make_node("a", zone="z1", images=(IMAGE,), declared_features=("f",)),
        make_node("b", zone="z2", taints=(make_taint(),)),
        make_node("c", zone="z2", unschedulable=True, milli_cpu=100),
        make_node("d", zone="z1", images=(IMAGE,)),
    ]
    pods = [
        make_pod("p", node_name="a", labels={"app": "web"}, containers=(CONTAINER,)),
        make_pod("q", node_name="b", labels={"app": "web"}, affinity=APART),
        make_pod("r", node_name="d", milli_cpu=300, affinity=APART),
    ]
    return make_cache(nodes, pods).columns


ROWS = [
    pytest.param([2, 0], id="two rows, in another order"),
    pytest.param([1], id="one row"),
    pytest.param([0, 1, 2, 3], id="all rows"),
]
VIEWS = [pytest.param(NodeSubset, id="taken"), pytest.param(WhatIfRows, id="as they would be")]


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("view", VIEWS)
def test_rows_say_of_themselves_what_the_table_says_of_them(
    table: NodeTable, view: Views, rows: list[int]
) -> None:
    seen = view(table, np.array(rows, dtype=np.intp))
    assert len(seen) == len(rows)
    assert list(seen.names) == [table.names[row] for row in rows]
    for column in (
        "present",
        "unschedulable",
        "taint_set_id",
        "feature_set_id",
        "allowed_pods",
        "pod_count",
    ):
        want = getattr(table, column)[rows]
        assert getattr(seen, column).tolist() == want.tolist(), column
    for column in ("allocatable", "requested", "non_zero_requested"):
        want = getattr(table, column)[:, rows]
        assert getattr(seen, column).tolist() == want.tolist(), column
    assert [seen.node(row) for row in range(len(seen))] == [table.node(row) for row in rows]
    assert [seen.label_set(row) for row in range(len(seen))] == [
        table.label_set(row) for row in rows
    ]
    for pods in ("pods", "pods_with_affinity", "pods_with_required_anti_affinity"):
        got = [list(getattr(seen, pods)(row)) for row in range(len(seen))]
        assert got == [list(getattr(table, pods)(row)) for row in rows], pods


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("view", VIEWS)
def test_what_is_asked_of_all_rows_is_answered_for_these(
    table: NodeTable, view: Views, rows: list[int]
) -> None:
    seen = view(table, np.array(rows, dtype=np.intp))
    assert seen.label_ids(ZONE).tolist() == table.label_ids(ZONE)[rows].tolist()
    assert seen.label_values(ZONE) == table.label_values(ZONE)
    assert seen.label_value_count(ZONE) == table.label_value_count(ZONE)
    assert seen.ports_in_use("", "TCP", 80).tolist() == (
        table.ports_in_use("", "TCP", 80)[rows].tolist()
    )
    query = Query(frozenset({"default"}), compile_label_selector(make_selector(app="web")))
    assert seen.matching_pods(query).tolist() == table.matching_pods(query)[rows].tolist()
    state, whole = seen.image_state("web:1"), table.image_state("web:1")
    assert state is not None
    assert whole is not None
    assert [part.tolist() for part in state] == [part[rows].tolist() for part in whole]
    assert seen.image_state("unknown") is None
    assert list(seen.affinity_rows) == _among(table.affinity_rows, rows)
    assert list(seen.required_anti_affinity_rows) == _among(table.required_anti_affinity_rows, rows)


def _among(of_table: Any, rows: list[int]) -> list[int]:
    return [index for index, row in enumerate(rows) if row in of_table]


@pytest.mark.parametrize("view", VIEWS)
def test_sums_by_value_are_those_of_these_rows(table: NodeTable, view: Views) -> None:
    """Of two nodes in zone z1 one is seen, and one of two in z2."""
    seen = view(table, np.array([0, 1], dtype=np.intp))
    query = Query(frozenset({"default"}), compile_label_selector(make_selector(app="web")))
    ids = {value: index for index, value in enumerate(table.label_values(ZONE))}
    per_value = seen.matching_per_value(query, ZONE)
    assert [per_value[ids[zone]] for zone in ("z1", "z2")] == [1, 1]
    [carried] = seen.carried_terms(INCOMING, {})
    carriers = seen.carriers_per_value(carried)
    assert [carriers[ids[zone]] for zone in ("z1", "z2")] == [0, 1]


@pytest.mark.parametrize("view", VIEWS)
def test_what_belongs_to_the_whole_cluster_is_its(table: NodeTable, view: Views) -> None:
    seen: Any = view(table, np.array([1], dtype=np.intp))
    assert seen.node_count == table.node_count
    assert seen.pvc_in_use == table.pvc_in_use
    assert seen.taint_sets == table.taint_sets
    assert seen.feature_sets == table.feature_sets
    assert seen.resource_names == table.resource_names
    assert seen.resource_row("cpu") == table.resource_row("cpu") == 0
    assert seen.pod_class(INCOMING) is table.pod_class(INCOMING)
    assert seen.row_of("b") == 0
    assert seen.row_of("a") is None
    assert seen.row_of("unknown") is None


@pytest.mark.parametrize("view", VIEWS)
def test_rows_of_rows_are_rows(table: NodeTable, view: Views) -> None:
    seen = view(table, np.array([3, 1, 0], dtype=np.intp)).take(np.array([2, 0], dtype=np.intp))
    assert list(seen.names) == ["a", "d"]
    assert seen.requested.tolist() == table.requested[:, [0, 3]].tolist()


def test_the_order_of_rows_is_that_of_the_list(table: NodeTable) -> None:
    rows = np.array([2, 0], dtype=np.intp)
    names = [table.names[row] for row in table.order().tolist()]
    seen = WhatIfRows(table, rows)
    assert [seen.names[row] for row in seen.order()] == [one for one in names if one in "ac"]


def test_rows_as_they_would_be_with_other_pods(table: NodeTable) -> None:
    seen = WhatIfRows(table, np.array([0, 2], dtype=np.intp))
    [served] = table.pods(0)
    newcomer = make_pod("new", milli_cpu=50, affinity=APART)
    before = seen.copy()
    seen.remove(0, served)
    seen.add(1, newcomer)
    assert seen.pods(0) == []
    assert seen.pods(1) == [newcomer]
    assert seen.pods_with_required_anti_affinity(1) == seen.pods_with_affinity(1) == [newcomer]
    assert list(seen.required_anti_affinity_rows) == list(seen.affinity_rows) == [1]
    assert seen.requested[0].tolist() == [0, 50]
    assert seen.pod_count.tolist() == [0, 1]
    assert seen.ports_in_use("", "TCP", 80).tolist() == [False, False]
    taken = seen.take(np.array([1], dtype=np.intp))
    assert (taken.pods(0), taken.requested[0].tolist()) == ([newcomer], [50])
    assert taken.ports_in_use("", "TCP", 80).tolist() == [False]
    assert (before.pods(0), before.requested[0].tolist()) == ([served], [100, 0])
    assert before.ports_in_use("", "TCP", 80).tolist() == [True, False]


def test_a_load_counts_for_pods_that_nobody_names(table: NodeTable) -> None:
    seen = WhatIfRows(table, np.array([0], dtype=np.intp))
    load = np.zeros_like(seen.requested)
    load[0, 0] = 7
    seen.load(load, np.array([2]))
    assert (seen.requested[0].tolist(), seen.pod_count.tolist()) == ([107], [3])
    assert table.requested[0, 0] == 100
