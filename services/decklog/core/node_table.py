"""All nodes as columns: the one table, which the cache changes and everybody else reads.

A node keeps its row while it exists, and longer if pods still name it; a freed row is used again.
What pods do to a row is appended to `touched`, what its node says anew to `static_touched`;
verdicts are kept per pod class, and refreshed for the rows in these logs (`verdicts.py`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from decklog.core.columns import NO_NODE, Bools, Int32s, Int64s, NodeColumns, Rows
from decklog.core.images import ImageStates, image_sizes
from decklog.core.interning import Interner
from decklog.core.labels import LabelColumns
from decklog.core.node_subset import NodeSubset
from decklog.core.pod_class import PodClass, PodClasses
from decklog.core.pod_counts import PodCounts, Query
from decklog.core.pod_terms import CarriedTerm, PodTerms
from decklog.core.ports import PortTable
from decklog.core.resource_names import NATIVE, PODS
from decklog.core.select import name_hash
from decklog.core.touch_log import TouchLog
from decklog.objects.meta import NO_LABELS
from decklog.objects.node import Node
from decklog.objects.pod import Pod
from decklog.objects.quantity import amount
from decklog.objects.requests import (
    has_affinity,
    has_required_anti_affinity,
    is_scalar_resource,
    pvc_keys,
)
from decklog.objects.selectors import Taint

CAPACITY_FIRST: Final = 16
_T = TypeVar("_T", bound=np.generic)


@dataclass(slots=True)
class _RowPods:
    """The pods of a row, in NodeInfo's order: appended; the last takes the place of one removed."""

    pods: list[Pod] = field(default_factory=list)
    with_affinity: list[Pod] = field(default_factory=list)
    with_required_anti_affinity: list[Pod] = field(default_factory=list)
    claims: dict[str, int] = field(default_factory=dict)


