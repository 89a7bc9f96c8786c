"""What became of a decision, and of its pod, by a later moment."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from decklog.events.codec import decode_event
from decklog.events.facts import (
    BindFailed,
    BindSucceeded,
    BindUnknown,
    ObjectDeleted,
    PodRef,
    PodUpserted,
)
from decklog.history.source import Source

LOOK_MAX: Final = 200_000
"""Events that are looked through: two seconds. Outcomes come within hundreds."""
_READ_MAX: Final = 5_000

Outcome = BindSucceeded | BindFailed | BindUnknown


@dataclass(slots=True)
class Since:
    """What the log says between a decision and a moment. Nothing else of the pod is in between."""

    outcome: Outcome | None = None
    deleted_at: int | None = None
    """The position at which the pod was gone."""
    successor: str = ""
    """The uid of the pod that has the name now."""
    looked_to: int = -1


def look_since(source: Source, pod: PodRef, seq: int, *, after: int, through: int) -> Since:
    """Look through the events after one position, up to another, for what concerns the decision."""
    found = Since(looked_to=max(after, source.events.bounds()[0] - 1))
    end = min(through, found.looked_to + LOOK_MAX)
    keys = {f"Pod/{pod.namespace}/{pod.name}", f"bind/{pod.uid}"}
    while found.looked_to < end:
        read = source.events.read(after=found.looked_to, limit=_READ_MAX, timeout=timedelta(0))
        for position, entry in read:
            if position > end:
                return found
            if entry.key in keys:
                _take(found, pod, seq, position, decode_event(entry.type, entry.key, entry.value))
            found.looked_to = position
        if not read:
            break
    return found


def _take(found: Since, pod: PodRef, seq: int, position: int, fact: object) -> None:
    match fact:
        case BindSucceeded() | BindFailed() | BindUnknown():
            if fact.seq == seq:
                found.outcome = fact
        case ObjectDeleted(uid=uid):
            if uid == pod.uid:
                found.deleted_at = position
            elif uid == found.successor:
                found.successor = ""
        case PodUpserted(pod=seen):
            if seen.uid != pod.uid:
                found.successor = seen.uid
        case _:
            pass
