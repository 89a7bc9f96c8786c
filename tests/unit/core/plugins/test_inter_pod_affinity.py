"""Vectors named (T) in kube-scheduler's unit tests stand here as rows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from decklog.core.cache import Cache
from decklog.core.framework.interface import CycleState
from decklog.core.framework.status import SKIP, SUCCESS, Code, Status, unresolvable
from decklog.core.plugins.inter_pod_affinity import STATUSES, InterPodAffinity
from decklog.objects.node import Node
from decklog.objects.pod import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    WeightedPodAffinityTerm,
)
from decklog.objects.selectors import LabelSelector
from tests.builders import ZONE, make_namespace, make_selector
from tests.unit.core.columns_builders import make_cache, make_node, make_pod

HOST = "kubernetes.io/hostname"
WEB, DB = {"app": "web"}, {"app": "db"}
_, FAR, NEAR_OWN, NEAR_THEIRS = STATUSES
ABSENT = (("team", "DoesNotExist", ()),)


def term(key: str = ZONE, app: str = "web", **fields: Any) -> PodAffinityTerm:
    known: dict[str, Any] = {"topology_key": key, "label_selector": make_selector(app=app)}
    return PodAffinityTerm(**known | fields)


def near(*terms: PodAffinityTerm) -> Affinity:
    return Affinity(pod=PodAffinity(required=terms))


def apart(*terms: PodAffinityTerm) -> Affinity:
    return Affinity(pod_anti=PodAffinity(required=terms))


def weighted(weight: int, one: PodAffinityTerm) -> tuple[WeightedPodAffinityTerm, ...]:
    return (WeightedPodAffinityTerm(weight=weight, term=one),)


def attracted(weight: int = 1, key: str = ZONE) -> Affinity:
    return Affinity(pod=PodAffinity(preferred=weighted(weight, term(key))))


def repelled(weight: int = 1, key: str = ZONE) -> Affinity:
    return Affinity(pod_anti=PodAffinity(preferred=weighted(weight, term(key))))


def node(name: str, zone: str = "") -> Node:
    return make_node(name, labels={HOST: name} | ({ZONE: zone} if zone else {}))


NODES = (node("a", "z1"), node("b", "z1"), node("c", "z2"), node("d"))


def web(name: str, on: str = "", **fields: Any) -> Pod:
    return make_pod(name, on=on, labels=WEB, **fields)


def filtered(
    pod: Pod, placed: Sequence[Pod] = (), cache: Cache | None = None
) -> list[Status] | Status:
    """Return the status of each node, or PreFilter's if it is no success."""
    cache = cache or make_cache(NODES, placed)
    plugin, state = InterPodAffinity(), CycleState(cluster=cache)
    _, status = plugin.pre_filter(state, pod, cache.columns)
    if not status.is_success:
        return status
    return [STATUSES[code] for code in plugin.filter(state, pod, cache.columns)]


