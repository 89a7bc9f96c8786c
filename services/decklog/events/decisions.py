"""Every decision that decklog writes down, as frozen data; `facts.py` names them beside the events.

Their order is `seq`, in the ledger, and their bytes are what the ledger hashes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, NamedTuple

from annotated_types import Ge, Len

NonEmpty = Annotated[str, Len(1)]
Seq = Annotated[int, Ge(1)]
Count = Annotated[int, Ge(0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRef:
    uid: NonEmpty
    namespace: NonEmpty
    name: NonEmpty

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Rejection(NamedTuple):
    """So many nodes were first rejected by this plugin, with this code and these reasons."""

    plugin: str
    code: int
    reasons: tuple[str, ...]
    count: int  # type: ignore[assignment] # Hides tuple.count, which nobody calls here.
    examples: tuple[str, ...] = ()


class NodeScore(NamedTuple):
    """A node's total and each score plugin's weighted part, in the profile's score order.

    A plugin that PreScore skipped has None.
    """

    node: str
    total: int
    scores: tuple[int | None, ...] = ()


class PermitWait(NamedTuple):
    """A Permit plugin that told the pod to wait, and until when, in logical time (ms)."""

    plugin: str
    deadline_ms: int


Plan = Mapping[str, Any]
"""What Reserve plugins planned, by plugin: plain data, recorded with the assume."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAssumed:
    """The scheduler placed the pod; the API server has not confirmed it yet.

    The placement counts against the node from this decision on, so the next cycle cannot
    hand out the same room twice. `bind.succeeded` confirms it; `PodUnreserved` undoes it.
    """

    ce_type: ClassVar[str] = "dev.decklog.pod.assumed.v1"

    pod: PodRef
    node: NonEmpty
    resource_version: str = ""
    """The pod's when it was decided on: precondition of the bind."""
    profile: str = ""
    attempt: Annotated[int, Ge(1)] = 1
    feasible_count: Annotated[int, Ge(1)]
    evaluated_count: Annotated[int, Ge(1)]
    tie_count: Annotated[int, Ge(1)] = 1
    """Nodes with the best total; the hash of name, seed, uid and attempt chose among them."""
    rejected: tuple[Rejection, ...] = ()
    top: tuple[NodeScore, ...] = ()
    """The best five nodes, best first. Without scores when there was only one to take."""
    plan: dict[str, Any] = field(default_factory=dict)
    closes_seq: int | None = None
    """The PodWaiting whose place this takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodWaiting:
    """The scheduler placed the pod, and a Permit plugin wants it to wait. It is an assume."""

    ce_type: ClassVar[str] = "dev.decklog.pod.waiting.v1"

    pod: PodRef
    node: NonEmpty
    resource_version: str = ""
    profile: str = ""
    attempt: Annotated[int, Ge(1)] = 1
    feasible_count: Annotated[int, Ge(1)]
    evaluated_count: Annotated[int, Ge(1)]
    tie_count: Annotated[int, Ge(1)] = 1
    rejected: tuple[Rejection, ...] = ()
    top: tuple[NodeScore, ...] = ()
    plan: dict[str, Any] = field(default_factory=dict)
    waits: tuple[PermitWait, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodUnschedulable:
    """An attempt ended without a placement. `reason` is the PodScheduled condition's.

    The condition's message is not stored: `core.framework.diagnosis` writes it from the counts.
    """

    ce_type: ClassVar[str] = "dev.decklog.pod.unschedulable.v1"

    pod: PodRef
    reason: str = "Unschedulable"
    resource_version: str = ""
    generation: int = 0
    """`metadata.generation` of the pod, for `observedGeneration`."""
    profile: str = ""
    attempt: Annotated[int, Ge(1)] = 1
    node_count: Count = 0
    rejected: tuple[Rejection, ...] = ()
    absent: tuple[str, ...] = ()
    """Reasons that count for every node without a status of its own."""
    absent_count: Count = 0
    pre_filter_message: str = ""
    post_filter_message: str = ""
    error: str = ""
    """The whole message, where the attempt did not end in a FitError."""
    unschedulable_plugins: tuple[str, ...] = ()
    pending_plugins: tuple[str, ...] = ()
    nominated_node: str | None = None
    """None: the nomination stays as it is; empty: it is cleared."""
    same_as: int | None = None
    """The pod's earlier decision with an equal diagnosis: what is absent here stands there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSkipped:
    """The pod was popped and not tried: it is being deleted, or it is assumed already."""

    ce_type: ClassVar[str] = "dev.decklog.pod.skipped.v1"

    pod: PodRef
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VictimsSelected:
    """Preemption chose a node for the pod and asks for these pods to be deleted from it."""

    ce_type: ClassVar[str] = "dev.decklog.victims.selected.v1"

    pod: PodRef
    node: NonEmpty
    victims: tuple[PodRef, ...]
    pdb_violations: Count = 0
    candidate_count: Count = 0
    tie_count: Count = 0
    nominations_cleared: tuple[PodRef, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodUnreserved:
    """An assume ended without its confirmation, and the room is free again."""

    ce_type: ClassVar[str] = "dev.decklog.pod.unreserved.v1"

    pod: PodRef
    node: NonEmpty
    closes_seq: Seq
    reason: str
    """One of `EndReason`."""
    message: str = ""
    plugin: str = ""
    """The Permit plugin that rejected the pod, or whose wait ran out."""
    pending: bool = False
    """The pod still exists unbound and was put back into the queue."""
    generation: int = 0
    residue: tuple[str, ...] = ()
    """What could not be undone, such as a volume already provisioned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangCommitted:
    """The assumes `seq_first` … `seq_last` stand or fall together. Reserved: not written yet."""

    ce_type: ClassVar[str] = "dev.decklog.gang.committed.v1"

    seq_first: Seq
    seq_last: Seq


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingAdopted:
    """The pod was seen bound without a decision of this ledger that asked for it."""

    ce_type: ClassVar[str] = "dev.decklog.binding.adopted.v1"

    pod: PodRef
    node: NonEmpty
    was: str
    """`stamped`, `queued` or `assumed`: why the binding concerns us."""
    stamp: str = ""


Decision = (
    PodAssumed
    | PodWaiting
    | PodUnschedulable
    | PodSkipped
    | VictimsSelected
    | PodUnreserved
    | GangCommitted
    | BindingAdopted
)


class EndReason:
    """Why an assume ended without its confirmation. Values are written to the ledger."""

    DELETED: Final = "Deleted"
    RECREATED: Final = "Recreated"
    BOUND_ELSEWHERE: Final = "BoundElsewhere"
    REJECTED: Final = "BindRejected"
    PERMIT_REJECTED: Final = "PermitRejected"
    PERMIT_TIMED_OUT: Final = "PermitTimedOut"
    AT_PERMIT: Final = frozenset({PERMIT_REJECTED, PERMIT_TIMED_OUT})
    """A plugin rejected the pod: it is parked until an event helps, not retried after an error."""
