"""What the cluster was last said to hold: every object by kind, and the rules of hearing it twice.

The log is at-least-once and a producer's retry may repeat a stretch of it, so an older version of
an object that we know, or one that we saw deleted, is ignored. A resync speaks of the cluster anew
(it may even have been set back), so during one every version is believed, and what it did not name
is gone when it is finished.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from decklog.events.facts import ObjectDeleted, ResyncFinished, ResyncStarted
from decklog.objects.meta import KubeObject

FOR_EVER: Final = 1 << 64
"""The version of a death: a uid never comes back."""
BURIED_MAX: Final = 20_000
"""Deleted uids that are remembered per kind: more than one batch of a producer can repeat."""


@dataclass(slots=True)
class _KindStore:
    by_uid: dict[str, Any] = field(default_factory=dict)
    uid_of: dict[str, str] = field(default_factory=dict)
    """`namespace/name` → uid."""
    buried: dict[str, int] = field(default_factory=dict)
    """uid → the version as of which it was gone; only what is newer is news of it."""
    named: set[str] | None = None
    """The uids that the resync in progress has named; None: no resync is in progress."""


def object_key(obj: KubeObject) -> str:
    return f"{obj.namespace}/{obj.name}" if obj.namespace else obj.name


def _version(told: KubeObject | ResyncFinished) -> int:
    return int(told.resource_version) if told.resource_version.isdigit() else 0


def _newest(store: _KindStore, uid: str) -> int:
    """Return the version up to which nothing about the object is news; -1: it was never known."""
    known = store.by_uid.get(uid)
    return store.buried.get(uid, -1) if known is None else _version(known)


@dataclass(slots=True)
class ObjectStore:
    _kinds: dict[str, _KindStore] = field(default_factory=dict)

    def _of(self, kind: str) -> _KindStore:
        store = self._kinds.get(kind)
        if store is None:
            store = self._kinds[kind] = _KindStore()
        return store

    def objects(self, kind: str) -> dict[str, Any]:
        """Return the objects of a kind by uid. Nobody writes into it."""
        return self._of(kind).by_uid

    def get(self, kind: str, uid: str) -> Any | None:
        return self._of(kind).by_uid.get(uid)

    def named(self, kind: str, key: str) -> Any | None:
        """Return the object that is called `namespace/name`."""
        store = self._of(kind)
        uid = store.uid_of.get(key)
        return None if uid is None else store.by_uid[uid]

    def upsert(self, kind: str, obj: KubeObject) -> tuple[Any | None, Any | None, bool]:
        """Take the object in; return (its last version, the other object it replaces, news?)."""
        store = self._of(kind)
        old = store.by_uid.get(obj.uid)
        if store.named is not None:
            store.named.add(obj.uid)
            store.buried.pop(obj.uid, None)
        elif _version(obj) <= _newest(store, obj.uid):
            return old, None, False
        key = object_key(obj)
        replaced = None
        holder = store.uid_of.get(key)
        if holder is not None and holder != obj.uid:
            replaced = self._drop(store, holder, FOR_EVER)
        store.by_uid[obj.uid] = obj
        store.uid_of[key] = obj.uid
        return old, replaced, True

    def amend(self, kind: str, obj: KubeObject) -> None:
        """Remember an object that we know as something other than what was told of it."""
        self._of(kind).by_uid[obj.uid] = obj

    def delete(self, fact: ObjectDeleted) -> Any | None:
        """Forget the object and return its last version; None if it was not known."""
        store = self._of(fact.kind)
        if fact.uid not in store.by_uid:
            self._bury(store, fact.uid, FOR_EVER)
            return None
        return self._drop(store, fact.uid, FOR_EVER)

    def begin_resync(self, fact: ResyncStarted) -> None:
        if fact.full:
            self._of(fact.kind).named = set()

    def finish_resync(self, fact: ResyncFinished) -> list[Any]:
        """End the resync and return the objects that it did not name: they are gone.

        They are gone as of its list. Another watcher may have told already of an object that was
        made after that; whoever made this list tells of it next, and then it has to count.
        """
        store = self._of(fact.kind)
        if store.named is None:
            return []
        gone = [uid for uid in store.by_uid if uid not in store.named]
        store.named = None
        return [self._drop(store, uid, _version(fact)) for uid in gone]

    def _drop(self, store: _KindStore, uid: str, version: int) -> Any:
        obj = store.by_uid.pop(uid)
        key = object_key(obj)
        if store.uid_of.get(key) == uid:
            del store.uid_of[key]
        self._bury(store, uid, version)
        return obj

    def _bury(self, store: _KindStore, uid: str, version: int) -> None:
        store.buried[uid] = version
        if len(store.buried) > BURIED_MAX:
            del store.buried[next(iter(store.buried))]
