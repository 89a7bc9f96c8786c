"""Patches: JSON merge and strategic merge, by copy on write.

Both return the target itself when the patch changes nothing, so that "nothing changed" is
cheap to see.
"""

from collections.abc import Mapping
from typing import Any, Final

MERGE_KEYS: Final = {
    "addresses": "type",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostIPs": "ip",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "resourceClaimStatuses": "name",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""Lists of objects that strategic merge joins by a key; any other list is replaced."""

DIRECTIVE: Final = "$patch"


def json_merge(target: Any, patch: Any) -> Any:
    """Merge as RFC 7386 says: null deletes, objects merge, all else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    before: Mapping[str, Any] = target if isinstance(target, Mapping) else {}
    after = dict(before)
    for name, value in patch.items():
        if value is None:
            after.pop(name, None)
        else:
            after[name] = json_merge(after.get(name), value)
    return target if after == target else after


def strategic_merge(target: Mapping[str, Any], patch: Mapping[str, Any]) -> Any:
    """Merge as `application/strategic-merge-patch+json` does: some lists merge by a key."""
    after = dict(target)
    for name, value in patch.items():
        if name.startswith("$"):
            continue  # Element orders and retained keys: what they say is about display.
        before = after.get(name)
        if value is None:
            after.pop(name, None)
        elif isinstance(value, Mapping):
            after[name] = _merge_object(before, value)
        elif isinstance(value, list) and name in MERGE_KEYS:
            after[name] = _merge_list(before or [], value, MERGE_KEYS[name])
        elif isinstance(value, list) and name == "finalizers":
            known = before or []
            after[name] = [*known, *(item for item in value if item not in known)]
        else:
            after[name] = value
    return target if after == target else after


def _merge_object(before: Any, patch: Mapping[str, Any]) -> Any:
    if patch.get(DIRECTIVE) == "replace":
        return {name: value for name, value in patch.items() if name != DIRECTIVE}
    return strategic_merge(before if isinstance(before, Mapping) else {}, patch)


def _merge_list(before: list[Any], patch: list[Any], key: str) -> list[Any]:
    after = list(before)
    places = {item.get(key): place for place, item in enumerate(before)}
    gone = set()
    for item in patch:
        place = places.get(item.get(key))
        if item.get(DIRECTIVE) == "delete":
            gone.add(item.get(key))
        elif place is None:
            places[item.get(key)] = len(after)
            after.append(_merge_object({}, item))
        else:
            after[place] = _merge_object(after[place], item)
    return [item for item in after if item.get(key) not in gone] if gone else after
