"""Scores that are kept equal scores that are computed anew, whatever changed since."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from decklog.core import verdicts
from decklog.core.cache import Cache
from decklog.core.columns import NodeColumns
from decklog.core.framework.interface import CycleState, Reads, Scores
from decklog.core.schedule import Engine
from decklog.objects.pod import Pod
from tests.unit.core.columns_builders import make_cache, make_node, make_pod
from tests.unit.core.small_plugins import Crowd, Rank
from tests.unit.core.test_schedule import make_engine

NAMES = ("a", "b", "c", "d")


@dataclass(frozen=True, slots=True)
class Load:
    """A normalised score of what is on the node."""

    name: str = "Load"
    reads: Reads = Reads.RESOURCES

    def score(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> Scores:
        scores: Scores = nodes.requested[0] // 100
        return scores

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        highest = int(scores.max())
        return scores if highest == 0 else scores * 100 // highest


@dataclass(frozen=True, slots=True)
class Share:
    """A score that is not normalised; with an offset it may be outside of its range."""

    offset: int = 0
    name: str = "Share"
    reads: Reads = Reads.RESOURCES

    def score(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> Scores:
        scores: Scores = nodes.requested[0] // 100 + self.offset
        return scores


@dataclass(frozen=True, slots=True)
class Below:
    """What a normaliser makes of a score may be outside of its range, too."""

    name: str = "Below"
    reads: Reads = Reads.RESOURCES

    def score(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> Scores:
        scores: Scores = nodes.requested[0] // 100
        return scores

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        return scores - 2


Change = Callable[[Cache], None]


def place(name: str, node: str, cpu: str = "100m") -> Change:
    return lambda cache: cache.assume_pod(make_pod(name, cpu=cpu), node)


def forget(name: str) -> Change:
    return lambda cache: cache.forget_pod(f"uid-{name}")


def cordon(*names: str, on: bool = True) -> Change:
    def change(cache: Cache) -> None:
        for name in names:
            node = make_node(name, unschedulable=on)
            cache.update_node(make_node(name, unschedulable=not on), node)

    return change


def come(*names: str) -> Change:
    def change(cache: Cache) -> None:
        for name in names:
            cache.add_node(make_node(name))

    return change


def all_of(*changes: Change) -> Change:
    def change(cache: Cache) -> None:
        for one in changes:
            one(cache)

    return change


STORY: tuple[Change, ...] = (
    place("p1", "a"),
    place("p2", "a"),
    place("p3", "b", "300m"),
    forget("p1"),
    all_of(place("p4", "c"), place("p5", "d", "200m")),
    cordon("b"),
    place("p6", "b"),
    cordon("b", on=False),
    cordon(*NAMES),
    all_of(place("p7", "a"), place("p8", "b")),
    cordon(*NAMES, on=False),
    come(*(f"new-{number}" for number in range(9))),
    place("p9", "new-3", "900m"),
    all_of(forget("p9"), forget("p3"), forget("p8")),
    all_of(*(place(f"q{number}", f"new-{number}") for number in range(9))),
)
PLUGINS = {
    "normalised": (Load(),),
    "as it is": (Share(),),
    "both": (Load(), Share()),
    "equal on all nodes": (Rank(), Load()),
    "too high at times": (Share(offset=97),),
    "too low at times": (Share(offset=-3),),
    "normalised to too low": (Below(),),
    "of the cluster and too high": (Crowd(limit=9), Share(offset=97)),
}


def totals(engine: Engine, pod: Pod) -> Any:
    result = engine.decide(pod, attempt=1)
    scored = None if result.scored is None else result.scored.totals.tolist()
    return result.node, result.failure, result.top, scored


def first_two(engine: Engine, pod: Pod) -> Any:
    """Return what the first two nodes that fit would score if no others did."""
    result = engine.decide(pod, attempt=1)
    if result.found is None or result.found.feasible_count < 2:
        return None
    scored = engine.scores(result, result.found.rows()[:2])
    return scored.totals.tolist(), scored.failure


@pytest.mark.parametrize(
    ("few_rows", "all_from"),
    [
        pytest.param(0, 99, id="all rows"),
        pytest.param(0, -1, id="touched rows at once"),
        pytest.param(99, -1, id="touched rows one by one"),
    ],
)
@pytest.mark.parametrize("plugins", PLUGINS.values(), ids=PLUGINS.keys())
def test_kept_scores_equal_fresh_ones(
    monkeypatch: pytest.MonkeyPatch, plugins: tuple[Any, ...], few_rows: int, all_from: int
) -> None:
    monkeypatch.setattr(verdicts, "FEW_ROWS", few_rows)
    monkeypatch.setattr(verdicts, "ALL_FROM", all_from)
    points = {"score": tuple(plugin.name for plugin in plugins), "preScore": ()}
    cache = make_cache([make_node(name) for name in NAMES])
    kept = make_engine(cache, *plugins, points=points)
    pod = make_pod("p", cpu="10m")
    assert totals(kept, pod) == totals(make_engine(cache, *plugins, points=points), pod)
    for change in STORY:
        change(cache)
        cache.update_snapshot()
        fresh = make_engine(cache, *plugins, points=points)
        assert totals(kept, pod) == totals(fresh, pod)
        assert first_two(kept, pod) == first_two(fresh, pod)


def test_a_score_that_was_out_of_range_may_come_back_into_it() -> None:
    points = {"score": ("Share",), "preScore": ()}
    cache = make_cache([make_node(name) for name in NAMES])
    engine = make_engine(cache, Share(offset=99), points=points)
    pod = make_pod("p", cpu="10m")
    assert engine.decide(pod, attempt=1).failure is None
    cache.assume_pod(make_pod("q", cpu="300m"), "a")
    assert engine.decide(pod, attempt=1).failure is not None
    cache.forget_pod("uid-q")
    assert engine.decide(pod, attempt=1).failure is None


def test_only_a_node_that_can_be_taken_has_to_score_in_range() -> None:
    points = {"score": ("Share",), "preScore": ()}
    cordoned = replace(make_node("a"), unschedulable=True)
    cache = make_cache([cordoned, make_node("b"), make_node("c")], [make_pod("q", on="a", cpu="1")])
    engine = make_engine(cache, Share(offset=95), points=points)
    assert engine.decide(make_pod("p", cpu="10m"), attempt=1).failure is None
