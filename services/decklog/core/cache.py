"""The scheduler's view of the cluster: nodes, the pods on them, and other objects.

A pod, known by its uid, moves through the cache like this:

               assume_pod                     add_pod: the watch saw it bound
    (absent) ────────────▶ assumed ───────────────────────────────▶ added ──┐
      ▲  ▲                    │                                      ▲  │   │ update_pod
      │  └──── forget_pod ────┘   add_pod: bound by somebody else    │  │   │ (same node)
      │                                                              │  └───┘
      ├───────────────────────(absent)───────────────────────────────┘  │
      └───────────────────────── remove_pod ────────────────────────────┘

We rely on three things. A pod is assumed at most once at a time, and nothing but forget_pod or
the watch ends that: there is no expiry. A pod may name a node that we do not know (a ghost): it
is counted there, and when the node comes it has its pods. What the watch says wins: a pod assumed
on one node and seen on another is moved.

A node moves like this:

                add_node                 remove_node, pods left
    (absent) ────────────▶ present ◀───────────────────────────▶ ghost ── last pod gone ──▶ (absent)
       ▲                      │                add_node            ▲
       ├──── remove_node ─────┘                                    │
       └──────────────────── a pod names it ───────────────────────┘

The list of nodes is kube-scheduler's snapshot: it is built anew only when a node came or went, so
a node whose zone changed keeps its place until then (`update_snapshot`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from decklog.core.errors import IllegalTransition
from decklog.core.node_order import NodeOrder, zone_key
from decklog.core.node_table import NodeTable
from decklog.core.pod_class import PodClass
from decklog.objects.node import Node
from decklog.objects.pod import Pod


@dataclass(slots=True)
class CachedPod:
    """A pod with the class by which it was counted: what was added is what is removed."""

    pod: Pod
    node: str
    kind: PodClass
    assumed: bool


@dataclass(slots=True)
class Cache:
    columns: NodeTable = field(default_factory=NodeTable)
    version: int = 0
    """Raised by every change of an object that is neither node nor pod."""
    _pods: dict[str, CachedPod] = field(default_factory=dict)
    _assumed: dict[str, None] = field(default_factory=dict)
    _order: NodeOrder = field(default_factory=NodeOrder)
    _objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    _listed: dict[str, None] = field(default_factory=dict)
    """The nodes in the snapshot, in the order of its list."""
    _came_or_went: dict[str, None] = field(default_factory=dict)
    """Nodes added or removed since the last snapshot."""
    _changed: dict[int, None] = field(default_factory=dict)
    """Rows whose NodeInfo has a new generation since the last snapshot."""

    # -- pods ----------------------------------------------------------------------------------

    def assume_pod(self, pod: Pod, node: str | None = None) -> None:
        """Count the pod on the node (None: on the one it names) before it is confirmed there."""
        if pod.uid in self._pods:
            _refuse(f"pod {_named(pod)} is in the cache, so can't be assumed")
        self._add(pod, pod.node_name if node is None else node, assumed=True)

    def forget_pod(self, pod: Pod | str) -> None:
        """Undo an assume. A pod that is absent is forgotten already."""
        uid = pod if isinstance(pod, str) else pod.uid
        cached = self._pods.get(uid)
        if cached is None:
            return
        if isinstance(pod, Pod) and cached.node != pod.node_name:
            # Upstream prints the two nodes the other way round.
            on, to = pod.node_name, cached.node
            _refuse(f"pod {_named(pod)} was assumed on {on} but assigned to {to}")
        if not cached.assumed:
            _refuse(f"pod {_named(cached.pod)} wasn't assumed so cannot be forgotten")
        self._remove(cached, cached.pod)

    def add_pod(self, pod: Pod) -> None:
        """The watch says that the pod is on its node; an assumed copy is replaced."""
        cached = self._pods.get(pod.uid)
        if cached is not None:
            if not cached.assumed:
                _refuse(f"pod {_named(pod)} was already in added state")
            self._remove(cached, cached.pod)
        self._add(pod, pod.node_name, assumed=False)

    def update_pod(self, old: Pod, new: Pod) -> None:
        cached = self._pods.get(new.uid)
        if cached is None:
            _refuse(f"pod {_named(new)} is not added to scheduler cache, so cannot be updated")
        if cached.assumed:
            _refuse(f"assumed pod {_named(new)} should not be updated")
        if cached.node != new.node_name:
            _refuse(f"pod {_named(new)} was added on {cached.node} and is now on {new.node_name}")
        self._remove(cached, old)
        self._add(new, new.node_name, assumed=False)

    def remove_pod(self, pod: Pod) -> None:
        cached = self._pods.get(pod.uid)
        if cached is None:
            _refuse(
                f"pod {_named(pod)} is not found in scheduler cache, so cannot be removed from it"
            )
        if pod.node_name not in ("", cached.node):
            _refuse(f"pod {_named(pod)} was added on {cached.node}, not on {pod.node_name}")
        self._remove(cached, cached.pod)

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    def pod(self, uid: str) -> Pod | None:
        """Return the pod, on the node on which it is counted."""
        cached = self._pods.get(uid)
        if cached is None:
            return None
        if cached.pod.node_name != cached.node:
            return replace(cached.pod, node_name=cached.node)
        return cached.pod

    def node_of(self, uid: str) -> str | None:
        cached = self._pods.get(uid)
        return None if cached is None else cached.node

    @property
    def assumed(self) -> list[str]:
        return list(self._assumed)

    @property
    def pod_count(self) -> int:
        return len(self._pods)

    # -- nodes ---------------------------------------------------------------------------------

    def add_node(self, node: Node) -> None:
        self._order.add(node)
        self._set_node(node)

    def update_node(self, old: Node | None, new: Node) -> None:
        if self.columns.find(new.name) is None:
            self._order.add(new)
        self._order.update(old, new)
        self._set_node(new)

    def remove_node(self, node: Node) -> None:
        row = self.columns.find(node.name)
        if row is None:
            _refuse(f"node {node.name} is not found")
        present = self.columns.present[row]
        if present:
            self.columns.clear_node(row)
            self._came_or_went[node.name] = None
            self._changed[row] = None
        if not self.columns.pods(row):
            self.columns.close_row(node.name)
        if not self._order.remove(node):
            zone = zone_key(node.labels).replace("\x00", "\\x00")  # As Go quotes it.
            _refuse(f'node "{node.name}" in group "{zone}" was not found')

    @property
    def node_count(self) -> int:
        """Number of nodes, ghosts included."""
        return self.columns.name_count

    # -- other objects -------------------------------------------------------------------------

    def set_object(self, kind: str, key: str, obj: Any) -> None:
        self._objects.setdefault(kind, {})[key] = obj
        self.version += 1

    def delete_object(self, kind: str, key: str) -> None:
        self._objects.get(kind, {}).pop(key, None)
        self.version += 1

    def objects(self, kind: str) -> Mapping[str, Any]:
        """Return the objects of a kind by `namespace/name` (or name)."""
        return self._objects.get(kind, {})

    # -- the snapshot --------------------------------------------------------------------------

    def update_snapshot(self) -> str | None:
        """Let what changed since be seen by the next cycle; return why it can't, if it can't.

        Equivalent to kube-scheduler's UpdateSnapshot. Columns are read as they are, since nothing
        changes during a cycle; what upstream copies late is late here too: the list's order and
        the numbers of nodes that have an image.
        """
        columns = self.columns
        for row in self._changed:
            if columns.present[row] and columns.images.copy(row) and columns.node(row).images:
                columns.touch_static(row)
        self._changed.clear()
        return self._list_again() if self._came_or_went else None

    def _list_again(self) -> str | None:
        """List the nodes anew if one is unseen or gone; else only find the same names' rows."""
        columns, listed = self.columns, self._listed
        unseen = [
            name
            for name in self._came_or_went
            if name not in listed and columns.row_of(name) is not None
        ]
        self._came_or_went.clear()
        listed.update(dict.fromkeys(unseen))
        problem = None
        if unseen or len(listed) > self._order.count:
            present = {name: None for name in listed if columns.row_of(name) is not None}
            in_order = [name for name in self._order.names() if name in present]
            if len(in_order) != self._order.count:
                problem = (
                    f"snapshot state is not consistent, length of NodeInfoList={len(in_order)} "
                    f"not equal to length of nodes in tree={self._order.count}"
                )
            self._listed = dict.fromkeys(in_order)
        columns.list_in_order(list(self._listed))
        return problem

    # -- leaves --------------------------------------------------------------------------------

    def _set_node(self, node: Node) -> None:
        columns = self.columns
        row = columns.open_row(node.name)
        if not columns.present[row]:
            self._came_or_went[node.name] = None
        columns.set_node(row, node)
        self._changed[row] = None

    def _add(self, pod: Pod, node: str, *, assumed: bool) -> None:
        columns = self.columns
        row = columns.open_row(node)
        kind = columns.class_on_node(pod)
        columns.add_pod(row, pod, kind)
        self._pods[pod.uid] = CachedPod(pod, node, kind, assumed)
        if assumed:
            self._assumed[pod.uid] = None
        self._changed[row] = None

    def _remove(self, cached: CachedPod, given: Pod) -> None:
        columns = self.columns
        uid = cached.pod.uid
        row = columns.open_row(cached.node)
        columns.remove_pod(row, cached.pod, cached.kind, given)
        columns.pod_classes.forget(uid)
        del self._pods[uid]
        self._assumed.pop(uid, None)
        self._changed[row] = None
        if not columns.present[row] and not columns.pods(row):
            columns.close_row(cached.node)
            del self._changed[row]


def _named(pod: Pod) -> str:
    return f"{pod.uid}({pod.key})"


def _refuse(why: str) -> NoReturn:
    raise IllegalTransition(why)
