"""Spread matching pods over topology domains: hard constraints filter, soft ones score.

A verdict is computed per domain and spread to the nodes by one gather. The smallest domain is
taken over eligible domains only; a node that is not eligible itself is judged all the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from decklog.core.columns import NodeColumns
from decklog.core.framework.interface import (
    PASS,
    SCORE_MAX,
    CycleState,
    Mask,
    PreFilterResult,
    Reads,
    ReasonCodes,
    Scores,
)
from decklog.core.framework.status import (
    SKIP,
    SUCCESS,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from decklog.core.logarithm import ln
from decklog.core.plugins.spread_constraints import Constraint, Constraints, constraints_of
from decklog.core.row_counts import sums_by_value
from decklog.objects.matching import InvalidSelector
from decklog.objects.pod import Pod

MISSING: Final = 1
SKEWED: Final = 2
_REASON: Final = "node(s) didn't match pod topology spread constraints"
STATUSES: Final = (
    SUCCESS,
    unresolvable(f"{_REASON} (missing required label)"),
    unschedulable(_REASON),
)
HARD: Final = "DoNotSchedule"
SOFT: Final = "ScheduleAnyway"
HOSTNAME: Final = "kubernetes.io/hostname"
_SOFT_STATE: Final = "PodTopologySpread/score"

Int64s = npt.NDArray[np.int64]


@dataclass(slots=True)
class _Domains:
    """One hard constraint: matching pods per domain, by the number of the label's value."""

    constraint: Constraint
    counts: Int64s
    exists: Mask
    """Whether any eligible node is in the domain."""
    eligible: Mask
    """Per row: carries all topology keys, and honours the policies."""

    def skewed(self) -> Mask:
        """Return for each domain whether one more matching pod would be too many."""
        lowest = 0
        if int(self.exists.sum()) >= self.constraint.min_domains:
            lowest = int(self.counts[self.exists].min(initial=np.iinfo(np.int64).max))
            lowest = lowest if self.exists.any() else 0
        counts = np.where(self.exists, self.counts, 0)
        return counts + self.constraint.matches_itself - lowest > self.constraint.max_skew


