"""Each way in which an attempt can end, and what is left behind."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from decklog.core.cache import Cache
from decklog.core.errors import IllegalTransition
from decklog.core.framework.config import ProfileConfig, SchedulerConfig
from decklog.core.framework.interface import PostFilterResult
from decklog.core.framework.points import make_profile
from decklog.core.framework.status import (
    SUCCESS,
    Code,
    Status,
    error,
    unresolvable,
    unschedulable,
    wait,
)
from decklog.core.nominator import Nominator
from decklog.core.plan import feasible_nodes_to_find
from decklog.core.schedule import Engine, Failed, Outcome, Placed
from decklog.events.facts import PodAssumed, PodRef, PodUnschedulable, Rejection
from decklog.objects.node import ContainerImage
from decklog.objects.pod import Pod
from tests.unit.core.columns_builders import make_cache, make_node, make_pod
from tests.unit.core.small_plugins import Answer, Book, Cordon, Crowd, Pick, Rank, Room

POINTS = {
    "preFilter": ("Pick", "Room"),
    "filter": ("Cordon", "Room"),
    "preScore": ("Rank",),
    "score": ("Room", "Rank"),
}
REF = PodRef(uid="uid-p", namespace="default", name="p")
NODES = [make_node(name) for name in ("a", "b", "c")]


def make_engine(
    cache: Cache,
    *plugins: Any,
    points: Mapping[str, tuple[str, ...]] | None = None,
    percentage: int = 100,
    own_percentage: int | None = None,
) -> Engine:
    """Return an engine of the small plugins, and of these at the points that they have here."""
    own = (Cordon(), Room(), Rank(), Pick(), *plugins)
    config = ProfileConfig(
        scheduler_name="default-scheduler",
        points={**POINTS, **(points or {})},
        percentage_of_nodes_to_score=own_percentage,
    )
    profile = make_profile(config, {plugin.name: plugin for plugin in own})
    scheduler = SchedulerConfig(percentage_of_nodes_to_score=percentage, profiles=(config,))
    return Engine(scheduler, cache, {config.scheduler_name: profile}, Nominator())


def attempt(engine: Engine, pod: Pod | None = None) -> Outcome:
    return engine.attempt(pod or make_pod("p"), attempt=1)


def placed(outcome: Outcome) -> Placed:
    assert isinstance(outcome, Placed), outcome
    return outcome


def failed(outcome: Outcome) -> Failed:
    assert isinstance(outcome, Failed), outcome
    return outcome


def test_the_pod_is_assumed_where_it_goes() -> None:
    nodes = [make_node("a", cpu="2"), make_node("b", cpu="8"), make_node("c", unschedulable=True)]
    cache = make_cache(nodes)
    got = placed(attempt(make_engine(cache)))
    assert (got.node, got.feasible_count, got.evaluated_count, got.tie_count) == ("b", 2, 3, 1)
    assert [(score.node, score.total, score.scores) for score in got.top] == [
        ("b", 98, (98, None)),
        ("a", 95, (95, None)),
    ]
    assert got.rejected == (Rejection("Cordon", 3, ("node(s) were cordoned",), 1, ("c",)),)
    assert cache.is_assumed("uid-p")


def test_one_feasible_node_is_not_scored() -> None:
    cache = make_cache([make_node("a"), make_node("b", unschedulable=True)])
    got = placed(attempt(make_engine(cache)))
    assert [(score.node, score.scores) for score in got.top] == [("a", ())]
    assert got.tie_count == 1


def test_rejections_are_counted_by_first_plugin_code_and_reasons() -> None:
    nodes = [
        make_node("a", pods=0),
        make_node("b", cpu="50m", unschedulable=True),
        make_node("c", cpu="50m"),
        make_node("d", cpu="50m"),
    ]
    got = failed(attempt(make_engine(make_cache(nodes))))
    assert got.rejected == (
        Rejection("Cordon", 3, ("node(s) were cordoned",), 1, ("b",)),
        Rejection("Room", 2, ("Insufficient cpu",), 2, ("c",)),
        Rejection("Room", 2, ("Too many pods",), 1, ("a",)),
    )
    assert (got.reason, got.node_count, got.absent_count) == ("Unschedulable", 4, 0)
    assert got.unschedulable_plugins == ("Cordon", "Room")
    assert got.nominate == ""


def test_no_nodes() -> None:
    got = failed(attempt(make_engine(make_cache([], [make_pod("x", on="ghost")]))))
    assert got == Failed(error="no nodes available to schedule pods")


@pytest.mark.parametrize(
    ("status", "want"),
    [
        pytest.param(
            unresolvable("no such claim"),
            Failed(
                node_count=3,
                absent=("no such claim",),
                absent_count=3,
                pre_filter_message="no such claim",
                unschedulable_plugins=("Answer",),
            ),
            id="rejected for the whole cluster",
        ),
        pytest.param(
            error("boom"),
            Failed(
                reason="SchedulerError",
                error='running PreFilter plugin "Answer": boom',
                node_count=3,
            ),
            id="error",
        ),
    ],
)
def test_pre_filter_ends_the_cycle(status: Status, want: Failed) -> None:
    points = {"preFilter": ("Room", "Answer")}
    assert (
        attempt(make_engine(make_cache(NODES), Answer(pre_filters=status), points=points)) == want
    )


def test_pre_filter_narrows_the_nodes() -> None:
    pod = make_pod("p", cpu="5", annotations={"nodes": "a,c,unknown"})
    got = failed(attempt(make_engine(make_cache(NODES)), pod))
    assert got.rejected == (Rejection("Room", 2, ("Insufficient cpu",), 2, ("a",)),)
    assert got.absent == ("node(s) didn't satisfy plugin(s) [Pick]",)
    assert (got.absent_count, got.unschedulable_plugins) == (1, ("Pick", "Room"))
    placed_pod = make_pod("q", annotations={"nodes": "c"})
    assert placed(attempt(make_engine(make_cache(NODES)), placed_pod)).node == "c"


@pytest.mark.parametrize(
    ("result", "status", "nominate", "message"),
    [
        pytest.param(
            PostFilterResult(nominate="b", victims=(make_pod("v"),)),
            SUCCESS,
            "b",
            "",
            id="room made",
        ),
        pytest.param(None, unschedulable("preemption: no"), None, "preemption: no", id="keep"),
        pytest.param(
            PostFilterResult(nominate=""), unschedulable("none"), "", "none", id="nothing helps"
        ),
        pytest.param(None, error("not found"), None, "not found", id="error"),
    ],
)
def test_post_filter(
    result: PostFilterResult | None, status: Status, nominate: str | None, message: str
) -> None:
    plugin = Answer(post_filter_result=result, post_filters=status)
    engine = make_engine(make_cache(NODES), plugin, points={"postFilter": ("Answer",)})
    got = failed(attempt(engine, make_pod("p", cpu="5")))
    assert (got.nominate, got.post_filter_message) == (nominate, message)
    assert got.victims == result
    assert (got.reason, got.unschedulable_plugins) == ("Unschedulable", ("Room",))
    assert plugin.codes == [int(Code.UNSCHEDULABLE)] * 3


def test_post_filter_sees_nodes_that_were_not_looked_at_as_beyond_help() -> None:
    plugin = Answer(post_filters=unschedulable())
    engine = make_engine(make_cache(NODES), plugin, points={"postFilter": ("Answer",)})
    attempt(engine, make_pod("p", cpu="5", annotations={"nodes": "b"}))
    assert plugin.codes == [3, 2, 3]


def test_a_filter_that_fails_fails_the_cycle() -> None:
    plugin = Answer(filters=error("boom"))
    engine = make_engine(make_cache(NODES), plugin, points={"filter": ("Cordon", "Answer")})
    assert attempt(engine) == Failed(
        reason="SchedulerError", error='running "Answer" filter plugin: boom', node_count=3
    )
    all_cordoned = make_cache([replace(node, unschedulable=True) for node in NODES])
    engine = make_engine(all_cordoned, plugin, points={"filter": ("Cordon", "Answer")})
    assert failed(attempt(engine)).reason == "Unschedulable"


@pytest.mark.parametrize("points", [{"score": ("Answer",)}, {"score": ("Room", "Answer")}])
def test_a_score_out_of_range_fails_the_cycle(points: dict[str, tuple[str, ...]]) -> None:
    engine = make_engine(make_cache(NODES), Answer(scores=101), points=points)
    assert failed(attempt(engine)).error == (
        'applying score defaultWeights on Score plugins: plugin "Answer" returns an invalid '
        "score 101, it should in the range of [0, 100] after normalizing"
    )


@pytest.mark.parametrize(
    ("reserves", "permits", "want"),
    [
        pytest.param(
            unschedulable("taken"),
            SUCCESS,
            Failed(
                node_count=1,
                rejected=(Rejection("Book", 2, ("taken",), 1, ("a",)),),
                unschedulable_plugins=("Book",),
            ),
            id="reserve rejects",
        ),
        pytest.param(
            error("boom"),
            SUCCESS,
            Failed(reason="SchedulerError", error='running Reserve plugin "Book": boom'),
            id="reserve fails",
        ),
        pytest.param(
            SUCCESS,
            Status(Code.PENDING, ("later",)),
            Failed(
                node_count=1,
                rejected=(Rejection("Book", 6, ("later",), 1, ("a",)),),
                unschedulable_plugins=("Book",),
                pending_plugins=("Book",),
            ),
            id="permit rejects",
        ),
        pytest.param(
            SUCCESS,
            error("boom"),
            Failed(reason="SchedulerError", error='running Permit plugin "Book": boom'),
            id="permit fails",
        ),
    ],
)
def test_what_reserve_and_permit_refuse_is_undone(
    reserves: Status, permits: Status, want: Failed
) -> None:
    book = Book(reserves=reserves, permits=permits)
    cache = make_cache(NODES[:1])
    engine = make_engine(cache, book, points={"reserve": ("Book",), "permit": ("Book",)})
    assert attempt(engine) == want
    assert not cache.assumed
    assert not cache.columns.requested.any()
    assert book.log[-1] == "unreserve p a"
    assert cache.objects("Reservation") == {}


def test_permit_may_let_the_pod_wait() -> None:
    book = Book(permits=wait(), timeout_ms=60 * 60 * 1000)
    cache = make_cache(NODES[:1])
    engine = make_engine(cache, book, points={"reserve": ("Book",), "permit": ("Book",)})
    got = placed(attempt(engine))
    assert got.waits == (("Book", 15 * 60 * 1000),)
    assert got.plan == {"Book": {"room": "a"}}
    assert cache.is_assumed("uid-p")
    assert cache.objects("Reservation") == {"uid-p": ("a", got.plan)}
    assert list(engine.unreserve(PodRef(uid="uid-p", namespace="x", name="p"), "a", got.plan)) == []
    assert book.log[-1] == "unreserve p a"


def test_a_pod_in_the_cache_is_not_assumed_again() -> None:
    cache = make_cache(NODES, [make_pod("p", on="a")])
    assert failed(attempt(make_engine(cache))).error == (
        "pod uid-p(default/p) is in the cache, so can't be assumed"
    )


def test_the_nominated_node_is_taken_if_it_fits() -> None:
    cache = make_cache([*NODES, make_node("big", cpu="64")])
    got = placed(attempt(make_engine(cache), make_pod("p", nominated_node_name="b")))
    assert (got.node, got.feasible_count, got.evaluated_count) == ("b", 1, 1)
    assert got.rejected == ()


def test_a_nominated_node_outside_of_the_narrowed_ones_is_tried_and_named() -> None:
    pod = make_pod("p", cpu="5", annotations={"nodes": "a"}, nominated_node_name="c")
    got = failed(attempt(make_engine(make_cache(NODES)), pod))
    assert got.rejected == (Rejection("Room", 2, ("Insufficient cpu",), 2, ("c",)),)
    assert got.absent == ("node(s) didn't satisfy plugin(s) [Pick Room]",)
    assert got.absent_count == 1


def test_sampling_stops_when_enough_is_found_and_goes_on_from_there() -> None:
    nodes = [make_node(f"n{number:03}", unschedulable=number % 2 == 1) for number in range(300)]
    engine = make_engine(make_cache(nodes), percentage=5)
    got = placed(attempt(engine))
    assert (got.feasible_count, got.evaluated_count) == (100, 200)
    engine.follow(assumed("p", got), make_pod("p"))
    assert engine.start_index == 200
    again = placed(attempt(engine, make_pod("q")))
    assert (again.feasible_count, again.evaluated_count) == (100, 200)
    engine.follow(assumed("q", again), make_pod("q"))
    assert engine.start_index == 100


def assumed(name: str, got: Placed) -> PodAssumed:
    return PodAssumed(
        pod=PodRef(uid=f"uid-{name}", namespace="default", name=name),
        node=got.node,
        feasible_count=got.feasible_count,
        evaluated_count=got.evaluated_count,
    )


@pytest.mark.parametrize(
    ("decision", "nominated", "want"),
    [
        pytest.param(PodUnschedulable(pod=REF, node_count=3), "", 2, id="all nodes were looked at"),
        pytest.param(
            PodUnschedulable(pod=REF, node_count=3, absent_count=2), "", 0, id="only one was"
        ),
        pytest.param(PodUnschedulable(pod=REF, node_count=3, error="boom"), "", 2, id="error"),
        pytest.param(PodUnschedulable(pod=REF, node_count=1), "", 2, id="rejected at Reserve"),
        pytest.param(
            PodAssumed(pod=REF, node="a", feasible_count=1, evaluated_count=2), "", 1, id="placed"
        ),
        pytest.param(
            PodAssumed(pod=REF, node="a", feasible_count=1, evaluated_count=1),
            "a",
            2,
            id="placed on the nominated node",
        ),
    ],
)
def test_following_a_decision_moves_the_start_index(
    decision: PodAssumed | PodUnschedulable, nominated: str, want: int
) -> None:
    engine = make_engine(make_cache(NODES))
    engine.start_index = 2
    engine.follow(decision, make_pod("p", nominated_node_name=nominated))
    assert engine.start_index == want


def test_following_decisions_leaves_the_same_numbers_behind_as_deciding_them() -> None:
    image = ContainerImage(names=("web:1",), size_bytes=100)
    counts = []
    for is_leader in (True, False):
        cache = make_cache([make_node("a", images=(image,))])
        engine = make_engine(cache)
        for number in range(2):
            pod = make_pod(f"p{number}")
            got = placed(attempt(engine, pod)) if is_leader else None
            node = "a" if got is None else got.node
            decision = PodAssumed(pod=REF, node=node, feasible_count=1, evaluated_count=1)
            engine.follow(decision, pod)
            if not is_leader:
                engine.assume(pod, node, {})
            cache.add_node(make_node(f"b{number}", unschedulable=True, images=(image,)))
        state = cache.columns.image_state("web:1")
        assert state is not None
        counts.append(state[1].tolist())
    assert counts[0] == counts[1]


def test_without_scores_the_first_node_that_fits_is_enough() -> None:
    nodes = [make_node("a", unschedulable=True), make_node("b"), make_node("c")]
    engine = make_engine(make_cache(nodes), points={"score": (), "preScore": ()})
    got = placed(attempt(engine))
    assert (got.node, got.feasible_count, got.evaluated_count) == ("b", 1, 2)


@pytest.mark.parametrize(
    ("nodes", "percentage", "want"),
    [
        (10, 0, 10),
        (100, 0, 100),
        (250, 0, 120),
        (1000, 0, 420),
        (1000, 40, 400),
        (5000, 0, 500),
        (6000, 0, 300),
        (6000, 40, 2400),
        (15000, 0, 750),
        (300, 5, 100),
        (300, 100, 300),
    ],
)
def test_feasible_nodes_to_find(nodes: int, percentage: int, want: int) -> None:
    assert feasible_nodes_to_find(nodes, percentage) == want


def test_scores_are_there_for_whoever_asks() -> None:
    engine = make_engine(make_cache([make_node("a"), make_node("b", unschedulable=True)]))
    result = engine.decide(make_pod("p"), attempt=1)
    assert result.scored is None
    assert result.found is not None
    scored = engine.scores(result, result.found.rows())
    assert scored.totals.tolist() == [97]


def test_scores_that_cannot_be_had_say_why() -> None:
    engine = make_engine(
        make_cache(NODES), Answer(pre_scores=error("boom")), points={"preScore": ("Answer",)}
    )
    result = engine.decide(make_pod("p"), attempt=1)
    assert result.found is not None
    scored = engine.scores(result, result.found.rows())
    assert scored.failure is not None
    assert scored.failure.message == 'running PreScore plugin "Answer": boom'


def test_a_snapshot_that_is_not_consistent_fails_the_cycle() -> None:
    cache = make_cache(NODES)
    with pytest.raises(IllegalTransition):
        cache.remove_node(replace(NODES[1], labels={"topology.kubernetes.io/zone": "z"}))
    cache.add_node(make_node("d"))
    got = failed(attempt(make_engine(cache)))
    assert got.reason == "SchedulerError"
    assert got.error.startswith("snapshot state is not consistent")


def test_a_profile_may_have_its_own_percentage() -> None:
    nodes = [make_node(f"n{number:03}") for number in range(200)]
    engine = make_engine(make_cache(nodes), percentage=100, own_percentage=50)
    assert placed(attempt(engine)).feasible_count == 100


def test_post_filter_is_asked_also_where_pre_filter_has_rejected_the_pod() -> None:
    """Unschedulable, not beyond help: no node was looked at, and each may be."""
    plugin = Answer(pre_filters=unschedulable("later"), post_filters=unschedulable())
    points = {"preFilter": ("Room", "Answer"), "postFilter": ("Answer",)}
    got = failed(attempt(make_engine(make_cache(NODES), plugin, points=points)))
    assert plugin.codes == [2, 2, 2]
    assert got.pre_filter_message == "later"


def test_a_nominated_node_whose_filter_fails_is_not_the_one_that_was_tried() -> None:
    plugin = Answer(filters=error("boom"))
    engine = make_engine(make_cache(NODES), plugin, points={"filter": ("Answer",)})
    got = failed(attempt(engine, make_pod("p", nominated_node_name="b")))
    assert got.error == 'running "Answer" filter plugin: boom'


def test_deciding_leaves_the_cache_as_it_is() -> None:
    cache = make_cache(NODES)
    engine = make_engine(cache)
    position = cache.columns.touched.position
    first, second = (engine.decide(make_pod("p"), attempt=1).node for _ in range(2))
    assert first == second
    assert cache.columns.touched.position == position
    assert (cache.pod_count, engine.start_index) == (0, 0)


def test_classes_are_forgotten_by_least_recent_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decklog.core.verdicts.CLASSES_MAX", 2)
    engine = make_engine(make_cache(NODES))
    for cpu in ("100m", "200m", "100m", "300m", "100m", "200m"):
        engine.decide(make_pod("p", cpu=cpu), attempt=1)
    kept = engine.verdicts
    assert (len(kept), kept.hits, kept.misses, kept.evictions) == (2, 2, 4, 2)
    assert kept.size_bytes == sum(one.size_bytes for one in kept._kept.values())


def test_the_gate_names_the_plugin_that_keeps_the_pod_out() -> None:
    held, other = Answer(name="Held", pre_enqueues=unresolvable("no")), Answer()
    engine = make_engine(make_cache(), held, other, points={"preEnqueue": ("Answer", "Held")})
    assert engine.gate(make_pod("p")) == "Held"
    assert engine.gate(make_pod("p"), "Answer") == "Held"
    assert engine.gate(make_pod("p", scheduler_name="other")) == ""
    assert make_engine(make_cache()).gate(make_pod("p")) == ""


def test_a_plugin_that_says_nothing_of_what_it_reads_is_asked_every_time() -> None:
    cache = make_cache(NODES)
    points = {"filter": ("Room", "Crowd"), "preFilter": ("Room", "Crowd")}
    engine = make_engine(cache, Crowd(limit=1), points=points)
    nodes = {placed(attempt(engine, make_pod(f"p{number}"))).node for number in range(3)}
    assert nodes == {"a", "b", "c"}
    assert failed(attempt(engine, make_pod("p3"))).unschedulable_plugins == ("Crowd",)
