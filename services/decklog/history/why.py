"""Why a pod is where it is, or is nowhere: its last decision as of a moment, in words and numbers.

Everything comes from the ledger, but for what the log says came after. A pod about which nothing
was decided is not explained here but in `undecided.py`, which has to replay.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from decklog.core.framework.config import ProfileConfig
from decklog.core.framework.diagnosis import failure_message
from decklog.core.framework.status import Code
from decklog.events.codec import decode_decision
from decklog.events.facts import (
    Decision,
    NodeScore,
    PodAssumed,
    PodRef,
    PodUnreserved,
    PodUnschedulable,
    PodWaiting,
    Rejection,
    VictimsSelected,
)
from decklog.history.policies import policy_name, read_policy
from decklog.history.positions import Moment
from decklog.history.reasons import ReasonClass, pod_class, reason_class
from decklog.history.results import Result, result_of
from decklog.history.since import Since, look_since
from decklog.history.source import NotFound, Source
from decklog.ports.entries import to_rfc3339
from decklog.ports.ledger import DecisionFilter, DecisionRow, Effect, TickRow

DECISIVE_MAX: Final = 2
"""Plugins that are named as what decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedNodes:
    """Nodes that were rejected by the same plugin for the same reasons."""

    count: int
    plugin: str
    reason: str
    reason_class: ReasonClass
    examples: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    pod: PodRef
    moment: Moment
    row: DecisionRow
    tick: TickRow
    result: Result
    attempt: int | None
    policy: str
    seed: int | None
    feasible: int | None = None
    evaluated: int | None = None
    node_count: int | None = None
    rejected: Sequence[RejectedNodes] = ()
    plugins: Sequence[str] = ()
    """Score plugins of the profile, in the order of the scores."""
    top: Sequence[NodeScore] = ()
    tie_count: int = 0
    message: str = ""
    reason_class: ReasonClass | None = None
    nominated_node: str | None = None
    same_as: int | None = None
    notes: Sequence[str] = field(default_factory=tuple)
    previous: int | None = None
    """The pod's decision before this one."""

    @property
    def decisive(self) -> Sequence[tuple[str, int]]:
        """Return the plugins that put the winner above the mean of the other best nodes."""
        others = [score for score in self.top[1:] if score.scores]
        if not self.top or not self.top[0].scores or not others:
            return ()
        gains = []
        for index, plugin in enumerate(self.plugins):
            mine = self.top[0].scores[index]
            theirs = [score.scores[index] or 0 for score in others]
            gain = round((mine or 0) - sum(theirs) / len(theirs))
            if gain > 0:
                gains.append((plugin, gain))
        return sorted(gains, key=lambda pair: -pair[1])[:DECISIVE_MAX]

    @property
    def margin(self) -> int | None:
        return self.top[0].total - self.top[1].total if len(self.top) > 1 else None


def find_decision(source: Source, name: str, moment: Moment) -> DecisionRow | None:
    """Return the last decision about a pod up to the moment, by NAMESPACE/NAME or by uid."""
    namespace, slash, pod = name.partition("/")
    where = DecisionFilter(seq_last=moment.seq, pod_uid=name)
    if slash:
        where = DecisionFilter(seq_last=moment.seq, namespace=namespace, pod=pod)
    rows = source.ledger.select(source.stream, where=where, limit=1)
    return rows[0] if rows else None


def explain(source: Source, name: str, moment: Moment) -> Explanation | None:
    """Explain the pod's last decision; None: none was taken about the pod that has the name."""
    row = find_decision(source, name, moment)
    if row is None:
        return None
    tick = source.tick(row.tick)
    if tick is None:
        msg = f"tick {row.tick} of decision {row.seq} is missing: run `decklog verify`"
        raise NotFound(msg)
    ref = PodRef(uid=row.pod_uid, namespace=row.namespace, name=row.pod)
    since = look_since(source, ref, row.seq, after=tick.cursor, through=moment.position)
    if since.successor and "/" in name:
        return None
    return _explanation(source, row, tick, moment, since)


def _explanation(
    source: Source, row: DecisionRow, tick: TickRow, moment: Moment, since: Since
) -> Explanation:
    fact = decode_decision(row.payload)[1]
    full = _in_full(source, fact)
    body = source.ledger.config(tick.config_hash)
    config = read_policy(body)
    profile = config.profile(getattr(full, "profile", "")) if config else None
    rejected = _rejected(full)
    result = _result(source, row, fact, moment, since)
    return Explanation(
        pod=PodRef(uid=row.pod_uid, namespace=row.namespace, name=row.pod),
        moment=moment,
        row=row,
        tick=tick,
        result=result,
        attempt=getattr(fact, "attempt", None),
        policy=policy_name(tick.config_hash, body, getattr(full, "profile", "")),
        seed=config.seed if config else None,
        feasible=_feasible(full),
        evaluated=_evaluated(full),
        node_count=full.node_count if isinstance(full, PodUnschedulable) else None,
        rejected=rejected,
        plugins=_score_plugins(profile),
        top=getattr(full, "top", ()),
        tie_count=getattr(full, "tie_count", 0),
        message=_message(full),
        reason_class=_class(full, rejected) if result.is_pending else None,
        nominated_node=getattr(full, "nominated_node", None),
        same_as=getattr(fact, "same_as", None),
        notes=_notes(source, row, full, since),
        previous=_previous(source, row),
    )


def _in_full(source: Source, fact: Decision) -> Decision:
    """Return the decision itself, or the equal one that says everything."""
    if not isinstance(fact, PodUnschedulable) or fact.same_as is None:
        return fact
    rows = source.ledger.decisions(source.stream, after=fact.same_as - 1, limit=1)
    if not rows or rows[0].seq != fact.same_as:
        msg = f"decision {fact.same_as} is missing: run `decklog verify`"
        raise NotFound(msg)
    return decode_decision(rows[0].payload)[1]


