"""One cycle: PreFilter, Filter, PreScore, Score for one pod, and PostFilter if nothing fits.

Extenders are not asked yet; their place is after `Search.find`.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from decklog.core.cache import Cache
from decklog.core.columns import Rows
from decklog.core.framework.config import SchedulerConfig
from decklog.core.framework.interface import (
    CycleState,
    Mask,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
)
from decklog.core.framework.points import Profile
from decklog.core.framework.runners import (
    PostFilterOutcome,
    PreFilterOutcome,
    run_post_filter,
    run_pre_filter,
    run_pre_score,
)
from decklog.core.framework.status import SUCCESS, Code, Status, error, unresolvable
from decklog.core.plan import Plan, PlannedScore
from decklog.core.row_loads import KeptLoads
from decklog.core.scoring import RowScorer, Scored, score_all
from decklog.core.search import Search
from decklog.core.search_result import Found
from decklog.core.select import choose, salt
from decklog.core.verdicts import ClassVerdicts, VerdictCache
from decklog.core.what_if import Trials, Verdict
from decklog.events.facts import NodeScore, Rejection
from decklog.objects.pod import Pod

NO_NODES: Final = "no nodes available to schedule pods"
TOP_COUNT: Final = 5
"""Nodes that a decision shows with their scores: enough to see by how much the best one won."""
_NO_REASONS: Final = unresolvable()
_NOT_ASKED: Final = PreFilterOutcome(SUCCESS)


@dataclass(slots=True)
class CycleResult:
    """What one cycle says about a pod. Arrays are by row, and hold until the cache changes."""

    pod: Pod
    profile: Profile
    state: CycleState
    node_count: int
    failure: Status | None = None
    """Why the cycle ended without an answer."""
    pre_filter: PreFilterOutcome = _NOT_ASKED
    found: Found | None = None
    """What filtering said; None if it did not come to that."""
    scored: Scored | None = None
    """None: there were not two nodes to choose from."""
    rejected: tuple[Rejection, ...] = ()
    top: tuple[NodeScore, ...] = ()
    tie_count: int = 0
    node: str | None = None
    """The node that is chosen."""
    post_filter: PostFilterOutcome | None = None
    """None: something fits, or there is no PostFilter plugin."""
    absent: Status = _NO_REASONS
    """Of every node that was not looked at."""


@dataclass(slots=True)
class Cycle:
    cache: Cache
    plan: Plan
    verdicts: VerdictCache
    config: SchedulerConfig
    pod: Pod
    attempt: int
    start_index: int
    loads: KeptLoads

    def run(self) -> CycleResult:
        cache, plan, table = self.cache, self.plan, self.cache.columns
        problem = cache.update_snapshot()
        kept = self.verdicts.of(plan, table.pod_class(self.pod), cache)
        state = CycleState(values=dict(kept.state.values), cluster=cache)
        result = CycleResult(self.pod, plan.profile, state, table.node_count)
        if problem is not None:
            result.failure = error(problem)
        elif result.node_count == 0:
            result.failure = unresolvable(NO_NODES)
        else:
            self._look(result, kept)
            if result.failure is None:
                self._settle(result, kept)
        if kept.grew:
            self.verdicts.weigh(kept)
        return result

    def scores(self, result: CycleResult, rows: Rows) -> Scored:
        """Return what these rows would score if they were those that the pod fits."""
        table = self.cache.columns
        kept = self.verdicts.of(self.plan, table.pod_class(self.pod), self.cache)
        feasible = np.zeros(len(table), dtype=np.bool_)
        feasible[rows] = True
        result.state.skip_score.clear()
        status = self._pre_score(result.state, kept, feasible)
        if not status.is_success:
            return Scored(np.zeros(0, dtype=np.int64), [], rows, status)
        columns = kept.score(self.pod, result.state.skip_score)
        return RowScorer(self.plan, table, result.state, self.pod, rows).score(columns)

    def _look(self, result: CycleResult, kept: ClassVerdicts) -> None:
        """Run PreFilter and Filter."""
        plan, config = self.plan, self.config
        outcome = self._pre_filter(result.state, kept)
        result.pre_filter = outcome
        if not outcome.status.is_success:
            if outcome.status.is_rejected:
                result.absent = outcome.status
            else:
                result.failure = outcome.status
            return
        percentage = plan.profile.config.percentage_of_nodes_to_score
        if percentage is None:
            percentage = config.percentage_of_nodes_to_score
        table = self.cache.columns
        kept.refresh(self.pod)
        trials = self._trials(result.state, kept)
        search = Search(plan, table, result.state, self.pod, percentage, self.start_index, trials)
        found = search.find(kept, outcome.node_names)
        result.found = found
        result.failure = found.failure
        result.rejected = _rejections(found, kept)
        if outcome.node_names is not None:
            result.absent = _not_named(outcome, found)

    def _settle(self, result: CycleResult, kept: ClassVerdicts) -> None:
        """Choose one of the nodes that fit; if none does, ask PostFilter."""
        found, table = result.found, self.cache.columns
        if found is None or found.feasible_count == 0:
            self._post_filter(result, kept)
            return
        if found.feasible_count == 1:
            result.node = table.names[int(found.feasible.argmax())]
            result.top = (NodeScore(result.node, 0),)
            result.tie_count = 1
            return
        scored = self._score(result, found, kept)
        result.scored = scored
        result.failure = scored.failure
        if scored.failure is not None:
            return
        salted = self._salt
        hashes = table.name_hash if scored.rows is None else table.name_hash[scored.rows]
        choice = choose(scored.totals, hashes, salted, TOP_COUNT)
        result.top = scored.node_scores(table, choice.rows)
        result.node = result.top[0].node
        result.tie_count = choice.tie_count

    def _pre_filter(self, state: CycleState, kept: ClassVerdicts) -> PreFilterOutcome:
        """Equivalent to asking every plugin; what holds for the class is not asked again."""
        table, pod, plan = self.cache.columns, self.pod, self.plan
        if kept.skip_filter is not None:
            state.skip_filter.update(kept.skip_filter)
            return run_pre_filter(
                plan.cluster_pre_filters,
                state,
                lambda plugin: plugin.pre_filter(state, pod, table),
            )

        def ask(plugin: PreFilterPlugin) -> tuple[PreFilterResult | None, Status]:
            name = plugin.name
            if name not in plan.kept:
                return plugin.pre_filter(state, pod, table)
            answer = kept.pre_filter.get(name)
            if answer is None:
                answer = kept.pre_filter[name] = plugin.pre_filter(kept.state, pod, table)
                state.values.update(kept.state.values)
            return answer

        outcome = run_pre_filter(plan.profile.pre_filter, state, ask)
        kept.note_pre_filter()
        return outcome

    def _score(self, result: CycleResult, found: Found, kept: ClassVerdicts) -> Scored:
        """Run PreScore, Score and NormalizeScore on the nodes that fit."""
        table, pod, plan, state = self.cache.columns, self.pod, self.plan, result.state
        status = self._pre_score(state, kept, found.feasible)
        if not status.is_success:
            return Scored(np.zeros(0, dtype=np.int64), [], failure=status)
        columns = kept.score(pod, state.skip_score)
        if found.is_kept:
            asked = [one for one in plan.cluster_scores if one.name not in state.skip_score]
            if not any(self._adds_something(planned, state) for planned in asked):
                return score_all(plan, columns, asked)
        return RowScorer(plan, table, state, pod, found.rows()).score(columns)

    def _adds_something(self, planned: PlannedScore, state: CycleState) -> bool:
        """Whether the plugin changes any total; one without normalisation that says 0 does not."""
        if planned.normalizer is not None:
            return True
        return bool(planned.plugin.score(state, self.pod, self.cache.columns).any())

    def _pre_score(self, state: CycleState, kept: ClassVerdicts, feasible: Mask) -> Status:
        """Equivalent to asking every plugin; what holds for the class is not asked again."""
        table, pod, plan = self.cache.columns, self.pod, self.plan
        if kept.skip_score is not None:
            state.skip_score.update(kept.skip_score)
            return run_pre_score(
                plan.cluster_pre_scores,
                state,
                lambda plugin: plugin.pre_score(state, pod, table, feasible),
            )

        def ask(plugin: PreScorePlugin) -> Status:
            name = plugin.name
            if name not in plan.kept:
                return plugin.pre_score(state, pod, table, feasible)
            status = kept.pre_score.get(name)
            if status is None:
                status = kept.pre_score[name] = plugin.pre_score(kept.state, pod, table, feasible)
                state.values.update(kept.state.values)
            return status

        status = run_pre_score(plan.profile.pre_score, state, ask)
        kept.note_pre_score()
        return status

    def _post_filter(self, result: CycleResult, kept: ClassVerdicts) -> None:
        plugins, pod, table = result.profile.post_filter, self.pod, self.cache.columns
        if not plugins:
            return
        if result.found is None and result.absent.code is Code.UNSCHEDULABLE:
            kept.refresh(self.pod)  # All of PreFilter ran; no node was looked at so far.
        trials = self._trials(result.state, kept)
        verdict = Verdict(result.found, result.absent, trials, self._salt)

        def ask(plugin: PostFilterPlugin) -> tuple[PostFilterResult | None, Status]:
            return plugin.post_filter(result.state, pod, table, verdict)

        result.post_filter = run_post_filter(plugins, ask)

    def _trials(self, state: CycleState, kept: ClassVerdicts) -> Trials:
        return Trials(self.plan, kept, state, self.pod, self.loads.nominator, self.loads)

    @property
    def _salt(self) -> int:
        return salt(self.config.seed, self.pod.uid, self.attempt)


def _rejections(found: Found, kept: ClassVerdicts) -> tuple[Rejection, ...]:
    """Return `found.rejections()`; of what is kept, grouped again only if a reason changed."""
    if not found.is_kept:
        return found.rejections()
    if kept.rejected_version != kept.version:
        kept.rejected = found.rejections()
        kept.rejected_version = kept.version
    return kept.rejected


def _not_named(outcome: PreFilterOutcome, found: Found) -> Status:
    """Return what holds for the nodes that PreFilter left out.

    As upstream, a plugin that rejected the nominated node, which was tried first, is named too.
    """
    rejectors = set(outcome.narrowing)
    if found.nominated is not None:
        rejectors.add(found.reasons.statuses[found.reason[found.nominated]].plugin)
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(rejectors))}]")
