"""What preemption says of a pod that fits nowhere, asked through whole cycles."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pytest

from decklog.core.columns import NodeColumns
from decklog.core.framework.config import DEFAULT_PROFILE
from decklog.core.framework.interface import CycleState, PostFilterResult, Reads, ReasonCodes
from decklog.core.framework.resolve import default_config, resolve
from decklog.core.framework.status import SUCCESS, Status, error
from decklog.core.nominator import Nominator
from decklog.core.plugins.registry import REGISTRY, build_profiles
from decklog.core.schedule import Engine, Failed
from decklog.core.select import mix, name_hash, salt
from decklog.objects.node import Node
from decklog.objects.pod import Pod, PodCondition
from decklog.objects.policy import PodDisruptionBudget
from decklog.objects.selectors import LabelSelector
from tests.unit.core.columns_builders import make_cache, make_node, make_pod

BY_SCHEDULER: Final = PodCondition(
    type="DisruptionTarget", status="True", reason="PreemptionByScheduler"
)
NODES: Final = [make_node(name) for name in ("a", "b", "c")]


def make_engine(
    nodes: Sequence[Node], pods: Sequence[Pod], *nominated: Pod, **arguments: Any
) -> Engine:
    config = resolve(
        {
            "percentageOfNodesToScore": 100,
            "profiles": [
                {
                    "schedulerName": DEFAULT_PROFILE,
                    "pluginConfig": [{"name": "DefaultPreemption", "args": arguments}],
                }
            ],
        }
    )
    nominator = Nominator()
    for pod in nominated:
        nominator.add(pod)
    return Engine(config, make_cache(nodes, pods), build_profiles(config), nominator)


def our_pod(name: str = "high", *, priority: int = 10, **fields: Any) -> Pod:
    return make_pod(name, priority=priority, scheduler_name=DEFAULT_PROFILE, **fields)


def failed(engine: Engine, pod: Pod, attempt: int = 1) -> Failed:
    outcome = engine.attempt(pod, attempt=attempt)
    assert isinstance(outcome, Failed)
    return outcome


def said(engine: Engine, pod: Pod) -> str:
    return failed(engine, pod).post_filter_message.removeprefix("no new claims to deallocate, ")


def made(engine: Engine, pod: Pod, attempt: int = 1) -> PostFilterResult:
    found = failed(engine, pod, attempt).victims
    assert found is not None
    assert found.victims
    return found


BIG: Final = our_pod(cpu="3")
LOW: Final = [make_pod(f"low-{node.name}", on=node.name, cpu="2") for node in NODES]


@pytest.mark.parametrize(
    ("nodes", "pods", "pod", "want"),
    [
        pytest.param(
            NODES,
            [replace(pod, priority=10) for pod in LOW],
            BIG,
            "0/3 nodes are available: 3 No preemption victims found for incoming pod.",
            id="nobody is of lower priority",
        ),
        pytest.param(
            NODES,
            LOW,
            our_pod(cpu="5"),
            "0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
            id="no node is big enough",
        ),
        pytest.param(
            [NODES[0], make_node("t", unschedulable=True)],
            [replace(LOW[0], priority=10)],
            BIG,
            "0/2 nodes are available: 1 No preemption victims found for incoming pod, "
            "1 Preemption is not helpful for scheduling.",
            id="a node that evicting cannot open",
        ),
        pytest.param(
            NODES[:1],
            [LOW[0], make_pod("peer", on="a", cpu="2", priority=10)],
            BIG,
            "0/1 nodes are available: 1 Insufficient cpu.",
            id="evicting is not enough",
        ),
        pytest.param(
            NODES,
            LOW,
            replace(BIG, preemption_policy="Never"),
            "not eligible due to preemptionPolicy=Never.",
            id="it must not",
        ),
        pytest.param(
            NODES[:1],
            [replace(LOW[0], deleted="2026-01-01T00:00:00Z", conditions=(BY_SCHEDULER,))],
            replace(BIG, nominated_node_name="a"),
            "not eligible due to a terminating pod on the nominated node.",
            id="its victims are on their way",
        ),
    ],
)
def test_nobody_is_evicted(nodes: list[Node], pods: list[Pod], pod: Pod, want: str) -> None:
    engine = make_engine(nodes, pods)
    assert said(engine, pod) == f"preemption: {want}"
    assert said(engine, pod) == f"preemption: {want}"


@pytest.mark.parametrize(
    "condition",
    [
        pytest.param((), id="deleted by somebody else"),
        pytest.param((replace(BY_SCHEDULER, status="False"), BY_SCHEDULER), id="the first counts"),
    ],
)
def test_others_that_terminate_are_not_waited_for(condition: tuple[PodCondition, ...]) -> None:
    leaving = replace(LOW[0], deleted="2026-01-01T00:00:00Z", conditions=condition)
    engine = make_engine(NODES[:1], [leaving])
    assert made(engine, replace(BIG, nominated_node_name="a")).victims == (leaving,)


def test_a_nominated_node_that_is_hopeless_now_is_not_waited_for() -> None:
    leaving = replace(LOW[0], deleted="2026-01-01T00:00:00Z", conditions=(BY_SCHEDULER,))
    engine = make_engine([make_node("a", unschedulable=True), NODES[1]], [leaving, LOW[1]])
    assert made(engine, replace(BIG, nominated_node_name="a")).nominate == "b"


def test_of_equal_nodes_the_hash_takes_one() -> None:
    engine = make_engine(NODES, LOW)
    for attempt in range(1, 6):
        found = made(engine, BIG, attempt)
        salted = salt(0, BIG.uid, attempt)
        assert found.nominate == min("abc", key=lambda name: mix(name_hash(name) ^ salted))
        assert (found.candidate_count, found.tie_count) == (3, 3)


def test_lower_nominations_on_the_node_are_cleared() -> None:
    waits = our_pod("waits", priority=5, nominated_node_name="a", cpu="1")
    equal = our_pod("equal", priority=10, nominated_node_name="a", cpu="1")
    engine = make_engine(NODES[:1], LOW[:1], waits, equal)
    assert made(engine, BIG).nominations_cleared == (waits,)


def test_room_that_is_nominated_to_an_equal_is_left() -> None:
    equal = our_pod("equal", nominated_node_name="a", cpu="2")
    engine = make_engine(NODES[:2], LOW, equal)
    assert made(engine, BIG).nominate == "b"
    assert made(engine, replace(BIG, priority=11)).candidate_count == 2


def test_enough_candidates_are_enough() -> None:
    """From the offset on, in the order of the list, without the nodes that cannot be one."""
    nodes = [make_node(f"n{number}") for number in range(10)]
    pods = [
        make_pod(f"p{number}", on=f"n{number}", cpu="2", priority=10 * (number % 2))
        for number in range(10)
    ]
    engine = make_engine(nodes, pods, minCandidateNodesPercentage=20, minCandidateNodesAbsolute=1)
    for attempt in range(1, 30):
        offset = salt(0, BIG.uid, attempt) % 10
        order = [*range(offset, 10), *range(offset)]
        want = [f"n{number}" for number in order if number % 2 == 0][:2]
        assert [one.node for one in made(engine, BIG, attempt).candidates] == want


def test_of_nodes_whose_victims_are_protected_no_more_are_kept_than_wanted() -> None:
    """As long as there is none without, the others are tried on: one of them may be better."""
    labelled = [replace(pod, labels={"app": "web"}) for pod in LOW]
    engine = make_engine(
        NODES, labelled, minCandidateNodesPercentage=1, minCandidateNodesAbsolute=1
    )
    budget = PodDisruptionBudget(
        uid="uid-web",
        namespace="default",
        name="web",
        selector=LabelSelector(match_labels={"app": "web"}),
        disruptions_allowed=0,
    )
    engine.cache.set_object("PodDisruptionBudget", "default/web", budget)
    found = made(engine, BIG)
    assert (len(found.candidates), found.pdb_violations) == (1, 1)


@dataclass(frozen=True, slots=True)
class FailsOnEmptyNodes:
    """A filter that can say nothing of a node without pods."""

    name: str = "FailsOnEmptyNodes"
    reads: Reads = Reads.RESOURCES
    statuses: Sequence[Status] = (SUCCESS, error("boom"))

    def filter(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> ReasonCodes:
        codes: ReasonCodes = (nodes.pod_count == 0).astype(np.uint16)
        return codes


def test_a_filter_that_fails_where_pods_would_be_gone_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry: Any = REGISTRY
    plugin = FailsOnEmptyNodes()
    monkeypatch.setitem(registry, plugin.name, lambda _args, _parity: plugin)
    config = default_config()
    [profile] = config.profiles
    points = {**profile.points, "filter": (*profile.points["filter"], plugin.name)}
    config = replace(config, profiles=(replace(profile, points=points),))
    cache = make_cache(NODES[:1], LOW[:1])
    engine = Engine(config, cache, build_profiles(config), Nominator())
    message = failed(engine, BIG).post_filter_message
    assert message == 'preemption: running "FailsOnEmptyNodes" filter plugin: boom'
