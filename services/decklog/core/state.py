"""The scheduler as one value: what it was told, what it decided, and the next decision.

`apply` takes events, `Decider.accept` takes decisions; both are facts, and together they are the
state. The leader proposes and accepts its own proposals, a rebuild accepts what the ledger holds,
and verify proposes, compares, and accepts what the ledger holds (`deciding.py`). A tick, in its
exact order, is in `tick.py`.

An assume opens with PodAssumed or PodWaiting and ends by its confirmation (bind.succeeded, or the
pod seen on that node) or by exactly one PodUnreserved, whatever the cause. `apply` only notes the
cause; the same tick decides.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from decklog.core.cache import Cache
from decklog.core.errors import IllegalTransition
from decklog.core.framework.config import SchedulerConfig
from decklog.core.framework.events import (
    ADD,
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    DELETE,
    NODE_ADD,
    NODE_DELETE,
    UPDATE,
    Happening,
    node_update_events,
    pod_update_events,
    resource_of,
)
from decklog.core.nominator import Nominator
from decklog.core.plugins.registrations import registrations_of
from decklog.core.plugins.registry import build_profiles
from decklog.core.preempting import GATE, Preempting
from decklog.core.queue import SchedulingQueue
from decklog.core.queued_pod import SECOND_MS
from decklog.core.schedule import RESERVATION, Engine
from decklog.core.store import ObjectStore, object_key
from decklog.events.facts import (
    BindFailed,
    BindingAdopted,
    BindSucceeded,
    BindUnknown,
    EndReason,
    Event,
    LeaderElected,
    NodeUpserted,
    ObjectDeleted,
    PodRef,
    PodUnschedulable,
    PodUpserted,
    Record,
    ResyncFinished,
    ResyncRequested,
    ResyncStarted,
    Undecodable,
    VictimDeleted,
    VictimRefused,
)
from decklog.objects.kinds import KIND_BY_NAME
from decklog.objects.meta import STAMP, KubeObject
from decklog.objects.node import Node
from decklog.objects.pod import Pod

Ask = Callable[[bytes], bytes]
"""How an extender is asked: live over HTTP, on replay from the tick's record."""


@dataclass(slots=True)
class OpenAssume:
    """An assume that nothing has ended yet."""

    seq: int
    pod: PodRef
    node: str
    plan: Mapping[str, Any]
    counted: Pod
    """As it is counted on the node."""
    waiting: dict[str, int] = field(default_factory=dict)
    """Permit plugin → deadline (ms); empty once the bind is asked for."""
    since_ms: int = 0


@dataclass(frozen=True, slots=True)
class Ending:
    seq: int
    uid: str
    reason: str
    message: str = ""
    plugin: str = ""
    """Who rejected the pod at Permit."""


