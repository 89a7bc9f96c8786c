"""Sequences of operations on the scheduling queue, and where kube-scheduler's then had its pods.

The file in the repository is a sample of the recorded cases; `--golden DIR` runs all of them.
"""

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from decklog.core.framework.events import ACTIONS, Happening
from decklog.core.nominator import Nominator
from decklog.core.plugins.registrations import DEFAULTS, registrations_of
from decklog.core.queue import SchedulingQueue
from decklog.core.queued_pod import SECOND_MS, Place, QueuedPod
from decklog.objects.kinds import KIND_BY_NAME
from decklog.objects.pod import Pod
from decklog.objects.reduce import reduce_object
from tests.parity.test_units_hints import Named, _kind

Raw = Mapping[str, Any]
CASES_MIN: Final = 50
SHOWN_MAX: Final = 10
REGISTERED: Final = registrations_of({"default-scheduler": [Named(name) for name in DEFAULTS]})


def test_the_queue_holds_what_kube_schedulers_held(golden_dir: Path) -> None:
    count, wrong = 0, []
    with gzip.open(golden_dir / "units" / "queue.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            difference = next(Run(case["config"]).differences(case), None)
            if difference is not None:
                wrong.append(f"{case['id']} {difference}")
            count += 1
    assert count >= CASES_MIN
    assert not wrong, f"{len(wrong)} of {count} differ:\n" + "\n".join(wrong[:SHOWN_MAX])


def test_a_wrong_answer_is_found() -> None:
    config = {
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 10,
        "maxInUnschedulableSeconds": 300,
    }
    op = {
        "t": 0,
        "op": "pop",
        "wouldBlock": False,
        "popped": {"key": "a/b", "attempts": 1},
        "changed": {},
    }
    assert list(Run(config).differences({"ops": [op], "drain": []}))


@dataclass
class Run:
    config: Raw
    store: dict[str, Pod] = field(default_factory=dict)
    queue: SchedulingQueue = field(init=False)
    nominator: Nominator = field(default_factory=Nominator)

    def __post_init__(self) -> None:
        self.queue = SchedulingQueue(
            gate=_gate,
            registrations=REGISTERED,
            nominator=self.nominator,
            initial_backoff_ms=self.config["podInitialBackoffSeconds"] * SECOND_MS,
            max_backoff_ms=self.config["podMaxBackoffSeconds"] * SECOND_MS,
            flush_after_ms=self.config["maxInUnschedulableSeconds"] * SECOND_MS,
        )

    def differences(self, case: Raw) -> Iterator[str]:
        for number, op in enumerate(case["ops"]):
            self.queue.now_ms = op["t"]
            got = _OPERATIONS[op["op"]](self, op)
            for found in self._compare(op, got):
                yield f"op {number} {op['op']}: {found}"
        order = []
        while (head := self.queue.peek()) is not None:
            order.append(head.pod.key)
            self.queue.pop(head.pod.uid)
            self.queue.done(head.pod.uid)
        if order != (case["drain"] or []):
            yield f"drained {order}, not {case['drain']}"

    # -- operations ----------------------------------------------------------------------------

    def _add(self, op: Raw) -> None:
        pod = _pod(op["pod"])
        self.store[pod.key] = pod
        self.queue.add(pod)

    def _update(self, op: Raw) -> None:
        old, new = _pod(op["old"]), _pod(op["new"])
        self.store[new.key] = new
        self.queue.update(old, new)

    def _delete(self, op: Raw) -> None:
        pod = _pod(op["pod"])
        self.store.pop(pod.key, None)
        self.queue.delete(pod.uid)

    def _pop(self, op: Raw) -> str | None:
        head = self.queue.peek()
        if head is None:
            return None
        self.queue.pop(head.pod.uid)
        return f"{head.pod.key} {head.attempts}"

    def _fail(self, op: Raw) -> None:
        pod = self.store.get(op["key"])
        if pod is None or pod.uid != op["uid"]:
            self.queue.done(op["uid"])
            return
        self.queue.add_unschedulable(
            pod,
            unschedulable_plugins=op.get("unschedulablePlugins") or (),
            pending_plugins=op.get("pendingPlugins") or (),
        )
        if not pod.node_name:
            self.nominator.add(pod, op.get("nominate"))

    def _done(self, op: Raw) -> None:
        self.queue.done(op["uid"])
        if op.get("removedFromStore"):
            self.store.pop(op["key"], None)

    def _assume(self, op: Raw) -> None:
        self.nominator.delete(op["uid"])

    def _event(self, op: Raw) -> None:
        happening = Happening(op["resource"], ACTIONS[op["action"]])
        kind = KIND_BY_NAME[_kind(op["resource"])]
        old, new = (
            reduce_object(kind, op[key]) if op.get(key) is not None else None
            for key in ("old", "new")
        )
        self.queue.move_all(happening, old, new, _pre_check(op.get("preCheck")))

    def _activate(self, op: Raw) -> None:
        for key in op["keys"]:
            if key in self.store:
                self.queue.activate(self.store[key].uid)

    def _flush_backoff(self, op: Raw) -> None:
        for timer in self.queue.expired_backoffs():
            self.queue.fire(timer)

    def _flush_unschedulable(self, op: Raw) -> None:
        due = self.queue.expired_parkings()
        for timer in due:
            self.queue.fire(timer)
        if not due:
            self.queue.flush_gated()

    # -- comparing -----------------------------------------------------------------------------

    def _compare(self, op: Raw, got: str | None) -> Iterator[str]:
        if op["op"] == "pop":
            popped = op.get("popped")
            want = f"{popped['key']} {popped['attempts']}" if popped else None
            if got != want:
                yield f"popped {got}, not {want}"
        by_key = {
            queued.pod.key: queued
            for queued in self.queue.pods()
            if queued.place is not Place.IN_FLIGHT
        }
        for key, want in op["changed"].items():
            yield from _compare_entry(key, by_key.get(key), want)
        if "inFlight" in op and self.queue.in_flight.shown() != op["inFlight"]:
            yield f"in flight {self.queue.in_flight.shown()}, not {op['inFlight']}"


def _compare_entry(key: str, queued: QueuedPod | None, want: Raw | None) -> Iterator[str]:
    if queued is None or want is None:
        if (queued is None) != (want is None):
            yield f"{key} is {queued}, not {want}"
        return
    got = _entry(queued)
    for name, value in got.items():
        if value != (want.get(name) or type(value)()) and value != want.get(name):
            yield f"{key}: {name} is {value!r}, not {want.get(name)!r}"


def _entry(queued: QueuedPod) -> dict[str, Any]:
    place = queued.place.value if queued.place else ""
    if queued.place is Place.UNSCHEDULABLE and queued.gating_plugin:
        place = "gated"
    in_backoff = queued.place in (Place.BACKOFF, Place.ERROR_BACKOFF)
    return {
        "q": place,
        "attempts": queued.attempts,
        "unschedulableCount": queued.unschedulable_count,
        "consecutiveErrors": queued.consecutive_errors,
        "timestamp": queued.timestamp_ms,
        "backoffExpiry": queued.backoff_expiry_ms if in_backoff else None,
        "initialAttempt": queued.initial_attempt_ms,
        "unschedulablePlugins": sorted(queued.unschedulable_plugins),
        "pendingPlugins": sorted(queued.pending_plugins),
        "gatingPlugin": queued.gating_plugin,
        "flushed": queued.flushed,
        "uid": queued.pod.uid,
        "resourceVersion": queued.pod.resource_version,
    }


def _pod(raw: Raw) -> Pod:
    pod = reduce_object(KIND_BY_NAME["Pod"], raw)
    assert isinstance(pod, Pod)
    return pod


def _gate(pod: Pod, _last: str) -> str:
    return "SchedulingGates" if pod.scheduling_gates else ""


def _pre_check(given: Raw | None) -> Callable[[Pod], bool] | None:
    if not given:
        return None
    if "notUID" in given:
        uid = given["notUID"]
        return lambda pod: pod.uid != uid
    priority = given["maxPriority"]
    return lambda pod: pod.priority <= priority


_OPERATIONS: Final[Mapping[str, Callable[[Run, Raw], str | None]]] = {
    "add": Run._add,
    "update": Run._update,
    "delete": Run._delete,
    "pop": Run._pop,
    "fail": Run._fail,
    "done": Run._done,
    "assume": Run._assume,
    "event": Run._event,
    "activate": Run._activate,
    "flushBackoff": Run._flush_backoff,
    "flushUnschedulable": Run._flush_unschedulable,
}
