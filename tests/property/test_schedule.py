"""What holds for every history of the cluster and every pod."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decklog.core import verdicts
from decklog.core.cache import Cache
from decklog.core.framework.config import DEFAULT_PROFILE, ProfileConfig, SchedulerConfig
from decklog.core.framework.points import Profile, make_profile
from decklog.core.framework.resolve import default_config
from decklog.core.nominator import Nominator
from decklog.core.plugins.registry import build_profiles
from decklog.core.schedule import CycleResult, Engine, Failed, Placed
from decklog.core.touch_log import TouchLog
from decklog.objects.node import ContainerImage, Node
from decklog.objects.pod import Affinity, NodeAffinity, Pod
from decklog.objects.selectors import (
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    Taint,
)
from tests.property.plain_cycle import PlainResult, plain_cycle
from tests.unit.core.columns_builders import make_cache, make_node, make_pod
from tests.unit.core.small_plugins import Book, Cordon, Crowd, Pick, Rank, Room

SEED: Final = 7
CONFIG: Final = ProfileConfig(
    scheduler_name="default-scheduler",
    points={
        "preFilter": ("Pick", "Room", "Crowd"),
        "filter": ("Cordon", "Crowd", "Room"),
        "preScore": ("Rank", "Crowd"),
        "score": ("Crowd", "Room", "Rank"),
        "reserve": ("Book",),
    },
    weights={"Crowd": 2, "Room": 1, "Rank": 3},
)
DEFAULT: Final = build_profiles(default_config())[DEFAULT_PROFILE]
LIKES_RANK: Final = Affinity(
    node=NodeAffinity(
        preferred=tuple(
            PreferredSchedulingTerm(
                weight=weight,
                preference=NodeSelectorTerm(
                    match_expressions=(
                        NodeSelectorRequirement(key="rank", operator="Gt", values=(str(weight),)),
                    )
                ),
            )
            for weight in (1, 3)
        )
    )
)
NODE_NAMES: Final = tuple(f"n{number}" for number in range(6))


class Step(NamedTuple):
    """One thing that happens; the numbers choose among what is possible."""

    kind: str
    one: int
    other: int


KINDS: Final = ("node", "node", "cordon", "remove", "bind", "delete", "forget", "try", "try", "try")
histories = st.lists(
    st.builds(Step, st.sampled_from(KINDS), st.integers(0, 5), st.integers(0, 5)),
    min_size=5,
    max_size=40,
)


@pytest.mark.parametrize(
    ("few_rows", "all_from"),
    [
        pytest.param(0, 99, id="all rows are asked about"),
        pytest.param(0, 0, id="touched rows are asked about at once"),
        pytest.param(99, 0, id="touched rows are asked about one by one"),
        pytest.param(2, 2, id="now so, now so"),
    ],
)
@given(history=histories)
def test_what_is_kept_equals_a_computation_from_nothing(
    few_rows: int, all_from: int, history: list[Step]
) -> None:
    """Walk through the history, and compare each attempt's cycle with the plain one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verdicts, "FEW_ROWS", few_rows)
        patch.setattr(verdicts, "ALL_FROM", all_from or -1)
        assert _first_difference(_profile(), history) is None
        assert _first_difference(DEFAULT, history) is None


def test_a_touch_that_is_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    history = [Step("node", 0, 1), Step("node", 1, 1), Step("try", 0, 0)] * 4
    assert _first_difference(_profile(), history) is None
    monkeypatch.setattr(TouchLog, "append", lambda self, row: None)
    assert _first_difference(_profile(), history) is not None


@given(st.lists(st.integers(0, 5), min_size=2, max_size=6, unique=True), st.integers(0, 5))
def test_the_order_of_nodes_changes_neither_verdicts_nor_scores(
    numbers: list[int], shape: int
) -> None:
    def decided(order: Sequence[int]) -> tuple[object, ...]:
        pods = [replace(_pod(90 + n, n), node_name=NODE_NAMES[n]) for n in sorted(numbers)]
        cache = make_cache([_node(n, n % 3) for n in order], pods)
        result = _engine(cache).decide(_pod(0, shape), attempt=1)
        groups = {(r.plugin, r.code, r.reasons, r.count) for r in result.rejected}
        return result.node, result.top, result.tie_count, groups

    assert decided(numbers) == decided(sorted(numbers)) == decided(sorted(numbers)[::-1])


@given(histories)
def test_no_node_holds_more_than_it_has_and_scores_are_in_range(history: list[Step]) -> None:
    cache = Cache()
    engine = _engine(cache)
    for number, step in enumerate(history):
        before = set(cache.assumed)
        outcome = _walk(cache, engine, step, number)
        if not isinstance(outcome, Placed):
            assert set(cache.assumed) <= before
            continue
        row = cache.columns.row_of(outcome.node)
        assert row is not None
        for score in outcome.top if len(outcome.top) > 1 else ():
            weights = dict(zip(CONFIG.points["score"], score.scores, strict=True))
            for name, part in weights.items():
                assert part is None or 0 <= part <= 100 * CONFIG.weights[name]
        assert (cache.columns.requested[:2, row] <= cache.columns.allocatable[:2, row]).all()
        assert cache.columns.pod_count[row] <= cache.columns.allowed_pods[row]


