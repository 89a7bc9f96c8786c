"""Whom to evict from one node, and from which node: kube-scheduler's rules of preemption.

A node's victims are found by taking all pods of lower priority away and giving back as many as
fit, first those whose budgets an eviction would violate, and of each kind the most important first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from decklog.core.framework.interface import Candidate, WhatIf
from decklog.core.framework.status import Status, error, unresolvable
from decklog.core.select import name_hash
from decklog.objects.matching import InvalidSelector, Selector, compile_label_selector
from decklog.objects.pod import Pod
from decklog.objects.policy import PodDisruptionBudget

NO_VICTIMS: Final = unresolvable("No preemption victims found for incoming pod")
_SUM_OFFSET: Final = 1 << 31
"""Added to each victim's priority, so that sums grow with every victim."""


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget that selects any pods."""

    namespace: str
    selector: Selector
    allowed: int
    disrupted: frozenset[str]

    def covers(self, pod: Pod) -> bool:
        return (
            pod.namespace == self.namespace
            and pod.name not in self.disrupted
            and self.selector.matches(pod.labels)
        )


def budgets(objects: Mapping[str, PodDisruptionBudget]) -> list[Budget]:
    found = []
    for pdb in objects.values():
        try:
            selector = compile_label_selector(pdb.selector)
        except InvalidSelector:
            continue
        if not (selector.everything or selector.nothing):
            disrupted = frozenset(pdb.disrupted_pods)
            found.append(Budget(pdb.namespace, selector, pdb.disruptions_allowed, disrupted))
    return found


def select_victims(
    node: WhatIf, name: str, pod: Pod, limits: Sequence[Budget]
) -> Candidate | Status:
    """Return the node as a candidate, or why evicting pods from it does not help."""
    lower = [other for other in node.pods if other.priority < pod.priority]
    for other in lower:
        node.remove(other)
    if not lower:
        return NO_VICTIMS
    status = node.status()
    if not status.is_success:
        return status
    lower.sort(key=_importance)
    violating, others = _by_budget(lower, limits)
    victims = [other for other in violating if not _is_reprieved(node, other)]
    violations = len(victims)
    victims += [other for other in others if not _is_reprieved(node, other)]
    if not victims:
        return error(f'expected at least one victim pod on node "{name}"')
    victims.sort(key=_importance)
    return Candidate(node=name, victims=tuple(victims), pdb_violations=violations)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with what it is compared by: made once, compared again for every preemptor."""

    candidate: Candidate
    cost: tuple[int, int, int, int]
    start: tuple[bool, str]
    hash: int


def rank(candidate: Candidate) -> Ranked:
    start = _earliest_start(candidate.victims)
    return Ranked(candidate, _cost(candidate), start, name_hash(candidate.node))


def best_of(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Return the candidates that are equally good, in their order."""
    lowest = min([one.cost for one in ranked], default=None)
    equal = [one for one in ranked if one.cost == lowest]
    if len(equal) < 2:
        return equal
    latest = max([one.start for one in equal])
    return [one for one in equal if one.start == latest]


def _is_reprieved(node: WhatIf, pod: Pod) -> bool:
    """Put the pod back; take it away again if the preemptor does not fit beside it."""
    node.add(pod)
    if node.status().is_success:
        return True
    node.remove(pod)
    return False


def _by_budget(pods: Sequence[Pod], limits: Sequence[Budget]) -> tuple[list[Pod], list[Pod]]:
    """Return those whose eviction, one after the other, would violate a budget, and the others."""
    left = [limit.allowed for limit in limits]
    violating: list[Pod] = []
    others: list[Pod] = []
    for pod in pods:
        is_violating = False
        for index, limit in enumerate(limits if pod.labels else ()):
            if limit.covers(pod):
                left[index] -= 1
                is_violating |= left[index] < 0
        (violating if is_violating else others).append(pod)
    return violating, others


def _importance(pod: Pod) -> tuple[int, tuple[bool, str]]:
    """Sort the most important first: by priority, then whoever runs longer."""
    return -pod.priority, _start(pod)


def _start(pod: Pod) -> tuple[bool, str]:
    """A pod that has not started counts as if it did now."""
    return not pod.start_time, pod.start_time


def _cost(candidate: Candidate) -> tuple[int, int, int, int]:
    victims = candidate.victims
    total = sum(victim.priority + _SUM_OFFSET for victim in victims)
    return candidate.pdb_violations, victims[0].priority, total, len(victims)


def _earliest_start(victims: Sequence[Pod]) -> tuple[bool, str]:
    """Return when the first of the victims of highest priority started."""
    highest = victims[0].priority
    return min(_start(victim) for victim in victims if victim.priority == highest)
