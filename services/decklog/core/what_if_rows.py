"""Rows of the table as they would be with other pods on them: NodeInfo's clone, without a copy.

What depends on pods of the row alone is as it would be: requests, pod count, ports, the pods. What
PreFilter and scores read (pods that match a query, claims in use) is as the cluster has it: of a
pod more or less these hear through `PreFilterExtensions`, as upstream.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from decklog.core.columns import Bools, Int32s, Int64s, NodeColumns, Rows
from decklog.core.node_subset import NodeSubset
from decklog.core.node_table import NodeTable
from decklog.core.pod_class import PodClass, Port
from decklog.core.pod_counts import Query
from decklog.core.pod_terms import CarriedTerm
from decklog.core.ports import PortTable
from decklog.objects.node import Node
from decklog.objects.pod import Pod
from decklog.objects.requests import has_affinity, has_required_anti_affinity
from decklog.objects.selectors import Taint


class WhatIfRows:
    """Equivalent to a subset of a table whose rows had these pods."""

    def __init__(self, table: NodeTable, rows: Rows) -> None:
        self.table = table
        self.rows = rows
        self.requested: Int64s = table.requested[:, rows]
        self.pod_count: Int64s = table.pod_count[rows]
        self._base = NodeSubset(table, rows)
        self._pods: dict[int, dict[str, Pod]] = {}
        self._ports: PortTable | None = None

    def copy(self) -> "WhatIfRows":
        """Return the same rows, to be changed without changing these."""
        other = WhatIfRows(self.table, self.rows)
        other.requested, other.pod_count = self.requested.copy(), self.pod_count.copy()
        other._pods = {row: dict(pods) for row, pods in self._pods.items()}
        other._ports = self._ports_of(np.arange(len(self)))
        return other

    # -- what would be different ---------------------------------------------------------------

    def load(self, requested: Int64s, count: Int64s) -> None:
        """Let pods that ask for so much come (or go, if it is negative); who they are is open."""
        self.requested += requested
        self.pod_count += count

    def add(self, row: int, pod: Pod) -> None:
        kind = self.table.class_on_node(pod)
        self._change(row, kind, 1)
        for port in kind.host_ports:
            self._used().add(row, port)
        self._of(row)[pod.uid] = pod

    def remove(self, row: int, pod: Pod) -> None:
        kind = self.table.class_on_node(pod)
        self._change(row, kind, -1)
        for port in kind.host_ports:
            self._used().remove(row, port)
        del self._of(row)[pod.uid]

    def _change(self, row: int, kind: PodClass, sign: int) -> None:
        self.requested[: len(kind.accounted), row] += sign * kind.accounted
        self.pod_count[row] += sign

    def _of(self, row: int) -> dict[str, Pod]:
        pods = self._pods.get(row)
        if pods is None:
            pods = self._pods[row] = {pod.uid: pod for pod in self._base.pods(row)}
        return pods

    def _used(self) -> PortTable:
        if self._ports is None:
            self._ports = PortTable()
            for row, at in enumerate(self.rows.tolist()):
                for port in self.table.used_ports(at):
                    self._ports.add(row, port)
        return self._ports

    def _ports_of(self, rows: Rows) -> PortTable | None:
        if self._ports is None:
            return None
        ports = PortTable()
        for index, row in enumerate(rows.tolist()):
            for port in self._ports.of_row(row):
                ports.add(index, port)
        return ports

    def ports_in_use(self, ip: str, protocol: str, port: int) -> Bools:
        if self._ports is None:
            return self._base.ports_in_use(ip, protocol, port)
        wanted: Port = (ip, protocol, port)
        return self._ports.in_use(len(self), wanted)

    def pods(self, row: int) -> Sequence[Pod]:
        return list(self._of(row).values())

    def pods_with_affinity(self, row: int) -> Sequence[Pod]:
        return [pod for pod in self._of(row).values() if has_affinity(pod)]

    def pods_with_required_anti_affinity(self, row: int) -> Sequence[Pod]:
        return [pod for pod in self._of(row).values() if has_required_anti_affinity(pod)]

    @property
    def affinity_rows(self) -> Sequence[int]:
        return [row for row in range(len(self)) if self.pods_with_affinity(row)]

    @property
    def required_anti_affinity_rows(self) -> Sequence[int]:
        return [row for row in range(len(self)) if self.pods_with_required_anti_affinity(row)]

    # -- what is as it is ----------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: Rows) -> NodeColumns:
        taken = WhatIfRows(self.table, self.rows[rows])
        taken.requested, taken.pod_count = self.requested[:, rows], self.pod_count[rows]
        taken._pods = {
            index: dict(self._pods[row])
            for index, row in enumerate(rows.tolist())
            if row in self._pods
        }
        taken._ports = self._ports_of(rows)
        return taken

    @property
    def names(self) -> Sequence[str]:
        return self._base.names

    @property
    def present(self) -> Bools:
        return self._base.present

    @property
    def unschedulable(self) -> Bools:
        return self._base.unschedulable

    @property
    def taint_set_id(self) -> Int32s:
        return self._base.taint_set_id

    @property
    def taint_sets(self) -> Sequence[tuple[Taint, ...]]:
        return self._base.taint_sets

    @property
    def feature_set_id(self) -> Int32s:
        return self._base.feature_set_id

    @property
    def feature_sets(self) -> Sequence[frozenset[str]]:
        return self._base.feature_sets

    @property
    def resource_names(self) -> Sequence[str]:
        return self._base.resource_names

    @property
    def allocatable(self) -> Int64s:
        return self._base.allocatable

    @property
    def non_zero_requested(self) -> Int64s:
        return self._base.non_zero_requested

    @property
    def allowed_pods(self) -> Int64s:
        return self._base.allowed_pods

    @property
    def pvc_in_use(self) -> Mapping[str, int]:
        return self._base.pvc_in_use

    @property
    def node_count(self) -> int:
        return self._base.node_count

    def label_ids(self, key: str) -> Int32s:
        return self._base.label_ids(key)

    def label_values(self, key: str) -> Sequence[str]:
        return self._base.label_values(key)

    def label_set(self, row: int) -> Mapping[str, str]:
        return self._base.label_set(row)

    def resource_row(self, name: str) -> int | None:
        return self._base.resource_row(name)

    def matching_pods(self, query: Query) -> Int64s:
        return self._base.matching_pods(query)

    def label_value_count(self, key: str) -> int:
        return self._base.label_value_count(key)

    def matching_per_value(self, query: Query, key: str) -> Int64s:
        return self._base.matching_per_value(query, key)

    def carried_terms(self, pod: Pod, namespace_labels: Mapping[str, str]) -> Sequence[CarriedTerm]:
        return self._base.carried_terms(pod, namespace_labels)

    def carriers_per_value(self, carried: CarriedTerm) -> Int64s:
        return self._base.carriers_per_value(carried)

    def image_state(self, name: str) -> tuple[Int64s, Int64s] | None:
        return self._base.image_state(name)

    def node(self, row: int) -> Node:
        return self._base.node(row)

    def row_of(self, name: str) -> int | None:
        return self._base.row_of(name)

    def order(self) -> Rows:
        return self._base.order()

    def pod_class(self, pod: Pod) -> PodClass:
        return self.table.pod_class(pod)
