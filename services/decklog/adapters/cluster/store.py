"""What the simulated API server remembers: objects, recent changes, and who watches them.

One counter gives every write its resourceVersion, whatever its kind. A write makes a new
object and leaves the old one alone: history, watchers and readers share objects that nobody
changes, so an event costs one list entry however many watch it.

    events of a kind   [ … dropped … | oldest kept ───────────────▶ newest ]
    a watch            position ─────────▲            (a number that never shifts)
"""

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from decklog.adapters.cluster.resources import RESOURCES
from decklog.ports.clock import Clock
from decklog.ports.cluster import WatchEvent, WatchEventType, WatchExpired

Raw = dict[str, Any]
Key = tuple[str, str]
"""Namespace and name."""

BOOKMARK_INTERVAL_MS: Final = 60_000  # What kube-apiserver does: about one a minute.


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a server remembers, for whom."""

    history_events_max: int = 32_768
    """Changes of a kind that a watch can start from; a quarter of a large server's cache."""
    backlog_events_max: int = 16_384
    """A watcher that is further behind is cut off: it gets these, then a clean end."""


class Shelf:
    """All objects of one kind, and its recent changes."""

    def __init__(self, lock: threading.RLock, *, oldest: int) -> None:
        self.objects: dict[Key, Raw] = {}
        self.events: list[WatchEvent] = []
        self.versions: list[int] = []
        """The events' resourceVersions, for bisection."""
        self.first = 0
        """Position of `events[0]`."""
        self.oldest = oldest
        """A watch can start from this resourceVersion or a later one."""
        self.watches: list[StoreWatch] = []
        self.changed = threading.Condition(lock)

    @property
    def end(self) -> int:
        return self.first + len(self.events)


