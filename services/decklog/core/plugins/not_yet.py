"""Default plugins that are known and not there yet.

They are inert for pods that have no use for them. A pod that does is refused in PreFilter, with one
plain status, so that none is placed as if the plugin had agreed. `used_by` tells whether a whole
cluster has any use for the plugin: then its answers differ from kube-scheduler's.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from decklog.core.columns import NodeColumns
from decklog.core.framework.interface import (
    PASS,
    ClusterView,
    CycleState,
    Mask,
    PreFilterResult,
    Reads,
    ReasonCodes,
    Scores,
)
from decklog.core.framework.status import SKIP, SUCCESS, Status, unresolvable
from decklog.objects.pod import Pod

Args = Mapping[str, Any]
EXCLUSIVE_DISKS: Final = ("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd")
CLAIMS: Final = "persistent volume claims"


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """What a plugin would look at. Functions return words for it; empty: there is nothing."""

    name: str
    asked_of: Callable[[Pod, Args], str]
    """What the pod itself asks for."""
    used_by: Callable[[Sequence[Pod], ClusterView, Args], bool] = lambda *_: False
    """Whether anything else in the cluster makes the plugin answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotYet:
    """Stands for the plugin at all its points: it skips, or refuses the pod."""

    feature: Feature
    args: Args
    reads: Reads = Reads.CLUSTER
    statuses: Sequence[Status] = (SUCCESS,)

    @property
    def name(self) -> str:
        return self.feature.name

    def used_by(self, pods: Sequence[Pod], cluster: ClusterView) -> bool:
        """Whether the plugin would have a say about any of the pods."""
        return any(self.feature.asked_of(pod, self.args) for pod in pods) or self.feature.used_by(
            pods, cluster, self.args
        )

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeColumns
    ) -> tuple[PreFilterResult | None, Status]:
        what = self.feature.asked_of(pod, self.args)
        return None, unresolvable(f"decklog does not support {what} yet") if what else SKIP

    def filter(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> ReasonCodes:
        return np.full(len(nodes), PASS, dtype=np.uint16)

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeColumns, feasible: Mask) -> Status:
        return SKIP

    def score(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> Scores:
        return np.zeros(len(nodes), dtype=np.int64)

    def reserve(self, state: CycleState, pod: Pod, node: str) -> tuple[Mapping[str, Any], Status]:
        return {}, SUCCESS

    def unreserve(self, pod: Pod, node: str, plan: Mapping[str, Any]) -> Sequence[str]:
        return ()


# -- volumes -------------------------------------------------------------------------------------


def _claims(pod: Pod, _args: Args) -> str:
    return CLAIMS if _has_claims(pod) else ""


def _restricted(pod: Pod, args: Args) -> str:
    return _disks(pod, EXCLUSIVE_DISKS) or _claims(pod, args)


def _limited(pod: Pod, args: Args) -> str:
    if any(volume.csi_driver for volume in pod.volumes):
        return "inline csi volumes"
    return _disks(pod, None) or _claims(pod, args)


def _has_claims(pod: Pod) -> bool:
    return any(volume.claim_name is not None or volume.ephemeral for volume in pod.volumes)


def _disks(pod: Pod, kinds: Iterable[str] | None) -> str:
    for volume in pod.volumes:
        if volume.disk is not None and (kinds is None or volume.disk.kind in kinds):
            return f"{volume.disk.kind} volumes"
    return ""


FEATURES: Final = (
    Feature(name="VolumeRestrictions", asked_of=_restricted),
    Feature(name="NodeVolumeLimits", asked_of=_limited),
    Feature(name="VolumeBinding", asked_of=_claims),
    Feature(name="VolumeZone", asked_of=_claims),
)
