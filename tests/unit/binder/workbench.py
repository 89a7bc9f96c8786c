"""A binder with a cluster that answers as the test says, on a real ledger and real logs."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from decklog.adapters.ledger.migrate import upgrade
from decklog.adapters.ledger.sql import SqlLedger
from decklog.adapters.log.embedded import EmbeddedLog
from decklog.binder.service import BinderService, BinderSettings
from decklog.core.rules import RULES
from decklog.events.facts import (
    Decision,
    Event,
    PodAssumed,
    PodRef,
    PodUnschedulable,
    Rejection,
)
from decklog.ports.cluster import Answer, BindPod, Call, CreateEvent, GetPod
from decklog.ports.entries import decision_entries, read_records
from decklog.ports.ledger import DecisionRow, Effect
from decklog.ports.sealing import ChainHead, seal
from tests.harness import ManualClock

CLUSTER: Final = "test"
AT_ONCE: Final = timedelta(0)
OK: Final = Answer(code=200)
CREATED: Final = Answer(code=201)
LOST: Final = Answer(code=0, message="connection reset")
FORBIDDEN: Final = Answer(code=403, reason="Forbidden", message="no")


def ref(name: str) -> PodRef:
    return PodRef(uid=f"uid-{name}", namespace="default", name=name)


def assumed(name: str, node: str = "n1", **fields: Any) -> PodAssumed:
    given = {"resource_version": "7", "profile": "decklog", **fields}
    return PodAssumed(pod=ref(name), node=node, feasible_count=1, evaluated_count=1, **given)


def unschedulable(name: str, **fields: Any) -> PodUnschedulable:
    rejected = (Rejection("NodeResourcesFit", 2, ("Insufficient cpu",), 3),)
    given = {"resource_version": "7", "node_count": 3, "rejected": rejected, **fields}
    return PodUnschedulable(pod=ref(name), **given)


def found(name: str, *, node: str = "", uid: str = "") -> Answer:
    """Return the answer to a GET of the pod."""
    metadata = {"uid": uid or f"uid-{name}", "resourceVersion": "9"}
    return Answer(code=200, body={"metadata": metadata, "spec": {"nodeName": node}})


def well(call: Call) -> Answer:
    """Answer as an API server does that has what is asked of it."""
    return CREATED if isinstance(call, BindPod | CreateEvent) else OK


@dataclass
class ScriptedWriter:
    """Answers each call by `answer`, but first what stands in `script` for its pod or kind."""

    answer: Callable[[Call], Answer] = well
    calls: list[Call] = field(default_factory=list)
    is_ready: bool = True
    script: dict[type, deque[Answer]] = field(default_factory=dict)

    def perform(self, calls: Sequence[Call]) -> Sequence[Answer]:
        self.calls.extend(calls)
        return [self._answer(call) for call in calls]

    def ready(self) -> bool:
        return self.is_ready

    def close(self) -> None: ...

    def say(self, kind: type, *answers: Answer) -> None:
        """Give these answers to the next calls of the kind."""
        self.script.setdefault(kind, deque()).extend(answers)

    def of(self, kind: type) -> list[Any]:
        return [call for call in self.calls if type(call) is kind]

    def _answer(self, call: Call) -> Answer:
        waiting = self.script.get(type(call))
        return waiting.popleft() if waiting else self.answer(call)


@dataclass
class Workbench:
    """One store, a leader's chain, and binders that share them."""

    folder: Path
    clock: ManualClock = field(default_factory=ManualClock)
    writer: ScriptedWriter = field(default_factory=ScriptedWriter)
    read_to: int = -1
    opened: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        upgrade(self.url)
        self.ledger = self.open_ledger()
        self.events = self.open_log("events")
        self.decisions = self.open_log("decisions")
        head = self.ledger.take_over(CLUSTER, holder="leader")
        assert head is not None
        self.chain = ChainHead(
            stream=CLUSTER,
            generation=head.generation,
            tick=head.tick,
            tick_hash=head.tick_hash,
            seq=head.seq,
            seq_hash=head.seq_hash,
            config_hash="c",
            rules=RULES,
        )

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder / 'decklog.db'}"

    def open_ledger(self) -> SqlLedger:
        ledger = SqlLedger(self.url, clock=self.clock, durable=False, beat_interval=None)
        self.opened.append(ledger)
        return ledger

    def open_log(self, name: str) -> EmbeddedLog:
        log = EmbeddedLog(self.folder, name, synchronous="OFF")
        self.opened.append(log)
        return log

    def binder(self, owner: str = "b", *, ledger: Any = None, events: Any = None) -> BinderService:
        settings = BinderSettings(
            cluster=CLUSTER, owner=owner, code_version="test", patience=AT_ONCE
        )
        return BinderService(
            settings=settings,
            decisions_log=self.decisions,
            events_log=events or self.events,
            ledger=ledger or self.ledger,
            writer=self.writer,
            clock=self.clock,
        )

    def decide(self, *decisions: Decision, relay: bool = True) -> list[DecisionRow]:
        """Commit a tick with these decisions and bring them to the decisions log."""
        commit, after = seal(
            self.chain, cursor=0, now_ms=self.clock.now_ms(), cycles=0, decisions=decisions
        )
        self.ledger.commit(commit)
        if relay:
            entries = decision_entries(
                commit.decisions, prev_hash=self.chain.seq_hash, cluster=CLUSTER
            )
            self.decisions.append(entries)
        self.chain = after
        return list(commit.decisions)

    def run(self, *binders: BinderService, for_ms: int = 0) -> None:
        """Step until nobody has anything to do, and on until the time is over."""
        end_ms = self.clock.monotonic_ms() + for_ms
        while True:
            if sum(binder.step() for binder in binders):
                continue
            if self.clock.monotonic_ms() >= end_ms:
                return
            self.clock.advance(timedelta(milliseconds=50))

    def news(self) -> list[Event]:
        read = read_records(self.events, after=self.read_to, limit=10_000, timeout=AT_ONCE)
        if read:
            self.read_to = read[-1][0].position
        return [record.fact for record, _ in read]

    def effects(self) -> list[Effect]:
        return list(self.ledger.effects(CLUSTER, seq_first=1, seq_last=10_000))

    def states(self) -> list[str]:
        return [f"{effect.kind} {effect.state}" for effect in self.effects()]

    def look(self, name: str, **there: str) -> None:
        """Let the next GET find the pod so."""
        self.writer.say(GetPod, found(name, **there))

    def close(self) -> None:
        for one in self.opened:
            one.close()
