"""Place pods near or apart from other pods, in both directions: theirs, and those of placed pods.

Required terms filter, preferred ones score. All is counted per value of a topology key, and spread
to the nodes by one gather. A placed pod must match all required affinity terms to count for any;
each anti-affinity term counts alone. A pod that no other matches may found its group anywhere,
if it matches its own terms.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from decklog.core.affinity_terms import Terms, terms_of
from decklog.core.columns import NodeColumns
from decklog.core.framework.interface import (
    PASS,
    SCORE_MAX,
    ClusterView,
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
from decklog.core.plugins.meant_pods import MeantPods, all_of, meant_by
from decklog.core.pod_terms import CarriedTerm, Kind
from decklog.objects.meta import NO_LABELS
from decklog.objects.pod import Pod

AFFINITY: Final = 1
ANTI_AFFINITY: Final = 2
EXISTING: Final = 3
STATUSES: Final = (
    SUCCESS,
    unresolvable("node(s) didn't match pod affinity rules"),
    unschedulable("node(s) didn't match pod anti-affinity rules"),
    unschedulable("node(s) didn't satisfy existing pods anti-affinity rules"),
)
_SCORE_STATE: Final = "InterPodAffinity/score"

Int64s = npt.NDArray[np.int64]
Counts = Mapping[str, Int64s]
"""Topology key → pods per number of its value; nobody writes into these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Required:
    namespace_labels: Mapping[str, str]
    """Of the incoming pod's namespace."""
    affinity: tuple[MeantPods, ...]
    anti_affinity: tuple[MeantPods, ...]
    matches_itself: bool
    """Whether the pod matches all its own affinity terms."""
    affinity_counts: Counts
    """Pods that match all affinity terms."""
    anti_affinity_counts: Counts
    existing_counts: Counts
    """Pods whose required anti-affinity keeps this one away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterPodAffinity:
    name: str = "InterPodAffinity"
    statuses: Sequence[Status] = STATUSES
    reads: Reads = Reads.CLUSTER
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    # -- required terms ------------------------------------------------------------------------

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeColumns
    ) -> tuple[PreFilterResult | None, Status]:
        terms = terms_of(pod)
        if terms.error:
            return None, unresolvable(f"parsing pod: {terms.error}")
        namespace_labels = _namespace_labels(pod, state.cluster)
        existing = _existing_counts(nodes.carried_terms(pod, namespace_labels), nodes)
        if not (existing or terms.affinity or terms.anti_affinity):
            return None, SKIP
        affinity = meant_by(terms.affinity, state.cluster)
        anti_affinity = meant_by(terms.anti_affinity, state.cluster)
        state.values[self.name] = _Required(
            namespace_labels=namespace_labels,
            affinity=affinity,
            anti_affinity=anti_affinity,
            matches_itself=all(one.includes(pod) for one in affinity),
            affinity_counts=_affinity_counts(affinity, nodes),
            anti_affinity_counts=_summed(
                (one.topology_key, nodes.matching_per_value(one.query, one.topology_key))
                for one in anti_affinity
            ),
            existing_counts=existing,
        )
        return None, SUCCESS

    def filter(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> ReasonCodes:
        required: _Required = state.values[self.name]
        codes = np.full(len(nodes), PASS, dtype=np.uint16)
        for key, by_value in _verdicts(required).items():
            found = by_value[nodes.label_ids(key)]
            earlier = (found != PASS) & ((codes == PASS) | (found < codes))
            codes = np.where(earlier, found, codes) if codes.any() else found
        return codes

    def add_pod(
        self, state: CycleState, pod: Pod, other: Pod, row: int, nodes: NodeColumns
    ) -> None:
        self._change(state, pod, other, (row, nodes), 1)

    def remove_pod(
        self, state: CycleState, pod: Pod, other: Pod, row: int, nodes: NodeColumns
    ) -> None:
        self._change(state, pod, other, (row, nodes), -1)

    def _change(
        self, state: CycleState, pod: Pod, other: Pod, at: tuple[int, NodeColumns], change: int
    ) -> None:
        required: _Required = state.values[self.name]
        theirs = [
            term.topology_key
            for term in terms_of(other).anti_affinity
            if term.matches(pod, required.namespace_labels)
        ]
        apart = [one.topology_key for one in required.anti_affinity if one.includes(other)]
        near: set[str] = set()
        if required.affinity and all(one.includes(other) for one in required.affinity):
            near = {one.topology_key for one in required.affinity}
        state.values[self.name] = replace(
            required,
            existing_counts=_changed(required.existing_counts, theirs, at, change),
            anti_affinity_counts=_changed(required.anti_affinity_counts, apart, at, change),
            affinity_counts=_changed(required.affinity_counts, near, at, change),
        )

    # -- preferred terms -----------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeColumns, feasible: Mask) -> Status:
        has_own = _has_preferred(pod)
        if self.ignore_preferred_terms_of_existing_pods and not has_own:
            return SKIP
        terms = terms_of(pod)
        if terms.error:
            return error(f"failed to parse pod: {terms.error}")
        carried = nodes.carried_terms(pod, _namespace_labels(pod, state.cluster))
        scores: dict[str, Int64s] = {}
        for key, weight, counts in (
            *_own_parts(terms, nodes, state.cluster),
            *self._parts_of_others(carried, nodes),
        ):
            if counts.any():
                part = counts * weight
                scores[key] = scores[key] + part if key in scores else part
        if not scores:
            return SKIP
        state.values[_SCORE_STATE] = scores
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> Scores:
        scores: Counts = state.values[_SCORE_STATE]
        total = np.zeros(len(nodes), dtype=np.int64)
        for key, score in scores.items():
            total += score[nodes.label_ids(key)]
        return total

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        lowest, highest = int(scores.min()), int(scores.max())
        if lowest == highest:
            return np.zeros(len(scores), dtype=np.int64)
        parts = (scores - lowest).astype(np.float64) / float(highest - lowest)
        return (float(SCORE_MAX) * parts).astype(np.int64)

    def _parts_of_others(
        self, carried: Iterable[CarriedTerm], nodes: NodeColumns
    ) -> Iterable[tuple[str, int, Int64s]]:
        for one in carried:
            weight = self.hard_pod_affinity_weight
            if one.kind is Kind.PREFERRED:
                weight = one.weight
            elif one.kind is Kind.ANTI_AFFINITY or weight <= 0:
                continue
            yield one.term.topology_key, weight, nodes.carriers_per_value(one)


# -- counting ------------------------------------------------------------------------------------


def _existing_counts(carried: Iterable[CarriedTerm], nodes: NodeColumns) -> Counts:
    counts = _summed(
        (one.term.topology_key, nodes.carriers_per_value(one))
        for one in carried
        if one.kind is Kind.ANTI_AFFINITY
    )
    return {key: found for key, found in counts.items() if found.any()}


def _affinity_counts(affinity: Sequence[MeantPods], nodes: NodeColumns) -> Counts:
    if not affinity:
        return {}
    query = all_of(affinity)
    keys = dict.fromkeys(one.topology_key for one in affinity)
    return {key: nodes.matching_per_value(query, key) for key in keys}


def _summed(parts: Iterable[tuple[str, Int64s]]) -> dict[str, Int64s]:
    sums: dict[str, Int64s] = {}
    for key, counts in parts:
        sums[key] = sums[key] + counts if key in sums else counts
    return sums


def _changed(
    counts: Counts, keys: Iterable[str], at: tuple[int, NodeColumns], change: int
) -> Counts:
    """Return the counts after a pod more or less on this row that counts for these keys."""
    row, nodes = at
    changed = dict(counts)
    for key in keys:
        value = int(nodes.label_ids(key)[row])
        if value:
            old = changed.get(key)
            size = nodes.label_value_count(key)
            copy = np.zeros(size, dtype=np.int64) if old is None else old.copy()
            copy[value] += change
            changed[key] = copy
    return changed


def _own_parts(
    terms: Terms, nodes: NodeColumns, cluster: ClusterView | None
) -> Iterable[tuple[str, int, Int64s]]:
    meant = meant_by([term for _, term in terms.preferred], cluster)
    for (weight, _), one in zip(terms.preferred, meant, strict=True):
        yield one.topology_key, weight, nodes.matching_per_value(one.query, one.topology_key)


# -- judging -------------------------------------------------------------------------------------


def _verdicts(required: _Required) -> dict[str, ReasonCodes]:
    """Return, by topology key, the code of each of its values; of two codes the lower one counts.

    A node without the key (value 0) fails affinity and passes everything else. The first pod of a
    group needs none near it, only the keys.
    """
    verdicts: dict[str, ReasonCodes] = {}
    for code, counts in (
        (EXISTING, required.existing_counts),
        (ANTI_AFFINITY, required.anti_affinity_counts),
    ):
        for key, found in counts.items():
            _put(verdicts, key, found > 0, code)
    near = required.affinity_counts
    is_first = required.matches_itself and not any(found.any() for found in near.values())
    for key, found in near.items():
        far = np.zeros(len(found), dtype=np.bool_) if is_first else found == 0
        far[0] = True
        _put(verdicts, key, far, AFFINITY)
    return verdicts


def _put(verdicts: dict[str, ReasonCodes], key: str, where: Mask, code: int) -> None:
    """Let the code count where it says so; codes come from the last to the first."""
    if key not in verdicts:
        verdicts[key] = np.full(len(where), PASS, dtype=np.uint16)
    verdicts[key][where] = code


# -- pods ----------------------------------------------------------------------------------------


def _namespace_labels(pod: Pod, cluster: ClusterView | None) -> Mapping[str, str]:
    namespace = None if cluster is None else cluster.objects("Namespace").get(pod.namespace)
    return NO_LABELS if namespace is None else namespace.labels


def _has_preferred(pod: Pod) -> bool:
    affinity = pod.affinity
    stanzas = () if affinity is None else (affinity.pod, affinity.pod_anti)
    return any(stanza is not None and stanza.preferred for stanza in stanzas)
