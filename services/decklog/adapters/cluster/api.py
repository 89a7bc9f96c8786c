"""The rules of the API server: what a request does to the store, and what is answered."""

import random
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from decklog.adapters.cluster import pods
from decklog.adapters.cluster.answers import (
    Denied,
    already_exists,
    bad_request,
    conflict,
    failure,
    invalid,
    not_found,
    success,
)
from decklog.adapters.cluster.merge import json_merge, strategic_merge
from decklog.adapters.cluster.requests import ApiRequest, Verb
from decklog.adapters.cluster.resources import RESOURCES, Resource
from decklog.adapters.cluster.store import Raw, Store
from decklog.adapters.cluster.validation import check_annotations, check_event, check_name
from decklog.ports.clock import Clock
from decklog.ports.cluster import Answer

HAS_STATUS: Final = frozenset(
    {
        "Namespace",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "PodDisruptionBudget",
        "ReplicaSet",
        "ReplicationController",
        "Service",
        "StatefulSet",
        "VolumeAttachment",
    }
)
"""A write to the main resource leaves their status alone, in silence."""

MUTABLE_IN_PODS: Final = ("activeDeadlineSeconds", "schedulingGates", "tolerations")
SYSTEM_PRIORITIES: Final = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
EVENTS_MAX: Final = 20_000
"""A real server forgets Events after an hour; here the oldest go when there are more."""
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"