@pytest.mark.parametrize(
    ("pod", "placed", "want"),
    [
        pytest.param(make_pod("new"), [web("x", "a")], SKIP, id="nobody asks anything"),
        pytest.param(
            make_pod("new", affinity=near(term())),
            [web("x", "a")],
            [SUCCESS, SUCCESS, FAR, FAR],
            id="near one of the zone",
        ),
        pytest.param(
            make_pod("new", affinity=near(term())), [], [FAR] * 4, id="nobody to be near to"
        ),
        pytest.param(
            web("new", affinity=near(term())), [], [SUCCESS] * 3 + [FAR], id="first of its group"
        ),
        pytest.param(
            web("new", affinity=near(term())),
            [web("x", "d")],
            [SUCCESS] * 3 + [FAR],
            id="first too if the other's node lacks the key",
        ),
        pytest.param(
            make_pod("new", affinity=near(term(), term(HOST, "db"))),
            [web("x", "a"), make_pod("y", on="b", labels=DB)],
            [FAR] * 4,
            id="one pod must match all terms to count for any",
        ),
        pytest.param(
            make_pod("new", affinity=apart(term(), term(HOST, "db"))),
            [web("x", "c"), make_pod("y", on="b", labels=DB)],
            [SUCCESS, NEAR_OWN, NEAR_OWN, SUCCESS],
            id="each anti-affinity term counts alone",
        ),
        pytest.param(
            make_pod("new", affinity=apart(term())),
            [web("x", "d", deleted="2026-01-01T00:00:00Z"), web("y", "c", deleted="2026")],
            [SUCCESS, SUCCESS, NEAR_OWN, SUCCESS],
            id="terminating pods count; without the key anti-affinity passes",
        ),
        pytest.param(
            web("new"),
            [make_pod("x", on="a", affinity=apart(term()))],
            [NEAR_THEIRS, NEAR_THEIRS, SUCCESS, SUCCESS],
            id="a placed pod keeps others away (T)",
        ),
        pytest.param(
            web("new"),
            [make_pod("x", on="a", affinity=near(term()))],
            SKIP,
            id="a placed pod's affinity holds nobody",
        ),
        pytest.param(
            web("new", affinity=apart(term())),
            [web("x", "a", affinity=apart(term(HOST)))],
            [NEAR_OWN, NEAR_OWN, SUCCESS, SUCCESS],
            id="own anti-affinity gives the reason before theirs",
        ),
        pytest.param(
            make_pod("new", affinity=apart(term(label_selector=None))),
            [web("x", "a")],
            [SUCCESS] * 4,
            id="no selector means nobody",
        ),
        pytest.param(
            make_pod("new", affinity=apart(term(label_selector=LabelSelector()))),
            [make_pod("x", on="a")],
            [NEAR_OWN, NEAR_OWN, SUCCESS, SUCCESS],
            id="an empty selector means everybody",
        ),
        pytest.param(
            make_pod("new", affinity=near(term(), term(HOST, label_selector=None))),
            [web("x", "a")],
            [FAR] * 4,
            id="nor does one that means nobody beside another",
        ),
    ],
)
def test_filter(pod: Pod, placed: Sequence[Pod], want: list[Status] | Status) -> None:
    assert filtered(pod, placed) == want


@pytest.mark.parametrize(
    ("fields", "meant"),
    [
        pytest.param({}, False, id="own namespace alone"),
        pytest.param({"namespaces": ("prod",)}, True, id="named"),
        pytest.param({"namespace_selector": make_selector(team="x")}, True, id="selected"),
        pytest.param({"namespace_selector": make_selector(team="y")}, False, id="not selected"),
        pytest.param({"namespace_selector": LabelSelector()}, True, id="all are selected"),
        pytest.param(
            {"namespaces": ("dev",), "namespace_selector": make_selector(team="x")},
            True,
            id="named or selected",
        ),
    ],
)
def test_namespaces_of_both_directions(fields: dict[str, Any], *, meant: bool) -> None:
    affinity = apart(term(HOST, **fields))
    cache = make_cache(NODES, [web("x", "a", namespace="prod")])
    cache.set_object("Namespace", "prod", make_namespace("prod", team="x"))
    own = filtered(make_pod("new", affinity=affinity), cache=cache)
    assert own == [NEAR_OWN if meant else SUCCESS, *[SUCCESS] * 3]
    cache = make_cache(NODES, [make_pod("x", on="a", affinity=affinity)])
    cache.set_object("Namespace", "prod", make_namespace("prod", team="x"))
    theirs = filtered(web("new", namespace="prod"), cache=cache)
    assert theirs == ([NEAR_THEIRS, *[SUCCESS] * 3] if meant else SKIP)


def test_a_selector_that_no_labels_satisfy_means_every_namespace_to_the_incoming_pod() -> None:
    """Upstream asks it again without labels; for terms of placed pods it does not."""
    affinity = apart(term(HOST, namespace_selector=make_selector(*ABSENT)))
    cache = make_cache(NODES, [web("x", "a", namespace="prod")])
    cache.set_object("Namespace", "prod", make_namespace("prod", team="x"))
    own = filtered(make_pod("new", affinity=affinity), cache=cache)
    assert own == [NEAR_OWN, SUCCESS, SUCCESS, SUCCESS]
    cache = make_cache(NODES, [make_pod("x", on="a", affinity=affinity)])
    cache.set_object("Namespace", "prod", make_namespace("prod", team="x"))
    assert filtered(web("new", namespace="prod"), cache=cache) == SKIP
    assert filtered(web("new", namespace="dev"), cache=cache) != SKIP


