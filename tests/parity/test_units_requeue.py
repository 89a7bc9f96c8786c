"""The second half of a cycle beside kube-scheduler's: who is called, what is told, who is queued.

Recorded with test plugins on one node: pod w was rejected by Gate and is parked, and pod x is
placed, or not. kube-scheduler binds in the same process; decklog's binder reports the outcome as an
event (docs/adr/0007-binding-failures-are-events.md). So the runner translates:

- Reserve, Permit and Unreserve are called by the scheduler, and compared call by call. Unreserve
  may be called twice in a row: when the closing is proposed and when it is accepted.
- What PreBind, Bind or the API answered becomes `bind.succeeded` or `bind.failed` with the recorded
  text, or a call without an answer. Their order, and PostBind's, is not the scheduler's.
- A failed bind is always an error: its condition says SchedulerError also where a plugin of the
  binding cycle said Unschedulable. Either way the pod goes to the error back-off.
- When x changes in the informer's store during the cycle, the store has changed before the
  decision is accepted; during the binding, an event comes before the outcome. Of a pod that is
  gone, bound or another one, nothing is told: the binder's calls carry the uid.
- `nominatedNodeName` is not set while a pod is bound: the ledger has the reservation.

Without a counterpart: a pod that waits at Permit is never preempted or rejected by uid, and
PreBindPreFlight does not come before its wait.
"""

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from decklog.binder.bind import BindWork
from decklog.binder.status import StatusWork, told_unreserved, told_unschedulable
from decklog.binder.work import Outcome, Work
from decklog.core.columns import NodeColumns
from decklog.core.deciding import PERMIT, Decider
from decklog.core.framework.diagnosis import failure_message
from decklog.core.framework.events import DELETE, POD
from decklog.core.framework.interface import ClusterEvent, CycleState, ReasonCodes
from decklog.core.framework.resolve import default_config
from decklog.core.framework.status import CODE_NAMES, SUCCESS, Status, unschedulable
from decklog.core.plugins.registry import REGISTRY
from decklog.core.queued_pod import Place, Timer
from decklog.core.state import Ending, SchedulerState
from decklog.events.codec import upserted
from decklog.events.facts import (
    BindFailed,
    BindSucceeded,
    BindUnknown,
    Decision,
    EndReason,
    Event,
    ObjectDeleted,
    PodAssumed,
    PodUnreserved,
    PodUnschedulable,
    PodWaiting,
    Record,
)
from decklog.objects.pod import Pod
from decklog.ports.cluster import Answer, CreateEvent
from decklog.ports.ledger import Effect, EffectKind, EffectState
from tests.builders import make_node, make_pod
from tests.parity.test_units_queue import _compare_entry

Raw = Mapping[str, Any]
Call = tuple[str, ...]
PROFILE: Final = "s"
POINTS: Final = {
    "filter": ("Gate",),
    "reserve": ("R1", "R2", "R3"),
    "permit": ("P1", "P2"),
}
CODES: Final = {name: code for code, name in CODE_NAMES.items()}
W_FAILED_MS: Final = 1
X_ADDED_MS: Final = 1001
X_TRIED_MS: Final = 1101
CASES_MIN: Final = 100
SHOWN_MAX: Final = 10
NO_COUNTERPART: Final = frozenset({"preempt", "removed"})
COMPARED: Final = frozenset({"Reserve", "Permit", "Unreserve", "hint"})
PATCHED: Final = ("type", "status", "reason", "message", "observedGeneration")


