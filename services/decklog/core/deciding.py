"""What is decided next, and what a decision does to the state.

`propose…` and `closing` look and change nothing that `accept` or `retract` does not settle: an
attempt assumes its pod in the cache, so that Reserve and Permit see it there; accepting the
decision keeps that, retracting it takes it back. `accept` takes any decision, ours or the
ledger's, and is the only place that moves `seq`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, assert_never

from decklog.core.errors import IllegalTransition
from decklog.core.framework.diagnosis import go_duration
from decklog.core.framework.events import ASSIGNED_POD_DELETE
from decklog.core.queued_pod import Timer
from decklog.core.schedule import RESERVATION, Failed, Placed
from decklog.core.state import Ask, Ending, OpenAssume, SchedulerState, pod_ref
from decklog.events.facts import (
    BindingAdopted,
    Decision,
    EndReason,
    GangCommitted,
    PermitWait,
    PodAssumed,
    PodSkipped,
    PodUnreserved,
    PodUnschedulable,
    PodWaiting,
    VictimsSelected,
)
from decklog.objects.pod import Pod

SKIP_DELETING: Final = "deleting"
SKIP_ASSUMED: Final = "assumed"
PERMIT: Final = "permit"


@dataclass(slots=True)
class Decider:
    state: SchedulerState

    # -- what would be decided -----------------------------------------------------------------

    def take_causes(self) -> Sequence[Ending | BindingAdopted]:
        """Return what the events at hand ended or adopted, by position, and forget it."""
        causes = self.state.causes[:]
        self.state.causes.clear()
        return causes

    def closing(self, cause: Ending | BindingAdopted) -> Decision:
        """Return the decision that a cause asks for."""
        if isinstance(cause, BindingAdopted):
            return cause
        state = self.state
        assume = state.open_assumes[cause.uid]
        pod = state.store.get("Pod", cause.uid)
        pending = pod is not None and not pod.node_name and not pod.finished
        return PodUnreserved(
            pod=assume.pod,
            node=assume.node,
            closes_seq=assume.seq,
            reason=cause.reason,
            message=cause.message,
            plugin=cause.plugin,
            pending=pending,
            generation=pod.generation if pending and pod is not None else 0,
            residue=tuple(state.engine.unreserve(assume.pod, assume.node, assume.plan)),
        )

    def due(self) -> list[Timer]:
        """Return the timers that are due, in the order in which they fire."""
        now = self.state.now_ms
        due = self.state.queue.due_timers()
        for uid, assume in self.state.open_assumes.items():
            if assume.waiting and min(assume.waiting.values()) <= now:
                due.append(Timer(min(assume.waiting.values()), PERMIT, uid))
        return sorted(due)

    def timed_out(self, timer: Timer) -> Ending:
        """Return what the end of a wait at Permit causes."""
        assume = self.state.open_assumes[timer.uid]
        plugin = _first_timed_out(assume)
        waited = go_duration(assume.waiting[plugin] - assume.since_ms)
        message = f"rejected due to timeout after waiting {waited} at plugin {plugin}"
        self.state.ending.add(assume.seq)
        return Ending(assume.seq, timer.uid, EndReason.PERMIT_TIMED_OUT, message, plugin)

    def propose(self, ask: Ask | None = None) -> Sequence[Decision]:
        """Return what the next cycle would decide: nothing if no pod is ready to be tried."""
        queued = self.state.queue.peek()
        if queued is None:
            return ()
        pod = queued.pod
        if pod.deleted:
            return (PodSkipped(pod=pod_ref(pod), reason=SKIP_DELETING),)
        if self.state.cache.is_assumed(pod.uid):
            return (PodSkipped(pod=pod_ref(pod), reason=SKIP_ASSUMED),)
        attempt = queued.attempts + 1
        outcome = self.state.engine.attempt(pod, attempt=attempt, ask=ask)
        if isinstance(outcome, Placed):
            return (self._placed(pod, attempt, outcome),)
        return self._failed(pod, attempt, outcome)

    def _placed(self, pod: Pod, attempt: int, outcome: Placed) -> PodAssumed | PodWaiting:
        now = self.state.now_ms
        assumed = PodAssumed(
            pod=pod_ref(pod),
            node=outcome.node,
            resource_version=pod.resource_version,
            profile=pod.scheduler_name,
            attempt=attempt,
            feasible_count=outcome.feasible_count,
            evaluated_count=outcome.evaluated_count,
            tie_count=outcome.tie_count,
            rejected=outcome.rejected,
            top=outcome.top,
            plan=dict(outcome.plan),
        )
        if not outcome.waits:
            return assumed
        waits = tuple(PermitWait(plugin, now + timeout) for plugin, timeout in outcome.waits)
        return PodWaiting(
            pod=assumed.pod,
            node=assumed.node,
            resource_version=assumed.resource_version,
            profile=assumed.profile,
            attempt=attempt,
            feasible_count=assumed.feasible_count,
            evaluated_count=assumed.evaluated_count,
            tie_count=assumed.tie_count,
            rejected=assumed.rejected,
            top=assumed.top,
            plan=assumed.plan,
            waits=waits,
        )

    def _failed(self, pod: Pod, attempt: int, outcome: Failed) -> Sequence[Decision]:
        ref = pod_ref(pod)
        failure = PodUnschedulable(
            pod=ref,
            reason=outcome.reason,
            resource_version=pod.resource_version,
            generation=pod.generation,
            profile=pod.scheduler_name,
            attempt=attempt,
            node_count=outcome.node_count,
            rejected=outcome.rejected,
            absent=outcome.absent,
            absent_count=outcome.absent_count,
            pre_filter_message=outcome.pre_filter_message,
            post_filter_message=outcome.post_filter_message,
            error=outcome.error,
            unschedulable_plugins=outcome.unschedulable_plugins,
            pending_plugins=outcome.pending_plugins,
            nominated_node=outcome.nominate,
        )
        failure = self._shortened(failure)
        made = outcome.victims
        if made is None or not made.nominate:
            return (failure,)
        staying = [victim for victim in made.victims if victim.deleted is None]
        if not staying:
            return (failure,)  # All are on their way; as upstream, nothing is done then.
        selected = VictimsSelected(
            pod=ref,
            node=made.nominate,
            victims=tuple(pod_ref(victim) for victim in staying),
            pdb_violations=made.pdb_violations,
            candidate_count=made.candidate_count,
            tie_count=made.tie_count,
            nominations_cleared=tuple(pod_ref(other) for other in made.nominations_cleared),
        )
        return (selected, failure)

    def _shortened(self, failure: PodUnschedulable) -> PodUnschedulable:
        """Return the failure as a reference to an equal one of the same pod, if there is one."""
        known = self.state.failures.get(failure.pod.uid)
        if known is None or replace(failure, attempt=known[1].attempt) != known[1]:
            return failure
        return PodUnschedulable(
            pod=failure.pod, reason=failure.reason, attempt=failure.attempt, same_as=known[0]
        )

    # -- what a decision does ------------------------------------------------------------------

    def retract(self, decisions: Sequence[Decision]) -> None:
        """Take back what proposing these did to the cache: they are not what was decided."""
        for decision in decisions:
            if isinstance(decision, PodAssumed | PodWaiting):
                self.state.engine.unreserve(decision.pod, decision.node, decision.plan)
                self.state.cache.forget_pod(decision.pod.uid)
            elif isinstance(decision, PodUnreserved):
                assume = self.state.open_assumes[decision.pod.uid]
                if assume.plan:
                    kept = (assume.node, assume.plan)
                    self.state.cache.set_object(RESERVATION, decision.pod.uid, kept)

    def accept(self, decision: Decision) -> int:
        """Make the decision part of the state and return its seq."""
        self.state.seq += 1
        seq = self.state.seq
        match decision:
            case PodAssumed():
                self._assume(seq, decision)
            case PodWaiting():
                self._assume(seq, decision)
            case PodUnschedulable():
                self._park(seq, decision)
            case PodSkipped(pod=ref):
                self.state.queue.pop(ref.uid)
                self.state.queue.done(ref.uid)
            case PodUnreserved():
                self._unreserve(decision)
            case VictimsSelected(pod=preemptor, victims=victims, nominations_cleared=cleared):
                for ref in cleared:
                    self.state.nominator.delete(ref.uid)
                self.state.preempting.begin(preemptor.uid, seq, [one.uid for one in victims])
            case BindingAdopted() | GangCommitted():
                pass  # The event that was adopted changed the cache already.
            case _ as unreachable:
                assert_never(unreachable)
        return seq

    def _assume(self, seq: int, decision: PodAssumed | PodWaiting) -> None:
        state, uid = self.state, decision.pod.uid
        if isinstance(decision, PodAssumed) and decision.closes_seq is not None:
            self._allow(seq, decision)
            return
        if uid in state.open_assumes:
            msg = f"decision {seq} assumes pod {decision.pod.key!r}, which is assumed already"
            raise IllegalTransition(msg)
        pod = state.store.get("Pod", uid)
        if pod is None:
            msg = f"decision {seq} assumes pod {decision.pod.key!r}, which does not exist"
            raise IllegalTransition(msg)
        state.queue.pop(uid)
        state.engine.follow(decision, pod)
        if not state.cache.is_assumed(uid):
            state.engine.assume(pod, decision.node, decision.plan)
        waiting = {}
        if isinstance(decision, PodWaiting):
            waiting = {wait.plugin: wait.deadline_ms for wait in decision.waits}
        else:
            state.queue.assumed(uid)
        state.nominator.delete(uid)
        state.preempting.end(uid)
        state.failures.pop(uid, None)
        counted = state.cache.pod(uid)
        assert counted is not None
        state.open_assumes[uid] = OpenAssume(
            seq=seq,
            pod=decision.pod,
            node=decision.node,
            plan=decision.plan,
            counted=counted,
            waiting=waiting,
            since_ms=state.now_ms,
        )

    def _allow(self, seq: int, decision: PodAssumed) -> None:
        """The last Permit plugin allowed: the waiting assume becomes one that is bound."""
        assume = self.state.open_assumes.get(decision.pod.uid)
        if assume is None or assume.seq != decision.closes_seq:
            msg = f"decision {seq} closes {decision.closes_seq}, which is not open"
            raise IllegalTransition(msg)
        self.state.queue.assumed(decision.pod.uid)
        assume.seq = seq
        assume.waiting = {}

    def _park(self, seq: int, decision: PodUnschedulable) -> None:
        state, uid = self.state, decision.pod.uid
        full = decision
        if decision.same_as is not None:
            known = state.failures.get(uid)
            if known is None or known[0] != decision.same_as:
                msg = f"decision {seq} is the same as {decision.same_as}, which is not known"
                raise IllegalTransition(msg)
            full = known[1]
        else:
            state.failures[uid] = (seq, decision)
        pod = state.store.get("Pod", uid)
        if pod is not None:
            state.engine.follow(full, pod)
        state.queue.pop(uid)
        self._put_back(
            uid,
            unschedulable=full.unschedulable_plugins,
            pending=full.pending_plugins,
            nominate=full.nominated_node,
        )

    def _put_back(
        self,
        uid: str,
        *,
        unschedulable: Sequence[str] = (),
        pending: Sequence[str] = (),
        nominate: str | None = "",
    ) -> None:
        """Queue the pod again after a failure, unless it is gone or bound (FailureHandler)."""
        state = self.state
        pod = state.store.get("Pod", uid)
        if pod is None or pod.node_name or pod.finished:
            state.queue.done(uid)
            return
        state.queue.add_unschedulable(
            pod, unschedulable_plugins=unschedulable, pending_plugins=pending
        )
        state.nominator.add(pod, nominate)

    def _unreserve(self, decision: PodUnreserved) -> None:
        """Undo the assume: unreserve, forget, wake whom the room helps, queue the pod again.

        After a rejection the pod is queued first, or its own release would wake it.
        """
        state, uid = self.state, decision.pod.uid
        assume = state.open_assumes.get(uid)
        if assume is None or assume.seq != decision.closes_seq:
            msg = f"assume {decision.closes_seq} of pod {decision.pod.key!r} is not open"
            raise IllegalTransition(msg)
        del state.open_assumes[uid]
        state.ending.discard(assume.seq)
        state.engine.unreserve(assume.pod, assume.node, assume.plan)
        if state.cache.is_assumed(uid):
            state.cache.forget_pod(uid)
        if decision.reason in EndReason.AT_PERMIT:
            self._put_back(uid, unschedulable=(decision.plugin,))
            state.queue.move_all(
                ASSIGNED_POD_DELETE, assume.counted, None, lambda waiting: waiting.uid != uid
            )
            return
        state.queue.move_all(ASSIGNED_POD_DELETE, assume.counted, None)
        self._put_back(uid)


def _first_timed_out(assume: OpenAssume) -> str:
    return min(assume.waiting, key=lambda plugin: (assume.waiting[plugin], plugin))
