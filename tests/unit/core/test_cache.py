"""Pods' and nodes' states, and the list of nodes. What upstream recorded is in tests/parity."""

import pickle
from typing import Any

import pytest

from decklog.core.cache import Cache
from decklog.core.errors import IllegalTransition
from decklog.core.node_order import REGION, REGION_BETA, ZONE, ZONE_BETA, NodeOrder, zone_key
from decklog.objects.pod import Affinity, PodAffinity, PodAffinityTerm
from tests.unit.core.columns_builders import make_cache, make_node, make_pod

POD = make_pod("p")


def test_an_assumed_pod_counts_until_it_is_forgotten() -> None:
    cache = make_cache([make_node("a")])
    cache.assume_pod(POD, "a")
    assert cache.is_assumed(POD.uid)
    assert cache.columns.requested[0, 0] == 100
    cached = cache.pod(POD.uid)
    assert cached is not None
    assert (cached.node_name, cache.node_of(POD.uid)) == ("a", "a")
    cache.forget_pod(POD.uid)
    cache.forget_pod(POD.uid)
    assert cache.pod(POD.uid) is None
    assert cache.columns.requested[0, 0] == 0


def test_what_the_watch_says_wins_over_an_assume() -> None:
    cache = make_cache([make_node("a"), make_node("b")])
    cache.assume_pod(POD, "a")
    cache.add_pod(make_pod("p", on="b", cpu="300m"))
    assert not cache.is_assumed(POD.uid)
    assert cache.columns.requested[0].tolist() == [0, 300]
    cache.forget_pod("unknown")
    with pytest.raises(IllegalTransition, match="wasn't assumed so cannot be forgotten"):
        cache.forget_pod(POD.uid)


def test_a_removed_pods_stored_version_is_taken_off() -> None:
    cache = make_cache([make_node("a")], [make_pod("p", on="a")])
    cache.remove_pod(make_pod("p", on="a", cpu="900m"))
    assert not cache.columns.requested.any()


def test_an_update_goes_to_the_end_and_the_last_takes_its_place() -> None:
    pods = [make_pod(name, on="a") for name in "pqrs"]
    cache = make_cache([make_node("a")], pods)
    cache.update_pod(pods[0], make_pod("p", on="a", cpu="1"))
    assert [pod.name for pod in cache.columns.pods(0)] == ["s", "q", "r", "p"]
    assert cache.columns.requested[0, 0] == 1300


def test_pods_of_an_unknown_node_wait_for_it() -> None:
    cache = make_cache([], [make_pod("p", on="ghost")])
    assert (cache.node_count, cache.columns.node_count) == (1, 0)
    assert cache.columns.row_of("ghost") is None
    cache.add_node(make_node("ghost"))
    cache.update_snapshot()
    row = cache.columns.row_of("ghost")
    assert row is not None
    assert cache.columns.requested[0, row] == 100
    cache.remove_node(make_node("ghost"))
    cache.remove_pod(make_pod("p", on="ghost"))
    assert cache.node_count == 0


@pytest.mark.parametrize("known", [True, False], ids=["present", "ghost"])
def test_a_second_removal_is_an_error(known: bool) -> None:
    cache = make_cache([make_node("a")], [make_pod("p", on="a")] if known else [])
    cache.remove_node(make_node("a"))
    want = 'node "a" in group "" was not found' if known else "node a is not found"
    with pytest.raises(IllegalTransition, match=want):
        cache.remove_node(make_node("a"))


def test_objects_of_other_kinds() -> None:
    cache = Cache()
    assert cache.objects("Service") == {}
    version = cache.version
    cache.set_object("Service", "default/web", "web")
    assert cache.objects("Service") == {"default/web": "web"}
    cache.delete_object("Service", "default/web")
    assert cache.objects("Service") == {}
    assert cache.version == version + 2


def _zoned(name: str, zone: str) -> dict[str, str]:
    return {REGION: "r", ZONE: zone, "name": name}


def test_zones_take_turns() -> None:
    zones = {"a1": "A", "a2": "A", "a3": "A", "b1": "B", "c1": "C", "c2": "C"}
    nodes = {name: make_node(name, labels=_zoned(name, zone)) for name, zone in zones.items()}
    order = NodeOrder()
    for node in nodes.values():
        order.add(node)
    assert order.names() == ["a1", "b1", "c1", "a2", "c2", "a3"]
    assert order.remove(nodes["b1"])
    order.add(make_node("b2", labels=_zoned("b2", "B")))
    assert order.names() == ["a1", "c1", "b2", "a2", "c2", "a3"]
    assert not order.remove(nodes["b1"])