def _first_difference(profile: Profile, history: Sequence[Step]) -> str | None:
    cache = Cache()
    engine = _engine(cache, profile)
    for number, step in enumerate(history):
        if step.kind == "try" and cache.node_count:
            pod = _pod(number, step.one)
            cache.update_snapshot()
            if cache.columns.node_count:
                want = plain_cycle(profile, cache, pod, seed=SEED, attempt=1)
                difference = _difference(engine, engine.decide(pod, attempt=1), want)
                if difference is not None:
                    return f"step {number}: {difference}"
        _walk(cache, engine, step, number)
    return None


def _difference(engine: Engine, result: CycleResult, want: PlainResult) -> str | None:
    names = engine.cache.columns.names
    rejected, feasible = {}, set()
    if result.found is not None:
        found = result.found
        rejected = {names[r]: found.reasons.statuses[found.reason[r]] for r in found.rejected_rows}
        feasible = {names[row] for row in found.rows()}
    if rejected != want.rejected:
        return f"rejected: {rejected} instead of {want.rejected}"
    if feasible != want.feasible:
        return f"feasible: {feasible} instead of {want.feasible}"
    got = [score.node for score in result.top]
    if got != want.best or result.tie_count != want.tie_count:
        return f"best: {got} of {result.tie_count} instead of {want.best} of {want.tie_count}"
    for score in result.top if result.scored is not None else ():
        plugins = [plugin.name for plugin in result.profile.score]
        parts = dict(zip(plugins, score.scores, strict=True))
        plain = {name: want.parts.get(name, {}).get(score.node) for name in parts}
        if parts != plain or score.total != want.totals[score.node]:
            return f"scores of {score.node}: {score} instead of {plain}"
    return None


def _walk(cache: Cache, engine: Engine, step: Step, number: int) -> Placed | Failed | None:
    kind, one, other = step
    name = NODE_NAMES[one]
    row = cache.columns.row_of(name)
    if kind == "node":
        if row is None:
            cache.add_node(_node(one, other))
        else:
            cache.update_node(cache.columns.node(row), _node(one, other))
    elif kind == "cordon" and row is not None:
        node = cache.columns.node(row)
        cache.update_node(node, replace(node, unschedulable=not node.unschedulable))
    elif kind == "remove" and row is not None:
        cache.remove_node(cache.columns.node(row))
    elif kind == "bind":
        cache.add_pod(replace(_pod(number, other), node_name=name))
    elif kind == "delete":
        _delete(cache, one)
    elif kind == "forget" and cache.assumed:
        cache.forget_pod(cache.assumed[one % len(cache.assumed)])
    elif kind == "try":
        return engine.attempt(_pod(number, one), attempt=1)
    return None


def _delete(cache: Cache, which: int) -> None:
    columns = cache.columns
    pods = [pod for row in range(len(columns)) for pod in columns.pods(row)]
    bound = [pod for pod in pods if not cache.is_assumed(pod.uid)]
    if bound:
        cache.remove_pod(bound[which % len(bound)])


def _node(number: int, look: int) -> Node:
    name = NODE_NAMES[number]
    return make_node(
        name,
        cpu=str(1 + look % 3),
        pods=2 + look,
        labels={"rank": str(look)} if look else {},
        taints=(Taint(key="t", effect="PreferNoSchedule"),) * (look % 2),
        images=(ContainerImage(names=("web:1",), size_bytes=500 << 20),) * (look > 2),
    )


def _pod(number: int, shape: int) -> Pod:
    """Return a pod of one of six shapes, so that each plugin looks at some of them."""
    prefix = "pqr"[shape % 3]
    picked = {"nodes": "n1,n2,n3"} if shape == 5 else {}
    return make_pod(
        f"{prefix}{number}",
        cpu=f"{100 + 400 * (shape % 2)}m",
        memory="8Gi" if shape == 4 else "500Mi",
        host_port=80 if shape == 2 else 0,
        image="web:1" if shape == 1 else "",
        affinity=LIKES_RANK if shape == 3 else None,
        node_selector={} if shape > 2 else None,
        annotations=picked,
    )


def _profile() -> Profile:
    plugins = (Cordon(), Room(), Rank(), Crowd(), Pick(), Book())
    return make_profile(CONFIG, {plugin.name: plugin for plugin in plugins})


def _engine(cache: Cache, profile: Profile | None = None) -> Engine:
    profile = profile or _profile()
    config = SchedulerConfig(seed=SEED, profiles=(profile.config,))
    return Engine(config, cache, {CONFIG.scheduler_name: profile}, Nominator())
