"""What the API server checks of any object before it stores it."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from decklog.adapters.cluster.answers import bad_request, invalid
from decklog.adapters.cluster.resources import Resource

Raw = dict[str, Any]

ANNOTATIONS_BYTES_MAX: Final = 262_144
EVENT_NOTE_BYTES_MAX: Final = 1_024
EVENT_FIELD_LENGTH_MAX: Final = 128

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_EVENT_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")


def check_name(resource: Resource, name: str) -> None:
    if not is_name(name):
        raise invalid(
            resource,
            name,
            f'metadata.name: Invalid value: "{name}": a lowercase RFC 1123 subdomain must consist '
            "of lower case alphanumeric characters, '-' or '.', and must start and end with an "
            "alphanumeric character",
        )


@lru_cache(maxsize=16_384)
def is_name(name: str) -> bool:
    return len(name) <= 253 and _NAME.fullmatch(name) is not None


def check_annotations(resource: Resource, metadata: Mapping[str, Any]) -> None:
    """Refuse what a Binding can put into a pod unchecked; any later update finds it here."""
    annotations: Mapping[str, str] | None = metadata.get("annotations")
    if not annotations:
        return
    causes = [
        f'metadata.annotations: Invalid value: "{key}": name part must consist of alphanumeric '
        "characters, '-', '_' or '.', and must start and end with an alphanumeric character"
        for key in annotations
        if not _is_qualified(key)
    ]
    if _size_bytes(annotations) > ANNOTATIONS_BYTES_MAX:
        causes.append(
            f"metadata.annotations: Too long: may not be more than {ANNOTATIONS_BYTES_MAX} bytes"
        )
    if causes:
        raise invalid(resource, metadata["name"], *causes)


@lru_cache(maxsize=4_096)
def _is_qualified(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and not is_name(prefix):
        return False
    return len(name) <= 63 and _QUALIFIED.fullmatch(name) is not None


def _size_bytes(annotations: Mapping[str, str]) -> int:
    characters = sum(len(key) + len(value) for key, value in annotations.items())
    if characters * 4 <= ANNOTATIONS_BYTES_MAX:
        return characters  # Too few to matter, whatever their encoding.
    return sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())


def check_event(resource: Resource, event: Mapping[str, Any]) -> None:
    """Hold an Event to the rules of `events.k8s.io/v1`."""
    name = event["metadata"]["name"]
    event_time = event.get("eventTime")
    if event_time is None:
        raise invalid(resource, name, "eventTime: Required value")
    if not isinstance(event_time, str) or _EVENT_TIME.fullmatch(event_time) is None:
        msg = (
            'Event in version "v1" cannot be handled as a Event: parsing time '
            f'"{event_time}" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"'
        )
        raise bad_request(msg)
    causes = []
    for field in ("reportingController", "reportingInstance", "action", "reason"):
        value = event.get(field)
        if not value:
            causes.append(f"{field}: Required value")
        elif field != "reportingController" and len(value) > EVENT_FIELD_LENGTH_MAX:
            causes.append(f"{field}: Invalid value: can have at most 128 characters")
    if event.get("type") not in ("Normal", "Warning"):
        causes.append(f'type: Invalid value: "{event.get("type", "")}": has invalid value')
    if len(event.get("note", "").encode()) > EVENT_NOTE_BYTES_MAX:
        causes.append("note: Invalid value: can have at most 1024 characters")
    if causes:
        raise invalid(resource, name, *causes)
