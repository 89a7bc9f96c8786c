"""What the API server does to pods: defaults, binding, status, the end.

Each function takes the pod as stored and returns a new state of it, or denies. The new state's
metadata is always a fresh dict: the store writes the resourceVersion into it.
"""

from collections.abc import Mapping
from typing import Any, Final

from decklog.adapters.cluster.answers import (
    bad_request,
    conflict,
    internal_error,
    invalid,
    precondition_failed,
)
from decklog.adapters.cluster.merge import strategic_merge
from decklog.adapters.cluster.resources import RESOURCES
from decklog.adapters.cluster.validation import check_annotations

Raw = dict[str, Any]

PODS: Final = RESOURCES["Pod"]
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
GRACE_SECONDS_DEFAULT: Final = 30
GATED: Final = "Scheduling is blocked due to non-empty scheduling gates"


def admitted(spec: Mapping[str, Any]) -> Raw:
    """Return the spec with the defaults that scheduling depends on."""
    full = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": GRACE_SECONDS_DEFAULT,
        "schedulerName": "default-scheduler",
        **spec,
    }
    host_network = bool(spec.get("hostNetwork"))
    for part in ("containers", "initContainers"):
        if spec.get(part):
            full[part] = [_admitted_container(one, host_network) for one in spec[part]]
    return full


