"""Take the pod of the highest priority first; of equals, the one that waits longest."""

from dataclasses import dataclass
from typing import Protocol

from decklog.core.framework.interface import Reads
from decklog.objects.pod import Pod


class Waiting(Protocol):
    @property
    def pod(self) -> Pod: ...
    @property
    def timestamp_ms(self) -> int: ...


@dataclass(frozen=True, slots=True)
class PrioritySort:
    name: str = "PrioritySort"
    reads: Reads = Reads.STATIC

    def less(self, one: Waiting, other: Waiting) -> bool:
        """Whether `one` is to be taken before `other`."""
        if one.pod.priority != other.pod.priority:
            return one.pod.priority > other.pod.priority
        return one.timestamp_ms < other.timestamp_ms