def _result(
    source: Source, row: DecisionRow, fact: Decision, moment: Moment, since: Since
) -> Result:
    """Return how it stood at the moment: by the ledger if that is now, else by the log."""
    effects: Sequence[Effect] = ()
    if moment.is_latest:
        effects = source.ledger.effects(source.stream, seq_first=row.seq, seq_last=row.seq)
    return result_of(fact, effects, since.outcome)


def _rejected(fact: Decision) -> list[RejectedNodes]:
    groups: Sequence[Rejection] = getattr(fact, "rejected", ())
    found = [
        RejectedNodes(
            count=group.count,
            plugin=group.plugin,
            reason=", ".join(group.reasons),
            reason_class=reason_class(group.plugin, group.code, group.reasons),
            examples=group.examples,
        )
        for group in groups
    ]
    if isinstance(fact, PodUnschedulable) and fact.absent and fact.absent_count:
        found.append(_absent(fact))
    return sorted(found, key=lambda group: -group.count)


def _absent(fact: PodUnschedulable) -> RejectedNodes:
    """Return the nodes that PreFilter ruled out all at once."""
    named = {group.plugin for group in fact.rejected}
    plugins = [plugin for plugin in fact.unschedulable_plugins if plugin not in named]
    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    classes = [reason_class(plugin, code, fact.absent) for plugin in plugins]
    return RejectedNodes(
        count=fact.absent_count,
        plugin="+".join(plugins) or "PreFilter",
        reason=", ".join(fact.absent),
        reason_class=pod_class(classes) or ReasonClass.STRUCTURAL,
    )


def _class(fact: Decision, rejected: Sequence[RejectedNodes]) -> ReasonClass:
    if not isinstance(fact, PodUnschedulable) or fact.reason == "SchedulerError":
        return ReasonClass.TRANSIENT
    if fact.nominated_node:
        return ReasonClass.TRANSIENT  # Its victims are about to go.
    return pod_class(group.reason_class for group in rejected) or ReasonClass.STRUCTURAL


def _feasible(fact: Decision) -> int | None:
    if isinstance(fact, PodAssumed | PodWaiting):
        return fact.feasible_count
    return 0 if isinstance(fact, PodUnschedulable) else None


def _evaluated(fact: Decision) -> int | None:
    if isinstance(fact, PodAssumed | PodWaiting):
        return fact.evaluated_count
    if isinstance(fact, PodUnschedulable):
        return fact.node_count - fact.absent_count
    return None


def _message(fact: Decision) -> str:
    return failure_message(fact) if isinstance(fact, PodUnschedulable) else ""


def _score_plugins(profile: ProfileConfig | None) -> Sequence[str]:
    return profile.points.get("score", ()) if profile is not None else ()


def _notes(source: Source, row: DecisionRow, fact: Decision, since: Since) -> tuple[str, ...]:
    notes = []
    if since.deleted_at is not None:
        notes.append(f"the pod was deleted at position {since.deleted_at}")
    if isinstance(fact, PodUnschedulable) and fact.nominated_node:
        before = source.ledger.decisions(source.stream, after=row.seq - 2, limit=1)
        selected = decode_decision(before[0].payload)[1] if before else None
        if isinstance(selected, VictimsSelected) and selected.pod.uid == row.pod_uid:
            names = ", ".join(victim.key for victim in selected.victims)
            verb = "makes" if len(selected.victims) == 1 else "make"
            notes.append(f"nominated to {selected.node}, where {names} {verb} room")
    if isinstance(fact, PodUnreserved) and fact.residue:
        notes.append(f"left behind: {', '.join(fact.residue)}")
    return tuple(notes)


def _previous(source: Source, row: DecisionRow) -> int | None:
    where = DecisionFilter(pod_uid=row.pod_uid, seq_last=row.seq - 1)
    rows = source.ledger.select(source.stream, where=where, limit=1)
    return rows[0].seq if rows else None


def facts(found: Explanation) -> dict[str, Any]:
    """Return the explanation as plain data."""
    moment, result = found.moment, found.result
    return {
        "pod": {"namespace": found.pod.namespace, "name": found.pod.name, "uid": found.pod.uid},
        "position": str(moment.position),
        "asOf": moment.as_of,
        "decision": found.row.seq,
        "decisionKind": found.row.kind,
        "attempt": found.attempt,
        "decidedAt": to_rfc3339(found.row.now_ms),
        "cursor": str(found.tick.cursor),
        "tick": found.tick.tick,
        "result": result.text,
        "node": result.node or None,
        "detail": result.detail or None,
        "effect": result.effect or None,
        "policy": found.policy,
        "configHash": found.tick.config_hash,
        "rules": found.tick.rules,
        "seed": found.seed,
        "feasible": found.feasible,
        "evaluated": found.evaluated,
        "nodes": found.node_count,
        "rejected": [
            {
                "nodes": group.count,
                "plugin": group.plugin,
                "reason": group.reason,
                "class": group.reason_class.value,
                "examples": list(group.examples),
            }
            for group in found.rejected
        ],
        "scores": [
            {
                "node": score.node,
                "total": score.total if score.scores else None,
                "plugins": dict(zip(found.plugins, score.scores, strict=False)),
            }
            for score in found.top
        ],
        "margin": found.margin,
        "decidedBy": [{"plugin": plugin, "gain": gain} for plugin, gain in found.decisive],
        "tied": found.tie_count or None,
        "message": found.message or None,
        "reasonClass": found.reason_class.value if found.reason_class else None,
        "nominatedNode": found.nominated_node or None,
        "sameAs": found.same_as,
        "notes": list(found.notes),
        "previous": found.previous,
    }
