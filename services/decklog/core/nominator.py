"""Which pods are nominated on which node: room that preemption made and that others should leave.

Keyed by uid; a pod is nominated on at most one node. A pod whose nomination was overridden with
nothing is kept under the empty name, as kube-scheduler does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from decklog.core.touch_log import TouchLog
from decklog.objects.pod import Pod


@dataclass(slots=True)
class Nominator:
    _pods: dict[str, dict[str, Pod]] = field(default_factory=dict)
    """Node → uid → pod, in order of nomination."""
    _node_of: dict[str, str] = field(default_factory=dict)
    touched: TouchLog[str] = field(default_factory=TouchLog)
    """Nodes whose nominations changed."""

    def add(self, pod: Pod, node: str | None = None) -> None:
        """Nominate the pod on `node`; None: on what its status says, if anything."""
        self.delete(pod.uid)
        if node is None:
            node = pod.nominated_node_name
            if not node:
                return
        self._pods.setdefault(node, {})[pod.uid] = pod
        self._node_of[pod.uid] = node
        self._touch(node)

    def update(self, old: Pod, new: Pod) -> None:
        """Follow the pod's status; a nomination that the status does not show yet is kept."""
        kept = None
        if not old.nominated_node_name and not new.nominated_node_name:
            kept = self._node_of.get(old.uid)
        self.delete(old.uid)
        self.add(new, kept)

    def delete(self, uid: str) -> None:
        node = self._node_of.pop(uid, None)
        if node is None:
            return
        pods = self._pods[node]
        del pods[uid]
        if not pods:
            del self._pods[node]
        self._touch(node)

    def node_of(self, uid: str) -> str | None:
        return self._node_of.get(uid)

    def pods_on(self, node: str) -> Sequence[Pod]:
        """Return the pods nominated on the node, in order of nomination."""
        return tuple(self._pods.get(node, {}).values())

    @property
    def has_any(self) -> bool:
        """Whether any pod is nominated on any node."""
        return len(self._pods) > ("" in self._pods)

    def _touch(self, node: str) -> None:
        if node:
            self.touched.append(node)
