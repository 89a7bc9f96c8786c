"""InterPodAffinity says of every node what a plain reading, pod by pod, says of it.

The plain reading holds no counts and no columns: it loops over all placed pods and all their
terms, as the rule is written. Both are asked after pods came and went, and after a node moved.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decklog.core.affinity_terms import Term, terms_of
from decklog.core.cache import Cache
from decklog.core.framework.interface import CycleState
from decklog.core.plugins.inter_pod_affinity import (
    AFFINITY,
    ANTI_AFFINITY,
    EXISTING,
    InterPodAffinity,
)
from decklog.objects.node import Node
from decklog.objects.pod import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    WeightedPodAffinityTerm,
)
from decklog.objects.selectors import LabelSelector
from tests.builders import make_namespace, make_selector
from tests.unit.core.columns_builders import make_cache, make_node, make_pod

SPACES: Final[Mapping[str, Mapping[str, str]]] = {"x": {"team": "x"}, "y": {"team": "y"}, "z": {}}
NAMES: Final = ("a", "b", "c", "d")
selectors = st.sampled_from(
    (
        None,
        LabelSelector(),
        make_selector(app="web"),
        make_selector(app="db"),
        make_selector(("app", "NotIn", ("web",))),
        make_selector(("app", "Bad", ())),
    )
)
namespace_selectors = st.sampled_from(
    (None, None, LabelSelector(), make_selector(team="x"), make_selector(("team", "NotIn", ("x",))))
)
terms = st.builds(
    PodAffinityTerm,
    topology_key=st.sampled_from(("zone", "rack", "host")),
    label_selector=selectors,
    namespaces=st.sampled_from(((), (), ("y",))),
    namespace_selector=namespace_selectors,
)
stanzas = st.none() | st.builds(
    PodAffinity,
    required=st.lists(terms, max_size=2).map(tuple),
    preferred=st.lists(
        st.builds(WeightedPodAffinityTerm, weight=st.sampled_from((1, 3)), term=terms), max_size=2
    ).map(tuple),
)
affinities = st.none() | st.builds(Affinity, pod=stanzas, pod_anti=stanzas)
pods = st.builds(
    make_pod,
    namespace=st.sampled_from(tuple(SPACES)),
    labels=st.sampled_from(({}, {"app": "web"}, {"app": "db"})),
    affinity=affinities,
)
labels = st.fixed_dictionaries(
    {},
    optional={
        "zone": st.sampled_from(("1", "2")),
        "rack": st.sampled_from(("1", "2")),
        "host": st.sampled_from(NAMES),
    },
)


@dataclass(frozen=True)
class Plain:
    """The rule, pod by pod."""

    nodes: Mapping[str, Node]
    placed: Sequence[Pod]
    hard_weight: int = 1

    def codes(self, pod: Pod) -> list[int]:
        return [self._code(pod, node) for node in self.nodes.values()]

    def _code(self, pod: Pod, node: Node) -> int:
        own = terms_of(pod)
        keys = [term.topology_key for term in own.affinity]
        matching = [p for p in self.placed if all(means(term, p) for term in own.affinity)]
        met = all(any(self._share(node, p, key) for p in matching) for key in keys)
        counted = any(self._has(p, key) for p in matching for key in keys)
        first = not counted and all(means(term, pod) for term in own.affinity)
        if keys and not (met or (first and all(key in node.labels for key in keys))):
            return AFFINITY
        for term in own.anti_affinity:
            if any(means(term, p) and self._share(node, p, term.topology_key) for p in self.placed):
                return ANTI_AFFINITY
        for other in self.placed:
            for term in terms_of(other).anti_affinity:
                if term.matches(pod, SPACES[pod.namespace]) and self._share(
                    node, other, term.topology_key
                ):
                    return EXISTING
        return 0

    def scores(self, pod: Pod) -> list[int]:
        return [
            sum(
                weight
                for other in self.placed
                for weight, key in self._pulls(pod, other)
                if self._share(node, other, key)
            )
            for node in self.nodes.values()
        ]

    def _pulls(self, pod: Pod, other: Pod) -> Iterator[tuple[int, str]]:
        for weight, term in terms_of(pod).preferred:
            if means(term, other):
                yield weight, term.topology_key
        theirs = terms_of(other)
        required = [(self.hard_weight, term) for term in theirs.affinity]
        for weight, term in (*required, *theirs.preferred):
            if term.matches(pod, SPACES[pod.namespace]):
                yield weight, term.topology_key

    def _has(self, pod: Pod, key: str) -> bool:
        return key in self.nodes[pod.node_name].labels

    def _share(self, node: Node, pod: Pod, key: str) -> bool:
        there = self.nodes[pod.node_name].labels
        return key in node.labels and there.get(key) == node.labels[key]


def means(term: Term, pod: Pod) -> bool:
    """Whether the incoming pod's term means a placed pod."""
    inside = pod.namespace in term.namespaces or term.namespace_selector.matches({})
    inside |= term.namespace_selector.matches(SPACES[pod.namespace])
    return inside and term.selector.matches(pod.labels)


