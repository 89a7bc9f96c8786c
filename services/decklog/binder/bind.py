"""Binding one pod: claim → POST → one of three outcomes, and only what is known is reported.

                 201                                    found on our node
      ┌─────────────────────▶ bound ◀──────────────────────────┐
      │                                                        │
    POST ── 409, 404 ──────────────────────────────────────▶  GET ── gone, other uid,
      │ ▲                                                      │ ▲   other node ─▶ rejected
      │ └───────────── still unbound, fewer than ten times ────┘ │
      ├── no answer, 5xx ─▶ unknown (reported once) ─────────────┤
      ├── 400, 413, 422 ─▶ rejected                              │
      └── ten definite answers ─▶ bump the pod ──────────────────┘ still unbound ─▶ rejected

A work that was taken over from a dead binder begins with the GET.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, assert_never

from decklog.binder.kube_events import scheduled_event
from decklog.binder.work import Outcome, retry_at
from decklog.events.facts import BindFailed, BindSucceeded, BindUnknown, PodAssumed
from decklog.objects.meta import STAMP
from decklog.ports.cluster import (
    Answer,
    BindPod,
    Call,
    CreateEvent,
    GetPod,
    PatchPodStatus,
    RawObject,
)
from decklog.ports.ledger import Effect, EffectState

DEFINITE_MAX: Final = 10
"""Definite answers with the pod still unbound before it is given up."""
FORBIDDEN_MAX: Final = 2
NEVER: Final = frozenset({400, 413, 422})
"""Answers that no repetition changes."""


class _Stage(Enum):
    POST = "post"
    GET = "get"
    BUMP = "bump"
    LAST_GET = "last get"


@dataclass(slots=True, kw_only=True)
class BindWork:
    effect: Effect
    fact: PodAssumed
    hash: bytes
    instance: str
    look_first: bool = False
    not_before_ms: int = 0
    forbidden: int = 0
    _stage: _Stage = _Stage.POST
    _resource_version: str = ""
    _definite: int = 0
    _failures: int = 0
    _told_unknown: bool = False

    def __post_init__(self) -> None:
        self._resource_version = self.fact.resource_version
        self._told_unknown = self.effect.state is EffectState.UNKNOWN
        if self.look_first:
            self._stage = _Stage.GET

    @property
    def pod_key(self) -> str:
        return self.fact.pod.uid

    def call(self) -> Call:
        pod = self.fact.pod
        match self._stage:
            case _Stage.POST:
                return BindPod(
                    namespace=pod.namespace,
                    name=pod.name,
                    uid=pod.uid,
                    resource_version=self._resource_version,
                    node=self.fact.node,
                    annotations={STAMP: f"{self.effect.seq}.{self.hash.hex()[:8]}"},
                )
            case _Stage.GET | _Stage.LAST_GET:
                return GetPod(namespace=pod.namespace, name=pod.name)
            case _Stage.BUMP:
                return self._bump()
            case _ as unreachable:
                assert_never(unreachable)

    def take(self, answer: Answer, now_ms: int) -> Outcome | None:
        if answer.unknown:
            return self._unknown(answer, now_ms)
        if answer.code == 429:
            self._failures += 1
            self.not_before_ms = retry_at(now_ms, self._failures, answer)
            return None
        if answer.code in (401, 403):
            return self._not_allowed(answer, now_ms)
        self.forbidden = 0
        match self._stage:
            case _Stage.POST:
                return self._posted(answer)
            case _Stage.GET | _Stage.LAST_GET:
                return self._looked(answer, now_ms)
            case _Stage.BUMP:
                self._stage = _Stage.LAST_GET
                return None
            case _ as unreachable:
                assert_never(unreachable)

    def _posted(self, answer: Answer) -> Outcome | None:
        if answer.ok:
            return self._bound(answer)
        if answer.code in NEVER:
            return self._rejected(answer.reason or str(answer.code), answer.message, answer.code)
        self._stage = _Stage.GET
        return None

    def _looked(self, answer: Answer, now_ms: int) -> Outcome | None:
        if answer.code == 404:
            return self._rejected("PodDeleted", "the pod is gone", answer.code)
        if not answer.ok or answer.body is None:
            return self._unknown(answer, now_ms)
        found = _Found.of(answer.body)
        if found.uid == self.fact.pod.uid and found.node == self.fact.node:
            return self._bound(answer)
        if (why := self._why_not(found)) is not None:
            return self._rejected(*why, answer.code)
        return self._still_unbound(found, now_ms)

    def _why_not(self, found: "_Found") -> tuple[str, str] | None:
        """Return reason and message if the pod can no longer come to our node."""
        if found.uid != self.fact.pod.uid:
            return "PodRecreated", f"the name now belongs to {found.uid}"
        if found.node:
            return "BoundElsewhere", f"the pod is on {found.node}"
        if found.deleted:
            return "PodDeleted", "the pod is being deleted"
        return None

    def _still_unbound(self, found: "_Found", now_ms: int) -> Outcome | None:
        if self._stage is _Stage.LAST_GET:
            return self._rejected("StillUnbound", f"unbound after {DEFINITE_MAX} tries", 409)
        self._resource_version = found.resource_version
        self._definite += 1
        if self._definite >= DEFINITE_MAX:
            self._stage = _Stage.BUMP
            return None
        self._stage = _Stage.POST
        if self._definite > 1:
            self.not_before_ms = retry_at(now_ms, self._definite, Answer(code=409))
        return None

    def _unknown(self, answer: Answer, now_ms: int) -> Outcome | None:
        """Nobody knows: look at a bounded pace until somebody does; say so once."""
        if self._stage is not _Stage.LAST_GET:
            self._stage = _Stage.GET
        self._failures += 1
        self.not_before_ms = retry_at(now_ms, self._failures, answer)
        if self._told_unknown:
            return None
        self._told_unknown = True
        message = answer.message or "no answer"
        return Outcome(
            state=EffectState.UNKNOWN,
            detail={"outcome": "unknown", "code": answer.code, "message": message},
            fact=BindUnknown(
                seq=self.effect.seq, pod_uid=self.fact.pod.uid, message=message[:1024]
            ),
        )

    def _not_allowed(self, answer: Answer, now_ms: int) -> Outcome | None:
        """A server that is starting may refuse a valid user: once is no answer, twice is."""
        self.forbidden += 1
        if self.forbidden >= FORBIDDEN_MAX:
            return self._rejected(answer.reason or "Forbidden", answer.message, answer.code)
        self.not_before_ms = retry_at(now_ms, 4, answer)
        return None

    def _bump(self) -> PatchPodStatus:
        pod = self.fact.pod
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulerError",
            "message": f"binding to {self.fact.node} was given up (decision {self.effect.seq})",
        }
        return PatchPodStatus(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            patch={"conditions": [condition]},
            resource_version=self._resource_version,
        )

    def _bound(self, answer: Answer) -> Outcome:
        pod = self.fact.pod
        event = scheduled_event(self.effect, self.fact, instance=self.instance)
        return Outcome(
            state=EffectState.DONE,
            detail={"outcome": "bound", "node": self.fact.node, "code": answer.code},
            fact=BindSucceeded(seq=self.effect.seq, pod_uid=pod.uid, node=self.fact.node),
            then=CreateEvent(namespace=pod.namespace, event=event),
        )

    def _rejected(self, reason: str, message: str, code: int) -> Outcome:
        message = message[:1024]
        return Outcome(
            state=EffectState.REJECTED,
            detail={"outcome": "rejected", "reason": reason, "message": message, "code": code},
            fact=BindFailed(
                seq=self.effect.seq, pod_uid=self.fact.pod.uid, reason=reason, message=message
            ),
        )


@dataclass(frozen=True, slots=True)
class _Found:
    """What a GET shows of a pod."""

    uid: str
    resource_version: str
    node: str
    deleted: bool

    @classmethod
    def of(cls, raw: RawObject) -> "_Found":
        metadata = raw.get("metadata", {})
        return cls(
            uid=metadata.get("uid", ""),
            resource_version=metadata.get("resourceVersion", ""),
            node=raw.get("spec", {}).get("nodeName") or "",
            deleted="deletionTimestamp" in metadata,
        )
