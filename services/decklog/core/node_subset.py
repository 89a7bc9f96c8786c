"""Some rows of the table as columns of their own, gathered when they are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from decklog.core.columns import Bools, Int32s, Int64s, NodeColumns, Rows
from decklog.core.pod_class import PodClass
from decklog.core.pod_counts import Query
from decklog.core.pod_terms import CarriedTerm
from decklog.core.row_counts import sums_by_value
from decklog.objects.node import Node
from decklog.objects.pod import Pod
from decklog.objects.selectors import Taint


@dataclass(frozen=True)
class NodeSubset:
    """Equivalent to the table restricted to `rows`, in their order."""

    table: NodeColumns
    rows: Rows

    @cached_property
    def _at(self) -> slice | Rows:
        """A single row is read through a slice: it costs no copy."""
        if len(self.rows) == 1:
            row = int(self.rows[0])
            return slice(row, row + 1)
        return self.rows

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: Rows) -> NodeColumns:
        return NodeSubset(self.table, self.rows[rows])

    @cached_property
    def names(self) -> Sequence[str]:
        return [self.table.names[row] for row in self.rows.tolist()]

    @cached_property
    def present(self) -> Bools:
        return self.table.present[self._at]

    @cached_property
    def unschedulable(self) -> Bools:
        return self.table.unschedulable[self._at]

    @cached_property
    def taint_set_id(self) -> Int32s:
        return self.table.taint_set_id[self._at]

    @property
    def taint_sets(self) -> Sequence[tuple[Taint, ...]]:
        return self.table.taint_sets

    @cached_property
    def feature_set_id(self) -> Int32s:
        return self.table.feature_set_id[self._at]

    @property
    def feature_sets(self) -> Sequence[frozenset[str]]:
        return self.table.feature_sets

    @property
    def resource_names(self) -> Sequence[str]:
        return self.table.resource_names

    @cached_property
    def allocatable(self) -> Int64s:
        return self.table.allocatable[:, self._at]

    @cached_property
    def requested(self) -> Int64s:
        return self.table.requested[:, self._at]

    @cached_property
    def non_zero_requested(self) -> Int64s:
        return self.table.non_zero_requested[:, self._at]

    @cached_property
    def allowed_pods(self) -> Int64s:
        return self.table.allowed_pods[self._at]

    @cached_property
    def pod_count(self) -> Int64s:
        return self.table.pod_count[self._at]

    @property
    def pvc_in_use(self) -> Mapping[str, int]:
        return self.table.pvc_in_use

    @property
    def node_count(self) -> int:
        return self.table.node_count

    @cached_property
    def affinity_rows(self) -> Sequence[int]:
        return self._own(self.table.affinity_rows)

    @cached_property
    def required_anti_affinity_rows(self) -> Sequence[int]:
        return self._own(self.table.required_anti_affinity_rows)

    def label_ids(self, key: str) -> Int32s:
        return self.table.label_ids(key)[self._at]

    def label_values(self, key: str) -> Sequence[str]:
        return self.table.label_values(key)

    def label_set(self, row: int) -> Mapping[str, str]:
        return self.table.label_set(int(self.rows[row]))

    def resource_row(self, name: str) -> int | None:
        return self.table.resource_row(name)

    def ports_in_use(self, ip: str, protocol: str, port: int) -> Bools:
        return self.table.ports_in_use(ip, protocol, port)[self._at]

    def matching_pods(self, query: Query) -> Int64s:
        return self.table.matching_pods(query)[self._at]

    def label_value_count(self, key: str) -> int:
        return self.table.label_value_count(key)

    def matching_per_value(self, query: Query, key: str) -> Int64s:
        return self._sums(key, self.matching_pods(query))

    def carried_terms(self, pod: Pod, namespace_labels: Mapping[str, str]) -> Sequence[CarriedTerm]:
        return self.table.carried_terms(pod, namespace_labels)

    def carriers_per_value(self, carried: CarriedTerm) -> Int64s:
        counts = carried.counts.by_row[: len(self.table)]
        return self._sums(carried.term.topology_key, counts[self._at])

    def image_state(self, name: str) -> tuple[Int64s, Int64s] | None:
        state = self.table.image_state(name)
        return None if state is None else (state[0][self._at], state[1][self._at])

    def node(self, row: int) -> Node:
        return self.table.node(int(self.rows[row]))

    def pods(self, row: int) -> Sequence[Pod]:
        return self.table.pods(int(self.rows[row]))

    def pods_with_affinity(self, row: int) -> Sequence[Pod]:
        return self.table.pods_with_affinity(int(self.rows[row]))

    def pods_with_required_anti_affinity(self, row: int) -> Sequence[Pod]:
        return self.table.pods_with_required_anti_affinity(int(self.rows[row]))

    def row_of(self, name: str) -> int | None:
        row = self.table.row_of(name)
        return None if row is None else self._index.get(row)

    def order(self) -> Rows:
        """Return those of the rows that are listed, in the scheduler's order."""
        return np.array(self._own(self.table.order().tolist()), dtype=np.intp)

    def pod_class(self, pod: Pod) -> PodClass:
        return self.table.pod_class(pod)

    @cached_property
    def _index(self) -> dict[int, int]:
        return {row: index for index, row in enumerate(self.rows.tolist())}

    def _sums(self, key: str, counts: Int64s) -> Int64s:
        return sums_by_value(self.label_ids(key), counts, self.label_value_count(key))

    def _own(self, rows: Sequence[int]) -> list[int]:
        return [self._index[row] for row in rows if row in self._index]
