import numpy as np

from decklog.core.pod_terms import VIEWERS_MAX, Kind, PodTerms
from decklog.objects.pod import Affinity, Pod, PodAffinity, PodAffinityTerm
from tests.builders import make_selector
from tests.unit.core.columns_builders import make_columns, make_node, make_pod

TERM = PodAffinityTerm(topology_key="zone", label_selector=make_selector(app="web"))
KEEPER = make_pod("k", affinity=Affinity(pod_anti=PodAffinity(required=(TERM,))))
WEB = make_pod("w", labels={"app": "web"})


def make_terms() -> PodTerms:
    terms = PodTerms()
    terms.grow(2)
    return terms


def carriers(terms: PodTerms, pod: Pod = WEB) -> list[list[int]]:
    return [one.counts.by_row.tolist() for one in terms.meaning(pod, {})]


def test_equal_terms_are_counted_together_until_nobody_carries_them() -> None:
    terms = make_terms()
    assert carriers(terms) == []
    terms.change(0, KEEPER, 1, anti=True)
    terms.change(1, KEEPER, 1, anti=True)
    terms.change(1, KEEPER, 1, anti=True)
    assert carriers(terms) == [[1, 2]]
    assert [one.kind for one in terms.meaning(WEB, {})] == [Kind.ANTI_AFFINITY]
    terms.grow(4)
    assert carriers(terms) == [[1, 2, 0, 0]]
    assert carriers(terms, make_pod("d", labels={"app": "db"})) == []
    for row in (0, 1, 1):
        terms.change(row, KEEPER, -1, anti=True)
    assert carriers(terms) == []


def test_a_term_that_comes_later_is_decided_for_viewers_that_were_met_before() -> None:
    terms = make_terms()
    other = PodAffinityTerm(topology_key="zone", label_selector=make_selector(app="db"))
    terms.change(
        0, make_pod("d", affinity=Affinity(pod=PodAffinity(required=(other,)))), 1, anti=False
    )
    assert carriers(terms) == []
    terms.change(0, KEEPER, 1, anti=True)
    assert carriers(terms) == [[1, 0]]
    assert carriers(terms, make_pod("d", labels={"app": "db"})) == [[1, 0]]
    assert carriers(terms, make_pod("w", labels={"app": "web"}, namespace="other")) == []


def test_viewers_are_bounded() -> None:
    terms = make_terms()
    terms.change(0, KEEPER, 1, anti=True)
    for number in range(VIEWERS_MAX + 1):
        carriers(terms, make_pod("v", labels={"number": str(number)}))
    assert carriers(terms) == [[1, 0]]


def test_sums_per_value_follow_pods_and_labels() -> None:
    columns = make_columns([make_node("a", labels={"zone": "1"}), make_node("b")])
    kind = columns.pod_class(KEEPER)
    for row in (0, 1, 1):
        columns.add_pod(row, KEEPER, kind)
    (carried,) = columns.carried_terms(WEB, {})
    assert columns.carriers_per_value(carried).tolist() == [0, 1]
    columns.add_pod(0, KEEPER, kind)
    assert columns.carriers_per_value(carried).tolist() == [0, 2]
    some = columns.take(np.array([1], dtype=np.intp))
    assert some.carried_terms(WEB, {}) == [carried]
    assert some.carriers_per_value(carried).tolist() == [0, 0]
    columns.set_node(1, make_node("b", labels={"zone": "2"}))
    assert columns.carriers_per_value(carried).tolist() == [0, 2, 2]
