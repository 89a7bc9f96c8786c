"""Where a pod stands in a state: the one place of several in which it can be."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from decklog.core.queued_pod import Place
from decklog.core.state import SchedulerState
from decklog.objects.pod import Pod


class Stage(Enum):
    """How far the pod is. Values are shown to people and programs."""

    BOUND = "Bound"
    ASSUMED = "Assumed"
    WAITING = "Waiting"
    """Placed, and held by a Permit plugin."""
    QUEUED = "Queued"
    BACKING_OFF = "BackingOff"
    UNSCHEDULABLE = "Unschedulable"
    """Parked until something happens that may help."""
    GATED = "Gated"
    FOREIGN = "Foreign"
    """Of no profile of ours: another scheduler's."""
    FINISHED = "Finished"
    DELETING = "Deleting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    stage: Stage
    node: str = ""
    attempts: int = 0
    until_ms: int | None = None
    """When back-off ends."""
    since_ms: int | None = None
    """Since when it is in its place of the queue."""
    plugins: tuple[str, ...] = ()
    """Who keeps it there."""


_STAGES: Final[Mapping[Place, Stage]] = {
    Place.ACTIVE: Stage.QUEUED,
    Place.BACKOFF: Stage.BACKING_OFF,
    Place.ERROR_BACKOFF: Stage.BACKING_OFF,
    Place.UNSCHEDULABLE: Stage.UNSCHEDULABLE,
    Place.IN_FLIGHT: Stage.WAITING,
}


def standing(state: SchedulerState, pod: Pod) -> Standing:
    """Return where the pod stands."""
    assume = state.open_assumes.get(pod.uid)
    if pod.finished:
        return Standing(stage=Stage.FINISHED, node=pod.node_name)
    if pod.node_name:
        return Standing(stage=Stage.BOUND, node=pod.node_name)
    if assume is not None:
        stage = Stage.WAITING if assume.waiting else Stage.ASSUMED
        return Standing(stage=stage, node=assume.node, plugins=tuple(sorted(assume.waiting)))
    if state.cache.is_assumed(pod.uid):
        return Standing(stage=Stage.ASSUMED, node=state.cache.node_of(pod.uid) or "")
    if pod.scheduler_name not in state.engine.profiles:
        return Standing(stage=Stage.FOREIGN)
    return _in_queue(state, pod)


def _in_queue(state: SchedulerState, pod: Pod) -> Standing:
    queued = state.queue.get(pod.uid)
    if queued is None or queued.place is None:
        return Standing(stage=Stage.DELETING if pod.deleted else Stage.QUEUED)
    if queued.gating_plugin:
        return Standing(
            stage=Stage.GATED,
            attempts=queued.attempts,
            since_ms=queued.timestamp_ms,
            plugins=(queued.gating_plugin,),
        )
    stage = _STAGES[queued.place]
    return Standing(
        stage=stage,
        attempts=queued.attempts,
        until_ms=queued.backoff_expiry_ms if stage is Stage.BACKING_OFF else None,
        since_ms=queued.timestamp_ms,
        plugins=tuple(sorted(queued.rejectors)) if stage is Stage.UNSCHEDULABLE else (),
    )
