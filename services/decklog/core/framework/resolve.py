"""From a KubeSchedulerConfiguration document to the configuration that decides.

Everything is defaulted and every extension point's plugins are listed here, as kube-scheduler does:
the document's MultiPoint plugins are merged into the default ones, then spread over the points that
they have; what a point itself says comes on top.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from decklog.core.errors import BadConfiguration
from decklog.core.framework.config import (
    DEFAULT_PROFILE,
    POINTS,
    ProfileConfig,
    SchedulerConfig,
)
from decklog.core.framework.defaults import POINTS_OF, default_plugins
from decklog.core.framework.plugin_args import defaulted_args
from decklog.core.rules import V1_36, Parity

Document = Mapping[str, Any]
UPSTREAM_PROFILE: Final = "default-scheduler"
ALL: Final = "*"


def default_config(*, seed: int = 0, parity: Parity = V1_36) -> SchedulerConfig:
    """Return the built-in configuration: one profile, `decklog`, which scores every node."""
    document = {
        "percentageOfNodesToScore": 100,
        "profiles": [{"schedulerName": DEFAULT_PROFILE}],
    }
    return resolve(document, seed=seed, parity=parity)


def resolve(
    document: Document | None,
    *,
    seed: int = 0,
    parity: Parity = V1_36,
    known: Mapping[str, Sequence[str]] = POINTS_OF,
) -> SchedulerConfig:
    """Return what the document says, defaulted; None is an empty document.

    `known` are the points of every plugin that a profile may name.

    Raises:
        BadConfiguration: a part of the document has the wrong form, or names what is not there.
    """
    document = document or {}
    profiles = _list(document, "profiles") or [{}]
    return SchedulerConfig(
        seed=seed,
        percentage_of_nodes_to_score=_integer(document, "percentageOfNodesToScore", 0),
        pod_initial_backoff_seconds=_integer(document, "podInitialBackoffSeconds", 1),
        pod_max_backoff_seconds=_integer(document, "podMaxBackoffSeconds", 10),
        profiles=tuple(_profile(profile, parity, known) for profile in profiles),
        extenders=tuple(_list(document, "extenders")),
        parity=parity,
    )


def _profile(
    profile: Document, parity: Parity, known: Mapping[str, Sequence[str]]
) -> ProfileConfig:
    given = _mapping(profile, "plugins")
    merged = _merged(_mapping(given, "multiPoint"), parity)
    for name in merged:
        _points_of(name, known)
    points = {
        point: names
        for point in POINTS
        if (names := _at_point(point, _mapping(given, point), merged, known))
    }
    percentage = None
    if profile.get("percentageOfNodesToScore") is not None:
        percentage = _integer(profile, "percentageOfNodesToScore", 0)
    return ProfileConfig(
        scheduler_name=profile.get("schedulerName") or UPSTREAM_PROFILE,
        percentage_of_nodes_to_score=percentage,
        points=points,
        weights=_weights(points.get("score", ()), _mapping(given, "score"), merged),
        args=_args(_list(profile, "pluginConfig"), points),
    )


def _merged(multi_point: Document, parity: Parity) -> dict[str, int]:
    """Return the MultiPoint plugins with their weights: a default one keeps its place."""
    enabled = {
        _name(entry): _integer(entry, "weight", 0) for entry in _list(multi_point, "enabled")
    }
    disabled = {_name(entry) for entry in _list(multi_point, "disabled")}
    merged: dict[str, int] = {}
    if ALL not in disabled:
        for plugin in default_plugins(parity):
            if plugin.name not in disabled:
                merged[plugin.name] = enabled.get(plugin.name, plugin.weight)
    return merged | {name: weight for name, weight in enabled.items() if name not in merged}


def _at_point(
    point: str,
    given: Document,
    merged: Mapping[str, int],
    known: Mapping[str, Sequence[str]],
) -> tuple[str, ...]:
    """Return the point's plugins in order: overrides first, then MultiPoint's, then the others."""
    explicit = [_name(entry) for entry in _list(given, "enabled")]
    for name in explicit:
        if point not in _points_of(name, known):
            msg = f"plugin {name!r} is enabled at {point}, a point that it does not have"
            raise BadConfiguration(msg)
    disabled = {_name(entry) for entry in _list(given, "disabled")}
    spread: list[str] = []
    if ALL not in disabled:
        spread = [name for name in merged if name not in disabled and point in known[name]]
    overrides = [name for name in explicit if name in spread]
    added = [name for name in explicit if name not in spread]
    return tuple(overrides + [name for name in spread if name not in overrides] + added)


def _points_of(name: str, known: Mapping[str, Sequence[str]]) -> Sequence[str]:
    if name not in known:
        msg = f"plugin {name!r} is enabled, and there is no plugin of that name"
        raise BadConfiguration(msg)
    return known[name]


def _weights(names: Sequence[str], at_score: Document, merged: Mapping[str, int]) -> dict[str, int]:
    """Return each score plugin's weight: an entry at the point decides, else MultiPoint's."""
    explicit = {_name(entry): _integer(entry, "weight", 0) for entry in _list(at_score, "enabled")}
    return {name: explicit.get(name, merged.get(name, 0)) or 1 for name in names}


def _args(
    plugin_config: Sequence[Document], points: Mapping[str, Sequence[str]]
) -> dict[str, Mapping[str, Any]]:
    """Return the arguments of every plugin of the profile that has any."""
    given = {_name(entry): _mapping(entry, "args") for entry in plugin_config}
    names = dict.fromkeys(name for at in points.values() for name in at)
    args = {name: defaulted_args(name, given.get(name, {})) for name in names}
    return {name: found for name, found in args.items() if found}


# -- reading the document ------------------------------------------------------------------------


def _mapping(document: Document, key: str) -> Document:
    value = document.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        msg = f"configuration: {key} is {value!r}, want a mapping"
        raise BadConfiguration(msg)
    return value


def _list(document: Document, key: str) -> list[Document]:
    value = document.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        msg = f"configuration: {key} is {value!r}, want a list of mappings"
        raise BadConfiguration(msg)
    return value


def _integer(document: Document, key: str, default: int) -> int:
    value = document.get(key)
    if value is None:
        return default
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        msg = f"configuration: {key} is {value!r}, want an integer"
        raise BadConfiguration(msg)
    return value


def _name(entry: Document) -> str:
    name = entry.get("name", "")
    if not isinstance(name, str):
        msg = f"configuration: name is {name!r}, want text"
        raise BadConfiguration(msg)
    return name
