"""Which plugin has which extension points, and a profile: its plugins at each point, in order.

A plugin has a point if it has the point's method; there is nothing to inherit and nothing to
register twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from decklog.core.errors import BadConfiguration
from decklog.core.framework.config import ProfileConfig
from decklog.core.framework.interface import (
    EVERYTHING,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostFilterPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    Reads,
    ReservePlugin,
    ScorePlugin,
)

METHODS: Final = {
    "preEnqueue": "pre_enqueue",
    "queueSort": "less",
    "preFilter": "pre_filter",
    "filter": "filter",
    "postFilter": "post_filter",
    "preScore": "pre_score",
    "score": "score",
    "reserve": "reserve",
    "permit": "permit",
    "preBind": "pre_bind",
    "bind": "bind",
    "postBind": "post_bind",
}
"""Extension point → the method that a plugin with this point has."""
CORE_POINTS: Final = (
    "preEnqueue",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
)
"""The points that deciding calls; the others are the queue's and the binder's."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Profile:
    """The plugins of a profile at each point that deciding calls, in the order they are called."""

    config: ProfileConfig
    pre_enqueue: tuple[PreEnqueuePlugin, ...] = ()
    pre_filter: tuple[PreFilterPlugin, ...] = ()
    filter: tuple[FilterPlugin, ...] = ()
    post_filter: tuple[PostFilterPlugin, ...] = ()
    pre_score: tuple[PreScorePlugin, ...] = ()
    score: tuple[ScorePlugin, ...] = ()
    weights: tuple[int, ...] = ()
    """Of the score plugins, in their order."""
    reserve: tuple[ReservePlugin, ...] = ()
    permit: tuple[PermitPlugin, ...] = ()
    plugins: Mapping[str, Plugin] = field(default_factory=dict)
    """All plugins of the profile by name, those of the binder's points too."""

    @property
    def name(self) -> str:
        return self.config.scheduler_name


def make_profile(config: ProfileConfig, plugins: Mapping[str, Plugin]) -> Profile:
    """Return the profile that the configuration names, of these plugin instances."""
    at: dict[str, Any] = {}
    for point in CORE_POINTS:
        names = config.points.get(point, ())
        for name in names:
            if name not in plugins or not has_point(plugins[name], point):
                msg = f"profile {config.scheduler_name!r} has {name!r} at {point}, where it isn't"
                raise BadConfiguration(msg)
        at[METHODS[point]] = tuple(plugins[name] for name in names)
    weights = tuple(config.weights.get(name, 1) for name in config.points.get("score", ()))
    return Profile(config=config, weights=weights, plugins=plugins, **at)


def has_point(plugin: Plugin, point: str) -> bool:
    return callable(getattr(plugin, METHODS[point], None))


def reads_of(plugin: Plugin) -> Reads:
    """Return what the plugin's verdicts depend on; one that says nothing depends on everything."""
    reads: Reads = getattr(plugin, "reads", EVERYTHING)
    return reads