class Api:
    """Answers requests one at a time, under the store's lock."""

    def __init__(self, store: Store, clock: Clock, *, seed: int) -> None:
        self._store = store
        self._clock = clock
        self._random = random.Random(seed)
        self._now_text = (-1, "")
        self._rules: dict[tuple[Verb, str], Callable[[Resource, ApiRequest], Answer]] = {
            (Verb.GET, ""): self._get,
            (Verb.CREATE, ""): self._create,
            (Verb.CREATE, "binding"): self._bind,
            (Verb.UPDATE, ""): self._update,
            (Verb.UPDATE, "status"): self._update_status,
            (Verb.PATCH, ""): self._patch,
            (Verb.PATCH, "status"): self._patch_status,
            (Verb.DELETE, ""): self._delete,
        }

    def answer(self, request: ApiRequest) -> Answer:
        rule = self._rules.get((request.verb, request.subresource))
        resource = RESOURCES.get(request.kind)
        if rule is None or resource is None:
            return failure(404, "NotFound", "the server could not find the requested resource")
        try:
            with self._store.lock:
                return rule(resource, request)
        except Denied as denied:
            return denied.answer

    def load(self, kind: str, raw: Mapping[str, Any]) -> Raw:
        """Create an object as it was in another cluster: with its uid, age and status.

        Raises:
            Denied: with the server's answer.
        """
        resource = RESOURCES[kind]
        with self._store.lock:
            obj = self._new(resource, raw)
            given = raw.get("metadata") or {}
            for part in ("uid", "creationTimestamp", "deletionTimestamp"):
                if given.get(part):
                    obj["metadata"][part] = given[part]
            if raw.get("status"):
                obj["status"] = {**obj.get("status", {}), **raw["status"]}
            return self._store.put(kind, obj)

    def now(self, after: timedelta = timedelta(0)) -> str:
        """Return the time as the server writes it: in UTC, whole seconds."""
        seconds = self._clock.now_ms() // 1000 + after // timedelta(seconds=1)
        if self._now_text[0] != seconds:
            text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            self._now_text = (seconds, text)
        return self._now_text[1]

    def _get(self, resource: Resource, request: ApiRequest) -> Answer:
        return success(200, self._existing(resource, request))

    def _existing(self, resource: Resource, request: ApiRequest) -> Raw:
        found = self._store.get(resource.kind, request.namespace, request.name)
        if found is None:
            raise not_found(resource, request.name)
        return found

    def _create(self, resource: Resource, request: ApiRequest) -> Answer:
        metadata = request.body.get("metadata") or {}
        namespace = metadata.get("namespace") or request.namespace
        if request.namespace and namespace != request.namespace:
            msg = "the namespace of the object does not match the namespace sent on the request"
            raise bad_request(msg)
        body = {**request.body, "metadata": {**metadata, "namespace": namespace}}
        made = self._put(request, self._new(resource, body))
        if resource.kind == "Event":
            self._store.drop_oldest("Event", keep=EVENTS_MAX)
        return success(201, made)

    def _new(self, resource: Resource, raw: Mapping[str, Any]) -> Raw:
        metadata = self._new_metadata(resource, raw.get("metadata") or {})
        check_name(resource, metadata["name"])
        check_annotations(resource, metadata)
        namespace = metadata.get("namespace", "")
        if self._store.get(resource.kind, namespace, metadata["name"]) is not None:
            raise already_exists(resource, metadata["name"])
        if namespace and self._store.get("Namespace", "", namespace) is None:
            self._provide_namespace(namespace)
        obj: Raw = {
            **raw,
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": metadata,
        }
        self._admit(resource, obj)
        return obj

    def _new_metadata(self, resource: Resource, given: Mapping[str, Any]) -> Raw:
        metadata = {
            name: value
            for name, value in given.items()
            if name not in ("managedFields", "resourceVersion", "deletionTimestamp", "selfLink")
        }
        if resource.namespaced:
            metadata["namespace"] = given.get("namespace") or "default"
        else:
            metadata.pop("namespace", None)
        if not metadata.get("name"):
            if not metadata.get("generateName"):
                raise invalid(resource, "", "metadata.name: Required value: name is required")
            suffix = "".join(self._random.choices("bcdfghjklmnpqrstvwxz2456789", k=5))
            metadata["name"] = metadata["generateName"] + suffix
        metadata["uid"] = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        metadata["creationTimestamp"] = self.now()
        return metadata

    def _provide_namespace(self, name: str) -> None:
        """Equivalent to the admission plugin NamespaceAutoProvision."""
        self._store.put(
            "Namespace", self._new(RESOURCES["Namespace"], {"metadata": {"name": name}})
        )

    def _admit(self, resource: Resource, obj: Raw) -> None:
        match resource.kind:
            case "Pod":
                self._admit_pod(obj)
            case "Event":
                check_event(resource, obj)
            case "Namespace":
                metadata = obj["metadata"]
                name = {"kubernetes.io/metadata.name": metadata["name"]}
                metadata["labels"] = {**(metadata.get("labels") or {}), **name}
                obj["status"] = {"phase": "Active"}
            case "PersistentVolumeClaim":
                spec = obj.get("spec") or {}
                if spec.get("storageClassName") is None and (found := self._default_class()):
                    spec = {**spec, "storageClassName": found}
                obj["spec"] = spec
                obj["status"] = {"phase": "Pending"}
            case "PersistentVolume":
                obj["status"] = {"phase": "Pending"}
            case _:
                pass

    def _admit_pod(self, pod: Raw) -> None:
        given = pod.get("spec") or {}
        spec = pods.admitted(given)
        class_name = given.get("priorityClassName")
        if class_name:
            spec.update(self._priority(pod["metadata"]["name"], class_name))
        else:
            spec.setdefault("priority", 0)
            spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
        pod["metadata"]["generation"] = 1
        pod["spec"] = spec
        pod["status"] = pods.initial_status(spec, self.now())

    def _priority(self, pod: str, class_name: str) -> Raw:
        found = self._store.get("PriorityClass", "", class_name)
        if found is not None:
            return {
                "priority": found.get("value", 0),
                "preemptionPolicy": found.get("preemptionPolicy", "PreemptLowerPriority"),
            }
        if class_name not in SYSTEM_PRIORITIES:
            why = f'pods "{pod}" is forbidden: no PriorityClass with name {class_name} was found'
            raise Denied(failure(403, "Forbidden", why))
        return {
            "priority": SYSTEM_PRIORITIES[class_name],
            "preemptionPolicy": "PreemptLowerPriority",
        }

    def _default_class(self) -> str | None:
        for found in self._store.objects("StorageClass"):
            metadata: Raw = found["metadata"]
            if (metadata.get("annotations") or {}).get(DEFAULT_CLASS) == "true":
                name: str = metadata["name"]
                return name
        return None

    def _bind(self, resource: Resource, request: ApiRequest) -> Answer:
        pods.check_binding(request.name, request.body)
        pod = self._existing(resource, request)
        node = self._store.get("Node", "", request.body["target"]["name"])
        self._put(request, pods.bound(pod, request.body, node, self.now()))
        return success(201)

    def _update(self, resource: Resource, request: ApiRequest) -> Answer:
        old = self._existing(resource, request)
        return self._replace(resource, request, old, request.body)

    def _patch(self, resource: Resource, request: ApiRequest) -> Answer:
        old = self._existing(resource, request)
        merge = strategic_merge if request.merge_lists else json_merge
        return self._replace(resource, request, old, merge(old, request.body))

    def _replace(
        self, resource: Resource, request: ApiRequest, old: Raw, given: Mapping[str, Any]
    ) -> Answer:
        """Store what is given in place of the old state, but for what a client can't change."""
        metadata = self._kept_metadata(resource, old, given.get("metadata") or {})
        new = {**given, "kind": old["kind"], "apiVersion": old["apiVersion"], "metadata": metadata}
        if resource.kind in HAS_STATUS:
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]
        if resource.kind == "Pod":
            _check_pod_update(metadata["name"], old["spec"], new.get("spec") or {})
        if new == old:
            return success(200, old)
        check_annotations(resource, metadata)
        return success(200, self._put(request, new))

    def _update_status(self, resource: Resource, request: ApiRequest) -> Answer:
        old = self._existing(resource, request)
        return self._replace_status(resource, request, old, request.body)

    def _patch_status(self, resource: Resource, request: ApiRequest) -> Answer:
        old = self._existing(resource, request)
        if resource.kind == "Pod" and request.merge_lists:
            new = pods.patched_status(old, request.body)
            return success(200, old if new is old else self._put(request, dict(new)))
        merge = strategic_merge if request.merge_lists else json_merge
        return self._replace_status(resource, request, old, merge(old, request.body))

    def _replace_status(
        self, resource: Resource, request: ApiRequest, old: Raw, given: Mapping[str, Any]
    ) -> Answer:
        metadata = self._kept_metadata(resource, old, given.get("metadata") or {})
        new = {**old, "metadata": metadata, "status": given.get("status") or {}}
        if new == old:
            return success(200, old)
        check_annotations(resource, metadata)
        return success(200, self._put(request, new))

    def _kept_metadata(self, resource: Resource, old: Raw, given: Mapping[str, Any]) -> Raw:
        before: Raw = old["metadata"]
        name = before["name"]
        if given.get("resourceVersion", before["resourceVersion"]) != before["resourceVersion"]:
            raise conflict(resource, name, pods.MODIFIED)
        if given.get("uid", before["uid"]) != before["uid"]:
            cause = f'metadata.uid: Invalid value: "{given["uid"]}": field is immutable'
            raise invalid(resource, name, cause)
        kept = ("name", "namespace", "uid", "creationTimestamp", "resourceVersion", "generation")
        ending = ("deletionTimestamp", "deletionGracePeriodSeconds")
        metadata = {name: value for name, value in given.items() if name not in ending}
        metadata.pop("managedFields", None)
        metadata.update({part: before[part] for part in (*kept, *ending) if part in before})
        return metadata

    def _delete(self, resource: Resource, request: ApiRequest) -> Answer:
        old = self._existing(resource, request)
        _check_delete(resource, old["metadata"], request.body.get("preconditions") or {})
        if resource.kind == "Pod":
            return self._delete_pod(request, old)
        if not request.dry_run:
            self._store.remove(resource.kind, old)
        return success(200)

    def _delete_pod(self, request: ApiRequest, pod: Raw) -> Answer:
        grace = pods.grace_seconds(pod, request.body.get("gracePeriodSeconds"))
        if request.dry_run:
            return success(200, pod)
        metadata = pod["metadata"]
        asked_before = metadata.get("deletionTimestamp") is not None
        if asked_before and 0 < metadata.get("deletionGracePeriodSeconds", 0) <= grace:
            return success(200, pod)  # Only a shorter grace changes anything.
        at = self.now(timedelta(seconds=grace))
        marked = self._store.put("Pod", pods.deleting(pod, at=at, grace=grace))
        if grace:
            return success(200, marked)
        return success(200, self._store.remove("Pod", marked))

    def _put(self, request: ApiRequest, obj: Raw) -> Raw:
        return obj if request.dry_run else self._store.put(obj["kind"], obj)


def _check_pod_update(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    fixed = [part for part in {**old, **new} if part not in MUTABLE_IN_PODS]
    changed = [part for part in fixed if old.get(part) != new.get(part)]
    if changed == ["containers"] and _without_images(old) == _without_images(new):
        return
    if changed:
        raise invalid(
            pods.PODS,
            name,
            "spec: Forbidden: pod updates may not change fields other than "
            "`spec.containers[*].image`,`spec.initContainers[*].image`,"
            "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
            "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
            "previously negative)",
        )


def _without_images(spec: Mapping[str, Any]) -> list[Raw]:
    return [
        {part: value for part, value in container.items() if part != "image"}
        for container in spec.get("containers", ())
    ]


def _check_delete(resource: Resource, metadata: Raw, wanted: Mapping[str, Any]) -> None:
    for part, field in (("UID", "uid"), ("ResourceVersion", "resourceVersion")):
        want, found = wanted.get(field), metadata[field]
        if want and want != found:
            why = f"the {part} in the precondition ({want}) does not match the {part} in record "
            why += f"({found}). The object might have been deleted and then recreated"
            raise conflict(resource, metadata["name"], why)
