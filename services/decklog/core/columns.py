"""The cluster as a table: one row per node, one numpy column per fact.

`NodeColumns` is what plugins see. All nodes are one (`node_table.py`), and so is any selection of
their rows (`take`, `node_subset.py`); a plugin does not know which it is given.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from decklog.core.pod_class import PodClass
from decklog.core.pod_counts import Query
from decklog.core.pod_terms import CarriedTerm
from decklog.objects.node import Node
from decklog.objects.pod import Pod
from decklog.objects.selectors import Taint

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

CPU: Final = 0
MEMORY: Final = 1
EPHEMERAL_STORAGE: Final = 2
NO_NODE: Final = Node(uid="", name="")
"""What a row without a node holds."""


class NodeColumns(Protocol):
    """Facts about nodes, one entry per row, rows that hold no node included.

    Nobody writes into an array from here, and nobody keeps one beyond the cycle: rows are added,
    and a freed row is used again.
    """

    @property
    def names(self) -> Sequence[str]: ...
    @property
    def present(self) -> Bools:
        """Whether the row holds a node. It doesn't if it is free, or if only pods name the node."""
        ...

    @property
    def unschedulable(self) -> Bools: ...
    @property
    def taint_set_id(self) -> Int32s:
        """Index into `taint_sets`; 0 is the empty set."""
        ...

    @property
    def taint_sets(self) -> Sequence[tuple[Taint, ...]]: ...
    @property
    def feature_set_id(self) -> Int32s:
        """Index into `feature_sets`; 0 is the empty set."""
        ...

    @property
    def feature_sets(self) -> Sequence[frozenset[str]]: ...
    @property
    def resource_names(self) -> Sequence[str]:
        """cpu, memory, ephemeral-storage, then scalar resources as they were first seen."""
        ...

    @property
    def allocatable(self) -> Int64s:
        """By (resource, row): milli-CPU, bytes, counts."""
        ...

    @property
    def requested(self) -> Int64s:
        """By (resource, row): what the pods of the node ask for, exactly."""
        ...

    @property
    def non_zero_requested(self) -> Int64s:
        """By (cpu or memory, row): the same with defaults for what was not asked; for scores."""
        ...

    @property
    def allowed_pods(self) -> Int64s: ...
    @property
    def pod_count(self) -> Int64s: ...
    @property
    def pvc_in_use(self) -> Mapping[str, int]:
        """`namespace/claim` → number of uses by pods of all present nodes."""
        ...

    @property
    def node_count(self) -> int:
        """Number of nodes of the whole cluster, as the scheduler lists them."""
        ...

    @property
    def affinity_rows(self) -> Sequence[int]:
        """Rows with pods that have any pod affinity or anti-affinity stanza, even an empty one."""
        ...

    @property
    def required_anti_affinity_rows(self) -> Sequence[int]: ...

    def __len__(self) -> int: ...
    def take(self, rows: Rows) -> "NodeColumns":
        """Return these rows as columns of their own: entry i is row `rows[i]`."""
        ...

    def label_ids(self, key: str) -> Int32s:
        """Return each row's value of the label as an index into `label_values`; 0 is absent."""
        ...

    def label_values(self, key: str) -> Sequence[str]: ...
    def label_set(self, row: int) -> Mapping[str, str]: ...
    def resource_row(self, name: str) -> int | None:
        """Return the resource's index into the columns; None if nothing has or wants it."""
        ...

    def ports_in_use(self, ip: str, protocol: str, port: int) -> Bools:
        """Return which rows have a pod whose host port conflicts with this one."""
        ...

    def matching_pods(self, query: Query) -> Int64s:
        """Return the number of pods per row that the query counts; nobody writes into it."""
        ...

    def label_value_count(self, key: str) -> int:
        """Return the length of `label_values`."""
        ...

    def matching_per_value(self, query: Query, key: str) -> Int64s:
        """Return the same per value of a label, as `label_ids` numbers them; 0 counts nothing."""
        ...

    def carried_terms(self, pod: Pod, namespace_labels: Mapping[str, str]) -> Sequence[CarriedTerm]:
        """Return the affinity terms of placed pods that mean this pod."""
        ...

    def carriers_per_value(self, carried: CarriedTerm) -> Int64s:
        """Return the number of pods that carry the term, per value of its topology key."""
        ...

    def image_state(self, name: str) -> tuple[Int64s, Int64s] | None:
        """Return (size, nodes that have it) by row, 0 where the row's node lacks the image.

        As kube-scheduler's snapshot has it: the number is as old as the row's last change.
        """
        ...

    def node(self, row: int) -> Node: ...
    def pods(self, row: int) -> Sequence[Pod]:
        """Return the node's pods in the order of kube-scheduler's NodeInfo."""
        ...

    def pods_with_affinity(self, row: int) -> Sequence[Pod]: ...
    def pods_with_required_anti_affinity(self, row: int) -> Sequence[Pod]: ...
    def row_of(self, name: str) -> int | None:
        """Return the row of a present node."""
        ...

    def order(self) -> Rows:
        """Return the rows of the nodes in the order in which the scheduler lists them."""
        ...

    def pod_class(self, pod: Pod) -> PodClass: ...
