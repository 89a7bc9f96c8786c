"""What pods ask of other pods: affinity terms, compiled once for all pods that ask alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from decklog.objects.go_text import aggregate
from decklog.objects.matching import InvalidSelector, Selector, compile_label_selector
from decklog.objects.pod import Pod, PodAffinity, PodAffinityTerm
from decklog.objects.selectors import LabelSelector

SHAPES_CACHED: Final = 1 << 12
"""Compiled affinities that are remembered, some 10 MB: workloads have about one each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """Which pods are meant: by namespace (one of the set, or selected), and by their labels."""

    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector

    def matches(self, pod: Pod, namespace_labels: Mapping[str, str]) -> bool:
        inside = pod.namespace in self.namespaces
        return (inside or self.namespace_selector.matches(namespace_labels)) and (
            self.selector.matches(pod.labels)
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Terms:
    """All that one pod asks. A list with a term that does not parse is empty, as upstream."""

    affinity: tuple[Term, ...] = ()
    anti_affinity: tuple[Term, ...] = ()
    preferred: tuple[tuple[int, Term], ...] = ()
    """With weights; those of preferred anti-affinity are negative."""
    error: str = ""
    """What does not parse, in Kubernetes' words."""


NO_TERMS: Final = Terms()


def terms_of(pod: Pod) -> Terms:
    """Return what the pod asks of others; equal for all pods that ask alike from one namespace."""
    key = terms_key(pod)
    return NO_TERMS if key is None else _compiled(*key)


def terms_key(pod: Pod) -> tuple[Any, ...] | None:
    """Return what `terms_of` depends on; None: the pod asks nothing."""
    affinity = pod.affinity
    if affinity is None or (affinity.pod is None and affinity.pod_anti is None):
        return None
    return pod.namespace, _stanza_key(affinity.pod), _stanza_key(affinity.pod_anti)


def _stanza_key(stanza: PodAffinity | None) -> tuple[Any, ...]:
    if stanza is None:
        return (), ()
    return (
        tuple([_term_key(term) for term in stanza.required]),
        tuple([(one.weight, _term_key(one.term)) for one in stanza.preferred]),
    )


def _term_key(term: PodAffinityTerm) -> tuple[Any, ...]:
    return (
        term.topology_key,
        term.namespaces,
        _selector_key(term.label_selector),
        _selector_key(term.namespace_selector),
    )


def _selector_key(selector: LabelSelector | None) -> tuple[Any, ...] | None:
    if selector is None:
        return None
    return tuple(selector.match_labels.items()), selector.match_expressions


@lru_cache(maxsize=SHAPES_CACHED)
def _compiled(namespace: str, pod: tuple[Any, ...], pod_anti: tuple[Any, ...]) -> Terms:
    errors: list[str] = []

    def compiled(name: str, keys: Sequence[Any]) -> tuple[Term, ...]:
        try:
            return tuple([_term(namespace, *key) for key in keys])
        except InvalidSelector as problem:
            errors.append(f"{name}: {problem}")
            return ()

    affinity = compiled("requiredAffinityTerms", pod[0])
    anti_affinity = compiled("requiredAntiAffinityTerms", pod_anti[0])
    weights = [weight for weight, _ in pod[1]], [-weight for weight, _ in pod_anti[1]]
    near = compiled("preferredAffinityTerms", [key for _, key in pod[1]])
    apart = compiled("preferredAntiAffinityTerms", [key for _, key in pod_anti[1]])
    preferred = (*zip(weights[0], near, strict=False), *zip(weights[1], apart, strict=False))
    return Terms(
        affinity=affinity,
        anti_affinity=anti_affinity,
        preferred=preferred,
        error=aggregate(errors) if errors else "",
    )


def _term(
    namespace: str,
    topology_key: str,
    namespaces: tuple[str, ...],
    selector: tuple[Any, ...] | None,
    namespace_selector: tuple[Any, ...] | None,
) -> Term:
    own = not namespaces and namespace_selector is None
    return Term(
        topology_key=topology_key,
        selector=_selector(selector),
        namespaces=frozenset((namespace,) if own else namespaces),
        namespace_selector=_selector(namespace_selector),
    )


def _selector(key: tuple[Any, ...] | None) -> Selector:
    if key is None:
        return compile_label_selector(None)
    return compile_label_selector(
        LabelSelector(match_labels=dict(key[0]), match_expressions=key[1])
    )
