import re
from dataclasses import replace

import pytest

from decklog.core.errors import BadConfiguration
from decklog.core.framework.config import SchedulerConfig
from decklog.core.framework.defaults import (
    DEFAULT_PLUGINS,
    POINTS_OF,
    DefaultPlugin,
    default_plugins,
)
from decklog.core.framework.per_node import PerNode
from decklog.core.framework.points import CORE_POINTS, has_point, reads_of
from decklog.core.framework.resolve import default_config, resolve
from decklog.core.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from decklog.core.plugins.node_resources_fit import NodeResourcesFit
from decklog.core.plugins.registry import REGISTRY, build_profiles
from decklog.core.rules import V1_36
from tests.unit.core.framework.test_per_node import RackLimit

PROFILE = build_profiles(default_config())["decklog"]


def test_every_default_plugin_is_registered() -> None:
    assert set(REGISTRY) == {plugin.name for plugin in DEFAULT_PLUGINS}


@pytest.mark.parametrize("plugin", DEFAULT_PLUGINS, ids=lambda plugin: plugin.name)
def test_a_plugin_has_its_points(plugin: DefaultPlugin) -> None:
    made = PROFILE.plugins[plugin.name]
    assert made.name == plugin.name
    points = [point for point in plugin.points if point in CORE_POINTS]
    assert [point for point in points if not has_point(made, point)] == []
    assert reads_of(made)


def test_a_plugin_stands_in_a_file_of_its_name() -> None:
    for name, plugin in PROFILE.plugins.items():
        module = type(plugin).__module__.rpartition(".")[2]
        assert module in (re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(), "not_yet")


def test_arguments_reach_their_plugins() -> None:
    resources = [{"name": "cpu", "weight": 3}]
    args = {
        "NodeResourcesFit": {
            "ignoredResources": ["a.b/c"],
            "ignoredResourceGroups": ["d.e"],
            "scoringStrategy": {"type": "MostAllocated", "resources": resources},
        },
        "NodeResourcesBalancedAllocation": {"resources": [{"name": "memory"}]},
    }
    given = [{"name": name, "args": value} for name, value in args.items()]
    plugins = build_profiles(resolve({"profiles": [{"pluginConfig": given}]}))[
        "default-scheduler"
    ].plugins
    fit, balanced = plugins["NodeResourcesFit"], plugins["NodeResourcesBalancedAllocation"]
    assert isinstance(fit, NodeResourcesFit)
    assert (set(fit.ignored), set(fit.ignored_groups)) == ({"a.b/c"}, {"d.e"})
    assert (fit.strategy.type, fit.strategy.resources) == ("MostAllocated", (("cpu", 3),))
    assert isinstance(balanced, NodeResourcesBalancedAllocation)
    assert balanced.resources == (("memory", 1),)
    assert balanced.by_change


def test_an_older_release_lacks_what_came_later() -> None:
    older = replace(V1_36, declared_features=False)
    assert "NodeDeclaredFeatures" not in [plugin.name for plugin in default_plugins(older)]
    assert default_plugins(V1_36) == DEFAULT_PLUGINS


def test_plugins_of_others_can_be_built_in() -> None:
    document = {"profiles": [{"plugins": {"filter": {"enabled": [{"name": "RackLimit"}]}}}]}
    config = resolve(document, known={**POINTS_OF, "RackLimit": ("filter",)})
    registry = {**REGISTRY, "RackLimit": lambda _args, _parity: PerNode(RackLimit())}
    profile = build_profiles(config, registry=registry)["default-scheduler"]
    assert profile.filter[-1].name == "RackLimit"


def test_a_plugin_that_is_not_known_is_refused() -> None:
    profile = replace(default_config().profiles[0], points={"filter": ("Fast",)})
    with pytest.raises(BadConfiguration, match="'Fast', which is not known"):
        build_profiles(SchedulerConfig(profiles=(profile,)))
