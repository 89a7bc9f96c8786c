"""Deciding about one pod: where it goes, or why it cannot go anywhere (SchedulePod and PostFilter).

`decide` looks and changes nothing that anybody can see; `attempt` also assumes the pod in the cache
and runs Reserve and Permit, and takes all of it back if one of them refuses.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from decklog.core.cache import Cache
from decklog.core.columns import Rows
from decklog.core.cycle import Cycle, CycleResult
from decklog.core.framework.config import SchedulerConfig
from decklog.core.framework.points import Profile
from decklog.core.framework.runners import run_permit, run_reserve, run_unreserve
from decklog.core.framework.status import SUCCESS, Code, Status
from decklog.core.nominator import Nominator
from decklog.core.outcome import SCHEDULER_ERROR, Failed, Outcome, Placed
from decklog.core.plan import Plan
from decklog.core.row_loads import KeptLoads
from decklog.core.scoring import Scored
from decklog.core.verdicts import VerdictCache
from decklog.events.facts import PodAssumed, PodRef, PodUnschedulable, PodWaiting, Rejection
from decklog.objects.pod import Pod

__all__ = ["CycleResult", "Engine", "Failed", "Outcome", "Placed"]

RESERVATION: Final = "Reservation"
"""Kind under which plugins find (node, plan) by pod uid, from Reserve until the pod is gone."""

Ask = Callable[[bytes], bytes]
"""How an extender is asked."""


@dataclass(slots=True)
class Engine:
    config: SchedulerConfig
    cache: Cache
    profiles: Mapping[str, Profile]
    nominator: Nominator
    start_index: int = 0
    """Where the next search starts in the list of nodes: only matters if nodes are sampled."""
    verdicts: VerdictCache = field(init=False)
    loads: KeptLoads = field(init=False)
    _has_looked: bool = False
    """Whether a cycle began whose decision was not followed yet."""
    _plans: dict[str, Plan] = field(init=False)

    def __post_init__(self) -> None:
        self.verdicts = VerdictCache(self.cache.columns)
        self.loads = KeptLoads(self.cache.columns, self.nominator)
        self._plans = {name: Plan(profile) for name, profile in self.profiles.items()}

    def gate(self, pod: Pod, gated_by: str = "") -> str:
        """Return the PreEnqueue plugin that keeps the pod out of the queue; empty if none does."""
        profile = self.profiles.get(pod.scheduler_name)
        if profile is None:
            return ""
        plugins = sorted(profile.pre_enqueue, key=lambda plugin: plugin.name != gated_by)
        for plugin in plugins:
            if not plugin.pre_enqueue(pod).is_success:
                return plugin.name
        return ""

    def decide(self, pod: Pod, *, attempt: int) -> CycleResult:
        """Return where the pod goes, or what PostFilter says."""
        self._has_looked = True
        return self._cycle(pod, attempt).run()

    def scores(self, result: CycleResult, rows: Rows) -> Scored:
        """Return what these rows score, also where the cycle had no need to know."""
        return self._cycle(result.pod, 1).scores(result, rows)

    def attempt(self, pod: Pod, *, attempt: int, ask: Ask | None = None) -> Outcome:
        """Decide, and assume the pod where it goes."""
        result = self.decide(pod, attempt=attempt)
        if result.node is None:
            return _failed(result)
        if self.cache.node_of(pod.uid) is not None:
            text = f"pod {pod.uid}({pod.key}) is in the cache, so can't be assumed"
            return Failed(reason=SCHEDULER_ERROR, error=text, node_count=result.node_count)
        return self._assume(pod, result.node, result)

    def _assume(self, pod: Pod, node: str, result: CycleResult) -> Outcome:
        profile, state = result.profile, result.state
        self.cache.assume_pod(pod, node)
        plan: dict[str, Any] = {}
        if profile.reserve:
            plan, status = run_reserve(profile.reserve, state, pod, node)
            if plan:
                self.cache.set_object(RESERVATION, pod.uid, (node, plan))
            if not status.is_success:
                return self._take_back(pod, node, plan, status)
        waits: tuple[tuple[str, int], ...] = ()
        if profile.permit:
            status, waits = run_permit(profile.permit, state, pod, node)
            if not (status.is_success or waits):
                return self._take_back(pod, node, plan, status)
        found = result.found
        assert found is not None
        return Placed(
            node=node,
            feasible_count=found.feasible_count,
            evaluated_count=found.evaluated_count,
            tie_count=result.tie_count,
            rejected=result.rejected,
            top=result.top,
            plan=plan,
            waits=waits,
        )

    def _take_back(self, pod: Pod, node: str, plan: Mapping[str, Any], status: Status) -> Failed:
        self.unreserve(pod, node, plan)
        self.cache.forget_pod(pod.uid)
        if not status.is_rejected:
            return Failed(reason=SCHEDULER_ERROR, error=status.message)
        rejection = Rejection(status.plugin, int(status.code), status.all_reasons, 1, (node,))
        plugins, pending = _rejectors((rejection,))
        return Failed(
            node_count=1,
            rejected=(rejection,),
            unschedulable_plugins=plugins,
            pending_plugins=pending,
        )

    # -- what was decided, here or elsewhere ---------------------------------------------------

    def follow(self, decision: PodAssumed | PodWaiting | PodUnschedulable, pod: Pod) -> None:
        """Be in the state in which a cycle with this decision leaves an engine.

        To be called once for each cycle's decision, before it is applied to the cache, whether it
        was decided here or is read from the ledger: what cycles carry on (the snapshot's list, the
        numbers of nodes that have an image, the start index) then is the same in every process.
        A cycle that ended in an error, or at Reserve or Permit, does not move the start index
        (upstream's does): nothing records how far it looked.
        """
        if not self._has_looked:
            self.cache.update_snapshot()
        self._has_looked = False
        count = self.cache.columns.node_count
        if isinstance(decision, PodUnschedulable):
            looked_at = decision.node_count - decision.absent_count
            is_search = decision.node_count == count and not decision.error
        else:
            looked_at = decision.evaluated_count
            is_search = decision.node != pod.nominated_node_name
        if is_search and count:
            self.start_index = (self.start_index + looked_at) % count

    def assume(self, pod: Pod, node: str, plan: Mapping[str, Any]) -> None:
        """Take over a placement that was decided and recorded."""
        self.cache.assume_pod(pod, node)
        if plan:
            self.cache.set_object(RESERVATION, pod.uid, (node, plan))

    def unreserve(self, pod: Pod | PodRef, node: str, plan: Mapping[str, Any]) -> Sequence[str]:
        """Undo the plan of an assume and return what cannot be undone; may be called twice."""
        known = pod if isinstance(pod, Pod) else self.cache.pod(pod.uid)
        if known is None:
            known = Pod(uid=pod.uid, namespace=pod.namespace, name=pod.name)
        profile = self.profiles.get(known.scheduler_name)
        residue = [] if profile is None else run_unreserve(profile.reserve, known, node, plan)
        self.cache.delete_object(RESERVATION, known.uid)
        return residue

    def _cycle(self, pod: Pod, attempt: int) -> Cycle:
        return Cycle(
            self.cache,
            self._plans[pod.scheduler_name],
            self.verdicts,
            self.config,
            pod,
            attempt,
            self.start_index,
            self.loads,
        )


def _failed(result: CycleResult) -> Failed:
    if result.failure is not None:
        failure = result.failure
        if failure.is_rejected:
            return Failed(error=failure.message, node_count=result.node_count)
        return Failed(reason=SCHEDULER_ERROR, error=failure.message, node_count=result.node_count)
    pre_filter, post_filter = result.pre_filter, result.post_filter
    plugins, pending = _rejectors(result.rejected, pre_filter.status, pre_filter.narrowing)
    looked_at = 0 if result.found is None else result.found.evaluated_count
    rejected_outright = pre_filter.status.is_rejected
    outcome = None if post_filter is None else post_filter.result
    return Failed(
        node_count=result.node_count,
        rejected=result.rejected,
        absent=result.absent.all_reasons,
        absent_count=result.node_count - looked_at,
        pre_filter_message=pre_filter.status.message if rejected_outright else "",
        post_filter_message="" if post_filter is None else post_filter.status.message,
        unschedulable_plugins=plugins,
        pending_plugins=pending,
        nominate=_nomination(result),
        victims=outcome,
    )


def _nomination(result: CycleResult) -> str | None:
    """Return what becomes of the pod's nomination: PostFilter says, or it is cleared."""
    if result.post_filter is None:
        return ""
    made = result.post_filter.result
    return None if made is None else made.nominate


def _rejectors(
    rejected: Sequence[Rejection],
    pre_filter: Status = SUCCESS,
    narrowing: Sequence[str] = (),
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the plugins that the failure is put down to, and those that wait for something."""
    answers = [(group.plugin, group.code) for group in rejected]
    if pre_filter.is_rejected:
        answers.append((pre_filter.plugin, pre_filter.code))
    plugins = {plugin for plugin, _ in answers if plugin} | set(narrowing)
    pending = {plugin for plugin, code in answers if plugin and code == Code.PENDING}
    return tuple(sorted(plugins)), tuple(sorted(pending))
