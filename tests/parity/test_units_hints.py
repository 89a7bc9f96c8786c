"""Queueing hints, what plugins register for, and what an update amounts to.

The file in the repository is a sample of the recorded cases; `--golden DIR` runs all of them.
Events of resource claims and device classes are counted, and not compared: decklog does not watch
these kinds.
"""

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from decklog.core.framework.events import (
    ACTIONS,
    ASSIGNED_POD,
    POD,
    UNSCHEDULABLE_POD,
    Happening,
    Registration,
    node_update_events,
    pod_update_events,
)
from decklog.core.plugins.registrations import DEFAULTS, registrations_of
from decklog.objects.kinds import KIND_BY_NAME
from decklog.objects.reduce import reduce_object

Raw = Mapping[str, Any]
SHOWN_MAX: Final = 10
CASES_MIN: Final = 300
NOT_WATCHED: Final = frozenset({"ResourceClaim", "DeviceClass", "ResourceSlice"})


@dataclass(frozen=True)
class Named:
    name: str


REGISTERED: Final = registrations_of({"p": [Named(name) for name in DEFAULTS]})["p"]


def test_events_and_hints_are_kube_schedulers(golden_dir: Path) -> None:
    count, skipped = 0, 0
    wrong: list[str] = []
    with gzip.open(golden_dir / "units" / "hints.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            if case["kind"] == "hint" and _kind(case["event"]["resource"]) in NOT_WATCHED:
                skipped += 1
                continue
            wrong.extend(COMPARE[case["kind"]](case))
            count += 1
    print(f"hints: {count} of {count + skipped} cases compared")  # noqa: T201 - the count is the point
    assert count >= CASES_MIN
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:SHOWN_MAX])


def test_a_wrong_answer_is_found() -> None:
    case = {
        "id": "made-up",
        "event": {"resource": "Node", "action": "Add"},
        "pod": {"metadata": {"name": "w", "namespace": "default"}, "spec": {}},
        "new": {"metadata": {"name": "n"}},
        "hints": {"NodeName": "QueueSkip"},
    }
    assert "made-up NodeName: Queue, not QueueSkip" in list(_hints(case))


def _kind(resource: str) -> str:
    if resource in (ASSIGNED_POD, UNSCHEDULABLE_POD):
        return POD
    return resource.rpartition("/")[2]


def _reduced(case: Raw, key: str, kind: str) -> Any:
    raw = case.get(key)
    if raw is None:
        return None
    keys = frozenset(raw.get("metadata", {}).get("annotations") or ())
    return reduce_object(KIND_BY_NAME[kind], raw, annotation_keys=keys)


def _hints(case: Raw) -> Iterator[str]:
    event = case["event"]
    kind = _kind(event["resource"])
    pod, old, new = (
        _reduced(case, "pod", POD),
        _reduced(case, "old", kind),
        _reduced(case, "new", kind),
    )
    happening = Happening(event["resource"], ACTIONS[event["action"]])
    got: dict[str, str] = {}
    for one in REGISTERED:
        if one.matches(happening):
            answer = "Queue" if one.helps(pod, old, new) else "QueueSkip"
            got[one.plugin] = "Queue" if "Queue" in (answer, got.get(one.plugin)) else answer
    want = {
        plugin: "Queue" if said.startswith("error") else said
        for plugin, said in case["hints"].items()
    }
    for plugin in sorted(set(got) | set(want)):
        if got.get(plugin) != want.get(plugin):
            yield f"{case['id']} {plugin}: {got.get(plugin)}, not {want.get(plugin)}"


def _update(case: Raw) -> Iterator[str]:
    if case["kind"] == "nodeUpdate":
        found = node_update_events(_reduced(case, "old", "Node"), _reduced(case, "new", "Node"))
    else:
        found = pod_update_events(_reduced(case, "old", POD), _reduced(case, "new", POD))
    got = [happening.label for happening in found]
    want = [event["label"] for event in case["events"] or ()]
    if got != want:
        yield f"{case['id']}: {got}, not {want}"


def _registered(case: Raw) -> Iterator[str]:
    got = {
        (one.resource, one.action, one.hint is not None)
        for one in REGISTERED
        if one.plugin == case["plugin"]
    }
    for event in case["events"]:
        want = (event["resource"], event["actionValue"], event["hasHint"])
        if want not in got:
            yield f"{case['plugin']}: {want} is not registered"


def _merged(case: Raw) -> Iterator[str]:
    got: dict[tuple[str, int], set[str]] = {}
    for one in REGISTERED:
        got.setdefault((one.resource, one.action), set()).add(one.plugin)
    for event in case["events"]:
        key = (event["resource"], event["actionValue"])
        if sorted(got.get(key, ())) != event["plugins"]:
            yield f"{key}: {sorted(got.get(key, ()))}, not {event['plugins']}"


def _match(case: Raw) -> Iterator[str]:
    one = Registration("p", case["resource"], case["actionValue"])
    resources = (POD, ASSIGNED_POD, UNSCHEDULABLE_POD, "Node", "*")
    incoming = {int(text.rpartition(":")[2]) for text in case["matches"]}
    for resource in resources:
        for action in sorted(incoming):
            text = f"{resource}:{action}"
            if one.matches(Happening(resource, action)) != (text in case["matches"]):
                yield f"{case['resource']}:{case['actionValue']} against {text}"


COMPARE: Final[Mapping[str, Callable[[Raw], Iterator[str]]]] = {
    "hint": _hints,
    "nodeUpdate": _update,
    "podUpdate": _update,
    "registered": _registered,
    "merged": _merged,
    "match": _match,
}
