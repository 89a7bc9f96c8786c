"""Count and digest of what a log says exists: how every reader checks a resync.

The digest of a kind is the sum modulo 2^128 of its objects' digests, so it does not depend on
order and costs one addition for each event. Watcher and readers compute it from the same bytes.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Final

from decklog.events.facts import Event, ObjectDeleted, ResyncFinished, ResyncStarted

_MODULUS: Final = 1 << 128


def object_digest(key: str, value: bytes) -> int:
    """Return the digest of one object: of its key and the bytes of its upserted event."""
    digest = hashlib.blake2b(value, digest_size=16, person=b"decklog.object")
    digest.update(b"|" + key.encode("utf-8", "surrogatepass"))
    return int.from_bytes(digest.digest(), "big")


@dataclass(slots=True)
class KindDigest:
    total: int = 0
    objects: dict[str, int] = field(default_factory=dict)
    """Key → digest."""
    named: set[str] | None = None

    def put(self, key: str, digest: int) -> None:
        self.total = (self.total - self.objects.get(key, 0) + digest) % _MODULUS
        self.objects[key] = digest
        if self.named is not None:
            self.named.add(key)

    def remove(self, key: str) -> None:
        self.total = (self.total - self.objects.pop(key, 0)) % _MODULUS

    def finish(self) -> None:
        """End a full resync: what it did not name is gone."""
        if self.named is None:
            return
        for key in [key for key in self.objects if key not in self.named]:
            self.remove(key)
        self.named = None

    @property
    def text(self) -> str:
        return f"{self.total:032x}"


@dataclass(slots=True)
class Digests:
    """The digests of all kinds, as far as the log was read."""

    kinds: dict[str, KindDigest] = field(default_factory=dict)

    def of(self, kind: str) -> KindDigest:
        found = self.kinds.get(kind)
        if found is None:
            found = self.kinds[kind] = KindDigest()
        return found

    def apply(self, fact: Event, key: str, value: bytes) -> str | None:
        """Take in an event with its key and bytes; return what a finished resync shows wrong."""
        if hasattr(fact, "object"):
            self.of(type(fact.object).__name__).put(key, object_digest(key, value))
        elif isinstance(fact, ObjectDeleted):
            self.of(fact.kind).remove(key)
        elif isinstance(fact, ResyncStarted):
            if fact.full:
                self.of(fact.kind).named = set()
        elif isinstance(fact, ResyncFinished):
            return self._check(fact)
        return None

    def _check(self, fact: ResyncFinished) -> str | None:
        kind = self.of(fact.kind)
        kind.finish()
        if len(kind.objects) != fact.count:
            return f"the log holds {len(kind.objects)} objects, the list {fact.count}"
        if kind.text != fact.digest:
            return f"digest {kind.text}, of the list {fact.digest}"
        return None

    @property
    def state(self) -> str:
        """Return one digest for all kinds."""
        return f"{sum(kind.total for kind in self.kinds.values()) % _MODULUS:032x}"
