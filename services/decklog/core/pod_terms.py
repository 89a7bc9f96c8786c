"""The affinity terms that placed pods carry, and how many carry each, per row.

Equal terms are counted together. An incoming pod asks which of them mean it; that is decided once
per term and *viewer* (namespace, labels, the namespace's labels), never per pod.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

import numpy as np

from decklog.core.affinity_terms import Term, terms_of
from decklog.core.row_counts import RowCounts
from decklog.objects.pod import Pod

VIEWERS_MAX: Final = 4_096
"""Viewers remembered, some 2 MB; then all are forgotten and decided again as pods come."""


class Kind(IntEnum):
    ANTI_AFFINITY = 0
    """Required: it keeps the pods that it means away."""
    AFFINITY = 1
    """Required: it draws the pods that it means."""
    PREFERRED = 2


@dataclass(slots=True, eq=False)
class CarriedTerm:
    """A term, and the number of pods that carry it."""

    kind: Kind
    term: Term
    weight: int
    """Of a preferred term; below 0: it is one of anti-affinity."""
    counts: RowCounts
    carriers: int = 0


_Key = tuple[Kind, Term, int]
_Viewer = tuple[Any, ...]


@dataclass(slots=True)
class PodTerms:
    capacity: int = 0
    _terms: dict[_Key, CarriedTerm] = field(default_factory=dict)
    _viewers: dict[_Viewer, list[CarriedTerm]] = field(default_factory=dict)
    """Viewer → the terms that mean it."""

    def grow(self, capacity: int) -> None:
        self.capacity = capacity
        for carried in self._terms.values():
            carried.counts.grow(capacity)

    def forget_values(self) -> None:
        """Labels of rows changed: sum per value anew when somebody asks."""
        for carried in self._terms.values():
            carried.counts.by_value.clear()

    def change(self, row: int, pod: Pod, change: int, *, anti: bool) -> None:
        """Count the pod's required anti-affinity terms, or (not `anti`) all its other terms."""
        for key in _carried_by(pod, anti=anti):
            carried = self._terms.get(key)
            if carried is None:
                carried = self._add(key)
            carried.counts.change(row, change)
            carried.carriers += change
            if not carried.carriers:
                self._drop(key)

    def meaning(self, pod: Pod, namespace_labels: Mapping[str, str]) -> list[CarriedTerm]:
        """Return the carried terms that mean the pod, in the order in which they were first met."""
        if not self._terms:
            return []
        viewer = (
            pod.namespace,
            tuple(sorted(pod.labels.items())),
            tuple(sorted(namespace_labels.items())),
        )
        found = self._viewers.get(viewer)
        if found is None:
            if len(self._viewers) >= VIEWERS_MAX:
                self._viewers.clear()
            found = self._viewers[viewer] = [
                carried
                for carried in self._terms.values()
                if carried.term.matches(pod, namespace_labels)
            ]
        return found

    def _add(self, key: _Key) -> CarriedTerm:
        counts = RowCounts(np.zeros(self.capacity, dtype=np.int64))
        carried = self._terms[key] = CarriedTerm(*key, counts)
        term = carried.term
        for (namespace, labels, namespace_labels), meant in self._viewers.items():
            inside = namespace in term.namespaces
            if (inside or term.namespace_selector.matches(dict(namespace_labels))) and (
                term.selector.matches(dict(labels))
            ):
                meant.append(carried)
        return carried

    def _drop(self, key: _Key) -> None:
        carried = self._terms.pop(key)
        for meant in self._viewers.values():
            if carried in meant:
                meant.remove(carried)


def _carried_by(pod: Pod, *, anti: bool) -> list[_Key]:
    terms = terms_of(pod)
    if anti:
        return [(Kind.ANTI_AFFINITY, term, 0) for term in terms.anti_affinity]
    keys = [(Kind.AFFINITY, term, 0) for term in terms.affinity]
    keys += [(Kind.PREFERRED, term, weight) for weight, term in terms.preferred]
    return keys
