"""The kubelets of all simulated nodes: they start pods that are bound, and end them.

    bound ──step──▶ Running ── its run time is over ──▶ Succeeded
      │                │
      └── deleted ─────┴── stopped after STOP_DELAY, at the latest when its grace is over ──▶ gone

A pod whose node does not exist has no kubelet: it stays as it is, and goes, once deleted, when
its grace is over (as the pod garbage collector sees to in a real cluster).
"""

import heapq
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from decklog.adapters.cluster.pods import condition, ended_pod
from decklog.adapters.cluster.simulated import SimulatedCluster
from decklog.adapters.cluster.store import Raw, StoreWatch, WatchOptions
from decklog.ports.cluster import WatchEventType, WatchExpired

RUN_SECONDS: Final = "simulation.decklog.dev/run-seconds"
"""Annotation of a pod that ends by itself after so many seconds of running."""

STOP_DELAY: Final = timedelta(seconds=1)
"""How long a container takes to stop when asked to; most need much less than their grace."""

_BATCH: Final = 10_000
_Key = tuple[str, str]


class Kubelet:
    """Brings every pod up to date with the clock, each time it is stepped."""

    def __init__(self, cluster: SimulatedCluster, *, stop_delay: timedelta = STOP_DELAY) -> None:
        self._cluster = cluster
        self._store = cluster.store
        self._stop_delay_ms = stop_delay // timedelta(milliseconds=1)
        self._watch: StoreWatch | None = None
        self._unstarted: dict[_Key, None] = {}
        self._due: list[tuple[int, _Key, str]] = []
        """When to end which pod, known by its uid."""
        self._timed: set[str] = set()
        """Uids of running pods whose end is due at a time."""
        self._stopping: set[str] = set()

    def step(self) -> bool:
        """Start and end what is due by now; say whether anything was."""
        version = self._store.version
        self._follow()
        now_ms = self._cluster.clock.now_ms()
        for key in list(self._unstarted):
            self._start(key)
        while self._due and self._due[0][0] <= now_ms:
            _, key, uid = heapq.heappop(self._due)
            self._end(key, uid)
        return self._store.version != version

    def _follow(self) -> None:
        if self._watch is None or self._watch.ended:
            self._watch = self._store.watch("Pod", WatchOptions(bookmarks=False, never_cut=True))
        try:
            while events := self._watch.poll(limit=_BATCH, timeout=timedelta(0)):
                for event in events:
                    self._see(event.type, event.object)
        except WatchExpired:
            self._watch = None  # The next step begins with everything there is.

    def _see(self, change: WatchEventType, pod: Mapping[str, Any]) -> None:
        metadata = pod["metadata"]
        key, uid = (metadata["namespace"], metadata["name"]), metadata["uid"]
        if change is WatchEventType.DELETED:
            self._unstarted.pop(key, None)
            self._stopping.discard(uid)
            self._timed.discard(uid)
        elif pod["spec"].get("nodeName"):
            if metadata.get("deletionTimestamp"):
                self._stop(key, pod)
            elif pod["status"].get("phase", "Pending") == "Pending":
                self._unstarted[key] = None
            elif pod["status"]["phase"] == "Running":
                self._note_end(key, pod)

    def _start(self, key: _Key) -> None:
        with self._store.lock:
            pod = self._store.get("Pod", *key)
            if pod is None or not _can_start(pod):
                del self._unstarted[key]
            elif self._store.get("Node", "", pod["spec"].get("nodeName", "")) is not None:
                del self._unstarted[key]
                self._store.put("Pod", _running(pod, self._cluster.api.now()))
                self._note_end(key, pod)

    def _note_end(self, key: _Key, pod: Mapping[str, Any]) -> None:
        """Remember when a pod that runs now will have run its time, if it has one."""
        metadata = pod["metadata"]
        seconds = (metadata.get("annotations") or {}).get(RUN_SECONDS)
        if seconds is not None and metadata["uid"] not in self._timed:
            self._timed.add(metadata["uid"])
            ends_ms = self._cluster.clock.now_ms() + int(float(seconds) * 1000)
            heapq.heappush(self._due, (ends_ms, key, metadata["uid"]))

    def _stop(self, key: _Key, pod: Mapping[str, Any]) -> None:
        metadata = pod["metadata"]
        if metadata["uid"] in self._stopping:
            return
        self._stopping.add(metadata["uid"])
        grace_ms = metadata.get("deletionGracePeriodSeconds", 0) * 1000
        delay_ms = grace_ms
        if self._store.get("Node", "", pod["spec"]["nodeName"]) is not None:
            delay_ms = min(grace_ms, self._stop_delay_ms)
        at_ms = self._cluster.clock.now_ms() + delay_ms
        heapq.heappush(self._due, (at_ms, key, metadata["uid"]))

    def _end(self, key: _Key, uid: str) -> None:
        """Finish a pod whose time has come: delete it if that was asked for."""
        with self._store.lock:
            pod = self._store.get("Pod", *key)
            if pod is None or pod["metadata"]["uid"] != uid:
                return
            if uid in self._stopping:
                marked = self._store.put("Pod", ended_pod(pod))
                self._store.remove("Pod", marked)
            elif pod["status"].get("phase") == "Running":
                self._store.put("Pod", _succeeded(pod, self._cluster.api.now()))


def _can_start(pod: Raw) -> bool:
    deleted = "deletionTimestamp" in pod["metadata"]
    return not deleted and pod["status"].get("phase", "Pending") == "Pending"


def _running(pod: Raw, now: str) -> Raw:
    status = pod["status"]
    known = [
        one
        for one in status.get("conditions", ())
        if one["type"] not in ("Initialized", "Ready", "ContainersReady")
    ]
    started = {"running": {"startedAt": now}}
    return {
        **pod,
        "metadata": dict(pod["metadata"]),
        "status": {
            **status,
            "phase": "Running",
            "startTime": now,
            "conditions": [
                condition("Initialized", "True", now),
                condition("Ready", "True", now),
                condition("ContainersReady", "True", now),
                *known,
            ],
            "containerStatuses": [
                _container_status(container, ready=True, state=started)
                for container in pod["spec"].get("containers", ())
            ],
        },
    }


def _succeeded(pod: Raw, now: str) -> Raw:
    status = pod["status"]
    conditions = [
        condition(one["type"], "False", now, reason="PodCompleted")
        if one["type"] in ("Ready", "ContainersReady")
        else one
        for one in status.get("conditions", ())
    ]
    ended = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": now}}
    return {
        **pod,
        "metadata": dict(pod["metadata"]),
        "status": {
            **status,
            "phase": "Succeeded",
            "conditions": conditions,
            "containerStatuses": [
                _container_status(container, ready=False, state=ended)
                for container in pod["spec"].get("containers", ())
            ],
        },
    }


def _container_status(container: Mapping[str, Any], *, ready: bool, state: Raw) -> Raw:
    image = container.get("image", "")
    return {
        "name": container.get("name", ""),
        "image": image,
        "imageID": image,
        "ready": ready,
        "restartCount": 0,
        "state": state,
    }
