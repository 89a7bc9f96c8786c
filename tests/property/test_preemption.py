"""What preemption finds, and what nominated pods keep free, equal a computation from nothing.

The plain reading makes a new cluster for every question, in which the pods in question are there or
are not. The engine answers from sums, from a copy of one row, and from what it remembers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decklog.core.cache import Cache
from decklog.core.framework.config import DEFAULT_PROFILE
from decklog.core.framework.interface import Candidate
from decklog.core.framework.resolve import default_config
from decklog.core.framework.status import SUCCESS, Code, Status
from decklog.core.nominator import Nominator
from decklog.core.plugins import default_preemption
from decklog.core.plugins.default_preemption import NOT_HELPFUL
from decklog.core.plugins.registry import build_profiles
from decklog.core.plugins.victims import Budget, budgets, select_victims
from decklog.core.row_loads import KeptLoads
from decklog.core.schedule import CycleResult, Engine
from decklog.core.touch_log import TouchLog
from decklog.objects.node import Node
from decklog.objects.pod import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from decklog.objects.policy import PodDisruptionBudget
from decklog.objects.selectors import LabelSelector
from tests.unit.core.columns_builders import make_cache, make_node, make_pod

CONFIG: Final = default_config()
PROFILES: Final = build_profiles(CONFIG)
NAMES: Final = ("a", "b", "c")
WEB: Final = LabelSelector(match_labels={"app": "web"})
APART: Final = Affinity(
    pod_anti=PodAffinity(
        required=(PodAffinityTerm(topology_key="kubernetes.io/hostname", label_selector=WEB),)
    )
)
SPREAD: Final = TopologySpreadConstraint(
    max_skew=1,
    topology_key="kubernetes.io/hostname",
    when_unsatisfiable="DoNotSchedule",
    label_selector=WEB,
)
BUDGET: Final = PodDisruptionBudget(
    uid="pdb", namespace="default", name="pdb", selector=WEB, disruptions_allowed=1
)


class Step(NamedTuple):
    """One thing that happens; the numbers choose among what is possible."""

    kind: str
    node: int
    shape: int
    priority: int


KINDS: Final = ("bind", "bind", "bind", "delete", "nominate", "nominate", "forget", "try", "try")
steps = st.builds(
    Step, st.sampled_from(KINDS), st.integers(0, 2), st.integers(0, 5), st.integers(0, 3)
)
histories = st.lists(steps, min_size=6, max_size=25)


@dataclass
class History:
    """A cluster that things happen to, and one engine that lives through all of it."""

    nodes: Sequence[Node]
    cache: Cache
    nominator: Nominator = field(default_factory=Nominator)
    engine: Engine = field(init=False)

    def __post_init__(self) -> None:
        self.cache.set_object("PodDisruptionBudget", "default/pdb", BUDGET)
        self.engine = Engine(CONFIG, self.cache, PROFILES, self.nominator)

    @property
    def pods(self) -> list[Pod]:
        columns = self.cache.columns
        return [pod for row in range(len(columns)) for pod in columns.pods(row)]

    @property
    def nominated(self) -> list[Pod]:
        return [pod for name in NAMES for pod in self.nominator.pods_on(name)]

    def happen(self, step: Step, number: int) -> None:
        pod = _pod(number, step)
        match step.kind:
            case "bind":
                self._bind(replace(pod, node_name=NAMES[step.node]))
            case "delete" if pods := self.pods:
                self.cache.remove_pod(pods[step.shape % len(pods)])
            case "nominate":
                self.nominator.add(pod, NAMES[step.node])
            case "forget" if nominated := self.nominated:
                self.nominator.delete(nominated[step.shape % len(nominated)].uid)

    def _bind(self, pod: Pod) -> None:
        """Two that use one port are left out: as upstream, removing one of them frees it."""
        ports = [port for container in pod.containers for port in container.ports]
        same = [one for one in self.pods if one.node_name == pod.node_name and ports]
        if not any(one.containers[0].ports for one in same):
            self.cache.add_pod(pod)


@dataclass
class PlainNode:
    """One node of a cluster that is made anew for every question."""

    history: History
    pod: Pod
    name: str
    pods: list[Pod]
    skipped: frozenset[str]
    """Plugins that PreFilter took out: as upstream, they do not hear of pods that may come."""

    def add(self, pod: Pod) -> None:
        self.pods = [*self.pods, pod]

    def remove(self, pod: Pod) -> None:
        self.pods = [other for other in self.pods if other.uid != pod.uid]

    def status(self) -> Status:
        beside = [
            replace(other, node_name=self.name)
            for other in self.history.nominator.pods_on(self.name)
            if other.priority >= self.pod.priority and other.uid != self.pod.uid
        ]
        if beside:
            status = self._status(beside)
            if not status.is_success:
                return status
        return self._status([])

    def _status(self, beside: Sequence[Pod]) -> Status:
        others = [pod for pod in self.history.pods if pod.node_name != self.name]
        cache = make_cache(self.history.nodes, [*others, *self.pods, *beside])
        found = Engine(CONFIG, cache, PROFILES, Nominator()).decide(self.pod, attempt=1).found
        row = cache.columns.row_of(self.name)
        assert found is not None
        assert row is not None
        status: Status = found.reasons.statuses[found.reason[row]]
        return SUCCESS if status.plugin in self.skipped else status


@given(histories)
def test_it_equals_a_computation_from_nothing(history: list[Step]) -> None:
    assert _first_difference(history) is None


FULL: Final = [Step("bind", node, 2, 0) for node in (0, 1, 2)]
TRY: Final = Step("try", 0, 2, 2)


@pytest.mark.parametrize(
    "broken", [pytest.param(TouchLog, id="a touch is lost"), pytest.param(KeptLoads, id="a sum")]
)
def test_what_is_remembered_for_too_long_is_found(
    broken: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = [*FULL, TRY, Step("bind", 0, 2, 3), Step("delete", 0, 1, 0), TRY] * 2
    assert _first_difference(history) is None
    if broken is TouchLog:
        monkeypatch.setattr(TouchLog, "append", lambda self, row: None)
    else:
        lower = KeptLoads.lower
        monkeypatch.setattr(KeptLoads, "lower", lambda self, priority: lower(self, priority - 9))
    assert _first_difference(history) is not None


def test_evicting_an_equal_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    history = [*FULL, Step("bind", 0, 0, 2), TRY]
    assert _first_difference(history) is None

    def all_of_it(
        node: PlainNode, name: str, pod: Pod, limits: Sequence[Budget]
    ) -> Candidate | Status:
        return Candidate(node=name, victims=tuple(node.pods))

    monkeypatch.setattr(default_preemption, "select_victims", all_of_it)
    assert "evicts" in str(_first_difference(history))


def _first_difference(steps: Sequence[Step]) -> str | None:
    nodes = [make_node(name, labels={"kubernetes.io/hostname": name}) for name in NAMES]
    history = History(nodes, make_cache(nodes))
    for number, step in enumerate(steps):
        history.happen(step, number)
        if step.kind == "try":
            difference = _difference(history, _pod(number, step))
            if difference is not None:
                return f"step {number}: {difference}"
    return None


def _difference(history: History, pod: Pod) -> str | None:
    result = history.engine.decide(pod, attempt=1)
    found = result.found
    assert found is not None
    got: dict[str, Status] = {}
    want: dict[str, Status] = {}
    for name in NAMES:
        row = history.cache.columns.row_of(name)
        assert row is not None
        got[name] = found.reasons.statuses[found.reason[row]]
        want[name] = _plain(history, result, name).status()
    if got != want:
        return f"filters say {got} instead of {want}"
    return _preemption_difference(history, result, want)


def _preemption_difference(
    history: History, result: CycleResult, statuses: Mapping[str, Status]
) -> str | None:
    if result.post_filter is None:
        return None
    pod, made = result.pod, result.post_filter.result
    assert made is not None
    for candidate in made.candidates:
        if any(victim.priority >= pod.priority for victim in candidate.victims):
            return f"{pod.name} evicts {candidate.victims}"
    limits = budgets({BUDGET.name: BUDGET})
    want: dict[str, Candidate] = {}
    reasons: dict[str, int] = {}
    for name, status in statuses.items():
        if status.code is not Code.UNSCHEDULABLE:
            reasons[NOT_HELPFUL] = reasons.get(NOT_HELPFUL, 0) + 1
            continue
        found = select_victims(_plain(history, result, name), name, pod, limits)
        if isinstance(found, Candidate):
            want[name] = found
        else:
            for reason in found.reasons:
                reasons[reason] = reasons.get(reason, 0) + 1
    got = {one.node: one for one in made.candidates}
    if got != want:
        return f"candidates are {got} instead of {want}"
    parts = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    message = result.post_filter.status.message
    return None if want or f": {parts}." in message else f"{message!r} does not say {parts!r}"


def _plain(history: History, result: CycleResult, name: str) -> PlainNode:
    row = history.cache.columns.row_of(name)
    assert row is not None
    pods = list(history.cache.columns.pods(row))
    return PlainNode(history, result.pod, name, pods, frozenset(result.state.skip_filter))


def _pod(number: int, step: Step) -> Pod:
    """Shapes: small, half a node, three quarters, a port, apart from its like, spread."""
    cpu = ("500m", "2", "3", "2", "1", "1")[step.shape]
    is_web = step.shape in (1, 4, 5)
    return make_pod(
        f"p{number}",
        cpu=cpu,
        host_port=80 if step.shape == 3 else 0,
        priority=step.priority,
        labels={"app": "web"} if is_web else {},
        affinity=APART if step.shape == 4 else None,
        topology_spread_constraints=(SPREAD,) if step.shape == 5 else (),
        scheduler_name=DEFAULT_PROFILE,
        start_time=f"2026-01-01T00:00:{number:02}Z",
    )
