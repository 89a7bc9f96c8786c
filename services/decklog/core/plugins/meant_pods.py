"""Which placed pods the terms of an incoming pod mean, as queries of the kept counts.

A namespace selector is resolved to the names of the namespaces that it selects now. As in
kube-scheduler it is asked once more without any labels: one that is satisfied by none, such as
`DoesNotExist`, means every namespace.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from decklog.core.affinity_terms import Term
from decklog.core.framework.interface import ClusterView
from decklog.core.pod_counts import Query
from decklog.objects.matching import NOTHING, Selector
from decklog.objects.meta import NO_LABELS
from decklog.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class MeantPods:
    topology_key: str
    query: Query

    def includes(self, pod: Pod) -> bool:
        namespaces = self.query.namespaces
        inside = namespaces is None or pod.namespace in namespaces
        return inside and self.query.selector.matches(pod.labels)


def meant_by(terms: Sequence[Term], cluster: ClusterView | None) -> tuple[MeantPods, ...]:
    return tuple([_meant(term, cluster) for term in terms])


def all_of(meant: Sequence[MeantPods]) -> Query:
    """Return what all of them mean."""
    if len(meant) == 1:
        return meant[0].query
    named = [one.query.namespaces for one in meant if one.query.namespaces is not None]
    namespaces = frozenset.intersection(*named) if named else None
    selectors = [one.query.selector for one in meant]
    if any(selector.nothing for selector in selectors):
        return Query(namespaces, NOTHING)
    requirements = (one for selector in selectors for one in selector.requirements)
    return Query(namespaces, Selector(tuple(dict.fromkeys(requirements))))


def _meant(term: Term, cluster: ClusterView | None) -> MeantPods:
    return MeantPods(term.topology_key, Query(_namespaces(term, cluster), term.selector))


def _namespaces(term: Term, cluster: ClusterView | None) -> frozenset[str] | None:
    """Return the namespaces' names; None: all."""
    selector = term.namespace_selector
    if selector.matches(NO_LABELS):
        return None
    if selector.nothing or cluster is None:
        return term.namespaces
    namespaces = cluster.objects("Namespace").items()
    selected = [name for name, one in namespaces if selector.matches(one.labels)]
    return term.namespaces.union(selected)