@st.composite
def placements(draw: st.DrawFn) -> list[Pod]:
    return [
        replace(draw(pods), uid=f"p{number}", node_name=draw(st.sampled_from(NAMES)))
        for number in range(draw(st.integers(0, 6)))
    ]


node_labels = st.lists(labels, min_size=len(NAMES), max_size=len(NAMES))


@given(
    pod=pods,
    before=placements(),
    stay=st.integers(0, 6),
    first=node_labels,
    then=node_labels,
)
def test_the_plugin_equals_the_plain_reading(
    pod: Pod,
    before: list[Pod],
    stay: int,
    first: list[dict[str, str]],
    then: list[dict[str, str]],
) -> None:
    nodes = nodes_of(first)
    cache = cache_of(nodes, before)
    compare(cache, Plain(nodes, before), pod)
    for one in before[stay:]:
        cache.remove_pod(one)
    compare(cache, Plain(nodes, before[:stay]), pod)
    moved = nodes_of(then)
    for name, node in moved.items():
        cache.update_node(nodes[name], node)
    compare(cache, Plain(moved, before[:stay]), pod)


@given(pod=pods, placed=placements(), other=pods, row=st.integers(0, 3), at=node_labels)
def test_a_pod_more_or_less_is_as_if_it_came_or_went(
    pod: Pod, placed: list[Pod], other: Pod, row: int, at: list[dict[str, str]]
) -> None:
    nodes = nodes_of(at)
    cache = cache_of(nodes, placed)
    plugin, columns, state = InterPodAffinity(), cache.columns, CycleState(cluster=cache)
    if not plugin.pre_filter(state, pod, columns)[1].is_success:
        return
    other = replace(other, uid="other", node_name=NAMES[row])
    plugin.add_pod(state, pod, other, row, columns)
    more = Plain(nodes, [*placed, other])
    assert plugin.filter(state, pod, columns).tolist() == more.codes(pod)
    for gone in placed:
        plugin.remove_pod(state, pod, gone, NAMES.index(gone.node_name), columns)
    assert plugin.filter(state, pod, columns).tolist() == Plain(nodes, [other]).codes(pod)


def test_a_plain_reading_that_differs_is_found() -> None:
    """The comparison fails for a plugin that overlooks what placed pods ask."""
    term = PodAffinityTerm(topology_key="zone", label_selector=LabelSelector())
    keeper = make_pod(
        "k", on="a", namespace="x", affinity=Affinity(pod_anti=PodAffinity(required=(term,)))
    )
    nodes = nodes_of([{"zone": "1"}] * 4)
    cache = cache_of(nodes, [keeper])
    pod = make_pod("new", namespace="x")
    compare(cache, Plain(nodes, [keeper]), pod)
    with pytest.raises(AssertionError):
        compare(cache, Plain(nodes, []), pod)


def nodes_of(sets: Sequence[dict[str, str]]) -> dict[str, Node]:
    return {name: make_node(name, labels=own) for name, own in zip(NAMES, sets, strict=True)}


def cache_of(nodes: Mapping[str, Node], placed: Sequence[Pod]) -> Cache:
    cache = make_cache(nodes.values(), placed)
    for name, own in SPACES.items():
        cache.set_object("Namespace", name, make_namespace(name, **own))
    return cache


def compare(cache: Cache, plain: Plain, pod: Pod) -> None:
    plugin, columns, state = InterPodAffinity(), cache.columns, CycleState(cluster=cache)
    _, status = plugin.pre_filter(state, pod, columns)
    if terms_of(pod).error:
        assert not status.is_success
        return
    want = plain.codes(pod)
    if status.is_success:
        assert plugin.filter(state, pod, columns).tolist() == want
        rows = np.array([2, 0], dtype=np.intp)
        some = plugin.filter(state, pod, columns.take(rows)).tolist()
        assert some == [want[2], want[0]]
    else:
        assert status.is_skip
        assert not any(want)
    scores = plain.scores(pod)
    if plugin.pre_score(state, pod, columns, columns.present).is_success:
        assert plugin.score(state, pod, columns).tolist() == scores
    else:
        assert not any(scores)
