"""The scheduler's pure part, one tick at a time: what a test tells it, and what it decides.

    steps = Steps()
    steps.tick(listed(), upserted(make_node("a")), upserted(make_pod("web")))

A `Steps` keeps its history, so that a test can ask whether a rebuild comes to the same state.
"""

from collections import deque
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Final

from decklog.core.framework.config import ProfileConfig, SchedulerConfig
from decklog.core.framework.resolve import default_config
from decklog.core.state import SchedulerState
from decklog.core.tick import CYCLES_MAX, Proposals, Recorded, TickResult, TickRunner
from decklog.events.codec import upserted as upserted_fact
from decklog.events.facts import (
    BindFailed,
    BindSucceeded,
    Decision,
    Event,
    ObjectDeleted,
    Record,
)
from decklog.objects.meta import KubeObject
from decklog.objects.pod import Pod
from tests.builders import make_pod

PROFILE: Final = "decklog"
NOW_MS: Final = 1_800_000_000_000
CONFIG: Final = default_config(seed=1)


def our_pod(name: str = "pod", **fields: Any) -> Pod:
    """Return a pod of the built-in profile."""
    return make_pod(name, **{"scheduler_name": PROFILE, **fields})


def upserted(obj: KubeObject, **changes: Any) -> Event:
    return upserted_fact(replace(obj, **changes))  # type: ignore[type-var]


def deleted(obj: KubeObject) -> ObjectDeleted:
    return ObjectDeleted(
        kind=type(obj).__name__, namespace=obj.namespace, name=obj.name, uid=obj.uid
    )


def bound(seq: int, pod: Pod, node: str) -> BindSucceeded:
    return BindSucceeded(seq=seq, pod_uid=pod.uid, node=node)


def refused(seq: int, pod: Pod, reason: str = "Invalid") -> BindFailed:
    return BindFailed(seq=seq, pod_uid=pod.uid, reason=reason)


def with_points(**points: tuple[str, ...]) -> SchedulerConfig:
    """Return the built-in configuration with these plugins, and no others, at these points."""
    profile = CONFIG.profiles[0]
    changed: ProfileConfig = replace(profile, points={**profile.points, **points})
    return replace(CONFIG, profiles=(changed,))


@dataclass(frozen=True, slots=True)
class Step:
    """One tick of a history."""

    now_ms: int
    records: tuple[Record, ...]
    result: TickResult


@dataclass(slots=True)
class Steps:
    """A state, and everything that was told to it and decided by it."""

    config: SchedulerConfig = CONFIG
    now_ms: int = NOW_MS
    position: int = -1
    each: Callable[[SchedulerState], None] = lambda _: None
    """Sees the state after every tick."""
    history: list[Step] = field(default_factory=list)
    state: SchedulerState = field(init=False)
    runner: TickRunner = field(init=False)

    def __post_init__(self) -> None:
        self.state = SchedulerState(self.config)
        self.runner = TickRunner(self.state)

    def tick(self, *facts: Event, later_ms: int = 0, cycles: int = CYCLES_MAX) -> list[Decision]:
        """Apply the facts at the next positions and decide; return the decisions."""
        self.now_ms += later_ms
        records = tuple(Record(self._next(), self._versioned(fact)) for fact in facts)
        result = self.runner.run(
            now_ms=self.now_ms, records=records, source=Proposals(cycles_left=cycles)
        )
        self.history.append(Step(self.now_ms, records, result))
        self.each(self.state)
        return list(result.decisions)

    def rebuilt(self, ticks: int | None = None) -> SchedulerState:
        """Return the state that a restart finds: events, and decisions as facts."""
        return replay(self.config, self.history[:ticks])

    @property
    def decisions(self) -> list[Decision]:
        return [decision for step in self.history for decision in step.result.decisions]

    def _next(self) -> int:
        self.position += 1
        return self.position

    def _versioned(self, fact: Event) -> Event:
        """Give an object that has no version the position as its version: each one is newer."""
        obj = getattr(fact, "object", None)
        if obj is None or obj.resource_version:
            return fact
        return upserted(obj, resource_version=str(self.position + 1))


def replay(
    config: SchedulerConfig,
    history: Sequence[Step],
    *,
    each: Callable[[SchedulerState], None] = lambda _: None,
) -> SchedulerState:
    """Return the state after these ticks, taken as facts; `each` sees it after every one."""
    state = SchedulerState(config)
    for step in history:
        TickRunner(state).run(
            now_ms=step.now_ms,
            records=step.records,
            source=Recorded(deque(step.result.decisions)),
        )
        each(state)
    return state


def view(state: SchedulerState) -> dict[str, Any]:
    """Return all of a state that later decisions and answers can depend on, comparable."""
    queue, cache = state.queue, state.cache
    return {
        "position": state.position,
        "now": state.now_ms,
        "seq": state.seq,
        "open": {uid: deepcopy(assume) for uid, assume in state.open_assumes.items()},
        "ending": set(state.ending),
        "causes": list(state.causes),
        "failures": dict(state.failures),
        "complete": set(state.complete),
        "foreign": state.foreign_pods,
        "start": state.engine.start_index,
        "queued": {queued.pod.uid: _remembered(queued) for queued in queue.pods()},
        "parked": list(queue.unschedulable_pods),
        "first": None if (head := queue.peek()) is None else head.pod.uid,
        "timer": queue.next_timer_ms(),
        "assumed": {uid: _remembered(queued) for uid, queued in queue._assumed.items()},
        "in flight": queue.in_flight.shown(),
        "nominated": {uid: state.nominator.node_of(uid) for uid in state.store.objects("Pod")},
        "preempting": dict(state.preempting._of),
        "placed": placed(state),
        "used": used(state),
        "reserved": dict(cache.objects("Reservation")),
        "objects": {
            kind: dict(state.store.objects(kind)) for kind in ("Pod", "Node", "PersistentVolume")
        },
    }


def placed(state: SchedulerState) -> dict[str, tuple[str, bool]]:
    """Return where the cache counts each pod, and whether it is assumed there."""
    cache = state.cache
    return {
        uid: (str(cache.node_of(uid)), cache.is_assumed(uid))
        for uid in sorted(cache._pods)  # There is no list of them but this.
    }


def used(state: SchedulerState) -> dict[str, tuple[int, int, int]]:
    """Return the milli-CPU, memory and pods that are counted on each node, ghosts included."""
    columns = state.cache.columns
    found = {}
    for name, row in _rows(state).items():
        cpu, memory = (int(amount) for amount in columns.requested[:2, row])
        found[name] = (cpu, memory, int(columns.pod_count[row]))
    return found


def _rows(state: SchedulerState) -> dict[str, int]:
    columns = state.cache.columns
    names = {node.name for node in state.store.objects("Node").values()}
    names |= {node for node, _ in placed(state).values()}
    return {name: row for name in sorted(names) if (row := columns.find(name)) is not None}


def _remembered(queued: Any) -> tuple[Any, ...]:
    return (
        queued.pod,
        queued.place,
        queued.timestamp_ms,
        queued.attempts,
        queued.backoff_expiry_ms,
        queued.unschedulable_count,
        queued.consecutive_errors,
        queued.initial_attempt_ms,
        queued.unschedulable_plugins,
        queued.pending_plugins,
        queued.gating_plugin,
        queued.flushed,
    )
