"""One binder among any number: claims effects, carries them out, and reports what came of them.

Work comes in four ways: decisions that the log brings (claimed by seq and hash), the sweep of what
no message brought, claims of a binder that died (which begin with a look), and claims of our own
from before a restart. Works live in memory; what another binder needs to go on is in the ledger.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import structlog

from decklog.binder.bind import FORBIDDEN_MAX, BindWork
from decklog.binder.status import (
    EventWork,
    StatusWork,
    VictimWork,
    skipped_event,
    told_nomination_cleared,
    told_unreserved,
    told_unschedulable,
)
from decklog.binder.work import Outcome, Work
from decklog.core.errors import PositionLost
from decklog.core.framework.diagnosis import failure_message
from decklog.events.codec import decode_decision
from decklog.events.facts import (
    BindFailed,
    BindSucceeded,
    BindUnknown,
    Decision,
    Event,
    PodAssumed,
    PodSkipped,
    PodUnreserved,
    PodUnschedulable,
    VictimDeleted,
    VictimRefused,
    VictimsSelected,
)
from decklog.ports.clock import Clock
from decklog.ports.cluster import Answer, ClusterWriter, CreateEvent
from decklog.ports.entries import BadRecord, decode_decision_entry, event_entry
from decklog.ports.ledger import DeadLetter, DecisionRow, Effect, EffectKind, EffectState, Ledger
from decklog.ports.log import Entry, Log

READ_MAX: Final = 1_000
WORKS_MAX: Final = 1_000
"""Effects held at once: half of what makes the scheduler wait."""
CALLS_MAX: Final = 256
"""Calls a step: about 0.3 s of a server that binds a thousand pods a second."""
CLAIM_MAX: Final = 500
KUBE_EVENTS_MAX: Final = 5_000
"""Kubernetes Events that wait to be written; further ones are counted and dropped."""
SWEEP_MS: Final = 500
SWEEP_AGE_MS: Final = 2_000
"""An effect that no message brought is taken up after this time."""
ADOPT_MS: Final = 2_000
READY_MS: Final = 1_000
FORBIDDEN_PODS_MAX: Final = 3
"""Pods in a row whose calls are forbidden before nothing more is claimed."""

SUPERSEDED: Final = Outcome(
    state=EffectState.DROPPED, detail={"outcome": "dropped", "message": "superseded"}
)

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class BinderSettings:
    cluster: str
    owner: str
    code_version: str
    patience: timedelta = timedelta(milliseconds=20)
    """Zero where other services share the thread."""


@dataclass(slots=True)
class BinderMetrics:
    bound: int = 0
    rejected: int = 0
    unknown: int = 0
    dropped: int = 0
    statuses: int = 0
    events_failed: int = 0
    forged: int = 0
    dead_letters: int = 0


@dataclass(slots=True)
class BinderService:
    settings: BinderSettings
    decisions_log: Log
    events_log: Log
    ledger: Ledger
    writer: ClusterWriter
    clock: Clock
    name: str = "binder"
    metrics: BinderMetrics = field(default_factory=BinderMetrics)
    _works: dict[tuple[int, int], Work] = field(default_factory=dict)
    _unclaimed: list[DecisionRow] = field(default_factory=list)
    """Decisions that the log brought, until their effects are claimed."""
    _outcomes: list[tuple[Effect, Outcome]] = field(default_factory=list)
    """Settled, and not yet in the ledger."""
    _unpublished: list[tuple[Effect, Event]] = field(default_factory=list)
    """In the ledger, and not yet in the events log."""
    _kube_events: list[CreateEvent] = field(default_factory=list)
    _position: int | None = None
    _started: bool = False
    _sweep_at_ms: int = 0
    _adopt_at_ms: int = 0
    _heads: list[tuple[int, int]] = field(default_factory=list)
    """(monotonic time, ledger seq) as it was read, oldest first."""
    _forbidden_pods: int = 0
    _ready_at_ms: int = 0

    def step(self) -> bool:
        """Publish what is settled, take work in, perform one call of each work that may."""
        if not self._started:
            self._start()
        self._settle()
        took = self._take_in() if self._may_claim() else False
        called = self._perform()
        self._settle()
        return took or called

    def readiness(self) -> Mapping[str, str]:
        refused = self._forbidden_pods >= FORBIDDEN_PODS_MAX
        return {"cluster": "the API server refuses our calls" if refused else ""}

    def stop(self) -> None:
        self._settle()

    def _start(self) -> None:
        stream, owner = self.settings.cluster, self.settings.owner
        self.ledger.work_as(stream, owner=owner, kind=self.name)
        self._take_unpublished()
        self._position = self.decisions_log.bounds()[1]
        self._started = True

    # -- taking work in ------------------------------------------------------------------------

    def _may_claim(self) -> bool:
        if self._forbidden_pods >= FORBIDDEN_PODS_MAX:
            now = self.clock.monotonic_ms()
            if now < self._ready_at_ms:
                return False
            self._ready_at_ms = now + READY_MS
            if not self.writer.ready():
                return False
        return len(self._works) < WORKS_MAX

    def _take_in(self) -> bool:
        now = self.clock.monotonic_ms()
        took = self._claim_from_log()
        if now >= self._sweep_at_ms:
            self._sweep_at_ms = now + SWEEP_MS
            took = self._sweep(now) or took
        if now >= self._adopt_at_ms:
            self._adopt_at_ms = now + ADOPT_MS
            took = self._adopt() or took
            took = self._take_unpublished() or took
        return took

    def _take_unpublished(self) -> bool:
        """Bring outcomes to the log that a binder stored and did not live to publish."""
        stream, owner = self.settings.cluster, self.settings.owner
        effects = self.ledger.unpublished(stream, owner=owner, limit=WORKS_MAX)
        facts = [(effect, fact_of(effect)) for effect in effects]
        self._unpublished = [(effect, fact) for effect, fact in facts if fact is not None]
        return bool(self._unpublished)

    def _claim_from_log(self) -> bool:
        if not self._unclaimed:
            self._unclaimed = self._read_decisions()
        took = bool(self._unclaimed)
        while self._unclaimed:
            batch = self._unclaimed[:CLAIM_MAX]
            claimed = self.ledger.claim(
                self.settings.cluster,
                owner=self.settings.owner,
                decisions=[(row.seq, row.hash) for row in batch],
            )
            del self._unclaimed[: len(batch)]
            self._add(claimed, {row.seq: row for row in batch}, look_first=False)
        return took

    def _read_decisions(self) -> list[DecisionRow]:
        """Read what the log brings. It only wakes us: what is lost here, the sweep finds."""
        assert self._position is not None
        idle = not any(work.not_before_ms <= self.clock.monotonic_ms() for work in self._all())
        timeout = self.settings.patience if idle else timedelta(0)
        try:
            read = self.decisions_log.read(after=self._position, limit=READ_MAX, timeout=timeout)
        except PositionLost as error:
            _log.warning("Lost the place in the decisions log", error=str(error))
            self._position = self.decisions_log.bounds()[1]
            return []
        rows, letters = [], []
        for position, entry in read:
            try:
                rows.append(decode_decision_entry(entry))
            except BadRecord as error:
                letters.append(self._letter(position, entry, error))
        if letters:
            self.ledger.dead_letter(self.settings.cluster, letters)  # May fail: all is read again.
            self.metrics.dead_letters += len(letters)
        if read:
            self._position = read[-1][0]
        return rows

    def _letter(self, position: int, entry: Entry, error: BadRecord) -> DeadLetter:
        _log.error("Could not read decision", position=position, error=str(error))
        return DeadLetter(
            topic="decisions",
            position=position,
            error=str(error),
            code_version=self.settings.code_version,
            body=entry.value,
        )

    def _sweep(self, now: int) -> bool:
        """Claim what has been pending for 2 s, by the ledger's own seq: no clocks are compared."""
        head = self.ledger.head(self.settings.cluster)
        if head is None:
            return False
        self._heads.append((now, head.seq))
        old = [seq for at, seq in self._heads if at <= now - SWEEP_AGE_MS]
        self._heads = [pair for pair in self._heads if pair[0] > now - SWEEP_AGE_MS - SWEEP_MS]
        if not old:
            return False
        effects = self.ledger.sweep(
            self.settings.cluster, owner=self.settings.owner, seq_last=old[-1], limit=CLAIM_MAX
        )
        return self._add(effects, self._load(effects), look_first=False)

    def _adopt(self) -> bool:
        """Take over what a dead binder, or we before a restart, had claimed: look, then act."""
        effects = [
            effect
            for effect in self.ledger.adopt(
                self.settings.cluster, owner=self.settings.owner, limit=CLAIM_MAX
            )
            if (effect.seq, effect.n) not in self._works
        ]
        return self._add(effects, self._load(effects), look_first=True)

    def _load(self, effects: Sequence[Effect]) -> dict[int, DecisionRow]:
        return self._decisions({effect.seq for effect in effects})

    def _decisions(self, seqs: Iterable[int]) -> dict[int, DecisionRow]:
        """Read decisions from the ledger, stretch by stretch."""
        found: dict[int, DecisionRow] = {}
        wanted = sorted(seqs)
        while wanted:
            first = wanted[0]
            page = self.ledger.decisions(self.settings.cluster, after=first - 1, limit=READ_MAX)
            found.update((row.seq, row) for row in page)
            last = page[-1].seq if page else first
            wanted = [seq for seq in wanted if seq > last]
        return found

    def _add(
        self, effects: Sequence[Effect], rows: Mapping[int, DecisionRow], *, look_first: bool
    ) -> bool:
        settling = {(effect.seq, effect.n) for effect, _ in self._outcomes}
        facts = {effect.seq: decode_decision(rows[effect.seq].payload)[1] for effect in effects}
        repeats = self._decisions(
            fact.same_as
            for fact in facts.values()
            if isinstance(fact, PodUnschedulable) and fact.same_as is not None
        )
        late = self._superseded(effects)
        for effect in effects:
            key = (effect.seq, effect.n)
            if key in self._works or key in settling:
                continue
            if key in late:
                self._outcomes.append((effect, SUPERSEDED))
                continue
            row = rows[effect.seq]
            self._works[key] = self._work(
                effect, row, facts[effect.seq], repeats, look_first=look_first
            )
        return bool(effects)

    def _work(
        self,
        effect: Effect,
        row: DecisionRow,
        fact: Decision,
        repeats: Mapping[int, DecisionRow],
        *,
        look_first: bool,
    ) -> Work:
        instance = self.settings.owner
        match fact:
            case PodAssumed():
                return BindWork(
                    effect=effect,
                    fact=fact,
                    hash=row.hash,
                    instance=instance,
                    look_first=look_first,
                )
            case PodUnschedulable():
                full = fact
                if fact.same_as is not None:
                    full = decode_decision(repeats[fact.same_as].payload)[1]  # type: ignore[assignment]
                message = failure_message(full)
                told = told_unschedulable(
                    effect,
                    full,
                    repeat=fact.same_as is not None,
                    message=message,
                    instance=instance,
                )
                return StatusWork(effect=effect, told=told)
            case PodUnreserved():
                return StatusWork(
                    effect=effect, told=told_unreserved(effect, fact, instance=instance)
                )
            case PodSkipped():
                event = skipped_event(effect, fact, instance=instance)
                return EventWork(effect=effect, pod=fact.pod, event=event)
            case VictimsSelected():
                return self._victim_work(effect, fact)
            case _:
                msg = f"decision {effect.seq} of kind {row.kind} has no effects"
                raise AssertionError(msg)

    def _victim_work(self, effect: Effect, fact: VictimsSelected) -> Work:
        concerned = [*fact.victims, *fact.nominations_cleared]
        pod = concerned[effect.n]
        if effect.kind is EffectKind.VICTIM:
            return VictimWork(
                effect=effect, victim=pod, selected=fact, instance=self.settings.owner
            )
        return StatusWork(effect=effect, told=told_nomination_cleared(pod))

    def _superseded(self, effects: Sequence[Effect]) -> set[tuple[int, int]]:
        """Return what need not be told any more: a later decision of the pod has overtaken it."""
        told = [effect for effect in effects if effect.kind is EffectKind.STATUS]
        if not told:
            return set()
        asked = [(effect.seq, effect.pod_uid) for effect in told]
        late = set(self.ledger.superseded(self.settings.cluster, effects=asked))
        return {(effect.seq, effect.n) for effect in told if (effect.seq, effect.pod_uid) in late}

    # -- carrying it out -----------------------------------------------------------------------

    def _all(self) -> Iterable[Work]:
        return self._works.values()

    def _perform(self) -> bool:
        """Make one call of each work that may go on: the oldest of each pod."""
        now = self.clock.monotonic_ms()
        works = self._allowed(self._next_works(now), now)
        events = [self._stamped(call) for call in self._kube_events[:CALLS_MAX]]
        if not works and not events:
            return False
        answers = self.writer.perform([*(work.call() for work in works), *events])
        del self._kube_events[: len(events)]
        for answer in answers[len(works) :]:
            if not answer.ok and answer.code != 409:
                self.metrics.events_failed += 1
        now = self.clock.monotonic_ms()
        for work, answer in zip(works, answers[: len(works)], strict=True):
            self._take_answer(work, answer, now)
        return True

    def _next_works(self, now: int) -> list[Work]:
        chosen: dict[str, Work] = {}
        for work in self._all():
            known = chosen.get(work.pod_key)
            if known is None or work.effect.seq < known.effect.seq:
                chosen[work.pod_key] = work
        return [work for work in chosen.values() if work.not_before_ms <= now][:CALLS_MAX]

    def _allowed(self, works: Sequence[Work], now: int) -> Sequence[Work]:
        """Hold what the server refused until it is ready: while it starts, it refuses anybody."""
        refused = [
            work for work in works if isinstance(work, BindWork | VictimWork) and work.forbidden
        ]
        if not refused or self.writer.ready():
            return works
        for work in refused:
            work.not_before_ms = now + READY_MS
        return [work for work in works if work.not_before_ms <= now]

    def _stamped(self, call: CreateEvent) -> CreateEvent:
        """Give a Kubernetes Event its time: six decimals, or the server refuses it."""
        moment = datetime.fromtimestamp(self.clock.now_ms() / 1000, UTC)
        text = moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
        return CreateEvent(namespace=call.namespace, event={**call.event, "eventTime": text})

    def _take_answer(self, work: Work, answer: Answer, now: int) -> None:
        if isinstance(work, BindWork):
            self._count_forbidden(work, answer, now)
        outcome = work.take(answer, now)
        if outcome is None:
            return
        self._outcomes.append((work.effect, outcome))
        if outcome.is_final:
            del self._works[(work.effect.seq, work.effect.n)]
            if isinstance(outcome.then, CreateEvent):
                self._queue_event(outcome.then)

    def _queue_event(self, call: CreateEvent) -> None:
        if len(self._kube_events) < KUBE_EVENTS_MAX:
            self._kube_events.append(call)
        else:
            self.metrics.events_failed += 1

    def _count_forbidden(self, work: BindWork, answer: Answer, now: int) -> None:
        if answer.code not in (401, 403):
            if answer.code and answer.code < 500:
                self._forbidden_pods = 0
        elif work.forbidden + 1 >= FORBIDDEN_MAX:
            self._forbidden_pods += 1
            self._ready_at_ms = now + READY_MS

    # -- reporting it --------------------------------------------------------------------------

    def _settle(self) -> None:
        """Store outcomes in the ledger, then bring those that the scheduler awaits to the log."""
        if self._outcomes:
            updates = [outcome.update(effect) for effect, outcome in self._outcomes]
            ours = set(
                self.ledger.finish(
                    self.settings.cluster, owner=self.settings.owner, updates=updates
                )
            )
            for effect, outcome in self._outcomes:
                self._count(effect, outcome)
                if outcome.fact is not None and (effect.seq, effect.n) in ours:
                    update = outcome.update(effect)
                    settled = replace(effect, state=update.state, outcome=update.outcome)
                    self._unpublished.append((settled, outcome.fact))
            self._outcomes.clear()
        if self._unpublished:
            now = self.clock.now_ms()
            self.events_log.append(
                [
                    event_entry(fact, cluster=self.settings.cluster, time_ms=now)
                    for _, fact in self._unpublished
                ]
            )
            effects = [effect for effect, _ in self._unpublished]
            self.ledger.published(self.settings.cluster, effects=effects)
            self._unpublished.clear()

    def _count(self, effect: Effect, outcome: Outcome) -> None:
        metrics = self.metrics
        match outcome.state:
            case EffectState.DROPPED:
                metrics.dropped += 1
            case EffectState.UNKNOWN:
                metrics.unknown += 1
            case EffectState.REJECTED:
                metrics.rejected += effect.kind is EffectKind.BIND
            case _:
                metrics.bound += effect.kind is EffectKind.BIND
                metrics.statuses += effect.kind is EffectKind.STATUS


def fact_of(effect: Effect) -> Event | None:
    """Return the event of a stored outcome: what the log would have been told."""
    detail: dict[str, Any] = msgspec.json.decode(effect.outcome or "{}")
    said = detail.get("reason") or str(detail.get("message", ""))
    message = str(detail.get("message", ""))
    seq, uid = effect.seq, effect.pod_uid
    match effect.kind, effect.state:
        case EffectKind.BIND, EffectState.DONE:
            return BindSucceeded(seq=seq, pod_uid=uid, node=str(detail.get("node", "")))
        case EffectKind.BIND, EffectState.REJECTED:
            return BindFailed(seq=seq, pod_uid=uid, reason=said, message=message)
        case EffectKind.BIND, EffectState.UNKNOWN:
            return BindUnknown(seq=seq, pod_uid=uid, message=message)
        case EffectKind.VICTIM, EffectState.DONE:
            return VictimDeleted(seq=seq, pod_uid=uid)
        case EffectKind.VICTIM, EffectState.REJECTED:
            return VictimRefused(seq=seq, pod_uid=uid, reason=said)
        case _:
            return None
