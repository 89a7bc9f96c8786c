"""Why nothing was decided about a pod yet: found by replaying the state as of the moment."""

from dataclasses import dataclass
from typing import Any, assert_never

from decklog.core.state import SchedulerState
from decklog.events.facts import PodRef
from decklog.history.positions import Moment
from decklog.history.reasons import ReasonClass
from decklog.history.replay import rebuild
from decklog.history.source import NotFound, Source
from decklog.history.standing import Stage, Standing, standing
from decklog.objects.kinds import KINDS
from decklog.objects.pod import Pod
from decklog.ports.entries import to_rfc3339


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """A pod that is there, and about which no decision was taken."""

    pod: PodRef
    moment: Moment
    standing: Standing
    message: str
    reason_class: ReasonClass | None


def explain_undecided(source: Source, name: str, moment: Moment) -> Undecided:
    """Explain where the pod stands.

    Raises:
        NotFound: there was no such pod.
        Refused: the state of the moment cannot be rebuilt.
    """
    state = rebuild(source, moment).state
    pod = state.store.named("Pod", name) if "/" in name else state.store.get("Pod", name)
    if pod is None:
        hint = "" if "/" in name else "; a pod is named NAMESPACE/NAME, or by its uid"
        msg = f"no pod {name!r} as of position {moment.position}{hint}"
        raise NotFound(msg)
    where = standing(state, pod)
    message, reason_class = _reason(state, pod, where)
    return Undecided(
        pod=PodRef(uid=pod.uid, namespace=pod.namespace, name=pod.name),
        moment=moment,
        standing=where,
        message=message,
        reason_class=reason_class,
    )


def _reason(  # noqa: PLR0911 - one for each stage
    state: SchedulerState, pod: Pod, where: Standing
) -> tuple[str, ReasonClass | None]:
    match where.stage:
        case Stage.GATED:
            gates = f": {', '.join(pod.scheduling_gates)}" if pod.scheduling_gates else ""
            return f"held by {where.plugins[0]}{gates}", ReasonClass.POLICY
        case Stage.FOREIGN:
            ours = ", ".join(state.engine.profiles)
            text = f"it asks for scheduler {pod.scheduler_name!r}, and ours are {ours}"
            return text, ReasonClass.POLICY
        case Stage.QUEUED | Stage.BACKING_OFF | Stage.UNSCHEDULABLE:
            return _queued(state, pod, where), ReasonClass.TRANSIENT
        case Stage.ASSUMED | Stage.WAITING:
            return f"placed on {where.node}", ReasonClass.TRANSIENT
        case Stage.BOUND:
            return f"bound to {where.node}, and never ours to place", None
        case Stage.FINISHED:
            return f"it has run to its end: {pod.phase}", None
        case Stage.DELETING:
            return "it is being deleted", None
        case _ as unreachable:
            assert_never(unreachable)


def _queued(state: SchedulerState, pod: Pod, where: Standing) -> str:
    missing = len(KINDS) - len(state.complete)
    if missing:
        return f"nothing is tried before the cluster is known: {missing} kinds are not listed yet"
    if where.until_ms is not None:
        return f"it is tried again at {to_rfc3339(where.until_ms)}"
    before = sum(1 for queued in state.queue.pods() if queued.pod.priority > pod.priority)
    return f"it is in the queue and was not tried yet; {before} pods have a higher priority"


def facts(found: Undecided) -> dict[str, Any]:
    """Return the explanation as plain data."""
    return {
        "pod": {"namespace": found.pod.namespace, "name": found.pod.name, "uid": found.pod.uid},
        "position": str(found.moment.position),
        "asOf": found.moment.as_of,
        "decision": None,
        "result": found.standing.stage.value,
        "node": found.standing.node or None,
        "attempt": found.standing.attempts,
        "message": found.message,
        "reasonClass": found.reason_class.value if found.reason_class else None,
    }