class NodeTable:
    """`columns.NodeColumns` says what the columns mean; here is what changes them."""

    def __init__(self) -> None:
        self.touched: TouchLog[int] = TouchLog()
        self.static_touched: TouchLog[int] = TouchLog()
        self.images = ImageStates()
        self.names: list[str] = []
        self.pvc_in_use: dict[str, int] = {}
        self.node_count = 0
        self._resources: Interner[str] = Interner(*NATIVE)
        self._taint_sets: Interner[tuple[Taint, ...]] = Interner(())
        self._feature_sets: Interner[frozenset[str]] = Interner(frozenset())
        self.resource_names = self._resources.values
        self.taint_sets = self._taint_sets.values
        self.feature_sets = self._feature_sets.values
        self.pod_classes = PodClasses(self._resources)
        self._labels = LabelColumns()
        self._ports = PortTable()
        self._counts = PodCounts()
        self._terms = PodTerms()
        self._nodes: list[Node] = []
        self._pods: list[_RowPods] = []
        self._rows: dict[str, int] = {}
        self._free: list[int] = []
        self._affinity_rows: dict[int, None] = {}
        self._required_anti_affinity_rows: dict[int, None] = {}
        self._order: Rows = np.zeros(0, dtype=np.intp)
        self._present = np.zeros(0, dtype=np.bool_)
        self._unschedulable = np.zeros(0, dtype=np.bool_)
        self._taint_set_id = np.zeros(0, dtype=np.int32)
        self._feature_set_id = np.zeros(0, dtype=np.int32)
        self._allocatable = np.zeros((0, 0), dtype=np.int64)
        self._requested = np.zeros((0, 0), dtype=np.int64)
        self._non_zero_requested = np.zeros((0, 0), dtype=np.int64)
        self._allowed_pods = np.zeros(0, dtype=np.int64)
        self._pod_count = np.zeros(0, dtype=np.int64)
        self._name_hash = np.zeros(0, dtype=np.uint64)
        self._allocate(CAPACITY_FIRST)
        self._show()

    def __setstate__(self, state: dict[str, object]) -> None:
        """Show the columns of the copy: what was copied are views of nothing."""
        self.__dict__.update(state)
        self._show()

    # -- what plugins read ---------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.names)

    def take(self, rows: Rows) -> NodeColumns:
        return NodeSubset(self, rows)

    def label_ids(self, key: str) -> Int32s:
        return self._labels.ids(key, self._label_sets)[: len(self.names)]

    def label_values(self, key: str) -> Sequence[str]:
        return self._labels.values(key, self._label_sets)

    def label_set(self, row: int) -> Mapping[str, str]:
        return self._nodes[row].labels

    def resource_row(self, name: str) -> int | None:
        return self._resources.find(name)

    def ports_in_use(self, ip: str, protocol: str, port: int) -> Bools:
        return self._ports.in_use(len(self.names), (ip, protocol, port))

    def matching_pods(self, query: Query) -> Int64s:
        return self._counts.column(query)[: len(self.names)]

    def label_value_count(self, key: str) -> int:
        return self._labels.value_count(key, self._label_sets)

    def matching_per_value(self, query: Query, key: str) -> Int64s:
        return self._counts.per_value(query, key, *self._values(key))

    def carried_terms(self, pod: Pod, namespace_labels: Mapping[str, str]) -> Sequence[CarriedTerm]:
        return self._terms.meaning(pod, namespace_labels)

    def carriers_per_value(self, carried: CarriedTerm) -> Int64s:
        key = carried.term.topology_key
        return carried.counts.per_value(key, *self._values(key))

    def image_state(self, name: str) -> tuple[Int64s, Int64s] | None:
        return self.images.states(name, len(self.names))

    def node(self, row: int) -> Node:
        return self._nodes[row]

    def pods(self, row: int) -> Sequence[Pod]:
        return self._pods[row].pods

    def pods_with_affinity(self, row: int) -> Sequence[Pod]:
        return self._pods[row].with_affinity

    def pods_with_required_anti_affinity(self, row: int) -> Sequence[Pod]:
        return self._pods[row].with_required_anti_affinity

    @property
    def affinity_rows(self) -> Sequence[int]:
        return [row for row in self._affinity_rows if self.present[row]]

    @property
    def required_anti_affinity_rows(self) -> Sequence[int]:
        return [row for row in self._required_anti_affinity_rows if self.present[row]]

    def row_of(self, name: str) -> int | None:
        row = self._rows.get(name)
        return row if row is not None and self.present[row] else None

    def order(self) -> Rows:
        return self._order

    def pod_class(self, pod: Pod) -> PodClass:
        return self._with_its_resources(self.pod_classes.of(pod))

    def class_on_node(self, pod: Pod) -> PodClass:
        """Return the class by which a pod counts that is on a node, or might be."""
        return self._with_its_resources(self.pod_classes.on_node(pod))

    def _with_its_resources(self, kind: PodClass) -> PodClass:
        """Return the class; if it names a resource that nobody knew of, the columns grow."""
        if len(self.resource_names) > len(self.allocatable):
            self._grow_resources()
        return kind

    # -- what the cache does: nodes ------------------------------------------------------------

    def find(self, name: str) -> int | None:
        """Return the row of that name, also if only pods name it."""
        return self._rows.get(name)

    @property
    def name_count(self) -> int:
        """Number of nodes that are present or named by pods."""
        return len(self._rows)

    def open_row(self, name: str) -> int:
        """Return the row of that name, a new one if there is none."""
        row = self._rows.get(name)
        if row is None:
            row = self._free.pop() if self._free else self._add_row()
            self._rows[name] = row
            self.names[row] = name
            self.name_hash[row] = name_hash(name)
        return row

    def close_row(self, name: str) -> None:
        """Free the row; it must hold neither a node nor pods."""
        row = self._rows.pop(name)
        self.names[row] = ""
        self._free.append(row)

    def set_node(self, row: int, node: Node) -> None:
        """Let the row say what the node says, and touch it as far as that differs."""
        old, was_present = self._nodes[row], bool(self.present[row])
        self._nodes[row] = node
        sizes = image_sizes(node)
        if not was_present or sizes != image_sizes(old):
            self.images.remove(image_sizes(old), row)
            self.images.add(sizes, row)
        if not was_present:
            self._count_claims(row, 1)
        elif _says_the_same(old, node, sizes):
            if old.allocatable != node.allocatable:
                self._set_allocatable(row, node)
                self.touched.append(row)
            return
        self.present[row] = True
        self.unschedulable[row] = node.unschedulable
        self.taint_set_id[row] = self._taint_sets.number(node.taints)
        self.feature_set_id[row] = self._feature_sets.number(frozenset(node.declared_features))
        self._set_labels(row, node.labels)
        self._set_allocatable(row, node)
        self.touch_static(row)

    def clear_node(self, row: int) -> None:
        """The row's node is gone; its pods, if any, stay and are counted."""
        self.images.remove(image_sizes(self._nodes[row]), row)
        self._count_claims(row, -1)
        self._nodes[row] = NO_NODE
        self.present[row] = False
        self.unschedulable[row] = False
        self.taint_set_id[row] = 0
        self.feature_set_id[row] = 0
        self._set_labels(row, NO_LABELS)
        self.allocatable[:, row] = 0
        self.allowed_pods[row] = 0
        self.touch_static(row)

    def touch_static(self, row: int) -> None:
        self.touched.append(row)
        self.static_touched.append(row)

    def list_in_order(self, names: Sequence[str]) -> None:
        """Let this be the list of the scheduler's nodes; their number counts for every row."""
        self._order = np.array([self._rows[name] for name in names], dtype=np.intp)
        if len(names) != self.node_count:
            self.node_count = len(names)
            self.static_touched.touch_all()

    # -- what the cache does: pods -------------------------------------------------------------

    def add_pod(self, row: int, pod: Pod, kind: PodClass) -> None:
        self.requested[: len(kind.accounted), row] += kind.accounted
        self.non_zero_requested[:, row] += kind.non_zero
        self.pod_count[row] += 1
        for port in kind.host_ports:
            self._ports.add(row, port)
        on_row = self._pods[row]
        on_row.pods.append(pod)
        self._counts.add(row, pod)
        if pod.volumes:
            self._add_claims(row, pod, 1)
        if pod.affinity is not None:
            if has_affinity(pod):
                on_row.with_affinity.append(pod)
                self._terms.change(row, pod, 1, anti=False)
                self._affinity_rows[row] = None
            if has_required_anti_affinity(pod):
                on_row.with_required_anti_affinity.append(pod)
                self._terms.change(row, pod, 1, anti=True)
                self._required_anti_affinity_rows[row] = None
        self.touched.append(row)

    def remove_pod(self, row: int, pod: Pod, kind: PodClass, given: Pod) -> None:
        """Take the stored pod off the row; `given` is the version that the caller names it by.

        As upstream, the lists of pods with affinity are only searched if that version has some.
        """
        self.requested[: len(kind.accounted), row] -= kind.accounted
        self.non_zero_requested[:, row] -= kind.non_zero
        self.pod_count[row] -= 1
        for port in kind.host_ports:
            self._ports.remove(row, port)
        on_row = self._pods[row]
        _remove(on_row.pods, pod.uid)
        self._counts.remove(row, pod)
        if pod.volumes:
            self._add_claims(row, pod, -1)
        if given.affinity is not None:
            if has_affinity(given):
                self._remove_terms(row, on_row.with_affinity, pod.uid, anti=False)
                if not on_row.with_affinity:
                    self._affinity_rows.pop(row, None)
            if has_required_anti_affinity(given):
                self._remove_terms(row, on_row.with_required_anti_affinity, pod.uid, anti=True)
                if not on_row.with_required_anti_affinity:
                    self._required_anti_affinity_rows.pop(row, None)
        self.touched.append(row)

    def _remove_terms(self, row: int, pods: list[Pod], uid: str, *, anti: bool) -> None:
        """Take the pod off the list, and what it was listed for out of the counts."""
        listed = _remove(pods, uid)
        if listed is not None:
            self._terms.change(row, listed, -1, anti=anti)

    def used_ports(self, row: int) -> list[tuple[str, str, int]]:
        return self._ports.of_row(row)

    # -- rows and arrays -----------------------------------------------------------------------

    def _values(self, key: str) -> tuple[Int32s, int]:
        """Return each row's number of the label's value, up to the capacity, and how many are."""
        ids = self._labels.ids(key, self._label_sets)
        return ids, self._labels.value_count(key, self._label_sets)

    def _set_labels(self, row: int, labels: Mapping[str, str]) -> None:
        self._labels.set(row, labels)
        self._counts.forget_values()
        self._terms.forget_values()

    def _label_sets(self) -> Iterable[Mapping[str, str]]:
        return (node.labels for node in self._nodes)

    def _add_claims(self, row: int, pod: Pod, change: int) -> None:
        claims = self._pods[row].claims
        for key in pvc_keys(pod):
            _count(claims, key, change)
            if self.present[row]:
                _count(self.pvc_in_use, key, change)

    def _count_claims(self, row: int, sign: int) -> None:
        for key, uses in self._pods[row].claims.items():
            _count(self.pvc_in_use, key, sign * uses)

    def _set_allocatable(self, row: int, node: Node) -> None:
        self.allocatable[:, row] = 0
        self.allowed_pods[row] = 0
        for name, text in node.allocatable.items():
            if name == PODS:
                self.allowed_pods[row] = amount(name, text)
            elif name in NATIVE or is_scalar_resource(name):
                resource = self._resources.number(name)
                if resource >= len(self.allocatable):
                    self._grow_resources()
                self.allocatable[resource, row] = amount(name, text)

    def _add_row(self) -> int:
        row = len(self.names)
        self.names.append("")
        self._nodes.append(NO_NODE)
        self._pods.append(_RowPods())
        if row == len(self._present):
            self._allocate(2 * row)
        self._show()
        return row

    def _grow_resources(self) -> None:
        self.pod_classes.grow()
        self._allocate(len(self._present))
        self._show()

    def _allocate(self, capacity: int) -> None:
        """Give every column room for so many rows, and for all resources; keep what it holds."""
        resources = len(self._resources)
        self._present = _grown(self._present, (capacity,))
        self._unschedulable = _grown(self._unschedulable, (capacity,))
        self._taint_set_id = _grown(self._taint_set_id, (capacity,))
        self._feature_set_id = _grown(self._feature_set_id, (capacity,))
        self._allocatable = _grown(self._allocatable, (resources, capacity))
        self._requested = _grown(self._requested, (resources, capacity))
        self._non_zero_requested = _grown(self._non_zero_requested, (2, capacity))
        self._allowed_pods = _grown(self._allowed_pods, (capacity,))
        self._pod_count = _grown(self._pod_count, (capacity,))
        self._name_hash = _grown(self._name_hash, (capacity,))
        self.images.grow(capacity)
        self._labels.grow(capacity)
        self._counts.grow(capacity)
        self._terms.grow(capacity)

    def _show(self) -> None:
        """Show the rows in use: capacity is grown ahead of them."""
        count = len(self.names)
        self.present = self._present[:count]
        self.unschedulable = self._unschedulable[:count]
        self.taint_set_id = self._taint_set_id[:count]
        self.feature_set_id = self._feature_set_id[:count]
        self.allocatable = self._allocatable[:, :count]
        self.requested = self._requested[:, :count]
        self.non_zero_requested = self._non_zero_requested[:, :count]
        self.allowed_pods = self._allowed_pods[:count]
        self.pod_count = self._pod_count[:count]
        self.name_hash = self._name_hash[:count]


def _grown(column: npt.NDArray[_T], shape: tuple[int, ...]) -> npt.NDArray[_T]:
    grown = np.zeros(shape, dtype=column.dtype)
    grown[tuple(slice(0, length) for length in column.shape)] = column
    return grown


def _says_the_same(old: Node, new: Node, sizes: Mapping[str, int]) -> bool:
    """Whether the nodes differ in nothing that columns hold, but for what is allocatable."""
    return (
        old.labels == new.labels
        and old.taints == new.taints
        and old.unschedulable == new.unschedulable
        and old.declared_features == new.declared_features
        and image_sizes(old) == sizes
    )


def _remove(pods: list[Pod], uid: str) -> Pod | None:
    """Let the last pod take the place of the one with the uid, and return that one."""
    for index, pod in enumerate(pods):
        if pod.uid == uid:
            last = pods.pop()
            if index < len(pods):
                pods[index] = last
            return pod
    return None


def _count(counts: dict[str, int], key: str, change: int) -> None:
    count = counts.get(key, 0) + change
    if count:
        counts[key] = count
    else:
        counts.pop(key, None)