def test_a_namespace_that_gets_other_labels_is_selected_anew() -> None:
    affinity = apart(term(HOST, namespace_selector=make_selector(team="x")))
    cache = make_cache(NODES, [make_pod("x", on="a", affinity=affinity)])
    pod = web("new", namespace="prod")
    for team, want in (("x", [NEAR_THEIRS, *[SUCCESS] * 3]), ("y", SKIP)):
        cache.set_object("Namespace", "prod", make_namespace("prod", team=team))
        assert filtered(pod, cache=cache) == want


def test_nodes_that_move_and_pods_that_leave_are_followed() -> None:
    pod = make_pod("new", affinity=apart(term()))
    cache = make_cache(NODES, [web("x", "a")])
    assert filtered(pod, cache=cache) == [NEAR_OWN, NEAR_OWN, SUCCESS, SUCCESS]
    cache.update_node(NODES[0], node("a", "z2"))
    assert filtered(pod, cache=cache) == [NEAR_OWN, SUCCESS, NEAR_OWN, SUCCESS]
    cache.remove_pod(web("x", "a"))
    assert filtered(pod, cache=cache) == [SUCCESS] * 4


BAD = LabelSelector(match_labels={"-": "x"})


def test_terms_that_do_not_parse() -> None:
    pod = make_pod("new", affinity=apart(term(label_selector=BAD)))
    status = filtered(pod)
    assert isinstance(status, Status)
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons[0].startswith(
        "parsing pod: requiredAntiAffinityTerms: key: Invalid value"
    )
    cache = make_cache(NODES)
    asked = InterPodAffinity().pre_score(
        CycleState(cluster=cache), pod, cache.columns, cache.columns.present
    )
    assert asked.code is Code.ERROR
    kept_away = make_pod("x", on="a", affinity=apart(term(label_selector=BAD), term(HOST)))
    assert filtered(web("new"), [kept_away]) == SKIP
    assert unresolvable("x") != SKIP


@pytest.mark.parametrize(
    ("pod", "other", "want"),
    [
        pytest.param(
            make_pod("new", affinity=apart(term())),
            web("x"),
            [NEAR_OWN, NEAR_OWN, SUCCESS, SUCCESS],
            id="own anti-affinity",
        ),
        pytest.param(
            web("new", affinity=near(term(HOST))),
            make_pod("x", affinity=apart(term())),
            [NEAR_THEIRS, NEAR_THEIRS, SUCCESS, SUCCESS],
            id="theirs",
        ),
        pytest.param(
            make_pod("new", affinity=near(term())),
            web("x"),
            [SUCCESS, SUCCESS, FAR, FAR],
            id="affinity",
        ),
    ],
)
def test_a_pod_more_and_less(pod: Pod, other: Pod, want: list[Status]) -> None:
    cache = make_cache(NODES)
    plugin, columns, state = InterPodAffinity(), cache.columns, CycleState(cluster=cache)
    assert plugin.pre_filter(state, pod, columns)[1] == SUCCESS

    def seen() -> list[Status]:
        return [STATUSES[code] for code in plugin.filter(state, pod, columns)]

    before = seen()
    plugin.add_pod(state, pod, other, 0, columns)
    assert seen() == want
    plugin.add_pod(state, pod, replace(other, uid="y"), 3, columns)
    assert seen() == want
    plugin.remove_pod(state, pod, other, 0, columns)
    assert seen() == before


