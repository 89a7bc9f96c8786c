"""Hints of the plugins that look at other pods: topology spread and inter-pod affinity."""

from collections.abc import Sequence
from typing import Any

from decklog.core.plugins.hints import own
from decklog.objects.matching import (
    Selector,
    compile_label_map,
    compile_label_selector,
)
from decklog.objects.node import Node
from decklog.objects.pod import Pod, PodAffinityTerm, TopologySpreadConstraint


def _has_place(pod: Pod) -> bool:
    return bool(pod.node_name or pod.nominated_node_name)


# -- topology spread -----------------------------------------------------------------------------


def spread_pod(pod: Pod, old: Any, new: Any) -> bool:
    """A pod that counts came, went, or counts differently now."""
    if not all(_is_involved(pod, other) for other in (old, new) if other is not None):
        return False
    constraints = _hard(pod)
    if old is not None and new is not None:
        return _spread_update(pod, constraints, old, new)
    labels = (new or old).labels
    return any(_selector(one, pod).matches(labels) for one in constraints)


def _spread_update(
    pod: Pod, constraints: Sequence[TopologySpreadConstraint], old: Pod, new: Pod
) -> bool:
    if own(pod, old, new) and old.tolerations != new.tolerations:
        return any(one.node_taints_policy == "Honor" for one in constraints)
    if old.labels == new.labels:
        return False
    return any(
        _selector(one, pod).matches(old.labels) != _selector(one, pod).matches(new.labels)
        for one in constraints
    )


def _is_involved(pod: Pod, other: Pod) -> bool:
    return other.uid == pod.uid or (_has_place(other) and other.namespace == pod.namespace)


def _hard(pod: Pod) -> list[TopologySpreadConstraint]:
    return [
        one for one in pod.topology_spread_constraints if one.when_unsatisfiable == "DoNotSchedule"
    ]


def _selector(constraint: TopologySpreadConstraint, pod: Pod) -> Selector:
    selector = compile_label_selector(constraint.label_selector)
    keys = [key for key in constraint.match_label_keys if key in pod.labels]
    if selector.nothing or not keys:
        return selector
    merged = {key: pod.labels[key] for key in keys}
    return _with_labels(selector, merged)


def _with_labels(selector: Selector, labels: dict[str, str]) -> Selector:
    return Selector((*selector.requirements, *compile_label_map(labels).requirements))


def spread_node(pod: Pod, old: Any, new: Any) -> bool:
    """A node with all topology keys came or went, or one got, lost or changed them."""
    keys = [one.topology_key for one in _hard(pod)]
    if isinstance(old, Node) and isinstance(new, Node):
        had, has = _carries(old, keys), _carries(new, keys)
        if had != has:
            return True
        changed = any(old.labels.get(key) != new.labels.get(key) for key in keys)
        return has and (changed or old.taints != new.taints)
    return _carries(new or old, keys)


def _carries(node: Node, keys: Sequence[str]) -> bool:
    return all(key in node.labels for key in keys)


# -- inter-pod affinity --------------------------------------------------------------------------


def affinity_pod(pod: Pod, old: Any, new: Any) -> bool:
    """A pod came to match all affinity terms, or ceased to match all anti-affinity terms."""
    if own(pod, old, new) and old is not None:
        return True
    there = new if new is not None else old
    if not _has_place(there):
        return False
    wanted, unwanted = _required(pod, anti=False), _required(pod, anti=True)
    if old is not None and new is not None:
        if not _all_match(pod, wanted, old) and _all_match(pod, wanted, new):
            return True
        return _all_match(pod, unwanted, old) and not _all_match(pod, unwanted, new)
    if new is not None:
        return _all_match(pod, wanted, new)
    return _all_match(pod, unwanted, old) or _all_match(old, _required(old, anti=True), pod)


def affinity_node(pod: Pod, old: Any, new: Any) -> bool:
    """A node got, lost or changed a topology key that a term of the pod looks at."""
    if not isinstance(new, Node):
        return True
    for term in (*_required(pod, anti=False), *_required(pod, anti=True)):
        compile_label_selector(term.label_selector)  # Raises if it does not parse.
    for term in _required(pod, anti=False):
        key = term.topology_key
        if key in new.labels and (old is None or old.labels.get(key) != new.labels[key]):
            return True
    for term in _required(pod, anti=True):
        key = term.topology_key
        if old is None:
            return True
        if key in old.labels and old.labels[key] != new.labels.get(key):
            return True
    return False


def affinity_namespace(pod: Pod, old: Any, new: Any) -> bool:
    """A namespace came to be, or ceased to be, one that a term's selector picks.

    kube-scheduler has no such event: there, the pod waits for the flush. Other pods' terms may look
    at this pod's own namespace, so that one always counts.
    """
    before = {} if old is None else old.labels
    if before == new.labels and old is not None:
        return False
    if new.name == pod.namespace:
        return True
    for term in (*_required(pod, anti=False), *_required(pod, anti=True)):
        spaces = compile_label_selector(term.namespace_selector)
        was = old is not None and spaces.matches(before)
        if was != spaces.matches(new.labels):
            return True
    return False


def _required(pod: Pod, *, anti: bool) -> Sequence[PodAffinityTerm]:
    affinity = pod.affinity
    if affinity is None:
        return ()
    terms = affinity.pod_anti if anti else affinity.pod
    return terms.required if terms is not None else ()


def _all_match(owner: Pod, terms: Sequence[PodAffinityTerm], other: Pod) -> bool:
    """Whether the pod matches every one of the terms; there must be some."""
    return bool(terms) and all(_matches(owner, term, other) for term in terms)


def _matches(owner: Pod, term: PodAffinityTerm, other: Pod) -> bool:
    """Namespaces' labels are not known here, as upstream has it: their selectors see none."""
    spaces = compile_label_selector(term.namespace_selector)
    selector = compile_label_selector(term.label_selector)
    names = term.namespaces
    if not names and term.namespace_selector is None:
        names = (owner.namespace,)
    inside = other.namespace in names or spaces.matches({})
    return inside and selector.matches(other.labels)