@pytest.mark.parametrize(
    ("labels", "want"),
    [
        ({}, ""),
        ({ZONE: "z"}, ":\x00:z"),
        ({REGION: "r", ZONE: "z"}, "r:\x00:z"),
        ({REGION: "r", REGION_BETA: "beta", ZONE: "z"}, "beta:\x00:z"),
        ({ZONE: "z", ZONE_BETA: "beta"}, ":\x00:beta"),
    ],
)
def test_zone_key(labels: dict[str, str], want: str) -> None:
    assert zone_key(labels) == want


def test_a_node_whose_zone_changed_keeps_its_place_until_a_node_comes() -> None:
    nodes = [
        make_node(name, labels=_zoned(name, zone)) for name, zone in zip("abc", "AAB", strict=True)
    ]
    cache = make_cache(nodes)
    moved = make_node("a", labels=_zoned("a", "B"))
    cache.update_node(nodes[0], moved)
    cache.update_snapshot()
    assert _listed(cache) == ["a", "c", "b"]
    cache.add_node(make_node("d", labels=_zoned("d", "A")))
    cache.update_snapshot()
    assert _listed(cache) == ["b", "c", "d", "a"]


def test_a_node_that_went_and_came_back_between_cycles_keeps_its_place() -> None:
    nodes = [make_node(name) for name in "abc"]
    cache = make_cache(nodes)
    for node in nodes[:2]:
        cache.remove_node(node)
    cache.add_node(nodes[0])
    cache.add_node(nodes[1])
    cache.update_snapshot()
    assert _listed(cache) == ["a", "b", "c"]
    assert cache.columns.node_count == 3


@pytest.mark.parametrize(
    ("refused", "problem"),
    [
        pytest.param(
            lambda cache: cache.update_pod(make_pod("q", on="a"), make_pod("q", on="b")),
            "pod uid-q(default/q) was added on a and is now on b",
            id="an update from another node",
        ),
        pytest.param(
            lambda cache: cache.remove_pod(make_pod("q", on="b")),
            "pod uid-q(default/q) was added on a, not on b",
            id="a removal from another node",
        ),
        pytest.param(
            lambda cache: cache.add_pod(make_pod("q", on="a")),
            "pod uid-q(default/q) was already in added state",
            id="a second time",
        ),
        pytest.param(
            lambda cache: cache.update_pod(POD, POD),
            "pod uid-p(default/p) is not added to scheduler cache, so cannot be updated",
            id="an update of a pod that is not there",
        ),
        pytest.param(
            lambda cache: cache.remove_node(make_node("z")), "node z is not found", id="no node"
        ),
    ],
)
def test_what_contradicts_the_cache_is_refused(refused: Any, problem: str) -> None:
    cache = make_cache([make_node("a"), make_node("b")], [make_pod("q", on="a")])
    with pytest.raises(IllegalTransition) as caught:
        refused(cache)
    assert str(caught.value) == problem


def test_a_node_may_be_updated_that_was_never_added() -> None:
    cache = make_cache()
    cache.update_node(None, make_node("a", labels=_zoned("a", "A")))
    cache.add_node(make_node("a", labels=_zoned("a", "A")))
    cache.update_snapshot()
    assert _listed(cache) == ["a"]
    assert cache.columns.node_count == 1


def test_a_node_that_is_removed_from_a_zone_in_which_it_is_not_leaves_no_good_snapshot() -> None:
    """As upstream. Here the refusal ends the process, so that no cycle comes to see it."""
    cache = make_cache([make_node("a"), make_node("b")])
    with pytest.raises(IllegalTransition, match=r'node "b" in group "r:.x00:Z" was not found'):
        cache.remove_node(make_node("b", labels=_zoned("b", "Z")))
    cache.add_node(make_node("c"))
    assert cache.update_snapshot() == (
        "snapshot state is not consistent, length of NodeInfoList=2 not equal to length of nodes "
        "in tree=3"
    )


def test_a_pod_leaves_the_lists_that_the_version_given_belongs_to() -> None:
    """As upstream: the version that an update replaces is looked up, not the one that is stored."""
    term = PodAffinityTerm(topology_key="zone")
    affine = make_pod("q", on="a", affinity=Affinity(pod_anti=PodAffinity(required=(term,))))
    cache = make_cache([make_node("a")], [make_pod("q", on="a")])
    cache.update_pod(affine, make_pod("q", on="a"))
    assert list(cache.columns.pods_with_affinity(0)) == []
    assert len(cache.columns.pods(0)) == 1


def test_a_copy_goes_its_own_way() -> None:
    cache = make_cache([make_node("a")], [make_pod("p", on="a")])
    other = pickle.loads(pickle.dumps(cache))
    other.add_pod(make_pod("q", on="a"))
    other.add_node(make_node("b"))
    other.update_snapshot()
    assert other.columns.requested[0].tolist() == [200, 0]
    assert cache.columns.requested[0].tolist() == [100]
    assert (cache.columns.node_count, other.columns.node_count) == (1, 2)


def _listed(cache: Cache) -> list[str]:
    return [cache.columns.names[row] for row in cache.columns.order()]