def scored(
    pod: Pod, placed: Sequence[Pod], plugin: InterPodAffinity | None = None
) -> tuple[list[int], list[int]] | Status:
    """Return raw and normalised scores, or PreScore's status if it is no success."""
    plugin, cache = plugin or InterPodAffinity(), make_cache(NODES, placed)
    columns, state = cache.columns, CycleState(cluster=cache)
    status = plugin.pre_score(state, pod, columns, columns.present)
    if not status.is_success:
        return status
    raw = plugin.score(state, pod, columns)
    return raw.tolist(), plugin.normalize(state, pod, raw).tolist()


@pytest.mark.parametrize(
    ("pod", "placed", "want"),
    [
        pytest.param(make_pod("new"), [web("x", "a")], SKIP, id="nobody asks anything"),
        pytest.param(
            make_pod("new", affinity=attracted()), [], SKIP, id="nobody to be attracted by"
        ),
        pytest.param(
            make_pod("new", affinity=attracted()), [web("x", "d")], SKIP, id="nobody with the key"
        ),
        pytest.param(
            make_pod("new", affinity=attracted(5)),
            [web("x", "a"), web("y", "c"), web("z", "c")],
            ([5, 5, 10, 0], [50, 50, 100, 0]),
            id="own affinity",
        ),
        pytest.param(
            make_pod("new", affinity=repelled(5)),
            [web("x", "a")],
            ([-5, -5, 0, 0], [0, 0, 100, 100]),
            id="own anti-affinity",
        ),
        pytest.param(
            web("new"),
            [make_pod("x", on="c", affinity=attracted(3))],
            ([0, 0, 3, 0], [0, 0, 100, 0]),
            id="affinity of a placed pod",
        ),
        pytest.param(
            web("new"),
            [make_pod("x", on="a", affinity=repelled(5)), make_pod("y", on="d", affinity=apart())],
            ([-5, -5, 0, 0], [0, 0, 100, 100]),
            id="its anti-affinity",
        ),
        pytest.param(
            web("new"),
            [make_pod("x", on="a", affinity=near(term(HOST)))],
            ([1, 0, 0, 0], [100, 0, 0, 0]),
            id="its required affinity",
        ),
        pytest.param(
            web("new"),
            [make_pod("x", on="a", affinity=apart(term(HOST)))],
            SKIP,
            id="but not its required anti-affinity",
        ),
        pytest.param(
            web("new", affinity=attracted(2)),
            [web("x", "a", affinity=repelled(2)), web("y", "a", affinity=near(term(HOST)))],
            ([3, 2, 0, 0], [100, 66, 0, 0]),
            id="all at once",
        ),
    ],
)
def test_score(pod: Pod, placed: Sequence[Pod], want: tuple[list[int], list[int]] | Status) -> None:
    assert scored(pod, placed) == want


def test_arguments() -> None:
    hard, soft = near(term(HOST)), attracted(3, HOST)
    placed = [make_pod("x", on="a", affinity=hard), make_pod("y", on="b", affinity=soft)]
    assert scored(web("new"), placed, InterPodAffinity(hard_pod_affinity_weight=7)) == (
        [7, 3, 0, 0],
        [100, 42, 0, 0],
    )
    assert scored(web("new"), placed, InterPodAffinity(hard_pod_affinity_weight=0)) == (
        [0, 3, 0, 0],
        [0, 100, 0, 0],
    )
    ignoring = InterPodAffinity(ignore_preferred_terms_of_existing_pods=True)
    assert scored(web("new"), placed, ignoring) == SKIP
    own = web("new", affinity=attracted(1, "rack"))
    assert scored(own, placed, ignoring) == ([1, 3, 0, 0], [33, 100, 0, 0])


@pytest.mark.parametrize(
    ("raw", "want"),
    [
        pytest.param((-5, 0, 3), (0, 62, 100), id="below 0 too"),
        pytest.param((2, 8, 0), (25, 100, 0), id="(T)"),
        pytest.param((4, 4, 4), (0, 0, 0), id="all equal"),
    ],
)
def test_normalize(raw: tuple[int, ...], want: tuple[int, ...]) -> None:
    scores = InterPodAffinity().normalize(CycleState(), make_pod(), np.array(raw, dtype=np.int64))
    assert tuple(scores.tolist()) == want
