"""Which path means what, and what discovery says about it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from decklog.adapters.cluster.resources import RESOURCES, Resource

Raw = dict[str, Any]

VERSION: Final = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.3+simulated",
    "platform": "decklog",
}
VERBS: Final = ("create", "delete", "get", "list", "patch", "update", "watch")
SHORT_NAMES: Final = {
    "namespaces": ["ns"],
    "nodes": ["no"],
    "persistentvolumeclaims": ["pvc"],
    "persistentvolumes": ["pv"],
    "poddisruptionbudgets": ["pdb"],
    "pods": ["po"],
    "priorityclasses": ["pc"],
    "replicasets": ["rs"],
    "replicationcontrollers": ["rc"],
    "services": ["svc"],
    "statefulsets": ["sts"],
    "storageclasses": ["sc"],
}


@dataclass(frozen=True, slots=True)
class Route:
    """A collection, an object or a part of an object. Without a name it is the collection."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse_path(path: str) -> Route | None:
    """Return what the path names, or None: nothing that is served."""
    parts = [part for part in path.split("/") if part]
    if len(parts) >= 3 and parts[:2] == ["api", "v1"]:
        return _in_version("v1", parts[2:])
    if len(parts) >= 4 and parts[0] == "apis":
        return _in_version(f"{parts[1]}/{parts[2]}", parts[3:])
    return None


def discovery(path: str) -> Raw | None:
    """Return what discovery answers at a path, or None."""
    parts = [part for part in path.split("/") if part]
    match parts:
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"]}
        case ["api", "v1"]:
            return _resource_list("v1")
        case ["apis"]:
            groups = sorted({resource.group for resource in RESOURCES.values()} - {""})
            return {
                "kind": "APIGroupList",
                "apiVersion": "v1",
                "groups": [_group(name) for name in groups],
            }
        case ["apis", group, version] if f"{group}/{version}" in _BY_VERSION:
            return _resource_list(f"{group}/{version}")
        case ["version"]:
            return dict(VERSION)
        case _:
            return None


def _in_version(api_version: str, parts: list[str]) -> Route | None:
    resources = _BY_VERSION.get(api_version, {})
    if parts[0] == "namespaces" and len(parts) >= 3 and parts[2] in resources:
        return _in_namespace(resources, parts[1], parts[2:])
    resource = resources.get(parts[0])
    if resource is None or len(parts) > 3 or (resource.namespaced and len(parts) > 1):
        return None
    return Route(resource, "", *parts[1:])


def _in_namespace(resources: dict[str, Resource], namespace: str, parts: list[str]) -> Route | None:
    resource = resources[parts[0]]
    if not resource.namespaced or len(parts) > 3:
        return None
    return Route(resource, namespace, *parts[1:])


def _by_version(resources: Iterable[Resource]) -> dict[str, dict[str, Resource]]:
    found: dict[str, dict[str, Resource]] = {}
    for resource in resources:
        found.setdefault(resource.api_version, {})[resource.plural] = resource
    return found


def _group(name: str) -> Raw:
    versions = [
        {"groupVersion": api_version, "version": api_version.partition("/")[2]}
        for api_version in sorted(_BY_VERSION)
        if api_version.startswith(f"{name}/")
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resource_list(api_version: str) -> Raw:
    resources = []
    for plural, resource in sorted(_BY_VERSION[api_version].items()):
        entry: Raw = {
            "name": plural,
            "singularName": resource.kind.lower(),
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": list(VERBS),
        }
        if plural in SHORT_NAMES:
            entry["shortNames"] = SHORT_NAMES[plural]
        resources.append(entry)
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": api_version,
        "resources": resources,
    }


_BY_VERSION: Final = _by_version(RESOURCES.values())
