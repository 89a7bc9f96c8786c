"""What the watcher has put into the events log: the truth that a list is compared with."""

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NamedTuple

from decklog.core.errors import EntryTooLarge
from decklog.events.codec import event_key, upserted
from decklog.events.digests import KindDigest, object_digest
from decklog.events.facts import Event, ObjectDeleted
from decklog.objects.meta import KubeObject
from decklog.ports.entries import event_value
from decklog.ports.log import ENTRY_BYTES_MAX


def _content(value: bytes, obj: KubeObject) -> bytes:
    """Return a digest of all that scheduling reads of the object: of its bytes but the version."""
    version = f'"resource_version":"{obj.resource_version}"'.encode()
    return blake2b(value.replace(version, b"", 1), digest_size=16).digest()


VALUE_BYTES_MAX: Final = ENTRY_BYTES_MAX - 2_000
"""Leaves room for the key and the attributes of an entry."""


class Told(NamedTuple):
    """An event to be published, and its bytes where they are known already."""

    fact: Event
    value: bytes | None = None


@dataclass(frozen=True, slots=True)
class _Known:
    uid: str
    resource_version: str
    content: bytes


@dataclass(slots=True)
class PublishedKind:
    """The published objects of one kind, by `<kind>/<namespace>/<name>`."""

    kind: str
    objects: dict[str, _Known] = field(default_factory=dict)
    digest: KindDigest = field(default_factory=KindDigest)

    def upsert(self, obj: KubeObject, *, always: bool = False) -> Told | None:
        """Return the event that brings the log up to this object; None if it need not be told.

        Raises:
            EntryTooLarge: no log takes it. What was published of it before stays as it is.
        """
        fact = upserted(obj)
        key = event_key(fact)
        known = self.objects.get(key)
        value = event_value(fact)
        if len(value) > VALUE_BYTES_MAX:
            raise EntryTooLarge(key, size_bytes=len(value), size_bytes_max=VALUE_BYTES_MAX)
        content = _content(value, obj)
        if not always and known is not None and known.uid == obj.uid:
            older = _older(obj.resource_version, known.resource_version)
            if older or known.content == content:
                return None
        self.objects[key] = _Known(obj.uid, obj.resource_version, content)
        self.digest.put(key, object_digest(key, value))
        return Told(fact, value)

    def delete(self, *, namespace: str, name: str, uid: str, version: str) -> Told | None:
        """Return the event of a delete that the watch reported; None if the log knows no such."""
        known = self.objects.get(self._key(namespace, name))
        if known is None or known.uid != uid:
            return None
        return self._gone(namespace, name, version, unknown=False)

    def missing(self, listed: set[str]) -> list[Told]:
        """Return the deletes of what the log knows and the list lacks."""
        gone = [key for key in self.objects if key not in listed]
        return [self._gone(*_namespace_and_name(key), "", unknown=True) for key in gone]

    def forget(self) -> None:
        """Begin anew, as a full list does."""
        self.objects.clear()
        self.digest = KindDigest()

    def key_of(self, obj: KubeObject) -> str:
        return self._key(obj.namespace, obj.name)

    def _key(self, namespace: str, name: str) -> str:
        return f"{self.kind}/{namespace}/{name}"

    def _gone(self, namespace: str, name: str, version: str, *, unknown: bool) -> Told:
        key = self._key(namespace, name)
        known = self.objects.pop(key)
        self.digest.remove(key)
        return Told(
            ObjectDeleted(
                kind=self.kind,
                namespace=namespace,
                name=name,
                uid=known.uid,
                resource_version=version,
                final_state_unknown=unknown,
            )
        )


def _namespace_and_name(key: str) -> tuple[str, str]:
    _, namespace, name = key.split("/", 2)
    return namespace, name


def _older(version: str, known: str) -> bool:
    return version.isdigit() and known.isdigit() and int(version) < int(known)