@dataclass(frozen=True, slots=True)
class _SoftState:
    constraints: Constraints
    weights: tuple[float, ...]
    domain_counts: tuple[Int64s | None, ...]
    """None: the constraint is about hostnames, and counts per node."""
    ignored: Mask
    """Per row: lacks a key that all must have."""
    has_ignored: bool
    feasible: Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTopologySpread:
    name: str = "PodTopologySpread"
    statuses: Sequence[Status] = STATUSES
    reads: Reads = Reads.CLUSTER
    defaults: tuple[Mapping[str, Any], ...] = ()
    system_defaults: bool = True

    # -- hard constraints ----------------------------------------------------------------------

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeColumns
    ) -> tuple[PreFilterResult | None, Status]:
        try:
            found = self._constraints(state, pod, HARD)
        except InvalidSelector as problem:
            return None, error(str(problem))
        if not found.constraints:
            return None, SKIP
        state.values[self.name] = _hard_domains(pod, nodes, found)
        return None, SUCCESS

    def filter(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> ReasonCodes:
        codes = np.full(len(nodes), PASS, dtype=np.uint16)
        for domains in reversed(state.values[self.name]):
            ids = nodes.label_ids(domains.constraint.topology_key)
            codes[domains.skewed()[ids]] = SKEWED
            codes[ids == 0] = MISSING
        return codes

    def add_pod(
        self, state: CycleState, pod: Pod, other: Pod, row: int, nodes: NodeColumns
    ) -> None:
        self._change(state, pod, other, row, nodes, 1)

    def remove_pod(
        self, state: CycleState, pod: Pod, other: Pod, row: int, nodes: NodeColumns
    ) -> None:
        self._change(state, pod, other, row, nodes, -1)

    def _change(  # noqa: PLR0913, PLR0917 - the point's own parameters, and a sign
        self, state: CycleState, pod: Pod, other: Pod, row: int, nodes: NodeColumns, change: int
    ) -> None:
        if other.namespace != pod.namespace:
            return
        changed = []
        for domains in state.values[self.name]:
            counts = domains.counts
            if domains.eligible[row] and domains.constraint.selector.matches(other.labels):
                counts = counts.copy()
                counts[nodes.label_ids(domains.constraint.topology_key)[row]] += change
            changed.append(replace(domains, counts=counts))
        state.values[self.name] = changed

    # -- soft constraints ----------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeColumns, feasible: Mask) -> Status:
        try:
            found = self._constraints(state, pod, SOFT)
        except InvalidSelector as problem:
            return error(str(problem))
        if not found.constraints or nodes.node_count == 0:
            return SKIP
        state.values[_SOFT_STATE] = _soft_state(pod, nodes, found, feasible)
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> Scores:
        soft: _SoftState = state.values[_SOFT_STATE]
        total = np.zeros(len(nodes), dtype=np.float64)
        for constraint, weight, counts in zip(
            soft.constraints.constraints, soft.weights, soft.domain_counts, strict=True
        ):
            ids = nodes.label_ids(constraint.topology_key)
            here = _counts(nodes, pod, constraint) if counts is None else counts
            score = here.astype(np.float64) * weight + float(constraint.max_skew - 1)
            if counts is None:
                total += np.where(ids != 0, score, 0.0)
            else:
                score[0] = 0.0
                total += score[ids]
        rounded = np.floor(total + 0.5).astype(np.int64)
        return np.where(soft.ignored, 0, rounded) if soft.has_ignored else rounded

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        soft: _SoftState = state.values[_SOFT_STATE]
        if not soft.has_ignored:
            lowest, highest = int(scores.min()), max(int(scores.max()), 0)
            if highest == 0:
                return np.full(len(scores), SCORE_MAX, dtype=np.int64)
            return SCORE_MAX * (highest + lowest - scores) // highest
        ignored = soft.ignored[soft.feasible]
        counted = scores[~ignored]
        highest = int(counted.max(initial=0))
        if highest == 0:
            return np.where(ignored, 0, SCORE_MAX)
        lowest = int(counted.min())
        return np.where(ignored, 0, SCORE_MAX * (highest + lowest - scores) // highest)

    def _constraints(self, state: CycleState, pod: Pod, when: str) -> Constraints:
        return constraints_of(
            pod,
            when,
            defaults=self.defaults,
            system_defaults=self.system_defaults,
            cluster=state.cluster,
        )


def _hard_domains(pod: Pod, nodes: NodeColumns, found: Constraints) -> list[_Domains]:
    with_keys = _with_all_keys(nodes, found)
    domains = []
    for constraint in found.constraints:
        eligible = with_keys & constraint.eligible(pod, nodes)
        ids = nodes.label_ids(constraint.topology_key)[eligible]
        size = nodes.label_value_count(constraint.topology_key)
        counts = _domain_counts(pod, nodes, constraint, eligible)
        exists = np.bincount(ids, minlength=size).astype(np.bool_)
        domains.append(_Domains(constraint, counts, exists, eligible))
    return domains


def _soft_state(pod: Pod, nodes: NodeColumns, found: Constraints, feasible: Mask) -> _SoftState:
    with_keys = _with_all_keys(nodes, found)
    ignored = feasible & ~with_keys if found.require_all else np.zeros(len(nodes), dtype=np.bool_)
    scored = feasible & ~ignored
    weights: list[float] = []
    domain_counts: list[Int64s | None] = []
    for constraint in found.constraints:
        if constraint.topology_key == HOSTNAME:
            weights.append(ln(int(scored.sum()) + 2))
            domain_counts.append(None)
            continue
        ids = nodes.label_ids(constraint.topology_key)
        size = nodes.label_value_count(constraint.topology_key)
        registered = np.bincount(ids[scored], minlength=size).astype(np.bool_)
        weights.append(ln(int(registered.sum()) + 2))
        eligible = constraint.eligible(pod, nodes)
        if found.require_all:
            eligible &= with_keys
        counts = _domain_counts(pod, nodes, constraint, eligible)
        domain_counts.append(np.where(registered, counts, 0))
    has_ignored = bool(ignored.any())
    return _SoftState(found, tuple(weights), tuple(domain_counts), ignored, has_ignored, feasible)


def _with_all_keys(nodes: NodeColumns, found: Constraints) -> Mask:
    present = nodes.present.copy()
    for constraint in found.constraints:
        present &= nodes.label_ids(constraint.topology_key) != 0
    return present


def _domain_counts(pod: Pod, nodes: NodeColumns, constraint: Constraint, eligible: Mask) -> Int64s:
    """Return the matching pods of eligible rows per domain; those of all rows are kept counts."""
    key = constraint.topology_key
    ids = nodes.label_ids(key)
    if constraint.counts_nobody:
        return np.zeros(nodes.label_value_count(key), dtype=np.int64)
    query = constraint.query(pod.namespace)
    if not ((ids != 0) & ~eligible).any():
        return nodes.matching_per_value(query, key)
    counts = nodes.matching_pods(query)[eligible]
    return sums_by_value(ids[eligible], counts, nodes.label_value_count(key))


def _counts(nodes: NodeColumns, pod: Pod, constraint: Constraint) -> Int64s:
    """Return the matching live pods per row; an empty selector counts none."""
    if constraint.counts_nobody:
        return np.zeros(len(nodes), dtype=np.int64)
    return nodes.matching_pods(constraint.query(pod.namespace))
