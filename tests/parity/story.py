"""Runs the steps of a case: what the scheduler's state is told, and where the pods then are."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from decklog.binder.status import told_unreserved, told_unschedulable
from decklog.core.framework.diagnosis import failure_message
from decklog.core.framework.status import CODE_NAMES, Code
from decklog.core.queued_pod import Place
from decklog.core.tick import CYCLES_MAX
from decklog.events.codec import upserted
from decklog.events.facts import (
    BindFailed,
    BindSucceeded,
    BindUnknown,
    Event,
    ObjectDeleted,
    PodAssumed,
    PodUnreserved,
    PodUnschedulable,
)
from decklog.objects.kinds import KIND_BY_NAME
from decklog.objects.reduce import reduce_object
from decklog.ports.ledger import Effect, EffectKind, EffectState
from tests.stepping import PROFILE, Steps, used

Raw = Mapping[str, Any]
KINDS: Final = {"namespaces": "Namespace", "nodes": "Node", "pods": "Pod"}
"""Key of a step → kind, in the order in which a step's objects are told."""
FIRST_VERSION: Final = 100
ROOM: Final = {"cpu": "8", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110"}
_EFFECT: Final = Effect(
    seq=1,
    n=0,
    kind=EffectKind.STATUS,
    pod_uid="",
    state=EffectState.CLAIMED,
    owner="b",
    attempts=1,
    outcome=None,
    outcome_published=True,
    late_outcome=None,
)


@dataclass
class Story:
    """Objects are written in short; a later step names what changes of them."""

    steps: Steps = field(default_factory=Steps)
    _known: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    """(Kind, name) → the object in short, as it was last told."""
    _version: int = FIRST_VERSION
    _at: float = 0

    def differences(self, steps: Sequence[Raw]) -> Iterator[str]:
        for step in steps:
            later_ms = round((step["at"] - self._at) * 1000)
            self._at = step["at"]
            facts = list(self._facts(step))
            self.steps.tick(*facts, later_ms=later_ms, cycles=step.get("cycles", CYCLES_MAX))
            for found in self._compare(step):
                yield f"at {step['at']}: {found}"

    # -- what is told --------------------------------------------------------------------------

    def _facts(self, step: Raw) -> Iterator[Event]:
        for key, kind in KINDS.items():
            for name, changes in step.get(key, {}).items():
                yield self._upserted(kind, name, changes)
        for name in step.get("delete", ()):
            yield self._deleted(name)
        for name, said in step.get("answers", {}).items():
            yield self._answer(name, said)

    def _upserted(self, kind: str, name: str, changes: Raw) -> Event:
        self._version += 1
        known = self._known.setdefault((kind, name), {"uid": name})
        known.pop("version", None)
        known.update(changes)
        metadata = {
            "name": name,
            "uid": known["uid"],
            "resourceVersion": known.get("version", str(self._version)),
            "labels": known.get("labels", {}),
            "annotations": known.get("annotations", {}),
        }
        raw = {"kind": kind, "metadata": metadata}
        if kind == "Pod":
            metadata["namespace"] = known.get("namespace", "default")
            if known.get("deleted"):
                metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            raw |= _pod(known)
        elif kind == "Node":
            raw |= _node(known)
        return upserted(reduce_object(KIND_BY_NAME[kind], raw))

    def _deleted(self, name: str) -> ObjectDeleted:
        kind = "Node" if ("Node", name) in self._known else "Pod"
        known = self._known.pop((kind, name))
        namespace = known.get("namespace", "default") if kind == "Pod" else ""
        return ObjectDeleted(kind=kind, namespace=namespace, name=name, uid=known["uid"])

    def _answer(self, name: str, said: str) -> Event:
        """Return the outcome of the last bind that was asked for."""
        assumed = [
            (seq, decision)
            for seq, decision in enumerate(self.steps.decisions, start=1)
            if isinstance(decision, PodAssumed) and decision.pod.name == name
        ]
        seq, decision = assumed[-1]
        uid = decision.pod.uid
        match said:
            case "bound":
                return BindSucceeded(seq=seq, pod_uid=uid, node=decision.node)
            case "unknown":
                return BindUnknown(seq=seq, pod_uid=uid, message="no answer")
            case _:
                return BindFailed(seq=seq, pod_uid=uid, reason="Rejected", message=said)

    # -- what is compared ----------------------------------------------------------------------

    def _compare(self, step: Raw) -> Iterator[str]:
        state = self.steps.state
        found: dict[str, Callable[[str], Any]] = {
            "want": self._place,
            "attempts": self._attempts,
            "rejected": self._rejected,
            "told": self._told,
            "nominated": lambda name: state.nominator.node_of(self._uid(name)),
            "used": lambda name: used(state).get(name, (0,))[0],
            "pods_on": self._pods_on,
            "fits": lambda name: self._last(name, PodAssumed).feasible_count,
            "labels": lambda name: state.store.objects("Pod")[self._uid(name)].labels,
        }
        for key, look in found.items():
            for name, want in step.get(key, {}).items():
                got = look(name)
                is_part = key == "want" and got.split()[0] == want
                if got != want and not is_part:
                    yield f"{key} of {name} is {got!r}, not {want!r}"
        yield from self._compare_rest(step)

    def _compare_rest(self, step: Raw) -> Iterator[str]:
        for name, want in step.get("queued", {}).items():
            queued = self.steps.state.queue.get(self._uid(name))
            got = {key: getattr(queued, key) for key in want}
            if got != want:
                yield f"{name} is queued with {got}, not {want}"
        if "snapshot" in step:
            self.steps.state.cache.update_snapshot()
            columns = self.steps.state.cache.columns
            names = [name for name in columns.names if columns.row_of(name) is not None]
            if names != step["snapshot"]:
                yield f"the nodes are {names}, not {step['snapshot']}"
        if "closed" in step:
            closings = [one for one in self.steps.decisions if isinstance(one, PodUnreserved)]
            closed = {one.pod.name: one.reason for one in closings}
            if closed != step["closed"] or len(closings) != len(closed):
                yield f"closed are {closings}, not {step['closed']}"

    def _uid(self, name: str) -> str:
        """Return the uid of the pod's last version; a name that is none is a uid."""
        return str(self._known.get(("Pod", name), {"uid": name})["uid"])

    def _place(self, name: str) -> str:
        state, uid = self.steps.state, self._uid(name)
        node = state.cache.node_of(uid)
        if node is not None:
            return f"{'assumed' if state.cache.is_assumed(uid) else 'bound'} {node}"
        queued = state.queue.get(uid)
        if queued is None or queued.place is None:
            return "none"
        if queued.place is Place.UNSCHEDULABLE and queued.gating_plugin:
            return "gated"
        return queued.place.value

    def _attempts(self, name: str) -> int:
        kinds = (PodAssumed, PodUnschedulable)
        tried = [one for one in self.steps.decisions if isinstance(one, kinds)]
        return sum(one.pod.name == name for one in tried)

    def _rejected(self, name: str) -> dict[str, list[str]]:
        groups = self._last(name, PodUnschedulable).rejected
        return {
            node: [group.plugin, CODE_NAMES[Code(group.code)], *group.reasons]
            for group in groups
            for node in group.examples
        }

    def _told(self, name: str) -> list[str]:
        """Return reason and message of the pod's condition."""
        last = self._last(name, PodUnschedulable, PodUnreserved)
        if isinstance(last, PodUnreserved):
            told = told_unreserved(_EFFECT, last, instance="b")
        else:
            text = failure_message(last)
            told = told_unschedulable(_EFFECT, last, repeat=False, message=text, instance="b")
        [condition] = told.patch["conditions"]
        return [condition["reason"], condition["message"]]

    def _pods_on(self, name: str) -> list[str]:
        columns = self.steps.state.cache.columns
        row = columns.find(name)
        return [] if row is None else [pod.name for pod in columns.pods(row)]

    def _last(self, name: str, *kinds: type) -> Any:
        found = [one for one in self.steps.decisions if isinstance(one, kinds)]
        return next(one for one in reversed(found) if one.pod.name == name)  # type: ignore[union-attr]


def _pod(short: Raw) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c"}
    if "cpu" in short:
        container["resources"] = {"requests": {"cpu": short["cpu"]}}
    spec = {
        "schedulerName": PROFILE,
        "containers": [container],
        "priority": short.get("priority", 0),
        "schedulingGates": [{"name": gate} for gate in short.get("gates", ())],
        "nodeName": short.get("node", ""),
        **short.get("spec", {}),
    }
    if "claim" in short:
        spec["volumes"] = [{"name": "d", "persistentVolumeClaim": {"claimName": short["claim"]}}]
    status = {
        "phase": short.get("phase", "Running" if short.get("node") else "Pending"),
        "conditions": short.get("conditions", []),
        "nominatedNodeName": short.get("nominated", ""),
    }
    return {"spec": spec, "status": status}


def _node(short: Raw) -> dict[str, Any]:
    room = {**ROOM, **{key: short[key] for key in ("cpu", "memory") if key in short}}
    status = {"allocatable": room, "conditions": short.get("conditions", [])}
    return {"spec": {"taints": short.get("taints", [])}, "status": status}
