"""What became of a story's pods, and what it cost."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from decklog.core.framework.config import DEFAULT_PROFILE
from decklog.history.source import Source
from decklog.history.verify import Verdict, Wanted, verify
from decklog.ports.ledger import DecisionFilter, LedgerReader

UNSCHEDULABLE = "PodUnschedulable"


class Fate(Enum):
    """Where a pod stands at the end."""

    BOUND = "bound"
    UNSCHEDULABLE = "unschedulable"
    """A decision says why it is on no node."""
    GATED = "gated"
    """Its own gates keep it from being scheduled."""
    FOREIGN = "foreign"
    """Another scheduler's."""
    PENDING = "pending"
    """Neither bound nor explained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Whether all decisions were taken again, and what that showed."""

    verified: bool | None
    """None: not all of them were."""
    divergences: int = 0
    why_not: str = ""


def prove(source: Source) -> Proof:
    """Walk the chains and decide everything again, from the beginning."""
    report = verify(source, Wanted())
    problems = [str(finding) for finding in report.findings]
    if report.replay.unchecked:
        problems.append(report.replay.unchecked)
    is_verified = report.verdict is Verdict.VERIFIED and not report.other_ticks
    return Proof(
        verified=is_verified, divergences=report.replay.divergent, why_not="; ".join(problems)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of a demo, in numbers."""

    nodes: int
    fates: Mapping[Fate, int]
    deleted: int
    events: int
    ticks: int
    decisions: int
    open_assumes: int
    proof: Proof
    wall_seconds: float
    cpu_seconds: float
    rss_max_bytes: int
    """Of the largest process."""
    refused: int = 0
    restarts: Mapping[str, int] = field(default_factory=dict)

    @property
    def pods(self) -> int:
        return sum(self.fates.values()) + self.deleted

    @property
    def is_sound(self) -> bool:
        """Whether every pod is bound or explained, nothing is open, and all of it can be proved."""
        return not (
            self.fates.get(Fate.PENDING, 0) or self.open_assumes or self.proof.verified is not True
        )

    def facts(self) -> dict[str, Any]:
        """Return the one object that `--output json` prints."""
        waiting = self.fates.get(Fate.GATED, 0) + self.fates.get(Fate.FOREIGN, 0)
        return {
            "nodes": self.nodes,
            "pods": self.pods,
            "bound": self.fates.get(Fate.BOUND, 0),
            "unschedulable": self.fates.get(Fate.UNSCHEDULABLE, 0),
            "pending": self.fates.get(Fate.PENDING, 0) + waiting,
            "deleted": self.deleted,
            "events": self.events,
            "ticks": self.ticks,
            "decisions": self.decisions,
            "open_assumes": self.open_assumes,
            "verified": self.proof.verified,
            "divergences": self.proof.divergences,
            "wall_seconds": round(self.wall_seconds, 3),
            "cpu_seconds": round(self.cpu_seconds, 3),
            "rss_max_bytes": self.rss_max_bytes,
            "refused": self.refused,
            "restarts": dict(self.restarts),
        }


def fates(
    pods: Iterable[Mapping[str, Any]],
    ledger: LedgerReader,
    stream: str,
    profiles: Iterable[str] = (DEFAULT_PROFILE,),
) -> Counter[Fate]:
    """Say where each pod stands, by the API server's objects and the ledger's decisions."""
    ours = frozenset(profiles)
    return Counter(_fate(pod, ledger, stream, ours) for pod in pods)


def any_pending(
    pods: Iterable[Mapping[str, Any]],
    ledger: LedgerReader,
    stream: str,
    profiles: Iterable[str] = (DEFAULT_PROFILE,),
) -> bool:
    """Say whether a pod is neither bound nor explained: each costs a question to the ledger."""
    ours = frozenset(profiles)
    return any(_fate(pod, ledger, stream, ours) is Fate.PENDING for pod in pods)


def _fate(
    pod: Mapping[str, Any], ledger: LedgerReader, stream: str, profiles: frozenset[str]
) -> Fate:
    spec = pod["spec"]
    if spec.get("nodeName"):
        return Fate.BOUND
    if spec.get("schedulerName", "default-scheduler") not in profiles:
        return Fate.FOREIGN
    if spec.get("schedulingGates"):
        return Fate.GATED
    where = DecisionFilter(pod_uid=pod["metadata"]["uid"])
    newest = ledger.select(stream, where=where, limit=1)
    if newest and newest[0].kind in (UNSCHEDULABLE, "PodSkipped"):
        return Fate.UNSCHEDULABLE
    return Fate.PENDING
