"""The cluster: what exists, what changes, and the calls that change it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Protocol

from decklog.core.errors import DecklogError
from decklog.objects.kinds import Kind

RawObject = Mapping[str, Any]
"""An object as the API server sends it, decoded."""


class WatchExpired(DecklogError):
    """The server no longer knows the resourceVersion (410): list again."""


class KindNotServed(DecklogError):
    """The server does not serve the kind, or forbids it to us."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All objects of a kind as of one resourceVersion."""

    resource_version: str
    objects: Sequence[RawObject]


class WatchEventType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    type: WatchEventType
    object: RawObject
    resource_version: str


class Watch(Protocol):
    """Changes of one kind, from one resourceVersion on."""

    def poll(self, *, limit: int, timeout: timedelta) -> Sequence[WatchEvent]:
        """Return changes that have come, waiting up to `timeout` for the first one.

        Raises:
            WatchExpired: list again.
        """
        ...

    @property
    def ended(self) -> bool:
        """Whether the server ended the stream and everything before its end was returned.

        That is normal: go on from the last resourceVersion seen.
        """
        ...

    def close(self) -> None: ...


class ClusterReader(Protocol):
    """What the watcher needs."""

    def list(self, kind: Kind) -> Listing:
        """Return every object of the kind.

        Raises:
            ClusterUnavailable: the server did not answer.
            KindNotServed: it never will.
        """
        ...

    def watch(self, kind: Kind, *, resource_version: str) -> Watch:
        """Open a watch on what comes after the resourceVersion.

        Raises:
            ClusterUnavailable: the server did not answer.
            WatchExpired: list again.
        """
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BindPod:
    """POST pods/NAME/binding, with uid and resourceVersion as preconditions."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    """Empty: no precondition."""
    node: str
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GetPod:
    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchPodStatus:
    """PATCH pods/NAME/status by strategic merge; the uid in the patch guards a re-created pod."""

    namespace: str
    name: str
    uid: str
    patch: Mapping[str, Any]
    """The `status` part, as the API spells it."""
    resource_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePod:
    """DELETE pods/NAME with the uid as precondition and the pod's own grace period."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateEvent:
    """POST an `events.k8s.io/v1` Event; its name derives from the decision, so 409 means done."""

    namespace: str
    event: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class GetObject:
    """GET one object of a watched kind (claims and volumes that PreBind writes)."""

    kind: Kind
    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchObject:
    """PATCH one object by JSON merge patch, with its resourceVersion inside when it matters."""

    kind: Kind
    namespace: str
    name: str
    patch: Mapping[str, Any]


Call = BindPod | GetPod | PatchPodStatus | DeletePod | CreateEvent | GetObject | PatchObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back. `code` 0: nothing did, and whether the call was executed is not known."""

    code: int
    reason: str = ""
    message: str = ""
    retry_after_seconds: float | None = None
    body: RawObject | None = None

    @property
    def ok(self) -> bool:
        return 200 <= self.code < 300

    @property
    def unknown(self) -> bool:
        """Whether the call may or may not have been executed: no answer, or a 5xx."""
        return self.code == 0 or self.code >= 500


class ClusterWriter(Protocol):
    """What the binder needs. Only the binder writes to the cluster."""

    def perform(self, calls: Sequence[Call]) -> Sequence[Answer]:
        """Perform the calls, concurrently and in no order; return one answer for each, in order.

        It never raises for what a server or a network does: that is an answer.
        """
        ...

    def ready(self) -> bool:
        """Whether the server says that it is ready (`/readyz`)."""
        ...

    def close(self) -> None: ...
