"""What informers deliver, and what kube-scheduler's cache and queue then held.

The same deliveries go through the reducer. The file in the repository is a sample of the recorded
cases; `--golden DIR` runs all of them.
"""

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from decklog.core.errors import IllegalTransition
from decklog.core.framework.events import ASSIGNED_POD_DELETE
from decklog.core.framework.resolve import resolve
from decklog.core.queued_pod import Place
from decklog.core.state import Ending, OpenAssume, SchedulerState, pod_ref
from decklog.events.codec import upserted
from decklog.events.facts import ObjectDeleted, Record
from decklog.objects.kinds import KIND_BY_NAME
from decklog.objects.pod import Pod
from decklog.objects.reduce import reduce_object
from tests.parity.test_units_queue import _compare_entry

Raw = Mapping[str, Any]
CASES_MIN: Final = 50
SHOWN_MAX: Final = 10


def test_deliveries_lead_where_kube_schedulers_do(golden_dir: Path) -> None:
    count = 0
    wrong: list[str] = []
    with gzip.open(golden_dir / "units" / "handlers.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            difference = next(Run().differences(case["ops"]), None)
            if difference is not None:
                wrong.append(f"{case['id']} {difference}")
            count += 1
    assert count >= CASES_MIN
    assert not wrong, f"{len(wrong)} of {count} differ:\n" + "\n".join(wrong[:SHOWN_MAX])


def _new_state() -> SchedulerState:
    return SchedulerState(resolve({}))


@dataclass
class Run:
    state: SchedulerState = field(default_factory=_new_state)
    _position: int = 0
    _lives: dict[str, int] = field(default_factory=dict)
    """Node → how often it was added."""

    def differences(self, ops: list[Raw]) -> Iterator[str]:
        for number, op in enumerate(ops):
            self.state.set_now(op["t"])
            got = OPERATIONS[op["op"]](self, op)
            for found in self._compare(op, got):
                yield f"op {number} {op['op']}: {found}"

    # -- deliveries ----------------------------------------------------------------------------

    def _upsert(self, op: Raw, kind: str) -> None:
        raw = op["new"]
        keys = frozenset(raw["metadata"].get("annotations") or ())
        obj = reduce_object(KIND_BY_NAME[kind], raw, annotation_keys=keys)
        if kind == "Node":
            # Recorded nodes have no version, and come back under their old uid. Real ones don't.
            lives = self._lives[obj.name] = self._lives.get(obj.name, 0) + (op["op"] == "nodeAdd")
            version = str(self._position + 1)
            obj = replace(obj, resource_version=version, uid=f"{obj.uid}-{lives}")  # type: ignore[type-var]
        assume = self.state.open_assumes.get(obj.uid)
        if isinstance(obj, Pod) and assume is not None and obj.node_name == assume.node:
            del self.state.open_assumes[obj.uid]  # Confirmed; here it stays in flight until done.
        known = self.state.store.get(kind, obj.uid)
        self._apply(Record(self._next(), upserted(obj)))
        if known is not None and known.resource_version == obj.resource_version:
            # Ignored, as upstream does; but the informer's store has the new copy.
            self.state.store.objects(kind)[obj.uid] = obj

    def _delete(self, op: Raw, kind: str) -> None:
        obj = reduce_object(KIND_BY_NAME[kind], op["old"])
        uid = f"{obj.uid}-{self._lives.get(obj.name, 0)}" if kind == "Node" else obj.uid
        fact = ObjectDeleted(
            kind=kind,
            namespace=obj.namespace,
            name=obj.name,
            uid=uid,
            final_state_unknown=bool(op.get("missed")),
        )
        self._apply(Record(self._next(), fact))

    def _apply(self, record: Record) -> None:
        """Apply, and do what the cycle would: an assume that ends here is forgotten at once."""
        self.state.apply(record)
        for cause in self.state.causes:
            if isinstance(cause, Ending):
                self.state.open_assumes.pop(cause.uid, None)
            if isinstance(cause, Ending) and self.state.cache.is_assumed(cause.uid):
                assumed = self.state.cache.pod(cause.uid)
                self.state.cache.forget_pod(cause.uid)
                self.state.queue.move_all(ASSIGNED_POD_DELETE, assumed, None)
        self.state.causes.clear()

    def _next(self) -> int:
        self._position += 1
        return self._position

    # -- the scheduling cycle ------------------------------------------------------------------

    def _pop(self, op: Raw) -> None:
        self.state.queue.pop(op["uid"])

    def _assume(self, op: Raw) -> str | None:
        pod = self.state.store.get("Pod", op["uid"]) or self._known(op)
        try:
            self.state.cache.assume_pod(pod, op["node"])
        except IllegalTransition as refusal:
            return str(refusal)
        self.state.nominator.delete(op["uid"])
        self.state.open_assumes[op["uid"]] = OpenAssume(
            seq=self._next(), pod=pod_ref(pod), node=op["node"], plan={}, counted=pod
        )
        return None

    def _forget(self, op: Raw) -> str | None:
        assumed = self.state.cache.pod(op["uid"])
        try:
            self.state.cache.forget_pod(op["uid"])
        except IllegalTransition as refusal:
            return str(refusal)
        self.state.open_assumes.pop(op["uid"], None)
        self.state.queue.move_all(ASSIGNED_POD_DELETE, assumed, None)
        return None

    def _done(self, op: Raw) -> None:
        self.state.queue.done(op["uid"])

    def _fail(self, op: Raw) -> None:
        pod = self.state.store.named("Pod", op["key"])
        if pod is None or pod.uid != op["uid"] or pod.node_name:
            self.state.queue.done(op["uid"])
            return
        self.state.queue.add_unschedulable(
            pod, unschedulable_plugins=op.get("unschedulablePlugins") or (), pending_plugins=()
        )
        self.state.nominator.add(pod)

    def _known(self, op: Raw) -> Pod:
        queued = self.state.queue.get(op["uid"])
        assert queued is not None
        return queued.pod

    def _flush_backoff(self, op: Raw) -> None:
        for timer in self.state.queue.expired_backoffs():
            self.state.queue.fire(timer)

    # -- comparing -----------------------------------------------------------------------------

    def _compare(self, op: Raw, error: str | None) -> Iterator[str]:
        queue = self.state.queue
        by_key = {
            queued.pod.key: queued for queued in queue.pods() if queued.place is not Place.IN_FLIGHT
        }
        for key, want in op["changed"].items():
            yield from _compare_entry(key, by_key.get(key), want)
        if "inFlight" in op and queue.in_flight.shown() != op["inFlight"]:
            yield f"in flight {queue.in_flight.shown()}, not {op['inFlight']}"
        if bool(error) != bool(op.get("error")) and op["op"] in ("assume", "forget"):
            yield f"error is {error!r}, not {op.get('error')!r}"
        if "cache" in op:
            yield from self._compare_cache(op["cache"])

    def _compare_cache(self, want: Raw) -> Iterator[str]:
        cache = self.state.cache
        if sorted(cache.assumed) != want["assumed"]:
            yield f"assumed are {sorted(cache.assumed)}, not {want['assumed']}"
        for name, node in want["nodes"].items():
            row = cache.columns.find(name)
            pods = [] if row is None else sorted(pod.uid for pod in cache.columns.pods(row))
            if pods != node["pods"]:
                yield f"{name} has {pods}, not {node['pods']}"


OPERATIONS: Final[Mapping[str, Callable[[Run, Raw], str | None]]] = {
    "podAdd": lambda run, op: run._upsert(op, "Pod"),
    "podUpdate": lambda run, op: run._upsert(op, "Pod"),
    "podDelete": lambda run, op: run._delete(op, "Pod"),
    "nodeAdd": lambda run, op: run._upsert(op, "Node"),
    "nodeUpdate": lambda run, op: run._upsert(op, "Node"),
    "nodeDelete": lambda run, op: run._delete(op, "Node"),
    "pop": Run._pop,
    "assume": Run._assume,
    "forget": Run._forget,
    "done": Run._done,
    "fail": Run._fail,
    "flushBackoff": Run._flush_backoff,
}
