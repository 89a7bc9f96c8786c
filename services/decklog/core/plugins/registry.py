"""All plugins that decklog knows, by name: one explicit table.

`make` gets the plugin's arguments after defaulting, and the release that we answer like.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from decklog.core.errors import BadConfiguration
from decklog.core.framework.config import ProfileConfig, SchedulerConfig
from decklog.core.framework.interface import ClusterView, Plugin
from decklog.core.framework.points import Profile, make_profile
from decklog.core.plugins.default_binder import DefaultBinder
from decklog.core.plugins.default_preemption import make_default_preemption
from decklog.core.plugins.dynamic_resources import DynamicResources
from decklog.core.plugins.image_locality import ImageLocality
from decklog.core.plugins.inter_pod_affinity import InterPodAffinity
from decklog.core.plugins.node_affinity import make_node_affinity
from decklog.core.plugins.node_declared_features import NodeDeclaredFeatures
from decklog.core.plugins.node_name import NodeName
from decklog.core.plugins.node_ports import NodePorts
from decklog.core.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from decklog.core.plugins.node_resources_fit import NodeResourcesFit
from decklog.core.plugins.node_unschedulable import NodeUnschedulable
from decklog.core.plugins.not_yet import FEATURES, Feature, NotYet
from decklog.core.plugins.pod_topology_spread import PodTopologySpread
from decklog.core.plugins.priority_sort import PrioritySort
from decklog.core.plugins.scheduling_gates import SchedulingGates
from decklog.core.plugins.scoring_strategy import make_strategy, weighted_resources
from decklog.core.plugins.taint_toleration import TaintToleration
from decklog.core.rules import Parity
from decklog.objects.pod import Pod

Args = Mapping[str, Any]
Make = Callable[[Args, Parity], Plugin]


def _fit(args: Args, _parity: Parity) -> Plugin:
    return NodeResourcesFit(
        ignored=frozenset(args.get("ignoredResources") or ()),
        ignored_groups=frozenset(args.get("ignoredResourceGroups") or ()),
        strategy=make_strategy(args["scoringStrategy"]),
    )


def _balanced(args: Args, parity: Parity) -> Plugin:
    return NodeResourcesBalancedAllocation(
        resources=weighted_resources(args["resources"]),
        by_change=parity.balanced_allocation_delta,
    )


def _spread(args: Args, _parity: Parity) -> Plugin:
    return PodTopologySpread(
        defaults=tuple(args.get("defaultConstraints") or ()),
        system_defaults=args.get("defaultingType", "System") == "System",
    )


def _affinity(args: Args, _parity: Parity) -> Plugin:
    return InterPodAffinity(
        hard_pod_affinity_weight=args["hardPodAffinityWeight"],
        ignore_preferred_terms_of_existing_pods=args["ignorePreferredTermsOfExistingPods"],
    )


def _not_yet(feature: Feature, args: Args, _parity: Parity) -> Plugin:
    return NotYet(feature=feature, args=args)


REGISTRY: Final[Mapping[str, Make]] = {
    "SchedulingGates": lambda _args, _parity: SchedulingGates(),
    "PrioritySort": lambda _args, _parity: PrioritySort(),
    "NodeUnschedulable": lambda _args, parity: NodeUnschedulable(
        comparison=parity.numeric_tolerations
    ),
    "NodeName": lambda _args, _parity: NodeName(),
    "TaintToleration": lambda _args, parity: TaintToleration(comparison=parity.numeric_tolerations),
    "NodeAffinity": lambda args, _parity: make_node_affinity(args),
    "NodePorts": lambda _args, _parity: NodePorts(),
    "NodeResourcesFit": _fit,
    "PodTopologySpread": _spread,
    "InterPodAffinity": _affinity,
    "DynamicResources": lambda _args, parity: DynamicResources(
        answers_post_filter=parity.dynamic_resources_post_filter
    ),
    "DefaultPreemption": lambda args, _parity: make_default_preemption(args),
    "NodeResourcesBalancedAllocation": _balanced,
    "ImageLocality": lambda _args, _parity: ImageLocality(),
    "DefaultBinder": lambda _args, _parity: DefaultBinder(),
    "NodeDeclaredFeatures": lambda _args, _parity: NodeDeclaredFeatures(),
    **{feature.name: partial(_not_yet, feature) for feature in FEATURES},
}


def build_profiles(
    config: SchedulerConfig, *, registry: Mapping[str, Make] = REGISTRY
) -> dict[str, Profile]:
    """Return the profiles with their plugins, by scheduler name.

    Raises:
        BadConfiguration: a profile names a plugin that is not known, or gives it bad arguments.
    """
    return {
        profile.scheduler_name: make_profile(profile, _plugins(profile, config.parity, registry))
        for profile in config.profiles
    }


def missing_plugins(profile: Profile, pods: Sequence[Pod], cluster: ClusterView) -> tuple[str, ...]:
    """Return the profile's plugins that are not there yet and would have a say about the pods."""
    return tuple(
        plugin.name
        for plugin in profile.plugins.values()
        if isinstance(plugin, NotYet) and plugin.used_by(pods, cluster)
    )


def _plugins(
    profile: ProfileConfig, parity: Parity, registry: Mapping[str, Make]
) -> dict[str, Plugin]:
    names = dict.fromkeys(name for at in profile.points.values() for name in at)
    unknown = [name for name in names if name not in registry]
    if unknown:
        msg = f"profile {profile.scheduler_name!r} names plugin {unknown[0]!r}, which is not known"
        raise BadConfiguration(msg)
    return {name: registry[name](profile.args.get(name, {}), parity) for name in names}
