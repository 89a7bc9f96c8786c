"""The arguments of the default plugins, after defaulting (camelCase keys, as in the document)."""

from collections.abc import Mapping
from typing import Any, Final

Args = Mapping[str, Any]
_META: Final = ("apiVersion", "kind")
_CPU_AND_MEMORY: Final = ({"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1})

_DEFAULTS: Final[Mapping[str, Args]] = {
    "DefaultPreemption": {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100},
    "InterPodAffinity": {"hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": False},
    "NodeResourcesBalancedAllocation": {"resources": _CPU_AND_MEMORY},
    "NodeResourcesFit": {"scoringStrategy": {"type": "LeastAllocated"}},
    "PodTopologySpread": {"defaultingType": "System"},
    "VolumeBinding": {"bindTimeoutSeconds": 600},
    "DynamicResources": {"filterTimeout": "10s", "bindingTimeout": "10m0s"},
}


def defaulted_args(plugin: str, given: Args) -> dict[str, Any]:
    """Return the plugin's arguments; an argument that is null counts as not given."""
    args = {key: value for key, value in given.items() if key not in _META and value is not None}
    args = {**_DEFAULTS.get(plugin, {}), **args}
    if plugin == "NodeResourcesFit":
        strategy = dict(args["scoringStrategy"])
        strategy["resources"] = _weighted(strategy.get("resources"))
        args["scoringStrategy"] = strategy
    elif plugin == "NodeResourcesBalancedAllocation":
        args["resources"] = _weighted(args["resources"])
    return args


def _weighted(resources: Any) -> list[dict[str, Any]]:
    """Return the resources, cpu and memory if there are none; a weight that is not given is 1."""
    return [{**entry, "weight": entry.get("weight") or 1} for entry in resources or _CPU_AND_MEMORY]
