"""What every object has: identity, version, labels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NewType, Protocol

PodUid = NewType("PodUid", str)
NodeName = NewType("NodeName", str)
ClusterName = NewType("ClusterName", str)

NO_LABELS: Final[dict[str, str]] = {}
"""Shared by objects without labels or annotations; nobody writes into an object's dicts."""

STAMP: Final = "decklog.dev/decision"
"""Annotation that the binder stamps on a pod: `<seq>.<first 8 hex digits of the hash>`."""


class KubeObject(Protocol):
    """What the watcher, the codec and the simulated cluster need of an object of any kind."""

    @property
    def uid(self) -> str: ...
    @property
    def namespace(self) -> str:
        """Empty for objects of the cluster."""
        ...

    @property
    def name(self) -> str: ...
    @property
    def resource_version(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerReference:
    """The controller that owns the object; other owners are not kept."""

    api_version: str
    kind: str
    name: str
    uid: str
