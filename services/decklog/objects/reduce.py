"""From an API object, as decoded from JSON or YAML, to the fields that scheduling reads, and back.

Everything else is dropped here, before anything is written: env, args, secrets, managed fields,
and the annotations outside of a short list. What is kept is checked: types and quantities.
Mappings are sorted, so that equal contents have equal bytes.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from decklog.objects.kinds import KINDS, Kind
from decklog.objects.meta import NO_LABELS, STAMP, KubeObject, OwnerReference
from decklog.objects.other_shapes import TABLES
from decklog.objects.pod import Container, ContainerStatus, Pod
from decklog.objects.pod_shape import ALWAYS, CONTAINER_STATUS, POD_SPEC, POD_STATUS
from decklog.objects.shape import (
    Entry,
    InvalidObject,
    Table,
    defaults_of,
    each,
    integer,
    read_each,
    read_into,
    section,
    shape,
    text,
    text_map,
    written,
)

__all__ = ["ANNOTATION_KEYS", "InvalidObject", "reduce_object", "restore_object"]

DEFAULT_NAMESPACE: Final = "default"
ANNOTATION_KEYS: Final = frozenset(
    {
        STAMP,
        "pv.kubernetes.io/bind-completed",
        "pv.kubernetes.io/bound-by-controller",
        "volume.kubernetes.io/selected-node",
    }
)
"""Annotations that are kept of every object."""
MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"
"""Kept of CSINodes: a change of it may make pods schedulable."""
BETA_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
"""Where the annotation is, it is the storage class, whatever the spec says."""


def reduce_object(
    kind: Kind, raw: Mapping[str, Any], *, annotation_keys: frozenset[str] = frozenset()
) -> KubeObject:
    """Return the object's reduced form.

    `annotation_keys` are kept beside the usual ones: plugins register what they read. An object
    without a uid, as in a manifest, gets `namespace/name` for one.

    Raises:
        InvalidObject: a field that scheduling reads is not what the API says it is.
    """
    fields: dict[str, Any] = {}
    read_into(fields, raw, _READ[kind.name])
    annotations = fields.get("annotations", NO_LABELS)
    if not fields.get("name"):
        raise InvalidObject(path="metadata.name", found=None, want="a name")
    if kind.namespaced:
        fields["namespace"] = fields.get("namespace") or DEFAULT_NAMESPACE
    if not fields.get("uid"):
        fields["uid"] = f"{fields.get('namespace', '')}/{fields['name']}"
    if annotations:
        fields["annotations"] = _kept_annotations(annotations, kind, annotation_keys)
        if "storage_class" in _DEFAULTS[kind.name] and BETA_STORAGE_CLASS in annotations:
            fields["storage_class"] = annotations[BETA_STORAGE_CLASS]
    if kind.cls is Pod:
        _finish_pod(fields)
    return kind.cls(**fields)


def restore_object(obj: KubeObject) -> dict[str, Any]:
    """Return what is kept of the object, in the form of a manifest; reducing it gives it back."""
    kind = _KIND_OF[type(obj)]
    body = written(obj, _WRITE[kind.name], _DEFAULTS[kind.name])
    if isinstance(obj, Pod) and obj.container_statuses:
        body.setdefault("status", {}).update(_write_statuses(obj))
    return {"apiVersion": kind.api_version, "kind": kind.name, **body}


def _kept_annotations(
    annotations: Mapping[str, str], kind: Kind, more: frozenset[str]
) -> dict[str, str]:
    keys = _allowed_annotations(kind.name, more)
    return {key: annotations[key] for key in keys if key in annotations}


@lru_cache(maxsize=256)
def _allowed_annotations(kind: str, more: frozenset[str]) -> tuple[str, ...]:
    """Return the keys in the order in which mappings are sorted."""
    own = {MIGRATED_PLUGINS} if kind == "CSINode" else set()
    return tuple(sorted(ANNOTATION_KEYS | more | own))


def _finish_pod(fields: dict[str, Any]) -> None:
    if not fields.get("scheduler_name", True):
        del fields["scheduler_name"]  # Empty is absent: the default's turn.
    statuses = (*fields.pop("container_statuses", ()), *fields.pop("init_statuses", ()))
    if statuses:
        resizable = {one.name: one for one in fields.get("containers", ())}
        for one in fields.get("init_containers", ()):
            if one.restart_policy == ALWAYS:
                resizable[one.name] = one
        fields["container_statuses"] = tuple(
            status for status in statuses if _says_more(status, resizable.get(status.name))
        )


def _says_more(status: ContainerStatus, container: Container | None) -> bool:
    """Whether the status can change what the container counts for.

    Every running container reports its resources; only a resize makes them differ.
    """
    if container is None:
        return False
    asked = container.requests or {}
    return status.requests != asked or (bool(status.allocated) and status.allocated != asked)


def _write_statuses(pod: Pod) -> dict[str, list[dict[str, Any]]]:
    init_names = {container.name for container in pod.init_containers}
    found: dict[str, list[dict[str, Any]]] = {}
    for status in pod.container_statuses:
        key = "initContainerStatuses" if status.name in init_names else "containerStatuses"
        found.setdefault(key, []).append({"resources": {}, **CONTAINER_STATUS.write(status)})
    return found


def _read_owner(value: object) -> OwnerReference | None:
    for reference in read_each(
        value, lambda raw: raw, keep=lambda raw: bool(raw.get("controller"))
    ):
        return _OWNER.read(reference)
    return None


def _write_owner(owner: OwnerReference) -> list[dict[str, Any]]:
    return [{**_OWNER.write(owner), "controller": True}]


_OWNER: Final = shape(
    OwnerReference,
    {
        "apiVersion": text("api_version"),
        "kind": text("kind"),
        "name": text("name"),
        "uid": text("uid"),
    },
    api_version="",
    kind="",
    name="",
    uid="",
)
_METADATA: Final = {
    "name": text("name"),
    "namespace": text("namespace"),
    "uid": text("uid"),
    "resourceVersion": text("resource_version"),
    "generation": integer("generation"),
    "creationTimestamp": text("created"),
    "deletionTimestamp": text("deleted"),
    "labels": text_map("labels"),
    "annotations": text_map("annotations"),
    "ownerReferences": Entry("owner", _read_owner, _write_owner),
}
_KIND_OF: Final[Mapping[type, Kind]] = {kind.cls: kind for kind in KINDS}
_DEFAULTS: Final = {kind.name: defaults_of(kind.cls) for kind in KINDS}


def _with_metadata(kind: Kind, table: Table) -> Table:
    fields = _DEFAULTS[kind.name].keys()
    metadata = {
        key: entry
        for key, entry in _METADATA.items()
        if entry.name in fields and (kind.namespaced or entry.name != "namespace")
    }
    return {"metadata": section(metadata), **table}


def _reports_resources(status: Mapping[str, Any]) -> bool:
    return status.get("resources") is not None


_STATUSES: Final = {
    "containerStatuses": each("container_statuses", CONTAINER_STATUS, keep=_reports_resources),
    "initContainerStatuses": each("init_statuses", CONTAINER_STATUS, keep=_reports_resources),
}
_READ: Final[Mapping[str, Table]] = {
    kind.name: _with_metadata(
        kind,
        {"spec": section(POD_SPEC), "status": section({**POD_STATUS, **_STATUSES})}
        if kind.cls is Pod
        else TABLES[kind.name],
    )
    for kind in KINDS
}
_WRITE: Final[Mapping[str, Table]] = {
    **_READ,
    "Pod": {**_READ["Pod"], "status": section(POD_STATUS)},
}