@dataclass(slots=True)
class SchedulerState:
    config: SchedulerConfig
    cache: Cache = field(default_factory=Cache)
    store: ObjectStore = field(default_factory=ObjectStore)
    nominator: Nominator = field(default_factory=Nominator)
    position: int = -1
    now_ms: int = 0
    seq: int = 0
    generation: int = 0
    open_assumes: dict[str, OpenAssume] = field(default_factory=dict)
    """By pod uid."""
    resync_requests: list[ResyncRequested] = field(default_factory=list)
    """What the events at hand gave cause to ask for; the service appends and clears it."""
    complete: set[str] = field(default_factory=set)
    """Kinds of which a resync has finished."""
    foreign_pods: int = 0
    """Unbound pods of no profile that were seen: counted, never queued."""
    engine: Engine = field(init=False)
    queue: SchedulingQueue = field(init=False)
    preempting: Preempting = field(init=False)
    causes: list[Ending | BindingAdopted] = field(default_factory=list)
    """What the events at hand ended or adopted, in the order of their positions."""
    ending: set[int] = field(default_factory=set)
    failures: dict[str, tuple[int, PodUnschedulable]] = field(default_factory=dict)
    """Pod uid → the last diagnosis that was written in full."""

    def __post_init__(self) -> None:
        profiles = build_profiles(self.config)
        self.engine = Engine(self.config, self.cache, profiles, self.nominator)
        self.preempting = Preempting(self.store)
        self.queue = SchedulingQueue(
            gate=self._gate,
            registrations=registrations_of(
                {name: tuple(profile.plugins.values()) for name, profile in profiles.items()}
            ),
            nominator=self.nominator,
            initial_backoff_ms=self.config.pod_initial_backoff_seconds * SECOND_MS,
            max_backoff_ms=self.config.pod_max_backoff_seconds * SECOND_MS,
            flush_after_ms=self.config.unschedulable_flush_seconds * SECOND_MS,
        )

    def _gate(self, pod: Pod, gated_by: str) -> str:
        """Return the plugin that keeps the pod out of the queue; empty if none does."""
        plugin = self.engine.gate(pod, gated_by)
        if plugin or not self.preempting.is_waiting(pod.uid):
            return plugin
        profile = self.engine.profiles[pod.scheduler_name]
        return GATE if any(one.name == GATE for one in profile.pre_enqueue) else ""

    # -- time ----------------------------------------------------------------------------------

    def set_now(self, now_ms: int) -> None:
        """Set logical time for a tick. It never goes back."""
        if now_ms < self.now_ms:
            msg = f"logical time would go back from {self.now_ms} to {now_ms}"
            raise IllegalTransition(msg)
        self.now_ms = now_ms
        self.queue.now_ms = now_ms

    def next_timer_ms(self) -> int | None:
        """Return when the next timer is due, if any is set."""
        deadlines = [
            deadline
            for assume in self.open_assumes.values()
            for deadline in assume.waiting.values()
        ]
        queue_timer = self.queue.next_timer_ms()
        if queue_timer is not None:
            deadlines.append(queue_timer)
        return min(deadlines, default=None)

    # -- events --------------------------------------------------------------------------------

    def apply(self, record: Record) -> None:
        """Take in one event. One that we know, or an object's older version, changes nothing."""
        if record.position <= self.position:
            return  # Redelivered: the log is at-least-once.
        self._apply(record.fact)
        self.position = record.position

    def _apply(self, fact: Event) -> None:  # noqa: C901, PLR0912 - one case for each kind of fact
        match fact:
            case PodUpserted(pod=pod):
                self._pod_upserted(pod)
            case NodeUpserted(node=node):
                self._node_upserted(node)
            case ObjectDeleted():
                self._object_deleted(fact)
            case BindSucceeded(pod_uid=uid, seq=seq):
                if self._is_open(uid, seq):
                    self._confirm(uid)
            case BindFailed(pod_uid=uid, seq=seq, reason=reason, message=message):
                if self._is_open(uid, seq):
                    self._end(uid, EndReason.REJECTED, message or reason)
            case VictimRefused(seq=seq):
                preemptor = self.preempting.refused(seq)
                if preemptor is not None:
                    self.queue.activate(preemptor)
            case BindUnknown() | VictimDeleted() | ResyncRequested():
                pass  # Nothing is known, or the watch brings it; a resync is the watcher's to do.
            case ResyncStarted():
                self.store.begin_resync(fact)
            case ResyncFinished():
                self._resync_finished(fact)
            case LeaderElected(generation=generation):
                self.generation = max(self.generation, generation)
            case Undecodable():
                self._taint(fact)
            case _:
                self._other_upserted(fact.object)

    def _other_upserted(self, obj: KubeObject) -> None:
        kind = type(obj).__name__
        old, replaced, news = self.store.upsert(kind, obj)
        if not news:
            return
        if replaced is not None:
            self._other_gone(kind, replaced)
        self.cache.set_object(kind, object_key(obj), obj)
        self.queue.move_all(Happening(resource_of(kind), UPDATE if old else ADD), old, obj)

    def _other_gone(self, kind: str, old: Any) -> None:
        self.cache.delete_object(kind, object_key(old))
        self.queue.move_all(Happening(resource_of(kind), DELETE), old, None)

    def _node_upserted(self, node: Node) -> None:
        old, replaced, news = self.store.upsert("Node", node)
        if not news:
            return
        if replaced is not None:
            self._node_gone(replaced)
        if old is None:
            self.cache.add_node(node)
            self.queue.move_all(NODE_ADD, None, node)
            return
        self.cache.update_node(old, node)
        for happening in node_update_events(old, node):
            self.queue.move_all(happening, old, node)

    def _node_gone(self, node: Node) -> None:
        self.queue.move_all(NODE_DELETE, node, None)
        self.cache.remove_node(node)

    def _object_deleted(self, fact: ObjectDeleted) -> None:
        old = self.store.delete(fact)
        if old is None:
            return
        was_counted = fact.kind == "Pod" and self.cache.pod(fact.uid) is not None
        self._gone(fact.kind, old)
        if fact.kind == "Pod" and fact.final_state_unknown and not old.node_name:
            self._unseen_end(old, was_counted=was_counted)

    def _unseen_end(self, old: Pod, *, was_counted: bool) -> None:
        """Wake whom it may help that a pod is gone whose last state nobody saw."""
        if not was_counted:
            self.queue.move_all(ASSIGNED_POD_DELETE, old, None)
        elif old.nominated_node_name and self._is_ours(old):
            self._nomination_gone(old)

    def _gone(self, kind: str, old: Any) -> None:
        if kind == "Pod":
            self._pod_gone(old, EndReason.DELETED)
        elif kind == "Node":
            self._node_gone(old)
        else:
            self._other_gone(kind, old)

    def _resync_finished(self, fact: ResyncFinished) -> None:
        for old in self.store.finish_resync(fact):
            self._gone(fact.kind, old)
        self.complete.add(fact.kind)

    def _taint(self, fact: Undecodable) -> None:
        """Trust no object of which we missed a change: keep new pods off it and have it re-read."""
        kind, _, key = fact.key.partition("/")
        if kind not in KIND_BY_NAME:
            return
        if kind == "Node":
            node = self.store.named("Node", key.rpartition("/")[2])
            if node is not None and not node.unschedulable:
                closed = replace(node, unschedulable=True)
                self.store.amend(
                    "Node", closed
                )  # Reading it again then opens it, which wakes pods.
                self.cache.update_node(node, closed)
        self.resync_requests.append(
            ResyncRequested(kind=kind, reason=f"undecodable event of {fact.key}: {fact.error}")
        )

    # -- pods ----------------------------------------------------------------------------------

    def _pod_upserted(self, pod: Pod) -> None:
        old, replaced, news = self.store.upsert("Pod", pod)
        if not news:
            return
        if replaced is not None:
            self._pod_gone(replaced, EndReason.RECREATED)
        if old is not None and (pod.finished or old.node_name not in ("", pod.node_name)):
            # It left the node it was on: it ran to its end, or the cluster was set back.
            self._pod_gone(old, EndReason.DELETED)
            old = None
        if pod.finished:
            return
        if old is not None and old.finished:
            old = None  # Set back, too: nobody has seen it since it had ended.
        if pod.node_name:
            self._pod_bound(old, pod)
        elif self._is_ours(pod):
            self._pod_pending(old, pod)
        elif old is None:
            self.foreign_pods += 1

    def _is_ours(self, pod: Pod) -> bool:
        return pod.scheduler_name in self.engine.profiles

    def _pod_bound(self, old: Pod | None, pod: Pod) -> None:
        if old is not None and old.node_name:
            self.cache.update_pod(old, pod)
            for happening in pod_update_events(old, pod):
                self.queue.move_all(happening, old, pod)
            return
        was = self._who_bound(pod)
        self.cache.add_pod(pod)
        self.queue.delete(pod.uid)
        self.failures.pop(pod.uid, None)
        self.preempting.end(pod.uid)
        if was is not None:
            stamp = pod.annotations.get(STAMP, "")
            self.causes.append(
                BindingAdopted(pod=pod_ref(pod), node=pod.node_name, was=was, stamp=stamp)
            )
        self.queue.move_all(ASSIGNED_POD_ADD, None, pod)

    def _who_bound(self, pod: Pod) -> str | None:
        """Say why a pod that is now seen bound must be adopted; None: it need not be."""
        assume = self.open_assumes.get(pod.uid)
        if assume is not None:
            ending = assume.waiting or assume.seq in self.ending
            if assume.node == pod.node_name and not ending:
                self._confirm(pod.uid)
                return None
            self._end(pod.uid, EndReason.BOUND_ELSEWHERE, f"bound to {pod.node_name}")
            return "assumed"
        if not self._is_ours(pod) or self.cache.is_assumed(pod.uid):
            return None
        if pod.uid in self.queue:
            return "queued"
        seq = pod.annotations.get(STAMP, "").partition(".")[0]
        return "stamped" if seq.isdigit() and int(seq) > self.seq else None

    def _pod_pending(self, old: Pod | None, pod: Pod) -> None:
        if self.cache.is_assumed(pod.uid):
            if pod.deleted and not (old and old.deleted):
                self._end(pod.uid, EndReason.DELETED, "deletion started")
            return
        if old is None or not self._is_ours(old):
            self.queue.add(pod)
            return
        self.queue.update(old, pod)
        if old.nominated_node_name and old.nominated_node_name != pod.nominated_node_name:
            self._nomination_gone(old)

    def _nomination_gone(self, old: Pod) -> None:
        priority = old.priority
        self.queue.move_all(
            ASSIGNED_POD_DELETE, old, None, lambda waiting: waiting.priority <= priority
        )

    def _pod_gone(self, old: Pod, reason: str) -> None:
        uid = old.uid
        self.failures.pop(uid, None)
        self.preempting.end(uid)
        self._end(uid, reason, "")
        if uid in self.open_assumes and self.cache.is_assumed(uid):
            return  # The decision that ends the assume frees the room.
        counted = self.cache.pod(uid)
        if counted is not None:
            self.cache.remove_pod(counted)
            if uid in self.cache.objects(RESERVATION):
                self.cache.delete_object(RESERVATION, uid)
            self.queue.move_all(ASSIGNED_POD_DELETE, counted, None)
            return
        self.queue.delete(uid)
        if old.nominated_node_name and self._is_ours(old):
            self._nomination_gone(old)

    def _is_open(self, uid: str, seq: int) -> bool:
        """Whether the answer is to the assume we hold: not an older one, nor one that is ending."""
        assume = self.open_assumes.get(uid)
        return assume is not None and assume.seq == seq and seq not in self.ending

    def _confirm(self, uid: str) -> None:
        del self.open_assumes[uid]
        self.queue.done(uid)

    def _end(self, uid: str, reason: str, message: str) -> None:
        """Have this tick decide the PodUnreserved that frees the room; the first cause wins."""
        assume = self.open_assumes.get(uid)
        if assume is not None and assume.seq not in self.ending:
            self.ending.add(assume.seq)
            self.causes.append(Ending(assume.seq, uid, reason, message))


def pod_ref(pod: Pod) -> PodRef:
    return PodRef(uid=pod.uid, namespace=pod.namespace, name=pod.name)
