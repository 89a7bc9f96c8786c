"""What is asked of an API server, without the wire: in process and over HTTP it is the same."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, assert_never

from decklog.ports.cluster import (
    BindPod,
    Call,
    CreateEvent,
    DeletePod,
    GetObject,
    GetPod,
    PatchObject,
    PatchPodStatus,
)


class Verb(StrEnum):
    GET = "get"
    LIST = "list"
    WATCH = "watch"
    CREATE = "create"
    UPDATE = "update"
    PATCH = "patch"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """What is asked of the API server, without the wire."""

    verb: Verb
    kind: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    body: Mapping[str, Any] = field(default_factory=dict)
    merge_lists: bool = False
    """For a patch: strategic merge rather than JSON merge."""
    dry_run: bool = False


def to_request(call: Call) -> ApiRequest:
    """Say what a call asks of the API server."""
    match call:
        case BindPod():
            return _of_pod(Verb.CREATE, call, "binding", _binding(call))
        case GetPod():
            return _of_pod(Verb.GET, call)
        case PatchPodStatus():
            return _of_pod(Verb.PATCH, call, "status", _status_patch(call))
        case DeletePod():
            return _of_pod(Verb.DELETE, call, "", {"preconditions": {"uid": call.uid}})
        case _:
            return _of_object(call)


def _of_object(call: CreateEvent | GetObject | PatchObject) -> ApiRequest:
    match call:
        case CreateEvent():
            return ApiRequest(
                verb=Verb.CREATE, kind="Event", namespace=call.namespace, body=call.event
            )
        case GetObject():
            return ApiRequest(
                verb=Verb.GET, kind=call.kind.name, namespace=call.namespace, name=call.name
            )
        case PatchObject():
            return ApiRequest(
                verb=Verb.PATCH,
                kind=call.kind.name,
                namespace=call.namespace,
                name=call.name,
                body=call.patch,
            )
        case _ as unreachable:
            assert_never(unreachable)


_NOTHING: Mapping[str, Any] = {}


def _of_pod(
    verb: Verb,
    call: BindPod | GetPod | PatchPodStatus | DeletePod,
    subresource: str = "",
    body: Mapping[str, Any] = _NOTHING,
) -> ApiRequest:
    return ApiRequest(
        verb=verb,
        kind="Pod",
        namespace=call.namespace,
        name=call.name,
        subresource=subresource,
        body=body,
        merge_lists=subresource == "status",
    )


def _binding(call: BindPod) -> Mapping[str, Any]:
    metadata: dict[str, Any] = {"name": call.name, "uid": call.uid}
    if call.resource_version:
        metadata["resourceVersion"] = call.resource_version
    if call.annotations:
        metadata["annotations"] = dict(call.annotations)
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"kind": "Node", "name": call.node},
    }


def _status_patch(call: PatchPodStatus) -> Mapping[str, Any]:
    metadata = {"uid": call.uid}
    if call.resource_version:
        metadata["resourceVersion"] = call.resource_version
    return {"metadata": metadata, "status": call.patch}
