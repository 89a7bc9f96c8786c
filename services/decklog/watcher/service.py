"""One watcher of a cluster: lists each kind, then follows its watch, and appends what changed.

A kind is in one of three states: to be listed in full (at start, so that a log can be rebuilt from
it), to be listed for what differs (after 410, or when a reader asked for a resync), or watched.
Entries that were made and not yet appended are kept, so a step that failed goes on with them.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Final

import structlog

from decklog.core.errors import EntryTooLarge
from decklog.events.codec import decode_event
from decklog.events.facts import Event, ResyncFinished, ResyncRequested, ResyncStarted
from decklog.objects.kinds import KINDS, Kind
from decklog.objects.meta import KubeObject
from decklog.objects.reduce import InvalidObject, reduce_object
from decklog.ports.clock import Clock
from decklog.ports.cluster import (
    ClusterReader,
    KindNotServed,
    Listing,
    RawObject,
    Watch,
    WatchEvent,
    WatchEventType,
    WatchExpired,
)
from decklog.ports.entries import event_entry
from decklog.ports.log import Entry, Log
from decklog.watcher.published import PublishedKind, Told

POLL_MAX: Final = 2_000
"""Watch events a kind and step."""
APPEND_MAX: Final = 2_000
"""Entries an append: about 2 MB of the usual ones."""
TAIL_MS: Final = 250
"""How often the log is looked at for resync requests."""
RESYNC_MS_MIN: Final = 5_000
"""Between two resyncs of a kind that readers ask for: a reader that is wrong must not flood us."""
REOPEN_MS: Final = 1_000
"""A watch that ends sooner without bringing anything is not opened again at once."""
_NOW: Final = timedelta(0)

_log = structlog.get_logger()


class Mode(Enum):
    LIST_ALL = "list all"
    LIST_CHANGED = "list what changed"
    WATCH = "watch"


@dataclass(slots=True)
class _Watched:
    kind: Kind
    published: PublishedKind
    mode: Mode = Mode.LIST_ALL
    resource_version: str = ""
    watch: Watch | None = None
    served: bool = True
    listed_at_ms: int = -RESYNC_MS_MIN
    is_asked_for: bool = False
    """A reader wants the whole list; it gets it when the last one is old enough."""
    opened_at_ms: int = 0
    reopen_at_ms: int = 0
    delivered: bool = False
    """Whether the open watch has brought anything."""

    def drop_watch(self) -> None:
        if self.watch is not None:
            self.watch.close()
            self.watch = None


@dataclass(slots=True)
class WatcherMetrics:
    published: int = 0
    unchanged: int = 0
    refused: int = 0
    resyncs: int = 0


@dataclass(slots=True)
class WatcherService:
    cluster: str
    reader: ClusterReader
    log: Log
    clock: Clock
    annotation_keys: frozenset[str] = frozenset()
    """Annotations to keep beside the usual ones: what plugins registered."""
    name: str = "watcher"
    metrics: WatcherMetrics = field(default_factory=WatcherMetrics)
    _kinds: list[_Watched] = field(init=False)
    _pending: deque[Entry] = field(default_factory=deque)
    _tail: int | None = None
    """The last position looked at for requests; None: not begun."""
    _tail_at_ms: int = 0

    def __post_init__(self) -> None:
        self._kinds = [_Watched(kind, PublishedKind(kind.name)) for kind in KINDS]

    def step(self) -> bool:
        """Append what is pending, then take in what the API server has to say."""
        busy = self._flush()
        for watched in self._kinds:
            if self._advance(watched):
                busy = True
            if len(self._pending) >= APPEND_MAX:
                self._flush()
        self._flush()
        self._tail_requests()
        return busy

    def readiness(self) -> Mapping[str, str]:
        waiting = [watched.kind.plural for watched in self._kinds if watched.mode is not Mode.WATCH]
        return {"lists": f"not listed yet: {', '.join(waiting)}" if waiting else ""}

    def stop(self) -> None:
        for watched in self._kinds:
            watched.drop_watch()

    # -- one kind ------------------------------------------------------------------------------

    def _advance(self, watched: _Watched) -> bool:
        if watched.is_asked_for and self._may_list(watched):
            watched.mode = Mode.LIST_ALL
        if not watched.served and watched.mode is Mode.WATCH:
            return False
        if watched.mode is Mode.WATCH:
            return self._follow(watched)
        self._list(watched)
        return True

    def _may_list(self, watched: _Watched) -> bool:
        return self.clock.monotonic_ms() - watched.listed_at_ms >= RESYNC_MS_MIN

    def _list(self, watched: _Watched) -> None:
        try:
            listing = self.reader.list(watched.kind)
        except KindNotServed as error:
            watched.served = False
            _log.warning(
                "Kind is not served, taken as empty", kind=watched.kind.name, error=str(error)
            )
            listing = Listing(resource_version="0", objects=())
        full = watched.mode is Mode.LIST_ALL
        self._publish_list(watched, listing, full=full)
        watched.drop_watch()
        watched.resource_version = listing.resource_version
        watched.mode = Mode.WATCH
        watched.is_asked_for = watched.is_asked_for and not full
        watched.listed_at_ms = self.clock.monotonic_ms()
        self.metrics.resyncs += 1

    def _publish_list(self, watched: _Watched, listing: Listing, *, full: bool) -> None:
        kind, published = watched.kind, watched.published
        version = listing.resource_version
        self._queue(ResyncStarted(kind=kind.name, resource_version=version, full=full))
        if full:
            published.forget()
        listed = set()
        for raw in listing.objects:
            obj = self._reduce(kind, raw)
            if obj is None:
                continue
            listed.add(published.key_of(obj))
            told = self._upsert(published, obj, always=full)
            if told is not None:
                self._queue(*told)
        for gone in published.missing(listed):
            self._queue(*gone)
        self._queue(
            ResyncFinished(
                kind=kind.name,
                resource_version=version,
                count=len(published.objects),
                digest=published.digest.text,
            )
        )

    def _follow(self, watched: _Watched) -> bool:
        now = self.clock.monotonic_ms()
        if watched.watch is None and now < watched.reopen_at_ms:
            return False
        try:
            if watched.watch is None:
                watched.watch = self.reader.watch(
                    watched.kind, resource_version=watched.resource_version
                )
                watched.opened_at_ms, watched.delivered = now, False
            events = watched.watch.poll(limit=POLL_MAX, timeout=_NOW)
        except WatchExpired:
            _log.info("Watch expired, listing again", kind=watched.kind.name)
            watched.drop_watch()
            watched.mode = Mode.LIST_CHANGED
            return True
        for event in events:
            self._take(watched, event)
        watched.delivered = watched.delivered or bool(events)
        if not watched.watch.ended:
            return bool(events)
        watched.drop_watch()  # Normal: go on from the last version seen.
        if not watched.delivered and now - watched.opened_at_ms < REOPEN_MS:
            watched.reopen_at_ms = now + REOPEN_MS
            return False
        return True

    def _take(self, watched: _Watched, event: WatchEvent) -> None:
        watched.resource_version = event.resource_version
        if event.type is WatchEventType.BOOKMARK:
            return
        if event.type is WatchEventType.DELETED:
            metadata = event.object["metadata"]  # The rest may be what we could never read.
            told = watched.published.delete(
                namespace=metadata.get("namespace", ""),
                name=metadata["name"],
                uid=metadata.get("uid", ""),
                version=event.resource_version,
            )
        else:
            obj = self._reduce(watched.kind, event.object)
            if obj is None:
                return
            told = self._upsert(watched.published, obj)
        if told is None:
            self.metrics.unchanged += 1
        else:
            self._queue(*told)

    def _upsert(
        self, published: PublishedKind, obj: KubeObject, *, always: bool = False
    ) -> Told | None:
        try:
            return published.upsert(obj, always=always)
        except EntryTooLarge as error:
            self.metrics.refused += 1
            _log.error("Could not publish object, the log takes none so large", error=str(error))
            return None

    def _reduce(self, kind: Kind, raw: RawObject) -> KubeObject | None:
        try:
            return reduce_object(kind, raw, annotation_keys=self.annotation_keys)
        except InvalidObject as error:
            self.metrics.refused += 1
            _log.warning("Refused object", kind=kind.name, error=str(error))
            return None

    # -- the log -------------------------------------------------------------------------------

    def _queue(self, fact: Event, value: bytes | None = None) -> None:
        now = self.clock.now_ms()
        self._pending.append(event_entry(fact, cluster=self.cluster, time_ms=now, value=value))

    def _flush(self) -> bool:
        """Append what is pending. What may have been appended is appended again after an error."""
        busy = bool(self._pending)
        while self._pending:
            batch = [self._pending[i] for i in range(min(len(self._pending), APPEND_MAX))]
            last = self.log.append(batch)
            if self._tail == last - len(batch):
                self._tail = last  # Nobody else wrote: nothing to look at.
            for _ in batch:
                self._pending.popleft()
            self.metrics.published += len(batch)
        return busy

    def _tail_requests(self) -> None:
        """Answer requests for a resync that readers appended since we looked last."""
        now = self.clock.monotonic_ms()
        if now < self._tail_at_ms:
            return
        self._tail_at_ms = now + TAIL_MS
        if self._tail is None:
            self._tail = self.log.bounds()[1]
        for position, entry in self._read_tail(self._tail):
            self._tail = position
            if entry.type == ResyncRequested.ce_type:
                fact = decode_event(entry.type, entry.key, entry.value)
                if isinstance(fact, ResyncRequested):
                    self._answer(fact)

    def _read_tail(self, after: int) -> Sequence[tuple[int, Entry]]:
        return self.log.read(after=after, limit=APPEND_MAX, timeout=_NOW)

    def _answer(self, request: ResyncRequested) -> None:
        for watched in self._kinds:
            if watched.kind.name == request.kind and not watched.is_asked_for:
                _log.info("Resync requested", kind=request.kind, error=request.reason)
                watched.is_asked_for = True
