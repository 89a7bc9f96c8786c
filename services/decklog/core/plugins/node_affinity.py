"""Filter and prefer nodes by their labels and names: node selectors, node affinity.

What the configuration adds (`addedAffinity`) holds for every pod, beside what the pod asks for.
Equivalent to asking `objects.matching` about each node; a requirement is asked once for each value
that the label has on any node.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from decklog.core.columns import Bools, NodeColumns
from decklog.core.errors import BadConfiguration
from decklog.core.framework.interface import (
    PASS,
    CycleState,
    Mask,
    PreFilterResult,
    Reads,
    ReasonCodes,
    Scores,
)
from decklog.core.framework.status import SKIP, SUCCESS, Status, error, unresolvable
from decklog.core.plugins.by_value import labelled
from decklog.core.plugins.normalize import normalized
from decklog.objects.matching import (
    NODE_NAME,
    InvalidSelector,
    NodeMatcher,
    NodeTerm,
    RequiredNodeAffinity,
    compile_node_selector,
    preferred_terms,
    required_node_affinity,
)
from decklog.objects.pod import NodeAffinity as Affinity
from decklog.objects.pod import Pod
from decklog.objects.pod_shape import NODE_AFFINITY
from decklog.objects.selectors import NodeSelectorTerm
from decklog.objects.shape import InvalidObject

NOT_ENFORCED: Final = 1
NOT_MATCHED: Final = 2
STATUSES: Final = (
    SUCCESS,
    unresolvable("node(s) didn't match scheduler-enforced node affinity"),
    unresolvable("node(s) didn't match Pod's node affinity/selector"),
)
CONFLICT: Final = unresolvable("pod affinity terms conflict")

WeightedTerms = Sequence[tuple[int, NodeTerm]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAffinity:
    name: str = "NodeAffinity"
    reads: Reads = Reads.STATIC
    statuses: Sequence[Status] = STATUSES
    added: NodeMatcher | None = None
    added_preferred: WeightedTerms | None = None

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeColumns
    ) -> tuple[PreFilterResult | None, Status]:
        affinity = _affinity(pod)
        if affinity is None or affinity.required is None:
            wanted = self.added is not None or pod.node_selector is not None
            return None, SUCCESS if wanted else SKIP
        names = named_nodes(affinity.required.terms)
        if names is None:
            return None, SUCCESS
        return (PreFilterResult(names), SUCCESS) if names else (None, CONFLICT)

    def filter(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> ReasonCodes:
        matched = required_rows(nodes, required_node_affinity(pod))
        codes = np.where(matched, PASS, NOT_MATCHED).astype(np.uint16)
        if self.added is not None:
            codes[~_any_term(nodes, self.added.terms)] = NOT_ENFORCED
        return codes

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeColumns, feasible: Mask) -> Status:
        affinity = _affinity(pod)
        preferred = None if affinity is None else affinity.preferred
        if preferred is None and self.added_preferred is None:
            return SKIP
        try:
            own = preferred_terms(preferred or ())
        except InvalidSelector as problem:
            return error(str(problem))
        state.values[self.name] = (*(self.added_preferred or ()), *own)
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> Scores:
        scores = np.zeros(len(nodes), dtype=np.int64)
        for weight, term in state.values[self.name]:
            scores += weight * _matches(nodes, term)
        return scores

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        return normalized(scores)


def make_node_affinity(args: Mapping[str, Any]) -> NodeAffinity:
    """Return the plugin with the affinity that its arguments add, if they add any.

    Raises:
        BadConfiguration: a term does not parse.
    """
    given = args.get("addedAffinity")
    if given is None:
        return NodeAffinity()
    try:
        affinity = NODE_AFFINITY.read(given)
        preferred = None if affinity.preferred is None else preferred_terms(affinity.preferred)
    except (InvalidObject, InvalidSelector) as problem:
        msg = f"addedAffinity of NodeAffinity cannot be used: {problem}"
        raise BadConfiguration(msg) from problem
    added = None if affinity.required is None else compile_node_selector(affinity.required)
    if added is not None and added.error:
        msg = f"addedAffinity of NodeAffinity cannot be used: {added.error}"
        raise BadConfiguration(msg)
    return NodeAffinity(added=added, added_preferred=preferred)


def named_nodes(terms: Iterable[NodeSelectorTerm]) -> frozenset[str] | None:
    """Return the nodes to which the terms restrict the pod by name; None if any term does not.

    Empty: each term contradicts itself.
    """
    found: frozenset[str] | None = None
    for term in terms:
        inside: frozenset[str] | None = None
        for one in term.match_fields:
            if one.key == NODE_NAME and one.operator == "In":
                names = frozenset(one.values)
                inside = names if inside is None else inside & names
        if inside is None:
            return None
        found = inside if found is None else found | inside
    return found


def _affinity(pod: Pod) -> Affinity | None:
    return None if pod.affinity is None else pod.affinity.node


def required_rows(nodes: NodeColumns, required: RequiredNodeAffinity) -> Bools:
    matched = np.ones(len(nodes), dtype=np.bool_)
    for key, value in required.pairs:
        matched &= labelled(nodes, key, frozenset((value,)).__contains__)
    if required.matcher is not None:
        matched &= _any_term(nodes, required.matcher.terms)
    return matched


def _any_term(nodes: NodeColumns, terms: Iterable[NodeTerm]) -> Bools:
    matched = np.zeros(len(nodes), dtype=np.bool_)
    for term in terms:
        matched |= _matches(nodes, term)
    return matched


def _matches(nodes: NodeColumns, term: NodeTerm) -> Bools:
    """Return which rows the term matches; a term that does not parse matches none."""
    if term.errors or term.labels.nothing:
        return np.zeros(len(nodes), dtype=np.bool_)
    matched = np.ones(len(nodes), dtype=np.bool_)
    for requirement in term.labels.requirements:
        matched &= labelled(nodes, requirement.key, requirement.test())
    for key, wanted, value in term.fields:
        matched &= _has_field(nodes, key, value) == wanted
    return matched


def _has_field(nodes: NodeColumns, key: str, value: str) -> Bools:
    if key != NODE_NAME:  # Any other field of a node reads as empty.
        return np.full(len(nodes), not value, dtype=np.bool_)
    has = np.zeros(len(nodes), dtype=np.bool_)
    row = nodes.row_of(value)
    if row is not None:
        has[row] = True
    return has
