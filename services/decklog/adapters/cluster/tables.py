"""What `kubectl get` prints: the server makes the table, for the kinds that people look at."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

Raw = dict[str, Any]
Cells = Callable[[Mapping[str, Any], int], list[Any]]
"""From an object and the time in milliseconds to the columns after its name."""

MEDIA: Final = "as=Table"


def to_table(kind: str, body: Mapping[str, Any], now_ms: int) -> Mapping[str, Any]:
    """Return an object or a list as a table; as it is, if its kind has none."""
    if kind not in TABLES:
        return body
    columns, cells = TABLES[kind]
    objects = body.get("items", [body])
    kept = ("resourceVersion", "continue", "remainingItemCount")
    metadata = body.get("metadata") or {}
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "columnDefinitions": [_column("Name"), *columns],
        "rows": [
            {"cells": [obj["metadata"]["name"], *cells(obj, now_ms)], "object": _partial(obj)}
            for obj in objects
        ],
    }


def age(since: str | None, now_ms: int) -> str:
    """Return the time since a moment, in the one or two units that kubectl shows."""
    if not since:
        return "<unknown>"
    then = datetime.fromisoformat(since.replace("Z", "+00:00"))
    seconds = max(int((datetime.fromtimestamp(now_ms / 1000, UTC) - then).total_seconds()), 0)
    for unit, length, shown_below in (("s", 1, 120), ("m", 60, 180), ("h", 3600, 48)):
        if seconds < shown_below * length:
            return f"{seconds // length}{unit}"
    return f"{seconds // 86_400}d"


def _column(name: str, *, wide: bool = False, kind: str = "string") -> Raw:
    return {
        "name": name,
        "type": kind,
        "format": "name" if name == "Name" else "",
        "description": "",
        "priority": int(wide),
    }


def _partial(obj: Mapping[str, Any]) -> Raw:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }


def _pod(pod: Mapping[str, Any], now_ms: int) -> list[Any]:
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    statuses = status.get("containerStatuses") or ()
    ready = sum(one.get("ready", False) for one in statuses)
    return [
        f"{ready}/{len(spec.get('containers') or ())}",
        _pod_phase(metadata, spec, status),
        0,
        age(metadata.get("creationTimestamp"), now_ms),
        "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
    ]


def _pod_phase(
    metadata: Mapping[str, Any], spec: Mapping[str, Any], status: Mapping[str, Any]
) -> str:
    if metadata.get("deletionTimestamp"):
        return "Terminating"
    if spec.get("schedulingGates"):
        return "SchedulingGated"
    phase: str = status.get("phase", "Unknown")
    return "Completed" if phase == "Succeeded" else phase


def _node(node: Mapping[str, Any], now_ms: int) -> list[Any]:
    conditions = {
        one.get("type"): one.get("status")
        for one in (node.get("status") or {}).get("conditions", ())
    }
    ready = {"True": "Ready", "False": "NotReady"}.get(conditions.get("Ready", ""), "Unknown")
    if (node.get("spec") or {}).get("unschedulable"):
        ready += ",SchedulingDisabled"
    labels = node["metadata"].get("labels") or {}
    return [
        ready,
        age(node["metadata"].get("creationTimestamp"), now_ms),
        labels.get("topology.kubernetes.io/zone", "<none>"),
        labels.get("node.kubernetes.io/instance-type", "<none>"),
    ]


def _event(event: Mapping[str, Any], now_ms: int) -> list[Any]:
    about = event.get("regarding") or {}
    return [
        age(event.get("eventTime"), now_ms),
        event.get("type", ""),
        event.get("reason", ""),
        f"{about.get('kind', '').lower()}/{about.get('name', '')}",
        event.get("note", ""),
    ]


TABLES: Final[Mapping[str, tuple[Sequence[Raw], Cells]]] = {
    "Pod": (
        (
            _column("Ready"),
            _column("Status"),
            _column("Restarts", kind="integer"),
            _column("Age"),
            _column("IP", wide=True),
            _column("Node", wide=True),
            _column("Nominated Node", wide=True),
        ),
        _pod,
    ),
    "Node": ((_column("Status"), _column("Age"), _column("Zone"), _column("Type")), _node),
    "Event": (
        (
            _column("Last Seen"),
            _column("Type"),
            _column("Reason"),
            _column("Object"),
            _column("Message"),
        ),
        _event,
    ),
}
