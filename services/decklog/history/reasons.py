"""What kind of reason keeps a pod off a node: one of four classes, from a closed table.

The class says what helps: waiting (transient, capacity), a change of the pod or of the nodes
(structural), or a change of the rules (policy). A pod that nodes reject for several reasons has the
first of their classes in the order of `PRECEDENCE`: waiting is the best hope, and since some nodes
of every cluster are tainted or cordoned, policy is the reason only where there is no other.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from decklog.core.framework.status import Code


class ReasonClass(StrEnum):
    TRANSIENT = "transient"
    """It passes by itself: something is not there yet, or an error is tried again."""
    CAPACITY = "capacity"
    """It passes when room is freed or nodes are added."""
    POLICY = "policy"
    """It passes when somebody changes a rule: a taint, a cordon, a constraint, a gate."""
    STRUCTURAL = "structural"
    """It passes only when pod or nodes are made otherwise."""


PRECEDENCE: Final = (
    ReasonClass.TRANSIENT,
    ReasonClass.CAPACITY,
    ReasonClass.STRUCTURAL,
    ReasonClass.POLICY,
)
_HARDEST: Final = (
    ReasonClass.STRUCTURAL,
    ReasonClass.POLICY,
    ReasonClass.CAPACITY,
    ReasonClass.TRANSIENT,
)
"""Of a node that gives several reasons at once: all of them have to pass."""

_BY_REASON: Final[Mapping[str, Sequence[tuple[str, ReasonClass]]]] = {
    "NodeAffinity": (
        ("node(s) didn't match scheduler-enforced node affinity", ReasonClass.POLICY),
        ("", ReasonClass.STRUCTURAL),
    ),
    "NodeDeclaredFeatures": (("", ReasonClass.STRUCTURAL),),
    "NodeName": (("", ReasonClass.STRUCTURAL),),
    "NodePorts": (("", ReasonClass.CAPACITY),),
    "NodeResourcesFit": (("", ReasonClass.CAPACITY),),
    "NodeUnschedulable": (("", ReasonClass.POLICY),),
    "NodeVolumeLimits": (("", ReasonClass.CAPACITY),),
    "SchedulingGates": (("", ReasonClass.POLICY),),
    "TaintToleration": (("", ReasonClass.POLICY),),
    "InterPodAffinity": (("", ReasonClass.POLICY),),
    "PodTopologySpread": (
        (
            "node(s) didn't match pod topology spread constraints (missing required label)",
            ReasonClass.STRUCTURAL,
        ),
        ("", ReasonClass.POLICY),
    ),
    "DefaultPreemption": (("", ReasonClass.POLICY),),
    "DynamicResources": (
        ("decklog does not support", ReasonClass.STRUCTURAL),
        ("cannot allocate all claims", ReasonClass.CAPACITY),
        ("", ReasonClass.TRANSIENT),
    ),
    "VolumeBinding": (
        ("node(s) didn't find available persistent volumes to bind", ReasonClass.CAPACITY),
        ("node(s) did not have enough free storage", ReasonClass.CAPACITY),
        ("node(s) didn't match PersistentVolume's node affinity", ReasonClass.STRUCTURAL),
        ("decklog does not support", ReasonClass.STRUCTURAL),
        ("", ReasonClass.TRANSIENT),
    ),
    "VolumeRestrictions": (("", ReasonClass.CAPACITY),),
    "VolumeZone": (("", ReasonClass.STRUCTURAL),),
}
"""Plugin → (beginning of the reason, class); the first that fits counts, and one always does."""

_BY_CODE: Final[Mapping[int, ReasonClass]] = {
    Code.ERROR: ReasonClass.TRANSIENT,
    Code.PENDING: ReasonClass.TRANSIENT,
    Code.WAIT: ReasonClass.TRANSIENT,
    Code.UNSCHEDULABLE: ReasonClass.POLICY,
}
"""For plugins that are not in the table; whatever cannot be resolved is structural."""


def reason_class(plugin: str, code: int, reasons: Sequence[str]) -> ReasonClass:
    """Return the class of a node's rejection."""
    if code in (Code.ERROR, Code.PENDING):
        return ReasonClass.TRANSIENT
    if plugin == "NodeResourcesFit" and code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return ReasonClass.STRUCTURAL  # More than the whole node has.
    known = _BY_REASON.get(plugin)
    if known is None:
        return _BY_CODE.get(code, ReasonClass.STRUCTURAL)
    classes = [_first(known, reason) for reason in reasons or ("",)]
    return min(classes, key=_HARDEST.index)


def pod_class(classes: Iterable[ReasonClass]) -> ReasonClass | None:
    """Return the class of a pod, given those of its nodes; None if there is none."""
    return min(classes, key=PRECEDENCE.index, default=None)


def _first(known: Sequence[tuple[str, ReasonClass]], reason: str) -> ReasonClass:
    return next(found for beginning, found in known if reason.startswith(beginning))
