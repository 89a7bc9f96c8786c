"""Pods that are being tried, and the events that came meanwhile: no wake-up is lost to an attempt.

One list in the order of arrival; each pod in flight remembers where it was taken out. When it comes
back rejected, what came after that place is looked at as if it had come now.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from decklog.core.framework.events import Happening
from decklog.core.queued_pod import QueuedPod

EVENTS_MAX: Final = 100_000
"""Events kept for pods that wait at Permit; beyond it such a pod is woken by anything."""


@dataclass(frozen=True, slots=True)
class Recorded:
    happening: Happening
    old: Any
    new: Any


@dataclass(slots=True)
class InFlight:
    _pods: dict[str, tuple[QueuedPod, int]] = field(default_factory=dict)
    """Uid → the pod, and the number of the first event that came after it was taken out."""
    _events: list[Recorded] = field(default_factory=list)
    _dropped: int = 0
    """Events that were forgotten: the number of the first one kept."""

    def __bool__(self) -> bool:
        return bool(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def get(self, uid: str) -> QueuedPod | None:
        found = self._pods.get(uid)
        return found[0] if found is not None else None

    def begin(self, queued: QueuedPod) -> None:
        self._pods[queued.pod.uid] = (queued, self._dropped + len(self._events))

    def record(self, happening: Happening, old: Any, new: Any) -> None:
        """Keep an event for the pods in flight; without any, there is nobody to keep it for."""
        if not self._pods:
            return
        if len(self._events) >= EVENTS_MAX:
            self._dropped += len(self._events)
            self._events.clear()
        self._events.append(Recorded(happening, old, new))

    def since(self, uid: str) -> Sequence[Recorded] | None:
        """Return what came since the pod was taken out; None: too much to remember."""
        first = self._pods[uid][1]
        return None if first < self._dropped else self._events[first - self._dropped :]

    def end(self, uid: str) -> QueuedPod:
        """Forget the pod and return it; forget the events that no other one has yet to see."""
        queued, _ = self._pods.pop(uid)
        last = self._dropped + len(self._events)
        first = next((number for _, number in self._pods.values()), last)
        if first > self._dropped:
            del self._events[: first - self._dropped]
            self._dropped = first
        return queued

    def shown(self) -> list[str]:
        """Return `pod:<uid>` and the labels of events, in the order in which they came."""
        shown: list[str] = []
        for number in range(len(self._events) + 1):
            place = self._dropped + number
            shown.extend(f"pod:{uid}" for uid, (_, first) in self._pods.items() if first == place)
            if number < len(self._events):
                shown.append(self._events[number].happening.label)
        return shown
