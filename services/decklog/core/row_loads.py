"""What some of the pods of each row ask for, summed: those that could go, those that could come.

A preemptor asks every node whether it would fit if all pods of lower priority were gone, and every
pod asks whether it fits beside the nominated pods of its priority or higher. These sums answer it
for all rows at once. They are kept per priority, and made again only for rows that changed since.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from decklog.core.columns import Bools, Int64s
from decklog.core.node_table import NodeTable
from decklog.core.nominator import Nominator
from decklog.objects.pod import Pod

PRIORITIES_MAX: Final = 32
"""Priorities whose sums are kept, of either kind: at 15,000 rows some 15 MB in all."""
MEMOS_MAX: Final = 256
"""Kinds of preemptors of which it is remembered whom they would evict."""

PodsOf = Callable[[int], Sequence[Pod]]
MemoKey = tuple[str, int, int]
"""(profile, pod class, priority)"""


@dataclass(slots=True, eq=False)
class RowLoads:
    """Equivalent to summing over `pods_of(row)` for each row."""

    table: NodeTable
    pods_of: PodsOf
    requested: Int64s = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    """By (resource, row)."""
    count: Int64s = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    has_ports: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    """Whether any of the pods has a host port."""

    def refresh(self, rows: Iterable[int] | None) -> None:
        """Sum these rows again; None, or a table of another shape: all."""
        shape = self.table.requested.shape
        if rows is None or self.requested.shape != shape:
            self.requested = np.zeros(shape, dtype=np.int64)
            self.count = np.zeros(shape[1], dtype=np.int64)
            self.has_ports = np.zeros(shape[1], dtype=np.bool_)
            rows = range(shape[1])
        for row in dict.fromkeys(rows):
            self._sum(row)
        if self.table.requested.shape != shape:
            self.refresh(None)  # A pod asks for a resource that nobody knew of.

    def _sum(self, row: int) -> None:
        pods = self.pods_of(row)
        if not pods and not self.count[row]:
            return
        kinds = [self.table.class_on_node(pod) for pod in pods]
        if len(self.table.requested) != len(self.requested):
            return
        self.requested[:, row] = 0
        for kind in kinds:
            self.requested[: len(kind.accounted), row] += kind.accounted
        self.count[row] = len(pods)
        self.has_ports[row] = any(kind.host_ports for kind in kinds)


@dataclass(frozen=True, slots=True, eq=False)
class _Lower:
    """The pods of a row that are of lower priority."""

    table: NodeTable
    priority: int

    def __call__(self, row: int) -> Sequence[Pod]:
        return [pod for pod in self.table.pods(row) if pod.priority < self.priority]


@dataclass(frozen=True, slots=True, eq=False)
class _Nominated:
    """The pods nominated on a row's node that are of this priority or higher."""

    table: NodeTable
    nominator: Nominator
    priority: int

    def __call__(self, row: int) -> Sequence[Pod]:
        if not self.table.present[row]:
            return ()
        pods = self.nominator.pods_on(self.table.names[row])
        return [pod for pod in pods if pod.priority >= self.priority]


@dataclass(slots=True, eq=False)
class _Kept:
    loads: RowLoads
    rows_at: int = -1
    names_at: int = -1


@dataclass(slots=True, eq=False)
class Memo:
    """What was found out about rows; a row's value is dropped when anything on it changes."""

    values: dict[int, Any] = field(default_factory=dict)
    rows_at: int = -1
    static_at: int = -1
    names_at: int = -1
    version: int = -1


@dataclass(slots=True, eq=False)
class KeptLoads:
    table: NodeTable
    nominator: Nominator
    _lower: dict[int, _Kept] = field(default_factory=dict)
    _nominated: dict[int, _Kept] = field(default_factory=dict)
    """By priority, the least recently used first."""
    _memos: dict[MemoKey, Memo] = field(default_factory=dict)

    def lower(self, priority: int) -> RowLoads:
        """Return the sums over the pods of each row that are of lower priority."""
        table = self.table
        kept = self._lower.pop(priority, None)
        if kept is None:
            kept = _Kept(RowLoads(table, _Lower(table, priority)))
        _keep(self._lower, priority, kept, PRIORITIES_MAX)
        rows = table.touched.since(kept.rows_at)
        kept.rows_at = table.touched.position
        kept.loads.refresh(rows)
        return kept.loads

    def nominated(self, priority: int) -> RowLoads:
        """Return the sums over the pods nominated on each row, of this priority or higher."""
        table, nominator = self.table, self.nominator
        kept = self._nominated.pop(priority, None)
        if kept is None:
            kept = _Kept(RowLoads(table, _Nominated(table, nominator, priority)))
        _keep(self._nominated, priority, kept, PRIORITIES_MAX)
        rows = _all_of(
            table.static_touched.since(kept.rows_at), self._rows(nominator, kept.names_at)
        )
        kept.rows_at, kept.names_at = table.static_touched.position, nominator.touched.position
        kept.loads.refresh(rows)
        return kept.loads

    def memo(self, key: MemoKey, version: int) -> dict[int, Any]:
        """Return what is remembered under the key of rows on which nothing has changed since.

        `version` is that of all objects which are neither nodes nor pods.
        """
        table = self.table
        memo = self._memos.pop(key, None) or Memo()
        _keep(self._memos, key, memo, MEMOS_MAX)
        touched = table.touched.since(memo.rows_at)
        changed = _all_of(touched, self._rows(self.nominator, memo.names_at))
        static = table.static_touched.since(memo.static_at)
        if changed is None or static is None or memo.version != version:
            memo.values.clear()
        else:
            for row in changed:
                memo.values.pop(row, None)
        memo.rows_at, memo.static_at = table.touched.position, table.static_touched.position
        memo.names_at, memo.version = self.nominator.touched.position, version
        return memo.values

    def _rows(self, nominator: Nominator, position: int) -> list[int] | None:
        names = nominator.touched.since(position)
        if names is None:
            return None
        return [row for name in names if (row := self.table.row_of(name)) is not None]


def _keep(kept: dict[Any, Any], key: Any, value: Any, most: int) -> None:
    kept[key] = value
    if len(kept) > most:
        del kept[next(iter(kept))]


def _all_of(some: Sequence[int] | None, others: Sequence[int] | None) -> list[int] | None:
    return None if some is None or others is None else [*some, *others]
