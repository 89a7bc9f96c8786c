"""The scheduling queue: who is tried next, who waits, and what wakes them.

A pod of ours that is not bound is in exactly one place:

                    ┌────────── add, update, wake-up ──────────┐
                    ▼                                          │
    (new) ──▶ active_q ── pop ──▶ in flight ── failed ──▶ unschedulable_pods
                    ▲                  │                       ▲     │
                    │                  └─ failed with error    │     │ wake-up within back-off
                    └── expired, or nothing else to do ── backoff_q ◀┘

Gated pods lie in unschedulable_pods with `gating_plugin` set. Time is logical: `now_ms` is set at
the start of a tick, and timers are asked for, not waited for (`next_timer_ms`, `due_timers`).
Semantics: kube-scheduler v1.36 with queueing hints and pop-from-back-off on. Equal priority and
timestamp, which upstream leaves to its heap, go by order of entry.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from decklog.core.framework.events import (
    FORCE_ACTIVATE,
    UNSCHEDULABLE_POD_ADD,
    UNSCHEDULABLE_POD_UPDATE,
    UNSCHEDULABLE_TIMEOUT,
    Happening,
    Registration,
    pod_update_events,
)
from decklog.core.in_flight import InFlight
from decklog.core.nominator import Nominator
from decklog.core.queued_pod import (
    BACKOFF,
    FLUSH,
    SECOND_MS,
    Place,
    QueuedPod,
    Strategy,
    Timer,
    backoff_expiry,
)
from decklog.objects.pod import Pod

FLUSH_EVERY_MS: Final = 30_000
"""How often kube-scheduler flushes; only for gated pods does it matter here."""

Gate = Callable[[Pod, str], str]
"""(pod, plugin that gated it last) → the plugin that keeps it out of the queue now; empty: none."""


BACKOFF_COMPLETE: Final = Happening("", 0, "BackoffComplete")
SCHEDULE_ATTEMPT_FAILURE: Final = Happening("", 0, "ScheduleAttemptFailure")


@dataclass(slots=True)
class SchedulingQueue:
    gate: Gate
    registrations: Mapping[str, Sequence[Registration]]
    """Profile → registered events of all its plugins."""
    nominator: Nominator
    initial_backoff_ms: int = 1_000
    max_backoff_ms: int = 10_000
    flush_after_ms: int = 300_000
    now_ms: int = 0
    unschedulable_pods: dict[str, QueuedPod] = field(default_factory=dict)
    """Parked and gated pods, by uid, in order of arrival."""
    _known: dict[str, QueuedPod] = field(default_factory=dict)
    _parked_by: dict[str, int] = field(default_factory=dict)
    """Plugin → how many parked pods it rejected: an event that concerns none of them is quick."""
    _active: list[tuple[int, int, int, str]] = field(default_factory=list)
    _backoff: list[tuple[int, int, int, int, str]] = field(default_factory=list)
    _error_backoff: list[tuple[int, int, str]] = field(default_factory=list)
    _parked: list[tuple[int, int, str]] = field(default_factory=list)
    """Heap of (timestamp, entry, uid) over unschedulable_pods, for the flush."""
    in_flight: InFlight = field(default_factory=InFlight)
    _assumed: dict[str, QueuedPod] = field(default_factory=dict)
    """What is remembered of assumed pods, in case their assume is undone."""
    _gated_overdue: dict[str, None] = field(default_factory=dict)
    """Gated pods that a flush has found, in the order of their flush."""
    _gated_flush_at_ms: int = 0
    _listening: dict[Happening, frozenset[str]] = field(default_factory=dict)
    """What `_listeners` has said of the kinds of events that came so far."""
    _entries: int = 0

    def __contains__(self, uid: str) -> bool:
        return uid in self._known

    def __len__(self) -> int:
        return len(self._known)

    def get(self, uid: str) -> QueuedPod | None:
        return self._known.get(uid)

    def pods(self) -> Iterator[QueuedPod]:
        """All pods of ours that are not bound or assumed, those that wait at Permit included."""
        return iter(self._known.values())

    def peek(self) -> QueuedPod | None:
        """Return the pod that `pop` would hand out next."""
        return self._head(self._active, Place.ACTIVE) or self._head(self._backoff, Place.BACKOFF)

    def next_timer_ms(self) -> int | None:
        """Return when `due_timers` will have something to do, if ever."""
        due = []
        for heap, place in (
            (self._backoff, Place.BACKOFF),
            (self._error_backoff, Place.ERROR_BACKOFF),
        ):
            head = self._head(heap, place)
            if head is not None and head.backoff_expiry_ms is not None:
                due.append(head.backoff_expiry_ms + SECOND_MS)
        head = self._head(self._parked, Place.UNSCHEDULABLE)
        if head is not None:
            due.append(head.timestamp_ms + self.flush_after_ms + 1)
        return min(due, default=None)

    # -- changes of pods -----------------------------------------------------------------------

    def add(self, pod: Pod) -> None:
        queued = QueuedPod(pod=pod, timestamp_ms=self.now_ms)
        self._known[pod.uid] = queued
        self._to_active(queued, UNSCHEDULABLE_POD_ADD)

    def update(self, old: Pod, new: Pod) -> None:
        queued = self._known.get(new.uid)
        if queued is None:
            queued = QueuedPod(pod=new, timestamp_ms=self.now_ms)
            self._known[new.uid] = queued
            self._to_active(queued, UNSCHEDULABLE_POD_UPDATE)
            return
        if queued.place is Place.IN_FLIGHT:
            for happening in pod_update_events(old, new):
                self.in_flight.record(happening, old, new)
            return
        queued.pod = new
        self.nominator.update(old, new)
        match queued.place:
            case Place.ACTIVE:
                self._push_active(queued)
            case Place.UNSCHEDULABLE:
                self._wake_updated(queued, old, new)
            case _:
                pass  # Stays in back-off.

    def _wake_updated(self, queued: QueuedPod, old: Pod, new: Pod) -> None:
        for happening in pod_update_events(old, new):
            strategy = self._worth_requeuing(queued, happening, old, new)
            if strategy is not Strategy.SKIP:
                self._requeue(queued, strategy, happening)
                if queued.place is not Place.UNSCHEDULABLE:
                    return

    def delete(self, uid: str) -> None:
        """Forget the pod wherever it is; one that is in flight is forgotten by `done`."""
        self.nominator.delete(uid)
        queued = self._known.get(uid)
        if queued is None or queued.place is Place.IN_FLIGHT:
            return
        self._leave(queued)
        del self._known[uid]

    def activate(self, uid: str) -> None:
        """Put a parked or backing-off pod into active_q at once."""
        queued = self._known.get(uid)
        if queued is None:
            return
        if queued.place is Place.IN_FLIGHT:
            self.in_flight.record(FORCE_ACTIVATE, None, queued.pod)
        elif queued.place in (Place.UNSCHEDULABLE, Place.BACKOFF, Place.ERROR_BACKOFF):
            self._to_active(queued, FORCE_ACTIVATE, gated=queued.place is Place.UNSCHEDULABLE)

    # -- a cycle -------------------------------------------------------------------------------

    def pop(self, uid: str) -> QueuedPod | None:
        """Take the pod out for an attempt: usually the one that `peek` showed.

        Rebuilding pops by decision, so it may name any pod, and one that we do not know.
        """
        queued = self._known.get(uid)
        if queued is None or queued.place is Place.IN_FLIGHT:
            return queued
        self._leave(queued)
        queued.place = Place.IN_FLIGHT
        queued.attempts += 1
        if queued.initial_attempt_ms is None:
            queued.initial_attempt_ms = self.now_ms
        self.in_flight.begin(queued)
        return queued

    def done(self, uid: str) -> None:
        """The attempt is over and the pod is no longer ours to queue."""
        self._assumed.pop(uid, None)
        if uid in self.in_flight:
            self._end_flight(uid)
            del self._known[uid]

    def assumed(self, uid: str) -> None:
        """The attempt placed the pod: it leaves the queue, but comes back if that is undone."""
        queued = self.in_flight.get(uid)
        if queued is not None:
            self.done(uid)
            self._assumed[uid] = queued

    def add_unschedulable(
        self,
        pod: Pod,
        *,
        unschedulable_plugins: Sequence[str],
        pending_plugins: Sequence[str],
    ) -> None:
        """Put a popped pod back after a failed attempt (AddUnschedulableIfNotPresent)."""
        queued = self.in_flight.get(pod.uid) or self._assumed.pop(pod.uid, None)
        if queued is None:
            if pod.uid in self._known:
                return  # Queued already.
            queued = QueuedPod(pod=pod, timestamp_ms=self.now_ms)
        self._known[pod.uid] = queued
        queued.pod = pod
        queued.unschedulable_plugins = tuple(unschedulable_plugins)
        queued.pending_plugins = tuple(pending_plugins)
        if queued.rejectors:
            queued.unschedulable_count += 1
            queued.consecutive_errors = 0
        else:
            queued.consecutive_errors += 1
        queued.timestamp_ms = self.now_ms
        queued.backoff_expiry_ms = None
        queued.flushed = False
        strategy = self._strategy_after_failure(queued)
        if pod.uid in self.in_flight:
            self._end_flight(pod.uid)
        self._park(queued)
        self._requeue(queued, strategy, SCHEDULE_ATTEMPT_FAILURE)

    def _strategy_after_failure(self, queued: QueuedPod) -> Strategy:
        if not queued.rejectors:
            return Strategy.AFTER_BACKOFF
        found = Strategy.SKIP
        if queued.pod.uid not in self.in_flight:
            return found
        missed = self.in_flight.since(queued.pod.uid)
        if missed is None:
            return Strategy.AFTER_BACKOFF
        for event in missed:
            strategy = self._worth_requeuing(queued, event.happening, event.old, event.new)
            if strategy is Strategy.IMMEDIATELY:
                return strategy
            if strategy is Strategy.AFTER_BACKOFF:
                found = strategy
                if not queued.pending_plugins:
                    break
        return found

    # -- events and timers ---------------------------------------------------------------------

    def move_all(
        self,
        happening: Happening,
        old: Any,
        new: Any,
        pre_check: Callable[[Pod], bool] | None = None,
    ) -> int:
        """Wake the parked pods that the event may help; return how many left their place."""
        listeners = self._listeners(happening)
        if not happening.is_wildcard and not listeners:
            return 0
        moved = 0
        concerned = happening.is_wildcard or any(map(self._parked_by.get, listeners))
        for queued in list(self.unschedulable_pods.values()) if concerned else ():
            if not happening.is_wildcard and listeners.isdisjoint(queued.rejectors):
                continue
            if pre_check is not None and not pre_check(queued.pod):
                continue
            if queued.gating_plugin and not self._gate_listens(queued, happening):
                continue
            strategy = self._worth_requeuing(queued, happening, old, new)
            if strategy is not Strategy.SKIP:
                self._requeue(queued, strategy, happening)
                moved += queued.place is not Place.UNSCHEDULABLE
        self.in_flight.record(happening, old, new)
        return moved

    def due_timers(self) -> list[Timer]:
        """Take out and return what is due at `now_ms`: ends of back-off, flushes of parked pods."""
        due = self.expired_backoffs() + self.expired_parkings()
        if self.in_flight and self.now_ms >= self._gated_flush_at_ms and self._overdue_gated():
            due.append(Timer(self.now_ms, FLUSH, ""))
        return due

    def expired_backoffs(self) -> list[Timer]:
        due: list[Timer] = []
        heaps: tuple[tuple[list[Any], Place], ...] = (
            (self._backoff, Place.BACKOFF),
            (self._error_backoff, Place.ERROR_BACKOFF),
        )
        for heap, place in heaps:
            while (head := self._head(heap, place)) and not self._is_backing_off(head):
                due.append(Timer(self._backoff_expiry(head) + SECOND_MS, BACKOFF, head.pod.uid))
                heapq.heappop(heap)
        return due

    def expired_parkings(self) -> list[Timer]:
        due: list[Timer] = []
        while (
            head := self._head(self._parked, Place.UNSCHEDULABLE)
        ) and self.now_ms - head.timestamp_ms > self.flush_after_ms:
            deadline = head.timestamp_ms + self.flush_after_ms + 1
            due.append(Timer(deadline, FLUSH, head.pod.uid))
            heapq.heappop(self._parked)
        if due:
            self.in_flight.record(UNSCHEDULABLE_TIMEOUT, None, None)
        return due

    def flush_gated(self) -> None:
        """Flush gated pods that have waited too long: they stay, but pods in flight hear of it."""
        self._gated_flush_at_ms = self.now_ms + FLUSH_EVERY_MS
        if self._overdue_gated():
            self.in_flight.record(UNSCHEDULABLE_TIMEOUT, None, None)

    def _overdue_gated(self) -> bool:
        for uid in list(self._gated_overdue):
            queued = self.unschedulable_pods.get(uid)
            if queued is not None and queued.gating_plugin and queued.flushed:
                return True
            del self._gated_overdue[uid]
        return False

    def fire(self, timer: Timer) -> None:
        """Do what a timer of `due_timers` is for, unless its pod has moved on since."""
        queued = self._known.get(timer.uid)
        if not timer.uid:
            self.flush_gated()
        elif queued is None:
            return
        elif timer.kind == FLUSH:
            if queued.place is Place.UNSCHEDULABLE:
                self._flush(queued)
        elif queued.place in (Place.BACKOFF, Place.ERROR_BACKOFF):
            self._to_active(queued, BACKOFF_COMPLETE, gated=False)

    def _flush(self, queued: QueuedPod) -> None:
        queued.flushed = True
        if queued.gating_plugin:
            self._gated_overdue[queued.pod.uid] = None
            return  # Only what its gate listens to frees a gated pod.
        self._requeue(queued, Strategy.AFTER_BACKOFF, UNSCHEDULABLE_TIMEOUT)

    # -- where a pod goes ----------------------------------------------------------------------

    def _requeue(self, queued: QueuedPod, strategy: Strategy, happening: Happening) -> None:
        if strategy is Strategy.SKIP:
            return
        if strategy is Strategy.AFTER_BACKOFF and self._is_backing_off(queued):
            self._to_backoff(queued)
        else:
            self._to_active(queued, happening)

    def _to_active(self, queued: QueuedPod, happening: Happening, *, gated: bool = True) -> None:
        if gated and self._is_gated(queued):
            if queued.place is None:
                self._park(queued)
            return
        if queued.initial_attempt_ms is None:
            queued.initial_attempt_ms = self.now_ms
        self._leave(queued)
        self._push_active(queued)
        if happening in (UNSCHEDULABLE_POD_ADD, UNSCHEDULABLE_POD_UPDATE):
            self.nominator.add(queued.pod)

    def _to_backoff(self, queued: QueuedPod) -> None:
        if self._is_gated(queued):
            return  # It is parked, and stays so.
        expiry = self._backoff_expiry(queued)
        self._leave(queued)
        entry = self._enter(queued)
        if queued.rejectors:
            queued.place = Place.BACKOFF
            key = (expiry, -queued.pod.priority, queued.timestamp_ms, entry, queued.pod.uid)
            heapq.heappush(self._backoff, key)
        else:
            queued.place = Place.ERROR_BACKOFF
            heapq.heappush(self._error_backoff, (expiry, entry, queued.pod.uid))

    def _push_active(self, queued: QueuedPod) -> None:
        entry = self._enter(queued)
        queued.place = Place.ACTIVE
        key = (-queued.pod.priority, queued.timestamp_ms, entry, queued.pod.uid)
        heapq.heappush(self._active, key)

    def _park(self, queued: QueuedPod) -> None:
        self._leave(queued)
        entry = self._enter(queued)
        queued.place = Place.UNSCHEDULABLE
        self.unschedulable_pods[queued.pod.uid] = queued
        self._count_rejectors(queued.rejectors, 1)
        heapq.heappush(self._parked, (queued.timestamp_ms, entry, queued.pod.uid))

    def _leave(self, queued: QueuedPod) -> None:
        if queued.place is Place.UNSCHEDULABLE:
            del self.unschedulable_pods[queued.pod.uid]
            self._count_rejectors(queued.rejectors, -1)
        queued.place = None

    def _enter(self, queued: QueuedPod) -> int:
        self._entries += 1
        queued.entry = self._entries
        return queued.entry

    def _head(self, heap: list[Any], place: Place) -> QueuedPod | None:
        """Return the first of a heap, dropping entries of pods that have left it since."""
        while heap:
            *_, entry, uid = heap[0]
            queued = self._known.get(uid)
            if queued is not None and queued.place is place and queued.entry == entry:
                return queued
            heapq.heappop(heap)
        return None

    def _is_gated(self, queued: QueuedPod) -> bool:
        plugin = self.gate(queued.pod, queued.gating_plugin)
        queued.gating_plugin = plugin
        if plugin and plugin not in queued.unschedulable_plugins:
            queued.unschedulable_plugins = (*queued.unschedulable_plugins, plugin)
            if queued.place is Place.UNSCHEDULABLE:
                self._count_rejectors((plugin,), 1)
        return bool(plugin)

    def _count_rejectors(self, plugins: Sequence[str], change: int) -> None:
        for plugin in plugins:
            self._parked_by[plugin] = self._parked_by.get(plugin, 0) + change

    # -- back-off ------------------------------------------------------------------------------

    def _backoff_expiry(self, queued: QueuedPod) -> int:
        if queued.backoff_expiry_ms is None:
            queued.backoff_expiry_ms = backoff_expiry(
                queued, initial_ms=self.initial_backoff_ms, max_ms=self.max_backoff_ms
            )
        return queued.backoff_expiry_ms

    def _is_backing_off(self, queued: QueuedPod) -> bool:
        return self._backoff_expiry(queued) >= self.now_ms // SECOND_MS * SECOND_MS

    # -- events --------------------------------------------------------------------------------

    def _worth_requeuing(
        self, queued: QueuedPod, happening: Happening, old: Any, new: Any
    ) -> Strategy:
        """Ask whoever rejected the pod; a pod that is parked was rejected by somebody."""
        rejectors = queued.rejectors
        if happening.is_wildcard:
            mine = new is None or (isinstance(new, Pod) and new.uid == queued.pod.uid)
            return Strategy.AFTER_BACKOFF if mine else Strategy.SKIP
        registered = self.registrations.get(queued.pod.scheduler_name)
        if registered is None:
            return Strategy.AFTER_BACKOFF
        found = Strategy.SKIP
        for registration in registered:
            if registration.plugin not in rejectors or not registration.matches(happening):
                continue
            if not registration.helps(queued.pod, old, new):
                continue
            if registration.plugin in queued.pending_plugins:
                return Strategy.IMMEDIATELY
            found = Strategy.AFTER_BACKOFF
            if not queued.pending_plugins:
                break
        return found

    def _listeners(self, happening: Happening) -> frozenset[str]:
        """Return the plugins that registered something that the event matches."""
        found = self._listening.get(happening)
        if found is None:
            found = self._listening[happening] = frozenset(
                registration.plugin
                for registered in self.registrations.values()
                for registration in registered
                if registration.matches(happening)
            )
        return found

    def _gate_listens(self, queued: QueuedPod, happening: Happening) -> bool:
        if happening.is_wildcard:
            return False
        return any(
            registration.plugin == queued.gating_plugin and registration.matches(happening)
            for registration in self.registrations.get(queued.pod.scheduler_name, ())
        )

    def _end_flight(self, uid: str) -> None:
        self.in_flight.end(uid).place = None
