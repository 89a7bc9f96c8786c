"""A pod in the scheduling queue: where it is, and what the queue remembers of it."""

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from decklog.objects.pod import Pod

SECOND_MS: Final = 1000
BACKOFF: Final = "backoff"
FLUSH: Final = "flush"


class Timer(NamedTuple):
    """Timers fire in this order: by deadline, kind and pod."""

    deadline_ms: int
    kind: str
    uid: str


class Strategy(Enum):
    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


class Place(Enum):
    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR_BACKOFF = "errorBackoff"
    UNSCHEDULABLE = "unschedulable"
    IN_FLIGHT = "inFlight"


@dataclass(slots=True)
class QueuedPod:
    """A pod with what the queue remembers of it. Times are logical milliseconds."""

    pod: Pod
    timestamp_ms: int
    place: Place | None = None
    attempts: int = 0
    backoff_expiry_ms: int | None = None
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    initial_attempt_ms: int | None = None
    unschedulable_plugins: tuple[str, ...] = ()
    pending_plugins: tuple[str, ...] = ()
    gating_plugin: str = ""
    flushed: bool = False
    """Its last wake-up was the timeout of the unschedulable pods, not an event."""
    entry: int = 0
    """Number of its entry into the heap it is in; an older entry of the heap is void."""

    @property
    def rejectors(self) -> tuple[str, ...]:
        return self.unschedulable_plugins + self.pending_plugins


def backoff_expiry(queued: QueuedPod, *, initial_ms: int, max_ms: int) -> int:
    """Return until when the pod backs off, in whole seconds; before all time if it does not.

    Each failure doubles the time, up to the maximum; errors count by themselves.
    """
    count = queued.consecutive_errors or queued.unschedulable_count
    if max_ms == 0 or count == 0:
        return -SECOND_MS
    shift = count - 1
    duration = max_ms if initial_ms > max_ms >> shift else initial_ms << shift
    return (queued.timestamp_ms + duration) // SECOND_MS * SECOND_MS
