"""Sequences of operations on the cache, and what kube-scheduler's cache and snapshot then held.

The file in the repository is a sample of the recorded cases; `--golden DIR` runs all of them.
"""

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from decklog.core.cache import Cache
from decklog.core.errors import IllegalTransition
from decklog.objects.kinds import KIND_BY_NAME
from decklog.objects.reduce import reduce_object

Raw = Mapping[str, Any]
CASES_MIN: Final = 100


def test_the_cache_holds_what_kube_schedulers_held(golden_dir: Path) -> None:
    count = 0
    wrong: list[str] = []
    with gzip.open(golden_dir / "units" / "cache.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            wrong.extend(f"{case['id']} {found}" for found in _differences(case["ops"]))
            count += 1
    assert count >= CASES_MIN
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:20])


def test_a_wrong_answer_is_found() -> None:
    op = {"op": "snapshot", "nodes": [], "error": "something", "withAffinity": []}
    state = {"assumed": [], "ghosts": ["n1"], "nodeCount": 0, "podCount": 0}
    empty = {"withRequiredAntiAffinity": [], "pvcUsed": {"default/a": True}}
    found = list(_differences([op | state | empty]))
    assert found == [
        "op 0 snapshot: error is None, not 'something'",
        "op 0 snapshot: ghosts is [], not ['n1']",
        "op 0 snapshot: pvcUsed is {'default/a': False}, not {'default/a': True}",
    ]


def _differences(ops: list[Raw]) -> list[str]:
    cache = Cache()
    wrong: list[str] = []
    for number, op in enumerate(ops):
        got = {"error": _apply(cache, op)} | _state(cache)
        if op["op"] == "snapshot":
            got |= _snapshot(cache, op["pvcUsed"])
        for key, value in got.items():
            want = op.get(key)
            if value != want:
                wrong.append(f"op {number} {op['op']}: {key} is {value!r}, not {want!r}")
    return wrong


def _apply(cache: Cache, op: Raw) -> str | None:
    objects = {
        key: reduce_object(KIND_BY_NAME["Pod" if "containers" in raw["spec"] else "Node"], raw)
        for key, raw in op.items()
        if key in ("pod", "node", "old")
    }
    calls: Mapping[str, Callable[..., str | None]] = {
        "addNode": cache.add_node,
        "updateNode": cache.update_node,
        "removeNode": cache.remove_node,
        "assumePod": cache.assume_pod,
        "addPod": cache.add_pod,
        "updatePod": cache.update_pod,
        "removePod": cache.remove_pod,
        "forgetPod": cache.forget_pod,
        "snapshot": cache.update_snapshot,
    }
    arguments = [objects[key] for key in ("old", "node", "pod") if key in objects]
    try:
        return calls[op["op"]](*arguments)
    except IllegalTransition as refusal:
        return str(refusal)


def _state(cache: Cache) -> dict[str, Any]:
    columns = cache.columns
    named = [(row, name) for row, name in enumerate(columns.names) if name]
    return {
        "assumed": sorted(cache.assumed),
        "ghosts": sorted(name for row, name in named if not columns.present[row]),
        "nodeCount": cache.node_count,
        "podCount": cache.pod_count,
    }


def _snapshot(cache: Cache, claims: Mapping[str, bool]) -> dict[str, Any]:
    columns = cache.columns
    order = columns.order().tolist()
    some, anti = columns.affinity_rows, columns.required_anti_affinity_rows
    return {
        "nodes": [_node(cache, row) for row in order],
        "withAffinity": [columns.names[row] for row in order if row in some],
        "withRequiredAntiAffinity": [columns.names[row] for row in order if row in anti],
        "pvcUsed": {key: key in columns.pvc_in_use for key in claims},
    }


def _node(cache: Cache, row: int) -> dict[str, Any]:
    columns = cache.columns
    images = {
        name: [int(sizes[row]), int(counts[row])]
        for image in columns.node(row).images
        for name in image.names
        if (state := columns.image_state(name)) is not None
        for sizes, counts in [state]
    }
    found: dict[str, Any] = {
        "name": columns.names[row],
        "pods": [pod.uid for pod in columns.pods(row)],
        "milliCPU": int(columns.requested[0, row]),
        "nonZeroMemory": int(columns.non_zero_requested[1, row]),
        "allocatableMilliCPU": int(columns.allocatable[0, row]),
        "usedPorts": sorted("/".join(map(str, port)) for port in columns.used_ports(row)),
        "images": images,
    }
    return found
