"""What the API server says when it has done something, or refuses to."""

from typing import Any

from decklog.adapters.cluster.resources import Resource
from decklog.core.errors import ClusterUnavailable, DecklogError
from decklog.objects.kinds import Kind
from decklog.ports.cluster import Answer, KindNotServed, RawObject, WatchExpired

Raw = dict[str, Any]


class Denied(Exception):
    """The request is refused with this answer; caught where requests are answered."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        super().__init__(answer.message)


def success(code: int, body: RawObject | None = None) -> Answer:
    """Answer with an object, or with the Status of a success."""
    if body is None:
        body = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "code": code,
        }
    return Answer(code=code, body=body)


def failure(
    code: int,
    reason: str,
    message: str,
    *,
    details: Raw | None = None,
    retry_after_seconds: float | None = None,
) -> Answer:
    body: Raw = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    body["message"] = message
    if reason:
        body["reason"] = reason
    if details is not None:
        body["details"] = details
    body["code"] = code
    return Answer(
        code=code,
        reason=reason,
        message=message,
        retry_after_seconds=retry_after_seconds,
        body=body,
    )


def not_found(resource: Resource, name: str) -> Denied:
    return Denied(
        failure(
            404,
            "NotFound",
            f'{resource.qualified_name} "{name}" not found',
            details=_details(resource, name),
        )
    )


def already_exists(resource: Resource, name: str) -> Denied:
    return Denied(
        failure(
            409,
            "AlreadyExists",
            f'{resource.qualified_name} "{name}" already exists',
            details=_details(resource, name),
        )
    )


def conflict(resource: Resource, name: str, why: str, *, subresource: str = "") -> Denied:
    kind = f"{resource.plural}/{subresource}" if subresource else resource.plural
    qualified = (
        f"{resource.qualified_name}/{subresource}" if subresource else (resource.qualified_name)
    )
    details: Raw = {"name": name, "kind": kind}
    if resource.group:
        details["group"] = resource.group
    message = f'Operation cannot be fulfilled on {qualified} "{name}": {why}'
    return Denied(failure(409, "Conflict", message, details=details))


def precondition_failed(resource: Resource, metadata: Raw, what: str, want: str) -> Denied:
    """Answer as the storage does when a uid or resourceVersion is not the object's."""
    name, namespace = metadata["name"], metadata.get("namespace", "")
    field = "uid" if what == "UID" else "resourceVersion"
    key = "/".join(part for part in ("/registry", resource.plural, namespace, name) if part)
    why = (
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: {what} in precondition: {want}, "
        f"{what} in object meta: {metadata.get(field, '')}"
    )
    return conflict(resource, name, why)


def invalid(resource: Resource, name: str, *causes: str) -> Denied:
    """Answer that fields of an object are not valid; each cause is `field: what is wrong`."""
    text = causes[0] if len(causes) == 1 else f"[{', '.join(causes)}]"
    details: Raw = {
        "name": name,
        "group": resource.group,
        "kind": resource.kind,
        "causes": [
            {"reason": "FieldValueInvalid", "message": what, "field": where}
            for where, _, what in (cause.partition(": ") for cause in causes)
        ],
    }
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    return Denied(failure(422, "Invalid", f'{kind} "{name}" is invalid: {text}', details=details))


def bad_request(message: str) -> Denied:
    return Denied(failure(400, "BadRequest", message))


def internal_error(message: str) -> Denied:
    """Answer 500 without a reason: a plain error inside the server."""
    return Denied(failure(500, "", message))


def reader_error(kind: Kind, answer: Answer) -> DecklogError:
    """Say what an answer to a list or a watch that is not a success means to the watcher."""
    told = f"{answer.code} {answer.reason} {answer.message}".strip()
    msg = f"cannot read {kind.plural}: {told}" if answer.code else f"cannot read {kind.plural}"
    if answer.code in (403, 404):
        return KindNotServed(msg)
    if answer.code == 410:
        return WatchExpired(msg)
    return ClusterUnavailable(msg)


def _details(resource: Resource, name: str) -> Raw:
    details: Raw = {"name": name, "kind": resource.plural}
    if resource.group:
        details["group"] = resource.group
    return details
