"""What a decision asks of a pod other than to bind it: its condition, its nomination, its end."""

from dataclasses import dataclass
from typing import Any, Final

from decklog.binder.kube_events import failed_event, preempted_event
from decklog.binder.work import Outcome, retry_at
from decklog.core.framework.diagnosis import fit_error
from decklog.events.facts import (
    EndReason,
    Event,
    PodRef,
    PodSkipped,
    PodUnreserved,
    PodUnschedulable,
    VictimDeleted,
    VictimRefused,
    VictimsSelected,
)
from decklog.ports.cluster import Answer, Call, CreateEvent, DeletePod, GetPod, PatchPodStatus
from decklog.ports.ledger import Effect, EffectState

CONFLICTS_MAX: Final = 10
GONE: Final = frozenset({404, 422})
"""The pod is gone, or its name belongs to another uid: there is nobody to tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a status effect tells a pod."""

    pod: PodRef
    patch: dict[str, Any]
    """Empty: nothing in the status changes."""
    resource_version: str = ""
    event: dict[str, Any] | None = None


@dataclass(slots=True, kw_only=True)
class StatusWork:
    """Patch the status, then write the Event. A pod that was bound meanwhile is left alone."""

    effect: Effect
    told: Told
    not_before_ms: int = 0
    _resource_version: str = ""
    _look: bool = False
    _conflicts: int = 0
    _failures: int = 0

    def __post_init__(self) -> None:
        self._resource_version = self.told.resource_version

    @property
    def pod_key(self) -> str:
        return self.told.pod.uid

    def call(self) -> Call:
        pod = self.told.pod
        if self._look or not self.told.patch:
            return GetPod(namespace=pod.namespace, name=pod.name)
        return PatchPodStatus(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            patch=self.told.patch,
            resource_version=self._resource_version,
        )

    def take(self, answer: Answer, now_ms: int) -> Outcome | None:
        if answer.unknown or answer.code in (401, 403, 429):
            self._failures += 1
            self.not_before_ms = retry_at(now_ms, self._failures, answer)
            return None
        if answer.code in GONE:
            return self._final(EffectState.DROPPED, "the pod is gone")
        if answer.code == 409:
            return self._conflict()
        if not answer.ok:
            return self._final(EffectState.REJECTED, answer.message or str(answer.code))
        if self._look or not self.told.patch:
            return self._looked(answer)
        return self._final(EffectState.DONE, "patched")

    def _conflict(self) -> Outcome | None:
        self._conflicts += 1
        if self._conflicts > CONFLICTS_MAX:
            return self._final(EffectState.REJECTED, f"{CONFLICTS_MAX} conflicts")
        self._look = True
        return None

    def _looked(self, answer: Answer) -> Outcome | None:
        body = answer.body or {}
        metadata = body.get("metadata", {})
        if metadata.get("uid") != self.told.pod.uid:
            return self._final(EffectState.DROPPED, "the pod is gone")
        if body.get("spec", {}).get("nodeName"):
            return self._final(EffectState.DROPPED, "the pod is bound")
        if not self.told.patch:
            return self._final(EffectState.DONE, "nothing to patch")
        self._look = False
        self._resource_version = metadata.get("resourceVersion", "")
        return None

    def _final(self, state: EffectState, detail: str) -> Outcome:
        then = None
        if state is EffectState.DONE and self.told.event is not None:
            then = CreateEvent(namespace=self.told.pod.namespace, event=self.told.event)
        return Outcome(state=state, detail={"outcome": state.value, "message": detail}, then=then)


@dataclass(slots=True, kw_only=True)
class EventWork:
    """Write one Kubernetes Event. If that cannot be done, it is counted."""

    effect: Effect
    pod: PodRef
    event: dict[str, Any]
    not_before_ms: int = 0

    @property
    def pod_key(self) -> str:
        return self.pod.uid

    def call(self) -> Call:
        return CreateEvent(namespace=self.pod.namespace, event=self.event)

    def take(self, answer: Answer, now_ms: int) -> Outcome | None:
        done = answer.ok or answer.code == 409
        state = EffectState.DONE if done else EffectState.DROPPED
        return Outcome(state=state, detail={"outcome": state.value, "code": answer.code})


