"""Kubernetes Events (`events.k8s.io/v1`), worded as kube-scheduler words them.

Names derive from the decision, so a second try finds the first one's Event there already.
`eventTime` is filled in when the Event is sent.
"""

from typing import Any, Final

from decklog.core.framework.diagnosis import event_note, truncate_note
from decklog.events.facts import PodAssumed, PodRef
from decklog.ports.ledger import Effect

_API: Final = {"apiVersion": "events.k8s.io/v1", "kind": "Event"}


def scheduled_event(effect: Effect, fact: PodAssumed, *, instance: str) -> dict[str, Any]:
    note = f"Successfully assigned {fact.pod.key} to {fact.node}"
    return _event(
        effect,
        fact.pod,
        fact.profile,
        instance,
        {"type": "Normal", "reason": "Scheduled", "action": "Binding", "note": truncate_note(note)},
    )


def failed_event(
    effect: Effect, pod: PodRef, *, profile: str, instance: str, message: str
) -> dict[str, Any]:
    return _event(
        effect,
        pod,
        profile,
        instance,
        {
            "type": "Warning",
            "reason": "FailedScheduling",
            "action": "Scheduling",
            "note": event_note(message),
        },
    )


def preempted_event(
    effect: Effect, victim: PodRef, *, preemptor: PodRef, node: str, instance: str
) -> dict[str, Any]:
    return _event(
        effect,
        victim,
        "",
        instance,
        {
            "type": "Normal",
            "reason": "Preempted",
            "action": "Preempting",
            "note": truncate_note(f"Preempted by pod {preemptor.uid} on node {node}"),
        },
    )


def _event(
    effect: Effect, pod: PodRef, profile: str, instance: str, said: dict[str, Any]
) -> dict[str, Any]:
    controller = profile or "decklog"
    return {
        **_API,
        "metadata": {
            "name": f"{pod.name[:200]}.{effect.seq:x}.{effect.n:x}",
            "namespace": pod.namespace,
        },
        "reportingController": controller,
        "reportingInstance": f"{controller}-{instance}"[:128],
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": pod.uid,
        },
        **said,
    }