def test_what_follows_a_placement_is_what_kube_scheduler_did(
    golden_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, skipped, wrong = 0, 0, []
    path = golden_dir / "units" / "requeue_after_bind.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            if not _has_counterpart(case):
                skipped += 1
                continue
            count += 1
            difference = next(Run(case, monkeypatch).differences(), None)
            if difference is not None:
                wrong.append(f"{case['id']}: {difference}")
    assert count >= CASES_MIN
    assert skipped < count / 3
    assert not wrong, f"{len(wrong)} of {count} differ:\n" + "\n".join(wrong[:SHOWN_MAX])


def test_a_wrong_order_of_calls_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    log = [{"do": "Reserve", "plugin": "R1"}]
    case = {"script": {}, "podDuring": "", "permitAction": "", "hint": "Queue", "bindAPI": ""}
    after = {"log": log, "queue": {}, "inFlight": [], "cache": {}, "nominated": {}}
    assert list(Run({**case, **after}, monkeypatch).differences())


def _has_counterpart(case: Raw) -> bool:
    done = [entry["do"] for entry in case["log"]]
    if "waiting" not in done:
        return True
    failed_before_the_wait = "Unreserve" in done[: done.index("waiting")]
    return case["permitAction"] not in NO_COUNTERPART and not failed_before_the_wait


@dataclass(slots=True)
class Scripted:
    """A plugin that answers as the case says, and notes that it was asked."""

    name: str
    script: Raw
    hint: str
    log: list[Call]
    statuses: Sequence[Status] = (SUCCESS, unschedulable("gated"))

    def events_to_register(self) -> Sequence[ClusterEvent]:
        return (ClusterEvent(resource=POD, action=DELETE, hint=self._asked),)

    def filter(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> ReasonCodes:
        return np.full(len(nodes), int(pod.name == "w"), dtype=np.uint16)

    def reserve(self, state: CycleState, pod: Pod, node: str) -> tuple[dict[str, Any], Status]:
        self.log.append(("Reserve", self.name))
        return {"of": self.name}, self._status("Reserve")

    def unreserve(self, pod: Pod, node: str, plan: object) -> Sequence[str]:
        self.log.append(("Unreserve", self.name))
        return ()

    def permit(self, state: CycleState, pod: Pod, node: str) -> tuple[Status, int]:
        self.log.append(("Permit", self.name))
        said = self.script.get("Permit", {})
        return self._status("Permit"), said.get("timeoutMs", 0)

    def _asked(self, pod: Pod, old: Any, new: Any) -> bool:
        self.log.append(("hint", self.name, pod.name, old.name, old.node_name))
        return self.hint == "Queue"

    def _status(self, point: str) -> Status:
        said = self.script.get(point)
        if said is None:
            return SUCCESS
        return Status(CODES[said["code"]], tuple(said["reasons"] or ()), said.get("err"))


@dataclass
class Run:
    case: Raw
    monkeypatch: pytest.MonkeyPatch
    log: list[Call] = field(default_factory=list)
    told: list[Raw] = field(default_factory=list)
    """Kubernetes Events and status patches that the binder's work made."""
    decider: Decider = field(init=False)
    x: Pod = field(init=False)
    there: Pod | None = field(init=False)
    """What the API server has under x's name."""
    is_binding: bool = False
    _position: int = 0

    def __post_init__(self) -> None:
        registry: Any = REGISTRY
        for name in [name for names in POINTS.values() for name in names]:
            plugin = Scripted(name, self.case["script"].get(name, {}), self.case["hint"], self.log)
            self.monkeypatch.setitem(registry, name, lambda _args, _parity, it=plugin: it)
        config = default_config(seed=1)
        profile = replace(config.profiles[0], scheduler_name=PROFILE, points=POINTS)
        self.decider = Decider(SchedulerState(replace(config, profiles=(profile,))))
        status = self.case.get("initialStatus") or {}
        self.x = make_pod(
            "x",
            uid="u-x",
            scheduler_name=PROFILE,
            generation=self.case.get("generation") or 0,
            nominated_node_name=status.get("nominatedNodeName", ""),
        )
        self.there = self.x

    @property
    def state(self) -> SchedulerState:
        return self.decider.state

    def differences(self) -> Iterator[str]:
        self._prepare()
        [decision] = self.decider.propose()
        if isinstance(decision, PodUnschedulable):
            self._change_store()
        seq = self.decider.accept(decision)
        self._follow(seq, decision)
        yield from self._compare_calls()
        yield from self._compare_told()
        yield from self._compare_state()

    # -- what happens --------------------------------------------------------------------------

    def _prepare(self) -> None:
        w = make_pod("w", uid="u-w", scheduler_name=PROFILE, priority=10)
        self._apply(upserted(make_node("n1")), upserted(w))
        self.state.set_now(W_FAILED_MS)
        [failure] = self.decider.propose()
        self.decider.accept(failure)
        self.state.set_now(X_ADDED_MS)
        self._apply(upserted(self.x))
        self.state.set_now(X_TRIED_MS)

    def _follow(self, seq: int, decision: Decision) -> None:
        """Do what the binder, or whoever lets a pod wait, does about the decision."""
        match decision:
            case PodUnschedulable():
                self._tell(seq, decision)
            case PodWaiting():
                self._end_wait(seq, decision)
            case PodAssumed():
                self._bind(seq, decision)
            case _:
                pytest.fail(f"{decision} was not expected")

    def _end_wait(self, seq: int, decision: PodWaiting) -> None:
        action = self.case["permitAction"]
        if action == "allow":
            allowed = PodAssumed(
                pod=decision.pod,
                node=decision.node,
                plan=decision.plan,
                feasible_count=decision.feasible_count,
                evaluated_count=decision.evaluated_count,
                closes_seq=seq,
            )
            self._bind(self.decider.accept(allowed), allowed)
            return
        if not action:
            # Recorded with another clock than the queue's, which stood still.
            self._close(self.decider.timed_out(Timer(0, PERMIT, decision.pod.uid)))
            return
        plugin = "P2" if action == "allowOneRejectOther" else "P1"
        self.state.ending.add(seq)
        self._close(Ending(seq, self.x.uid, EndReason.PERMIT_REJECTED, "no luck", plugin))

    def _bind(self, seq: int, decision: PodAssumed) -> None:
        self.is_binding = True
        effect = _effect(seq, EffectKind.BIND)
        work = BindWork(effect=effect, fact=decision, hash=b"", instance="b")
        notes = [entry["note"] for entry in self.case["log"] if entry["do"] == "event"]
        if any(note.startswith("Successfully") for note in notes):
            outcome = self._perform(work, Answer(code=201))
            assert isinstance(outcome.fact, BindSucceeded)
            self._apply(outcome.fact)
        elif self._is_api_error():
            outcome = self._perform(work, Answer(code=0, message=self.case["bindAPI"]))
            assert isinstance(outcome.fact, BindUnknown)
            self._apply(outcome.fact)
        else:
            fact = BindFailed(
                seq=seq, pod_uid=self.x.uid, reason="Refused", message=self._failure()
            )
            self._apply(*self._change_events(), fact)
            for cause in self.decider.take_causes():
                self._close(cause)

    def _is_api_error(self) -> bool:
        return any(entry["do"] == "bindCall" for entry in self.case["log"])

    def _failure(self) -> str:
        """Return what was told of the failure; empty: the condition said it already."""
        patches = [entry["body"]["status"] for entry in self.case["log"] if entry["do"] == "patch"]
        status = _patched(self.case.get("initialStatus") or {}, patches)
        return str(status.get("PodScheduled", {}).get("message", ""))

    def _close(self, cause: Any) -> None:
        closing = self.decider.closing(cause)
        self._tell(self.decider.accept(closing), closing)

    def _apply(self, *facts: Event) -> None:
        for fact in facts:
            self.state.apply(Record(self._position, fact))
            self._position += 1

    def _change(self) -> None:
        """Do to x what happens to it when a plugin fails."""
        match self.case["podDuring"]:
            case "deleted":
                self.there = None
            case "recreated":
                self.there = replace(self.x, uid="u-x2", resource_version="2")
            case "bound":
                self.there = replace(self.x, node_name="n2", resource_version="2")
            case _:
                pass

    def _change_store(self) -> None:
        """Change x where the failure is looked up, before anybody hears of it."""
        self._change()
        pods = self.state.store.objects("Pod")
        del pods[self.x.uid]
        if self.there is not None:
            pods[self.there.uid] = self.there

    def _change_events(self) -> Sequence[Event]:
        self._change()
        if self.there is None:
            return (ObjectDeleted(kind="Pod", namespace="default", name="x", uid=self.x.uid),)
        return () if self.there is self.x else (upserted(self.there),)

    # -- what is told --------------------------------------------------------------------------

    def _tell(self, seq: int, decision: Decision) -> None:
        effect = _effect(seq, EffectKind.STATUS)
        if isinstance(decision, PodUnschedulable):
            message = failure_message(decision)
            told = told_unschedulable(effect, decision, repeat=False, message=message, instance="b")
        elif isinstance(decision, PodUnreserved) and decision.pending:
            told = told_unreserved(effect, decision, instance="b")
        else:
            return
        changed, answer = self.there, Answer(code=200)
        if changed is None or changed.uid != self.x.uid:
            answer = Answer(code=404)
        elif changed.node_name:
            answer = Answer(code=409)
        self._perform(StatusWork(effect=effect, told=told), answer, self._seen(changed))
        if answer.ok:
            self.told.append(told.patch)

    def _seen(self, changed: Pod | None) -> Answer:
        """Return what a GET of x answers."""
        if changed is None:
            return Answer(code=404)
        metadata = {"uid": changed.uid, "resourceVersion": changed.resource_version}
        body = {"metadata": metadata, "spec": {"nodeName": changed.node_name}}
        return Answer(code=200, body=body)

    def _perform(self, work: Work, *answers: Answer) -> Outcome:
        for answer in answers:
            work.call()
            outcome = work.take(answer, X_TRIED_MS)
            if outcome is not None:
                if isinstance(outcome.then, CreateEvent):
                    event = outcome.then.event
                    self.told.append({key: event[key] for key in ("type", "reason", "note")})
                return outcome
        raise AssertionError(answers)

    # -- comparing -----------------------------------------------------------------------------

    def _compare_calls(self) -> Iterator[str]:
        want = [_call(entry) for entry in self.case["log"] if entry["do"] in COMPARED]
        if self._is_api_error() and self._failed():
            # An answer that did not come ends nothing here: the reservation stays.
            want = [call for call in want if call[0] in ("Reserve", "Permit")]
        found = _once(self.log)
        if found != want:
            yield f"called {found}, not {want}"

    def _compare_told(self) -> Iterator[str]:
        if self.there is not self.x or (self._is_api_error() and self._failed()):
            if self.told:
                yield f"told {self.told} of a pod that is not there, or whose bind may be done"
            return
        events = [entry for entry in self.case["log"] if entry["do"] == "event"]
        want = [{key: entry[key] for key in ("type", "reason", "note")} for entry in events]
        found = [one for one in self.told if "note" in one]
        if found != want:
            yield f"events are {found}, not {want}"
        yield from self._compare_status()

    def _compare_status(self) -> Iterator[str]:
        """Compare what the pod's status is in the end, however the patches are written."""
        patches = [entry["body"]["status"] for entry in self.case["log"] if entry["do"] == "patch"]
        want = _patched(self.case.get("initialStatus") or {}, _after_binding(patches))
        if self.is_binding and self._failed():
            want["PodScheduled"]["reason"] = "SchedulerError"
        found = _patched(
            self.case.get("initialStatus") or {}, [one for one in self.told if "note" not in one]
        )
        if not self.x.generation:
            # Every API server that we know sets a generation.
            for status in (want, found):
                status.get("PodScheduled", {}).pop("observedGeneration", None)
        if found != want:
            yield f"status is {found}, not {want}"

    def _compare_state(self) -> Iterator[str]:
        state = self.state
        entries = {
            queued.pod.key: queued
            for queued in state.queue.pods()
            if queued.place is not Place.IN_FLIGHT and queued.pod.uid != "u-x2"
        }
        is_unknown = self._is_api_error() and self._failed()
        for key in ("default/w", "default/x"):
            want = self.case["queue"].get(key)
            if want and is_unknown:
                # Nothing was freed, so nobody was woken.
                is_w = key == "default/w"
                want = {**want, "q": "unschedulable", "backoffExpiry": None} if is_w else None
            yield from _compare_entry(key, entries.get(key), want)
        if state.queue.in_flight.shown() != self.case["inFlight"]:
            yield f"in flight {state.queue.in_flight.shown()}, not {self.case['inFlight']}"
        assumed = state.cache.is_assumed(self.x.uid)
        if assumed != (self.case["cache"].get("assumed", False) or is_unknown):
            yield f"x is {'' if assumed else 'not '}assumed"
        yield from self._compare_nominated(is_unknown=is_unknown)

    def _compare_nominated(self, *, is_unknown: bool) -> Iterator[str]:
        want = {
            entry.partition("|")[2]: node
            for node, entries in self.case["nominated"].items()
            for entry in entries
            if not (is_unknown and entry.endswith("|u-x"))
        }
        node_of = self.state.nominator.node_of
        found = {uid: node for uid in ("u-w", "u-x") if (node := node_of(uid)) is not None}
        if found != want:
            yield f"nominated are {found}, not {want}"

    def _failed(self) -> bool:
        return any(entry["do"] == "Unreserve" for entry in self.case["log"])


def _effect(seq: int, kind: EffectKind) -> Effect:
    return Effect(
        seq=seq,
        n=0,
        kind=kind,
        pod_uid="u-x",
        state=EffectState.CLAIMED,
        owner="b",
        attempts=1,
        outcome=None,
        outcome_published=True,
        late_outcome=None,
    )


def _call(entry: Raw) -> Call:
    if entry["do"] == "hint":
        return ("hint", entry["plugin"], entry["pod"], entry["oldPod"], entry["oldNodeName"])
    return (entry["do"], entry["plugin"])


def _once(log: Sequence[Call]) -> list[Call]:
    """Return the calls; an undoing that follows itself was done once more."""
    undoing = [("Unreserve", name) for name in reversed(POINTS["reserve"])]
    found = list(log)
    for start in range(len(found)):
        if found[start : start + 6] == [*undoing, *undoing]:
            del found[start : start + 3]
    return found


def _after_binding(patches: Sequence[Raw]) -> Sequence[Raw]:
    """Leave out what only says that a pod is being bound."""
    return [patch for patch in patches if patch != {"nominatedNodeName": "n1"}]


def _patched(status: Raw, patches: Sequence[Raw]) -> dict[str, Any]:
    """Return condition and nomination after strategic merges."""
    known = {condition["type"]: dict(condition) for condition in status.get("conditions", ())}
    found: dict[str, Any] = {"nominated": status.get("nominatedNodeName"), **known}
    for patch in patches:
        if "nominatedNodeName" in patch:
            found["nominated"] = patch["nominatedNodeName"]
        for change in patch.get("conditions", ()):
            condition = found.setdefault(change["type"], {})
            condition.update({key: change[key] for key in PATCHED if key in change})
    return found