@dataclass(slots=True, kw_only=True)
class VictimWork:
    """Mark a victim as disrupted, then delete it under its uid; its end is an event either way."""

    effect: Effect
    victim: PodRef
    selected: VictimsSelected
    instance: str
    not_before_ms: int = 0
    forbidden: int = 0
    _marked: bool = False
    _failures: int = 0

    @property
    def pod_key(self) -> str:
        return self.victim.uid

    def call(self) -> Call:
        pod = self.victim
        if self._marked:
            return DeletePod(namespace=pod.namespace, name=pod.name, uid=pod.uid)
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": "decklog: preempting to accommodate a higher priority pod",
        }
        return PatchPodStatus(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            patch={"conditions": [condition]},
        )

    def take(self, answer: Answer, now_ms: int) -> Outcome | None:
        if answer.unknown or answer.code == 429:
            self._again(answer, now_ms)
            return None
        if answer.code in (401, 403):
            self.forbidden += 1
            if self.forbidden > 1:
                return self._refused(answer)
            self._again(answer, now_ms)
            return None
        self.forbidden = 0
        gone = answer.code in GONE or (answer.code == 409 and self._marked)
        if gone or (answer.ok and self._marked):
            return self._deleted(answer)
        if not answer.ok and answer.code != 409:
            return self._refused(answer)
        self._marked = True
        return None

    def _again(self, answer: Answer, now_ms: int) -> None:
        self._failures += 1
        self.not_before_ms = retry_at(now_ms, self._failures, answer)

    def _deleted(self, answer: Answer) -> Outcome:
        event = preempted_event(
            self.effect,
            self.victim,
            preemptor=self.selected.pod,
            node=self.selected.node,
            instance=self.instance,
        )
        return self._final(
            EffectState.DONE,
            answer,
            VictimDeleted(seq=self.effect.seq, pod_uid=self.victim.uid),
            CreateEvent(namespace=self.victim.namespace, event=event) if answer.ok else None,
        )

    def _refused(self, answer: Answer) -> Outcome:
        reason = answer.reason or str(answer.code)
        fact = VictimRefused(seq=self.effect.seq, pod_uid=self.victim.uid, reason=reason)
        return self._final(EffectState.REJECTED, answer, fact, None)

    def _final(self, state: EffectState, answer: Answer, fact: Event, then: Call | None) -> Outcome:
        detail: dict[str, object] = {
            "outcome": state.value,
            "code": answer.code,
            "message": answer.message[:1024],
        }
        return Outcome(state=state, detail=detail, fact=fact, then=then)


def told_unschedulable(
    effect: Effect,
    fact: PodUnschedulable,
    *,
    repeat: bool,
    message: str,
    instance: str,
) -> Told:
    """Return what a failed attempt tells its pod; a repeat of the same words changes no status."""
    patch = {} if repeat else _condition(fact.reason, message, fact.generation)
    if fact.nominated_node is not None and not repeat:
        patch["nominatedNodeName"] = fact.nominated_node or None
    event = failed_event(effect, fact.pod, profile=fact.profile, instance=instance, message=message)
    return Told(pod=fact.pod, patch=patch, resource_version=fact.resource_version, event=event)


def told_unreserved(effect: Effect, fact: PodUnreserved, *, instance: str) -> Told:
    """Return what the end of an assume tells its pod: an error, or what a Permit plugin said."""
    reason, message = "SchedulerError", fact.message or fact.reason
    if fact.reason in EndReason.AT_PERMIT:
        reason, message = "Unschedulable", fit_error(1, {message: 1})
    patch = _condition(reason, message, fact.generation)
    patch["nominatedNodeName"] = None
    event = failed_event(effect, fact.pod, profile="", instance=instance, message=message)
    return Told(pod=fact.pod, patch=patch, event=event)


def told_nomination_cleared(pod: PodRef) -> Told:
    return Told(pod=pod, patch={"nominatedNodeName": None})


def skipped_event(effect: Effect, fact: PodSkipped, *, instance: str) -> dict[str, Any]:
    message = f"skip schedule deleting pod: {fact.pod.key}"
    return failed_event(effect, fact.pod, profile="", instance=instance, message=message)


def _condition(reason: str, message: str, generation: int) -> dict[str, Any]:
    condition: dict[str, Any] = {
        "type": "PodScheduled",
        "status": "False",
        "reason": reason,
        "message": message,
    }
    if generation:
        condition["observedGeneration"] = generation
    return {"conditions": [condition]}
