"""What the table says of nodes and pods, and that any rows of it say the same."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from decklog.core.columns import NO_NODE
from decklog.core.node_table import CAPACITY_FIRST
from decklog.objects.node import ContainerImage
from decklog.objects.pod import Affinity, Pod, PodAffinity, PodAffinityTerm, Volume
from decklog.objects.selectors import Taint
from tests.unit.core.columns_builders import make_cache, make_columns, make_node, make_pod

TAINT = Taint(key="dedicated", value="db", effect="NoSchedule")
ANTI = Affinity(pod_anti=PodAffinity(required=(PodAffinityTerm(topology_key="zone"),)))


def test_a_node_fills_its_row() -> None:
    node = make_node(
        "a",
        cpu="1500m",
        pods=7,
        unschedulable=True,
        taints=(TAINT,),
        labels={"zone": "z1"},
        declared_features=("F",),
    )
    columns = make_columns([make_node("b"), node])
    row = columns.row_of("a")
    assert row == 1
    assert columns.present.tolist() == [True, True]
    assert columns.unschedulable.tolist() == [False, True]
    assert columns.allocatable[:, row].tolist() == [1500, 32 << 30, 0]
    assert columns.allowed_pods.tolist() == [110, 7]
    assert [columns.taint_sets[number] for number in columns.taint_set_id] == [(), (TAINT,)]
    assert columns.feature_sets[columns.feature_set_id[row]] == {"F"}
    assert columns.label_values("zone")[columns.label_ids("zone")[row]] == "z1"
    assert columns.label_ids("zone")[0] == 0


def test_pods_are_counted_where_they_are() -> None:
    pods = [make_pod("p", on="a", cpu="250m"), make_pod("q", on="a", cpu="50m", memory="0")]
    columns = make_columns([make_node("a"), make_node("b")], pods)
    assert columns.requested[:2].tolist() == [[300, 0], [500 << 20, 0]]
    assert columns.non_zero_requested.tolist() == [[300, 0], [500 << 20, 0]]
    assert columns.pod_count.tolist() == [2, 0]
    assert [pod.name for pod in columns.pods(0)] == ["p", "q"]


def test_a_scalar_resource_gets_a_row_when_it_is_first_seen() -> None:
    cache = make_cache([make_node("a")])
    columns, first = cache.columns, make_pod("p")
    assert len(columns.pod_class(first).requests) == 3
    gpu = make_node("b", allocatable={"cpu": "1", "example.com/gpu": "4", "pods": "1"})
    cache.add_node(gpu)
    row = columns.resource_row("example.com/gpu")
    assert row == 3
    assert columns.allocatable[row].tolist() == [0, 4]
    assert len(columns.pod_class(first).requests) == len(columns.resource_names) == 4
    assert columns.resource_row("example.com/other") is None


def test_resources_that_are_not_scalar_are_ignored() -> None:
    columns = make_columns([make_node("a", allocatable={"cpu": "1", "bananas": "3"})])
    assert columns.resource_names == ["cpu", "memory", "ephemeral-storage"]


@pytest.mark.parametrize(
    ("used", "wanted", "conflict"),
    [
        (("0.0.0.0", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("0.0.0.0", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), False),
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "UDP", 80), False),
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 0), False),
    ],
)
def test_ports_in_use(
    used: tuple[str, str, int], wanted: tuple[str, str, int], conflict: bool
) -> None:
    pod = make_pod("p", on="b", host_port=used[2])
    port = replace(pod.containers[0].ports[0], host_ip=used[0], protocol=used[1])
    pod = replace(pod, containers=(replace(pod.containers[0], ports=(port,)),))
    columns = make_columns([make_node("a"), make_node("b")], [pod])
    assert columns.ports_in_use(*wanted).tolist() == [False, conflict]


def test_a_port_that_two_pods_share_is_free_when_one_is_gone() -> None:
    pods = [make_pod("p", on="a", host_port=80), make_pod("q", on="a", host_port=80)]
    cache = make_cache([make_node("a")], pods)
    cache.remove_pod(pods[0])
    assert not cache.columns.ports_in_use("0.0.0.0", "TCP", 80).any()


def test_image_numbers_are_as_old_as_the_rows_last_change() -> None:
    image = ContainerImage(names=("web:1",), size_bytes=100)
    cache = make_cache([make_node("a", images=(image,))])
    cache.add_node(make_node("b", images=(replace(image, size_bytes=300),)))
    cache.update_snapshot()
    state = cache.columns.image_state("web:1")
    assert state is not None
    assert [column.tolist() for column in state] == [[100, 100], [1, 2]]
    cache.add_pod(make_pod("p", on="a"))
    cache.update_snapshot()
    state = cache.columns.image_state("web:1")
    assert state is not None
    assert state[1].tolist() == [2, 2]
    assert cache.columns.image_state("other") is None


def test_the_history_of_an_image_does_not_grow_for_ever() -> None:
    image = ContainerImage(names=("web:1",), size_bytes=100)
    cache = make_cache([make_node("a", images=(image,)), make_node("b")])
    node = cache.columns.node(1)
    for _ in range(2_000):
        with_image = replace(node, images=(image,))
        cache.update_node(node, with_image)
        cache.update_node(with_image, node)
    assert len(cache.columns.images._images["web:1"].versions) < 1_100
    state = cache.columns.image_state("web:1")
    assert state is not None
    assert state[1].tolist() == [1, 0]


def test_claims_are_in_use_on_nodes_that_exist() -> None:
    volumes = (Volume(name="v", claim_name="data"), Volume(name="w", ephemeral=True))
    pods = [make_pod("p", on="a", volumes=volumes), make_pod("q", on="ghost", volumes=volumes)]
    cache = make_cache([make_node("a")], pods)
    assert cache.columns.pvc_in_use == {"default/data": 1}
    cache.add_node(make_node("ghost"))
    assert cache.columns.pvc_in_use == {"default/data": 2}
    cache.remove_node(make_node("a"))
    assert cache.columns.pvc_in_use == {"default/data": 1}


def test_rows_with_affinity_are_known_while_such_pods_are_there() -> None:
    pod = make_pod("p", on="a", affinity=ANTI)
    cache = make_cache([make_node("a"), make_node("b")], [pod, make_pod("q", on="b")])
    assert cache.columns.affinity_rows == cache.columns.required_anti_affinity_rows == [0]
    assert [other.name for other in cache.columns.pods_with_affinity(0)] == ["p"]
    cache.remove_pod(pod)
    assert cache.columns.affinity_rows == cache.columns.required_anti_affinity_rows == []


def test_a_freed_row_is_used_again_and_tells_nothing_of_its_last_node() -> None:
    cache = make_cache([make_node("a", labels={"zone": "z"}, taints=(TAINT,), unschedulable=True)])
    columns = cache.columns
    columns.label_ids("zone")
    cache.remove_node(columns.node(0))
    assert (len(columns), columns.names, columns.present.tolist()) == (1, [""], [False])
    assert columns.node(0) == NO_NODE
    cache.add_node(make_node("b"))
    assert columns.names == ["b"]
    assert columns.taint_set_id.tolist() == columns.label_ids("zone").tolist() == [0]
    assert not columns.unschedulable.any()


def test_more_rows_than_there_was_room_for() -> None:
    names = [f"n{number}" for number in range(3 * CAPACITY_FIRST)]
    cache = make_cache([make_node(names[0], labels={"n": names[0]})])
    columns = cache.columns
    columns.label_ids("n")
    for name in names[1:]:
        cache.add_node(make_node(name, labels={"n": name}))
    assert columns.names == names
    assert [columns.label_values("n")[number] for number in columns.label_ids("n")] == names
    assert columns.allocatable[0].tolist() == [4000] * len(names)


def test_a_heartbeat_touches_nothing() -> None:
    cache = make_cache([make_node("a")])
    columns = cache.columns
    before = columns.touched.position, columns.static_touched.position
    cache.update_node(columns.node(0), replace(columns.node(0), conditions={"Ready": "True"}))
    assert (columns.touched.position, columns.static_touched.position) == before
    cache.update_node(columns.node(0), make_node("a", cpu="8"))
    assert (columns.touched.position, columns.static_touched.position) == (before[0] + 1, before[1])


def test_any_rows_say_what_the_table_says_of_them() -> None:
    pods = [make_pod("p", on="n3", affinity=ANTI), make_pod("q", on="n1", host_port=80)]
    nodes = [make_node(f"n{n}", labels={"n": str(n)}, unschedulable=n == 3) for n in range(5)]
    columns = make_columns(nodes, pods)
    for rows in ([3], [4, 1, 3], []):
        part = columns.take(np.array(rows, dtype=np.intp))
        assert len(part) == len(rows)
        assert list(part.names) == [columns.names[row] for row in rows]
        for name in ("present", "unschedulable", "allowed_pods", "pod_count", "taint_set_id"):
            assert getattr(part, name).tolist() == getattr(columns, name)[rows].tolist()
        for name in ("allocatable", "requested", "non_zero_requested"):
            assert getattr(part, name).tolist() == getattr(columns, name)[:, rows].tolist()
        assert part.label_ids("n").tolist() == columns.label_ids("n")[rows].tolist()
        used = columns.ports_in_use("", "", 80)
        assert part.ports_in_use("", "", 80).tolist() == used[rows].tolist()
        assert [_names(part.pods(i)) for i in range(len(part))] == [
            _names(columns.pods(row)) for row in rows
        ]
        assert list(part.affinity_rows) == ([rows.index(3)] if 3 in rows else [])
        assert part.row_of("n3") == (rows.index(3) if 3 in rows else None)
        assert part.order().tolist() == [rows.index(row) for row in sorted(rows)]
    assert columns.take(np.array([4, 1, 3])).take(np.array([2])).names == ["n3"]


def test_pods_of_equal_specs_have_one_class() -> None:
    columns = make_columns([make_node("a")])
    one, other = make_pod("p", labels={"a": "b"}), make_pod("q", namespace="x", priority=5)
    assert columns.pod_class(one) is columns.pod_class(other)
    assert columns.pod_class(make_pod("p", cpu="101m")) is not columns.pod_class(one)


def test_pods_count_on_their_nodes_by_one_class_whatever_the_node() -> None:
    columns = make_columns([make_node("a"), make_node("b")])
    pending, on_a, on_b = make_pod("p"), make_pod("q", on="a"), make_pod("r", on="b")
    kind = columns.pod_class(pending)
    assert columns.class_on_node(pending) is kind
    assert columns.class_on_node(on_a) is columns.class_on_node(on_b) is kind
    assert columns.pod_class(on_a) is not kind
    columns.pod_classes.forget("q")
    assert columns.class_on_node(on_a) is kind


def _names(pods: Sequence[Pod]) -> list[str]:
    return [pod.name for pod in pods]