class Store:
    """Every shelf, under one lock and one counter."""

    def __init__(self, clock: Clock, limits: Limits) -> None:
        self.lock = threading.RLock()
        self.version = 1
        self._clock = clock
        self._limits = limits
        self._shelves = {kind: Shelf(self.lock, oldest=self.version) for kind in RESOURCES}

    def get(self, kind: str, namespace: str, name: str) -> Raw | None:
        return self._shelves[kind].objects.get((namespace, name))

    def objects(self, kind: str) -> list[Raw]:
        """Return every object, by namespace and name."""
        objects = self._shelves[kind].objects
        with self.lock:
            return [objects[key] for key in sorted(objects)]

    def put(self, kind: str, obj: Raw) -> Raw:
        """Store a new state of an object; its metadata must be a dict that nobody else holds."""
        shelf = self._shelves[kind]
        metadata = obj["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        with self.lock:
            known = key in shelf.objects
            self._number(metadata)
            shelf.objects[key] = obj
            self._publish(shelf, WatchEventType.MODIFIED if known else WatchEventType.ADDED, obj)
        return obj

    def remove(self, kind: str, obj: Raw) -> Raw:
        """Forget an object. Its last state carries the resourceVersion of the deletion."""
        shelf = self._shelves[kind]
        metadata = dict(obj["metadata"])
        last = {**obj, "metadata": metadata}
        with self.lock:
            del shelf.objects[metadata.get("namespace", ""), metadata["name"]]
            self._number(metadata)
            self._publish(shelf, WatchEventType.DELETED, last)
        return last

    def watch(self, kind: str, options: "WatchOptions") -> "StoreWatch":
        with self.lock:
            shelf = self._shelves[kind]
            opened = StoreWatch(self, shelf, self._clock, options)
            shelf.watches.append(opened)
            return opened

    def drop_oldest(self, kind: str, *, keep: int) -> None:
        """Remove the objects that were created first, until no more than `keep` are left."""
        objects = self._shelves[kind].objects
        with self.lock:
            while len(objects) > keep:
                self.remove(kind, objects[next(iter(objects))])

    def end_watches(self) -> None:
        """End every watch cleanly after what has happened so far."""
        with self.lock:
            for shelf in self._shelves.values():
                for watch in shelf.watches[:]:
                    watch.end()

    def forget_history(self) -> None:
        """End every watch, and let none begin before now."""
        with self.lock:
            self.end_watches()
            for shelf in self._shelves.values():
                shelf.first = shelf.end
                shelf.events, shelf.versions = [], []
                shelf.oldest = self.version

    def _number(self, metadata: Raw) -> None:
        self.version += 1
        metadata["resourceVersion"] = str(self.version)

    def _publish(self, shelf: Shelf, change: WatchEventType, obj: Raw) -> None:
        shelf.events.append(WatchEvent(change, obj, obj["metadata"]["resourceVersion"]))
        shelf.versions.append(self.version)
        if len(shelf.events) * 4 > self._limits.history_events_max * 5:  # Trim now and then.
            self._trim(shelf)
        end = shelf.end
        for watch in shelf.watches[:]:
            if end - watch.position > self._limits.backlog_events_max:
                watch.cut()
        shelf.changed.notify_all()

    def _trim(self, shelf: Shelf) -> None:
        excess = len(shelf.events) - self._limits.history_events_max
        shelf.oldest = shelf.versions[excess - 1]
        shelf.first += excess
        del shelf.events[:excess], shelf.versions[:excess]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """What the query of a watch says."""

    resource_version: int | None = None
    """None: send what exists first."""
    bookmarks: bool = True
    initial_end_bookmark: bool = False
    """Mark the end of what existed, as a streaming list does."""
    timeout: timedelta | None = None
    never_cut: bool = False
    """For the cluster's own parts, which are stepped and cannot read by themselves."""


@dataclass(slots=True)
class _Progress:
    """When a watch must say something, by the monotonic clock."""

    bookmark_at_ms: int
    end_at_ms: int | None
    initial: deque[WatchEvent] = field(default_factory=deque)


class StoreWatch:
    """A position in the changes of one kind. It is the port's `Watch`."""

    def __init__(self, store: Store, shelf: Shelf, clock: Clock, options: WatchOptions) -> None:
        self._store, self._shelf, self._clock, self._options = store, shelf, clock, options
        self._stop: int | None = None
        self._expired: WatchExpired | None = None
        since = options.resource_version
        now_ms = clock.monotonic_ms()
        self._progress = _Progress(
            bookmark_at_ms=now_ms + BOOKMARK_INTERVAL_MS,
            end_at_ms=None
            if options.timeout is None
            else now_ms + options.timeout // timedelta(milliseconds=1),
        )
        self.position = shelf.end
        self._since = 0
        if since is None:
            self._progress.initial.extend(_initial_events(store, shelf, options))
        elif since < shelf.oldest:
            self._expired = WatchExpired(
                f"too old resource version: {since} ({max(shelf.oldest, store.version)})"
            )
        else:
            self._since = since
            self.position = shelf.first + bisect_right(shelf.versions, since)

    def poll(self, *, limit: int, timeout: timedelta) -> Sequence[WatchEvent]:
        """Return what has come. A timeout waits in real time: with a simulated clock ask for 0."""
        with self._store.lock:
            if self._expired is not None:
                expired, self._expired = self._expired, None
                self.end()
                raise expired
            got = self._take(limit)
            if not got and timeout > timedelta(0) and not self.ended:
                self._shelf.changed.wait(timeout.total_seconds())
                got = self._take(limit)
            return got

    @property
    def ended(self) -> bool:
        return (
            self._stop is not None
            and self.position >= self._stop
            and not self._progress.initial
            and self._expired is None
        )

    def close(self) -> None:
        with self._store.lock:
            self.end()

    def end(self) -> None:
        """End cleanly after what has happened so far; call with the store's lock held."""
        if self._stop is None:
            self._stop = self._shelf.end
            self._shelf.watches.remove(self)
            self._shelf.changed.notify_all()

    def cut(self) -> None:
        """End, because the reader is too slow, unless it is one of the cluster's own parts."""
        if not self._options.never_cut:
            self.end()

    def _take(self, limit: int) -> list[WatchEvent]:
        progress = self._progress
        if progress.initial:
            return [progress.initial.popleft() for _ in range(min(limit, len(progress.initial)))]
        shelf = self._shelf
        now_ms = self._clock.monotonic_ms()
        if progress.end_at_ms is not None and now_ms >= progress.end_at_ms:
            self.end()
        if self.position < shelf.first:  # What came next is forgotten: end, and get a 410 later.
            self.end()
            self._stop = self.position
            return []
        stop = shelf.end if self._stop is None else min(self._stop, shelf.end)
        low = self.position - shelf.first
        high = min(low + limit, stop - shelf.first)
        got = shelf.events[low:high]
        self.position += max(len(got), 0)
        if got and self._since >= shelf.versions[low]:
            # A watch from the future is silent about what is older.
            got = [event for event in got if int(event.resource_version) > self._since]
        if not got:
            return self._bookmark(now_ms)
        progress.bookmark_at_ms = now_ms + BOOKMARK_INTERVAL_MS
        return got

    def _bookmark(self, now_ms: int) -> list[WatchEvent]:
        due = self._options.bookmarks and now_ms >= self._progress.bookmark_at_ms
        if not due or self._stop is not None or self._store.version < self._since:
            return []
        self._progress.bookmark_at_ms = now_ms + BOOKMARK_INTERVAL_MS
        return [bookmark(self._store.version)]


def bookmark(version: int, annotations: dict[str, str] | None = None) -> WatchEvent:
    metadata: Raw = {"resourceVersion": str(version)}
    if annotations:
        metadata["annotations"] = annotations
    return WatchEvent(WatchEventType.BOOKMARK, {"metadata": metadata}, str(version))


def _initial_events(store: Store, shelf: Shelf, options: WatchOptions) -> Iterable[WatchEvent]:
    """Everything there is, by name, as if it had just been added."""
    for key in sorted(shelf.objects):
        obj = shelf.objects[key]
        yield WatchEvent(WatchEventType.ADDED, obj, obj["metadata"]["resourceVersion"])
    if options.initial_end_bookmark:
        yield bookmark(store.version, {"k8s.io/initial-events-end": "true"})
