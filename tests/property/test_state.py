"""What holds of the scheduler's state for every order of events, answers, waits and decisions.

A story is a list of moves on a small cluster. `tell` makes facts of it: plausible ones, as an API
server and a binder would cause them, but also stale, repeated and untimely ones. Each property is
seen to fail once, on a scheduler in which one rule is broken.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, TypeGuard

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from decklog.core.deciding import Decider
from decklog.core.errors import IllegalTransition
from decklog.core.framework.interface import CycleState
from decklog.core.framework.status import SUCCESS, Status, unschedulable, wait
from decklog.core.plugins.registry import REGISTRY
from decklog.core.state import Ending, OpenAssume, SchedulerState
from decklog.core.tick import Proposals, TickRunner
from decklog.events.facts import (
    BindFailed,
    BindSucceeded,
    BindUnknown,
    Event,
    ObjectDeleted,
    PodAssumed,
    PodUnreserved,
    PodUpserted,
    PodWaiting,
    Record,
    ResyncFinished,
    ResyncStarted,
    Undecodable,
)
from decklog.objects.node import Node
from decklog.objects.pod import Pod
from tests.builders import make_node
from tests.stepping import Step, Steps, our_pod, replay, upserted, view, with_points

NODES: Final = ("a", "b", "c")
PODS: Final = ("p", "q", "r", "s", "waits", "fails")
CPUS: Final = (300, 500, 700, 1200, 9000)


class Move(NamedTuple):
    """One thing that happens; the numbers choose among what is possible."""

    kind: str
    one: int
    other: int


KINDS: Final = (
    "node", "cordon", "remove node", "poison",
    "pod", "pod", "pod", "pod", "change", "bind", "end", "finish", "delete", "nominate",
    "succeed", "succeed", "succeed", "fail", "fail", "tick", "tick", "tick",
    "unknown", "stale answer", "see", "again", "resync", "resync",
    "wait", "wait", "tick", "tick", "tick without cycles",
)  # fmt: skip
stories = st.lists(
    st.builds(Move, st.sampled_from(KINDS), st.integers(0, 11), st.integers(0, 11)),
    min_size=20,
    max_size=60,
)


@dataclass(slots=True)
class Gatekeeper:
    """At Permit, pods named `waits` wait for five seconds; at Reserve, `fails` is refused."""

    name: str = "Gatekeeper"

    def reserve(self, state: CycleState, pod: Pod, node: str) -> tuple[dict[str, str], Status]:
        return {"on": node}, unschedulable("no") if pod.name == "fails" else SUCCESS

    def unreserve(self, pod: Pod, node: str, plan: object) -> Sequence[str]:
        return ()

    def permit(self, state: CycleState, pod: Pod, node: str) -> tuple[Status, int]:
        return (wait(), 5_000) if pod.name == "waits" else (SUCCESS, 0)


@pytest.fixture(autouse=True, scope="module")
def _gatekeeper() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        registry: Any = REGISTRY
        patch.setitem(registry, "Gatekeeper", lambda _args, _parity: Gatekeeper())
        yield


@dataclass
class Teller:
    """The cluster and the binder that cause the facts, with what they remember."""

    steps: Steps
    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    told: list[Event] = field(default_factory=list)
    """Facts about objects, to be told again."""
    waiting: list[Event] = field(default_factory=list)
    """Facts of the tick that is being gathered."""
    late: list[Event] = field(default_factory=list)
    """What the watch has yet to show, though the binder has answered."""
    version: int = 0
    lives: int = 0

    def tell(self, story: Sequence[Move]) -> None:
        for number in range(len(NODES)):
            self.move(Move("node", number, number))
        for move in story:
            self.move(move)
        self.tick()

    def move(self, move: Move) -> None:
        if move.kind.startswith("tick"):
            self.tick(cycles=0 if "without" in move.kind else 100)
        elif move.kind == "wait":
            self.tick(later_ms=(500, 2_000, 6_000, 400_000)[move.one % 4])
        else:
            self.waiting.extend(self.facts(move))

    def tick(self, **options: int) -> None:
        self.steps.tick(*self.waiting, **options)
        self.waiting.clear()

    def facts(self, move: Move) -> list[Event]:
        kind, one, other = move
        if "node" in kind or kind in ("cordon", "poison"):
            return self._about_a_node(kind, NODES[one % len(NODES)], other)
        if kind in ("succeed", "fail", "unknown", "stale answer"):
            return self._answer(kind, one)
        if kind == "see":
            late, self.late = self.late, []
            return late
        if kind == "again":
            return [self.told[(one + 12 * other) % len(self.told)]] if self.told else []
        if kind == "resync":
            return self._resync(named=one, older=other)
        return self._about_a_pod(kind, PODS[one % len(PODS)], other)

    def _about_a_node(self, kind: str, name: str, other: int) -> list[Event]:
        node = self.nodes.get(name)
        if kind == "node":
            uid = node.uid if node else f"uid-{name}-{self._life()}"
            return self._set(make_node(name, uid=uid, milli_cpu=(1000, 2000)[other % 2]))
        if node is None:
            return []
        if kind == "cordon":
            return self._set(replace(node, unschedulable=not node.unschedulable))
        if kind == "poison":
            return [Undecodable(key=f"Node//{name}", type="x", error="bad byte")]
        del self.nodes[name]
        return [ObjectDeleted(kind="Node", name=name, uid=node.uid)]

    def _about_a_pod(self, kind: str, name: str, other: int) -> list[Event]:
        pod = self.pods.get(name)
        if kind == "pod":
            uid = f"uid-{name}-{self._life()}"  # Whoever has the name is replaced.
            cpu = CPUS[other % len(CPUS)]
            return self._set(our_pod(name, uid=uid, milli_cpu=cpu, priority=other % 3))
        if pod is None:
            return []
        if kind == "delete":
            del self.pods[name]
            return [ObjectDeleted(kind="Pod", namespace="default", name=name, uid=pod.uid)]
        if kind == "bind" and pod.node_name:
            return []
        changes: dict[str, dict[str, Any]] = {
            "change": {"labels": {"n": str(other)}},
            "bind": {"node_name": NODES[other % len(NODES)]},
            "end": {"deleted": "2026-01-01T00:00:00Z"},
            "finish": {"phase": "Succeeded"},
            "nominate": {"nominated_node_name": ("", *NODES)[other % 4]},
        }
        return self._set(replace(pod, **changes[kind]))

    def _answer(self, kind: str, one: int) -> list[Event]:
        """Answer an open assume as a binder does."""
        opened = [one for one in self.steps.state.open_assumes.values() if not one.waiting]
        if not opened:
            return []
        assume = opened[one % len(opened)]
        seq, uid = assume.seq, assume.pod.uid
        if kind == "succeed":
            return self._bound(assume, one)
        if kind == "unknown":
            return [BindUnknown(seq=seq, pod_uid=uid)]
        if kind == "fail":
            return [BindFailed(seq=seq, pod_uid=uid, reason="Invalid")]
        facts: tuple[Event, ...] = (
            BindSucceeded(seq=seq + 1, pod_uid=uid, node=assume.node),
            BindFailed(seq=max(1, seq - 1), pod_uid=uid, reason="Invalid"),
        )
        return [facts[one % 2]]

    def _bound(self, assume: OpenAssume, one: int) -> list[Event]:
        """Bind the pod, if it is there to be bound; the watch shows it before, after, or later."""
        pod, uid = self.pods.get(assume.pod.name), assume.pod.uid
        done: list[Event] = [BindSucceeded(seq=assume.seq, pod_uid=uid, node=assume.node)]
        if pod is None or pod.uid != uid or pod.node_name:
            return done
        seen = self._set(replace(pod, node_name=assume.node))
        if one % 3 == 0:
            self.late += seen
            return done
        return [*seen, *done] if one % 3 == 1 else [*done, *seen]

    def _resync(self, *, named: int, older: int) -> list[Event]:
        """List all pods; one of them may be missing, and the list may show older versions."""
        pods = list(self.pods.values())
        if pods and named % 3 == 0:
            gone = pods.pop(named % len(pods))
            del self.pods[gone.name]
        listed: list[Event] = [upserted(pod) for pod in pods]
        if older % 3 == 0:
            listed = [self._older(pod) for pod in pods]
        started = ResyncStarted(kind="Pod", resource_version="1")
        return [
            started,
            *listed,
            ResyncFinished(kind="Pod", resource_version="1", count=0, digest=""),
        ]

    def _older(self, pod: Pod) -> Event:
        """Return the first that was told of the pod: the cluster was set back."""
        told = [fact.pod for fact in self.told if isinstance(fact, PodUpserted)]
        first = next(one for one in told if one.uid == pod.uid)
        self.pods[pod.name] = first
        return upserted(first)

    def _set(self, obj: Any) -> list[Event]:
        self.version += 1
        obj = replace(obj, resource_version=str(self.version))
        (self.pods if isinstance(obj, Pod) else self.nodes)[obj.name] = obj
        fact = upserted(obj)
        self.told.append(fact)
        return [fact]

    def _life(self) -> int:
        self.lives += 1
        return self.lives


def lived(story: Sequence[Move], each: Callable[[SchedulerState], None] = lambda _: None) -> Steps:
    steps = Steps(with_points(reserve=("Gatekeeper",), permit=("Gatekeeper",)), each=each)
    Teller(steps).tell(story)
    return steps


# -- properties ------------------------------------------------------------------------------------


def check_replay(story: Sequence[Move]) -> None:
    """A rebuild is the live state after every tick, wherever it begins to go on."""
    live: list[dict[str, Any]] = []
    steps = lived(story, lambda state: live.append(view(state)))
    rebuilt: list[dict[str, Any]] = []
    replay(steps.config, steps.history, each=lambda state: rebuilt.append(view(state)))
    assert rebuilt == live


def check_twice(story: Sequence[Move]) -> None:
    """Every event that is told twice, at one position and at two, is as told once."""
    steps = lived(story)
    state = SchedulerState(steps.config)
    position = 0
    for step in steps.history:
        records: list[Record] = []
        for record in step.records:
            once, again = Record(position, record.fact), Record(position + 1, record.fact)
            records += [once, once, again]
            position += 2
        source = Proposals(cycles_left=step.result.cycles)
        got = TickRunner(state).run(now_ms=step.now_ms, records=records, source=source)
        assert got.decisions == step.result.decisions
    assert comparable(state) == comparable(steps.state)


def comparable(state: SchedulerState) -> dict[str, Any]:
    """Return what two states share of which one has heard some news twice.

    What a resync tells again is an update without a change, and a pod in flight is shown it.
    """
    seen = view(state)
    del seen["position"], seen["in flight"]
    return seen


def check_no_overcommit(story: Sequence[Move]) -> None:
    """Where a tick has placed a pod, all that is there fits into what the node has."""

    def check(state: SchedulerState) -> None:
        for node in {one.node for one in steps.history[-1].result.decisions if is_assume(one)}:
            assert_fits(state, teller.pods.values(), node)

    steps = Steps(with_points(reserve=("Gatekeeper",), permit=("Gatekeeper",)), each=check)
    teller = Teller(steps)
    teller.tell(story)


def is_assume(decision: object) -> TypeGuard[PodAssumed | PodWaiting]:
    return isinstance(decision, PodAssumed | PodWaiting)


def assert_fits(state: SchedulerState, pods: Iterable[Pod], name: str) -> None:
    """Count the pods themselves, not what the cache has counted."""
    node = state.store.named("Node", name)
    assert node is not None
    assert not node.unschedulable
    there = 0
    for pod in pods:
        assume = state.open_assumes.get(pod.uid)
        where = pod.node_name or (assume.node if assume is not None else "")
        if where == name and not pod.finished:
            there += milli_cpu(pod.containers[0].requests)
    assert there <= milli_cpu(node.allocatable), f"{name} is overcommitted"


def milli_cpu(amounts: Mapping[str, str] | None) -> int:
    return int((amounts or {})["cpu"].removesuffix("m"))


def check_every_assume_closes_once(story: Sequence[Move]) -> None:
    """An open assume ends by its confirmation or by one PodUnreserved, and by nothing else."""
    opened: list[set[int]] = []

    def note(state: SchedulerState) -> None:
        assert not state.ending
        opened.append({assume.seq for assume in state.open_assumes.values()})

    steps = lived(story, note)
    book = Book()
    for step, want in zip(steps.history, opened, strict=True):
        book.read(step)
        assert set(book.opened) == want
    gone = [
        ObjectDeleted(kind="Pod", namespace="default", name=pod.name, uid=pod.uid)
        for pod in steps.state.store.objects("Pod").values()
    ]
    steps.tick(*gone, cycles=0)
    book.read(steps.history[-1])
    assert (book.opened, steps.state.open_assumes) == ({}, {})
    assert (steps.state.cache.pod_count, len(steps.state.queue)) == (0, 0)
    assert not steps.state.cache.objects("Reservation")


@dataclass
class Book:
    """The life of every assume, told from events and decisions alone."""

    seq: int = 0
    opened: dict[int, PodAssumed | PodWaiting] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)

    def read(self, step: Step) -> None:
        ended = {one.closes_seq for one in step.result.decisions if isinstance(one, PodUnreserved)}
        for record in step.records:
            for seq in self._confirmed_by(record.fact):
                if seq not in ended:
                    self._close(seq)
        for decision in step.result.decisions:
            self.seq += 1
            if isinstance(decision, PodAssumed | PodWaiting):
                self.opened[self.seq] = decision
            elif isinstance(decision, PodUnreserved):
                self._close(decision.closes_seq)

    def _confirmed_by(self, fact: Event) -> list[int]:
        if isinstance(fact, BindSucceeded):
            assume = self.opened.get(fact.seq)
            return [fact.seq] if assume is not None and assume.pod.uid == fact.pod_uid else []
        if isinstance(fact, PodUpserted) and fact.pod.node_name and not fact.pod.finished:
            return [
                seq
                for seq, assume in self.opened.items()
                if isinstance(assume, PodAssumed)
                and (assume.pod.uid, assume.node) == (fact.pod.uid, fact.pod.node_name)
            ]
        return []

    def _close(self, seq: int) -> None:
        assert seq not in self.closed, f"assume {seq} closes twice"
        self.closed.add(seq)
        del self.opened[seq]


# -- broken schedulers -----------------------------------------------------------------------------

propose, assume = Decider.propose, Decider._assume


def proposing_changes_the_queue(self: Decider, ask: Any = None) -> Any:
    queued = self.state.queue.peek()
    if queued is not None:
        queued.flushed = True
    return propose(self, ask)


def ends_twice(self: SchedulerState, uid: str, reason: str, message: str) -> None:
    assume = self.open_assumes.get(uid)
    if assume is not None:
        self.causes.append(Ending(assume.seq, uid, reason, message))


def an_assume_does_not_count(self: Decider, seq: int, decision: PodAssumed | PodWaiting) -> None:
    assume(self, seq, decision)
    self.state.cache.forget_pod(decision.pod.uid)


def answers_to_what_ends_are_taken(self: SchedulerState, uid: str, seq: int) -> bool:
    assume = self.open_assumes.get(uid)
    return assume is not None and assume.seq == seq


CHECKS: Final[dict[str, tuple[Callable[[Sequence[Move]], None], type, str, Any]]] = {
    "a rebuild is the live state": (
        check_replay,
        Decider,
        "propose",
        proposing_changes_the_queue,
    ),
    "told twice is told once": (check_twice, SchedulerState, "_end", ends_twice),
    "no decision overcommits": (
        check_no_overcommit,
        Decider,
        "_assume",
        an_assume_does_not_count,
    ),
    "every assume closes once": (
        check_every_assume_closes_once,
        SchedulerState,
        "_is_open",
        answers_to_what_ends_are_taken,
    ),
}


@pytest.mark.parametrize("name", CHECKS)
def test_it_holds_of_every_story(name: str) -> None:
    check = CHECKS[name][0]

    @given(stories)
    def holds(story: Sequence[Move]) -> None:
        check(story)

    holds()


@pytest.mark.parametrize("name", CHECKS)
def test_it_is_seen_not_to_hold_of_a_broken_scheduler(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check, broken, method, instead = CHECKS[name]
    monkeypatch.setattr(broken, method, instead)

    @settings(
        max_examples=500,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    @given(stories)
    def holds(story: Sequence[Move]) -> None:
        check(story)

    with pytest.raises((AssertionError, KeyError, IllegalTransition)):
        holds()
