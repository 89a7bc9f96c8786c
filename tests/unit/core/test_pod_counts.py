from hypothesis import given
from hypothesis import strategies as st

from decklog.core.logarithm import ln
from decklog.core.pod_counts import QUERIES_MAX, PodCounts, Query
from decklog.objects.matching import Selector, compile_label_map
from decklog.objects.pod import Pod
from tests.unit.core.columns_builders import make_pod

ROWS = 4


def query(color: str, namespaces: frozenset[str] | None = None, *, live: bool = False) -> Query:
    return Query(namespaces, compile_label_map({"color": color}), live_only=live)


def make_counts() -> PodCounts:
    counts = PodCounts()
    counts.grow(ROWS)
    return counts


def test_a_column_follows_pods_that_come_and_go() -> None:
    counts = make_counts()
    red, blue = make_pod("r", labels={"color": "red"}), make_pod("b", labels={"color": "blue"})
    counts.add(0, red)
    assert counts.column(query("red")).tolist() == [1, 0, 0, 0]
    counts.add(2, red)
    counts.add(2, blue)
    assert counts.column(query("red")).tolist() == [1, 0, 1, 0]
    assert counts.total(query("red")) == 2
    counts.remove(0, red)
    counts.grow(2 * ROWS)
    assert counts.column(query("red")).tolist() == [0, 0, 1, 0, 0, 0, 0, 0]


def test_namespaces_and_terminating_pods() -> None:
    counts = make_counts()
    counts.add(0, make_pod("a", labels={"color": "red"}, namespace="x"))
    counts.add(1, make_pod("b", labels={"color": "red"}, deleted="2026-01-01T00:00:00Z"))
    assert counts.column(query("red", frozenset({"x"}))).tolist() == [1, 0, 0, 0]
    assert counts.column(query("red", live=True)).tolist() == [1, 0, 0, 0]
    assert counts.column(query("red")).tolist() == [1, 1, 0, 0]


def test_a_query_that_was_forgotten_is_summed_again() -> None:
    counts = make_counts()
    pod = make_pod("a", labels={"color": "red"})
    counts.add(0, pod)
    counts.column(query("red"))
    for number in range(QUERIES_MAX):
        counts.column(query(f"color-{number}"))
    counts.add(1, pod)
    assert counts.column(query("red")).tolist() == [1, 1, 0, 0]


@given(
    st.lists(
        st.tuples(
            st.integers(0, ROWS - 1), st.sampled_from(["red", "blue"]), st.booleans(), st.booleans()
        ),
        max_size=30,
    )
)
def test_kept_counts_equal_a_fresh_count(changes: list[tuple[int, str, bool, bool]]) -> None:
    counts = make_counts()
    there: list[tuple[int, Pod]] = []
    asked = [query("red"), query("blue", live=True), Query(None, Selector())]
    for row, color, terminating, leaves in changes:
        if leaves and there:
            gone = there.pop(0)
            counts.remove(*gone)
        else:
            pod = make_pod(
                "p",
                labels={"color": color},
                deleted="2026-01-01T00:00:00Z" if terminating else None,
            )
            there.append((row, pod))
            counts.add(row, pod)
        for one in asked:
            fresh = [0] * ROWS
            for at, pod in there:
                if one.selector.matches(pod.labels) and not (one.live_only and pod.deleted):
                    fresh[at] += 1
            assert counts.column(one).tolist() == fresh


def test_the_logarithm_is_the_nearest_float() -> None:
    assert ln(1) == 0.0
    assert ln(2) == 0.6931471805599453
    assert ln(5002) == 8.517593111437565