def initial_status(spec: Mapping[str, Any], now: str) -> Raw:
    status: Raw = {"phase": "Pending", "qosClass": _quality(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            condition("PodScheduled", "False", now, reason="SchedulingGated", message=GATED)
        ]
    return status


def condition(kind: str, status: str, now: str, *, reason: str = "", message: str = "") -> Raw:
    made: Raw = {
        "type": kind,
        "status": status,
        "lastProbeTime": None,
        "lastTransitionTime": now,
    }
    if reason:
        made["reason"] = reason
    if message:
        made["message"] = message
    return made


def check_binding(name: str, binding: Mapping[str, Any]) -> None:
    """Refuse a Binding that can't be meant, before looking at the pod."""
    if binding.get("metadata", {}).get("name", name) != name:
        msg = "name in URL does not match name in Binding object"
        raise bad_request(msg)
    target = binding.get("target") or {}
    if target.get("kind", "Node") not in ("", "Node"):
        msg = f'target.kind: Unsupported value: "{target["kind"]}"'
        raise internal_error(msg)
    if not target.get("name"):
        msg = "target.name: Required value"
        raise internal_error(msg)


def bound(
    pod: Mapping[str, Any], binding: Mapping[str, Any], node: Mapping[str, Any] | None, now: str
) -> Raw:
    """Return the pod on its node. Annotations and labels are merged in, unchecked."""
    metadata, spec = pod["metadata"], pod["spec"]
    given = binding.get("metadata") or {}
    check_preconditions(metadata, given)
    _check_assignable(metadata, spec)
    after = dict(metadata)
    if given.get("annotations"):
        after["annotations"] = {**metadata.get("annotations", {}), **given["annotations"]}
    labels = {**(given.get("labels") or {}), **_topology_labels(node)}
    if labels:
        after["labels"] = {**metadata.get("labels", {}), **labels}
    return {
        **pod,
        "metadata": after,
        "spec": {**spec, "nodeName": binding["target"]["name"]},
        "status": _scheduled_status(pod.get("status", {}), now),
    }


def check_preconditions(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Deny unless the object has the uid and the resourceVersion asked for, if any are."""
    uid, version = wanted.get("uid"), wanted.get("resourceVersion")
    if uid and uid != metadata["uid"]:
        raise precondition_failed(PODS, dict(metadata), "UID", uid)
    if version and version != metadata["resourceVersion"]:
        raise precondition_failed(PODS, dict(metadata), "ResourceVersion", version)


def patched_status(pod: Mapping[str, Any], patch: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the pod after a strategic merge of its status; the same pod if nothing changed."""
    metadata = pod["metadata"]
    given = patch.get("metadata") or {}
    name = metadata["name"]
    if given.get("uid", metadata["uid"]) != metadata["uid"]:
        raise invalid(
            PODS, name, f'metadata.uid: Invalid value: "{given["uid"]}": field is immutable'
        )
    if given.get("resourceVersion", metadata["resourceVersion"]) != metadata["resourceVersion"]:
        raise conflict(PODS, name, MODIFIED)
    before = pod.get("status", {})
    status = _normal(strategic_merge(before, patch.get("status") or {}))
    if status.get("nominatedNodeName") and pod["spec"].get("nodeName"):
        raise invalid(
            PODS,
            name,
            "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound "
            "to a node",
        )
    joined = strategic_merge(
        metadata, {part: given[part] for part in ("annotations", "labels") if part in given}
    )
    if status == before and joined is metadata:
        return pod
    check_annotations(PODS, joined)
    return {**pod, "metadata": dict(joined), "status": status}


MODIFIED: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def grace_seconds(pod: Mapping[str, Any], asked: int | None) -> int:
    """Return how long a deleted pod stays; one without a running container goes at once."""
    if not pod["spec"].get("nodeName") or pod["status"].get("phase") in ("Succeeded", "Failed"):
        return 0
    if asked is not None:
        return asked
    given: int = pod["spec"].get("terminationGracePeriodSeconds", GRACE_SECONDS_DEFAULT)
    return given


def deleting(pod: Mapping[str, Any], *, at: str, grace: int) -> Raw:
    metadata = {
        **pod["metadata"],
        "deletionTimestamp": at,
        "deletionGracePeriodSeconds": grace,
    }
    return {**pod, "metadata": metadata}


def ended_pod(pod: Mapping[str, Any]) -> Raw:
    """Return a deleted pod as its kubelet confirms it: no grace is left."""
    return {**pod, "metadata": {**pod["metadata"], "deletionGracePeriodSeconds": 0}}


def _admitted_container(container: Mapping[str, Any], host_network: bool) -> Mapping[str, Any]:
    """Limits stand in for requests that are missing; ports of the host's network are the host's."""
    resources = container.get("resources") or {}
    limits = resources.get("limits")
    if limits:
        requests = {**limits, **(resources.get("requests") or {})}
        container = {**container, "resources": {**resources, "requests": requests}}
    if container.get("ports"):
        container = {
            **container,
            "ports": [_admitted_port(port, host_network) for port in container["ports"]],
        }
    return container


def _quality(spec: Mapping[str, Any]) -> str:
    """Return the class of service that requests and limits of CPU and memory make."""
    containers = [*spec.get("containers", ()), *spec.get("initContainers", ())]
    resources = [one.get("resources") or {} for one in containers]
    if not any(one.get("requests") or one.get("limits") for one in resources):
        return "BestEffort"
    if all(_is_guaranteed(one.get("requests") or {}, one.get("limits") or {}) for one in resources):
        return "Guaranteed"
    return "Burstable"


def _is_guaranteed(requests: Mapping[str, str], limits: Mapping[str, str]) -> bool:
    return all(
        limits.get(name) and limits[name] == requests.get(name) for name in ("cpu", "memory")
    )


def _admitted_port(port: Mapping[str, Any], host_network: bool) -> Raw:
    full = {"protocol": "TCP", **port}
    if host_network:
        full.setdefault("hostPort", port.get("containerPort"))
    return full


def _check_assignable(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
    name = metadata["name"]
    why = ""
    if metadata.get("deletionTimestamp"):
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        raise conflict(PODS, name, why, subresource="binding")


def _topology_labels(node: Mapping[str, Any] | None) -> dict[str, str]:
    if node is None:
        return {}
    labels = node["metadata"].get("labels") or {}
    return {key: labels[key] for key in (ZONE, REGION) if key in labels}


def _scheduled_status(status: Mapping[str, Any], now: str) -> Raw:
    after = {name: value for name, value in status.items() if name != "nominatedNodeName"}
    others = [one for one in status.get("conditions", ()) if one["type"] != "PodScheduled"]
    after["conditions"] = [*others, condition("PodScheduled", "True", now)]
    return after


def _normal(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the status as the server writes it: no empty nomination, a probe time in each."""
    if status.get("nominatedNodeName") == "":
        status = {name: value for name, value in status.items() if name != "nominatedNodeName"}
    conditions = status.get("conditions")
    if conditions and any("lastProbeTime" not in one for one in conditions):
        full = [{"lastProbeTime": None, **one} for one in conditions]
        status = {**status, "conditions": full}
    return status
