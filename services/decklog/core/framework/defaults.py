"""The plugins of kube-scheduler's default profile: their points, their order, their weights.

The order is the one in which they run at every point that they have.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from decklog.core.rules import Parity


@dataclass(frozen=True, slots=True)
class DefaultPlugin:
    name: str
    points: tuple[str, ...]
    weight: int = 0
    """Of its score; 0: it has none, or the framework's default of 1."""


_FILTER: Final = ("preFilter", "filter")
_SCORE: Final = ("preScore", "score")

DEFAULT_PLUGINS: Final = (
    DefaultPlugin("SchedulingGates", ("preEnqueue",)),
    DefaultPlugin("PrioritySort", ("queueSort",)),
    DefaultPlugin("NodeUnschedulable", ("filter",)),
    DefaultPlugin("NodeName", ("filter",)),
    DefaultPlugin("TaintToleration", ("filter", *_SCORE), weight=3),
    DefaultPlugin("NodeAffinity", (*_FILTER, *_SCORE), weight=2),
    DefaultPlugin("NodePorts", _FILTER),
    DefaultPlugin("NodeResourcesFit", (*_FILTER, *_SCORE), weight=1),
    DefaultPlugin("VolumeRestrictions", _FILTER),
    DefaultPlugin("NodeVolumeLimits", _FILTER),
    DefaultPlugin("VolumeBinding", (*_FILTER, *_SCORE, "reserve", "preBind")),
    DefaultPlugin("VolumeZone", _FILTER),
    DefaultPlugin("PodTopologySpread", (*_FILTER, *_SCORE), weight=2),
    DefaultPlugin("InterPodAffinity", (*_FILTER, *_SCORE), weight=2),
    DefaultPlugin(
        "DynamicResources",
        ("preEnqueue", *_FILTER, "postFilter", "score", "reserve", "preBind"),
        weight=2,
    ),
    DefaultPlugin("DefaultPreemption", ("preEnqueue", "postFilter")),
    DefaultPlugin("NodeResourcesBalancedAllocation", _SCORE, weight=1),
    DefaultPlugin("ImageLocality", ("score",), weight=1),
    DefaultPlugin("DefaultBinder", ("bind",)),
    DefaultPlugin("NodeDeclaredFeatures", _FILTER),
)

POINTS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    plugin.name: plugin.points for plugin in DEFAULT_PLUGINS
}


def default_plugins(parity: Parity) -> tuple[DefaultPlugin, ...]:
    """Return the default plugins of the release, in order."""
    if parity.declared_features:
        return DEFAULT_PLUGINS
    return tuple(plugin for plugin in DEFAULT_PLUGINS if plugin.name != "NodeDeclaredFeatures")
