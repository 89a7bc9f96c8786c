"""What is said of one row in plain integers is what the plugin says of it."""

from hypothesis import given
from hypothesis import strategies as st

from decklog.core.framework.interface import CycleState
from decklog.core.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from decklog.core.plugins.node_resources_fit import NodeResourcesFit
from decklog.core.plugins.scoring_strategy import MOST_ALLOCATED, ScoringStrategy
from decklog.core.row_verdicts import row_filter, row_score
from decklog.objects.node import Node
from decklog.objects.pod import Container, Pod
from tests.unit.core.columns_builders import make_columns, make_pod
from tests.unit.core.small_plugins import Room

GPU = "example.com/gpu"
amounts = st.sampled_from(["0", "1", "100m", "3", "1500m", "500Mi", "2Gi", "32Gi", "100T"])
resources = st.dictionaries(st.sampled_from(["cpu", "memory", "ephemeral-storage", GPU]), amounts)
allocatables = st.builds(
    lambda some, pods: some | {"pods": str(pods)}, resources, st.integers(0, 3)
)
BALANCES = (
    NodeResourcesBalancedAllocation(),
    NodeResourcesBalancedAllocation(by_change=False),
    NodeResourcesBalancedAllocation(resources=(("cpu", 1), (GPU, 1))),
    NodeResourcesBalancedAllocation(
        resources=(("cpu", 1), ("memory", 1), ("ephemeral-storage", 1))
    ),
)
FITS = (
    NodeResourcesFit(),
    NodeResourcesFit(ignored=frozenset({GPU})),
    NodeResourcesFit(strategy=ScoringStrategy(type=MOST_ALLOCATED)),
    NodeResourcesFit(strategy=ScoringStrategy(resources=(("cpu", 3), (GPU, 2), ("pods", 1)))),
)


@given(allocatables, st.lists(resources, max_size=3), st.none() | resources)
def test_one_row_is_judged_as_the_plugin_judges_it(
    allocatable: dict[str, str], held: list[dict[str, str]], asked: dict[str, str] | None
) -> None:
    others = [_asking(f"o{number}", some, on="n") for number, some in enumerate(held)]
    nodes = make_columns([Node(uid="u", name="n", allocatable=allocatable)], others)
    pod, state = _asking("p", asked), CycleState()
    kind = nodes.pod_class(pod)
    nodes.resource_row(GPU)
    for fit in FITS:
        fits = row_filter(fit, kind, nodes)
        assert fits is not None
        if fits(0):
            assert fit.filter(state, pod, nodes).tolist() == [0]
        elif GPU not in (asked or {}) and "100T" not in allocatable.values():
            assert fit.filter(state, pod, nodes).tolist() != [0]
    known, huge = 0, "100T" in {*allocatable.values(), *(asked or {}).values()}
    for plugin in (*FITS, *BALANCES):
        of_row = row_score(plugin, kind, nodes)
        score = None if of_row is None else of_row(0)
        if score is not None:
            known += 1
            assert score == plugin.score(state, pod, nodes)[0]
    assert known >= 3 or huge or any("100T" in some.values() for some in held)


def test_a_plugin_that_is_not_known_must_be_asked() -> None:

    nodes = make_columns([])
    kind = nodes.pod_class(make_pod())
    assert row_filter(Room(), kind, nodes) is None
    assert row_score(Room(), kind, nodes) is None


def _asking(name: str, asked: dict[str, str] | None, on: str = "") -> Pod:
    container = Container(name="c", requests=asked)
    return make_pod(name, on=on, containers=(container,))
