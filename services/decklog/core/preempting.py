"""Which preemptors wait for their victims to go.

As in kube-scheduler a preemptor is kept out of the queue until each of its victims is gone or at
least on its way, or until one turns out not to go: tried earlier, it would find the room still
taken. It is the queue's gate that asks, in the name of DefaultPreemption.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from decklog.core.store import ObjectStore

GATE: Final = "DefaultPreemption"
"""The plugin that keeps the pod out."""


@dataclass(frozen=True, slots=True)
class _Preemption:
    seq: int
    victims: tuple[str, ...]


@dataclass(slots=True)
class Preempting:
    store: ObjectStore
    _of: dict[str, _Preemption] = field(default_factory=dict)
    """Preemptor's uid → its last preemption."""

    def begin(self, uid: str, seq: int, victims: Sequence[str]) -> None:
        """Decision `seq` asks for these victims in favour of the pod."""
        self._of[uid] = _Preemption(seq, tuple(victims))

    def end(self, uid: str) -> None:
        self._of.pop(uid, None)

    def is_waiting(self, uid: str) -> bool:
        preemption = self._of.get(uid)
        return preemption is not None and any(map(self._stays, preemption.victims))

    def refused(self, seq: int) -> str | None:
        """End the preemption that decision `seq` began and return its preemptor's uid."""
        for uid, preemption in self._of.items():
            if preemption.seq == seq:
                del self._of[uid]
                return uid
        return None

    def _stays(self, victim: str) -> bool:
        pod = self.store.get("Pod", victim)
        return pod is not None and pod.deleted is None and not pod.finished
