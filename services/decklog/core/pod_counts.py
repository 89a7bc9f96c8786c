"""How many pods match a selector, per row: kept by ±1, never recounted over pods.

Pods are counted per *label class* (namespace, labels, whether it is terminating) and row. A query
(namespaces, selector) keeps the classes that it matches, decided once per pair, and its own
column, summed from the classes on first use and then kept in step. So a pod costs the queries in
use that match its class, not all of them; a query that was forgotten is summed again.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from decklog.core.row_counts import Counts, Ids, RowCounts
from decklog.objects.matching import Selector
from decklog.objects.pod import Pod

QUERIES_MAX: Final = 512
"""Columns kept: 5,000 rows cost 40 kB each, 20 MB in all."""


@dataclass(frozen=True, slots=True)
class Query:
    """Which pods are counted."""

    namespaces: frozenset[str] | None
    """None: all namespaces."""
    selector: Selector
    live_only: bool = False
    """Leave out pods that are being deleted."""


@dataclass(slots=True, eq=False)
class _LabelClass:
    namespace: str
    labels: dict[str, str]
    terminating: bool
    rows: dict[int, int] = field(default_factory=dict)
    """Row → pods of the class on it."""
    columns: list["_Column"] = field(default_factory=list)
    """Those that count the class."""


@dataclass(slots=True, eq=False)
class _Column:
    query: Query
    counts: RowCounts
    total: int = 0


_ClassKey = tuple[str, tuple[tuple[str, str], ...], bool]


@dataclass(slots=True)
class PodCounts:
    capacity: int = 0
    _classes: dict[_ClassKey, _LabelClass] = field(default_factory=dict)
    _columns: dict[Query, _Column] = field(default_factory=dict)
    """In the order of use, the least recent first."""

    def grow(self, capacity: int) -> None:
        self.capacity = capacity
        for column in self._columns.values():
            column.counts.grow(capacity)

    def add(self, row: int, pod: Pod) -> None:
        self._change(row, pod, 1)

    def remove(self, row: int, pod: Pod) -> None:
        self._change(row, pod, -1)

    def column(self, query: Query) -> Counts:
        """Return the number of matching pods per row, up to the capacity. Nobody writes into it."""
        return self._column(query).counts.by_row

    def per_value(self, query: Query, key: str, ids: Ids, size: int) -> Counts:
        """Return the number of matching pods by the number of the label's value. Read only."""
        return self._column(query).counts.per_value(key, ids, size)

    def forget_values(self) -> None:
        """Labels of rows changed: sum per value anew when somebody asks."""
        for column in self._columns.values():
            column.counts.by_value.clear()

    def total(self, query: Query) -> int:
        """Return the number of matching pods on all rows, ghosts' included."""
        return self._column(query).total

    def _column(self, query: Query) -> _Column:
        column = self._columns.pop(query, None)
        if column is None:
            column = self._sum(query)
        self._columns[query] = column
        if len(self._columns) > QUERIES_MAX:
            self._forget(next(iter(self._columns)))
        return column

    def _change(self, row: int, pod: Pod, change: int) -> None:
        kind = self._class_of(pod)
        count = kind.rows.get(row, 0) + change
        if count:
            kind.rows[row] = count
        else:
            del kind.rows[row]
        for column in kind.columns:
            column.counts.change(row, change)
            column.total += change
        if not kind.rows:
            del self._classes[_key(pod)]

    def _class_of(self, pod: Pod) -> _LabelClass:
        key = _key(pod)
        kind = self._classes.get(key)
        if kind is None:
            kind = self._classes[key] = _LabelClass(pod.namespace, pod.labels, bool(pod.deleted))
            kind.columns = [
                column for column in self._columns.values() if _counts(column.query, kind)
            ]
        return kind

    def _sum(self, query: Query) -> _Column:
        column = _Column(query, RowCounts(np.zeros(self.capacity, dtype=np.int64)))
        for kind in self._matching(query):
            kind.columns.append(column)
            for row, count in kind.rows.items():
                column.counts.by_row[row] += count
                column.total += count
        return column

    def _matching(self, query: Query) -> Iterator[_LabelClass]:
        return (kind for kind in self._classes.values() if _counts(query, kind))

    def _forget(self, query: Query) -> None:
        column = self._columns.pop(query)
        for kind in self._matching(query):
            kind.columns.remove(column)


def _key(pod: Pod) -> _ClassKey:
    return pod.namespace, tuple(sorted(pod.labels.items())), bool(pod.deleted)


def _counts(query: Query, kind: _LabelClass) -> bool:
    if query.live_only and kind.terminating:
        return False
    if query.namespaces is not None and kind.namespace not in query.namespaces:
        return False
    return query.selector.matches(kind.labels)
