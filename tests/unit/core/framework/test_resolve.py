from typing import Any

import pytest

from decklog.core.errors import BadConfiguration
from decklog.core.framework.config import ProfileConfig
from decklog.core.framework.defaults import DEFAULT_PLUGINS, POINTS_OF
from decklog.core.framework.resolve import default_config, resolve

FILTERS = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "NodeDeclaredFeatures",
)


def profile(**fields: Any) -> ProfileConfig:
    """Return the one profile that a document with these fields of a profile is resolved to."""
    return resolve({"profiles": [fields]}).profiles[0]


def at(point: str, *, enabled: Any = (), disabled: Any = (), **more: Any) -> tuple[str, ...]:
    plugins = {point: entries(enabled, disabled), **more}
    return profile(plugins=plugins).points.get(point, ())


def entries(enabled: Any, disabled: Any = ()) -> dict[str, Any]:
    return {
        "enabled": [{"name": name} for name in enabled],
        "disabled": [{"name": name} for name in disabled],
    }


def test_the_built_in_profile_scores_every_node() -> None:
    config = default_config(seed=7)
    assert config.seed == 7
    assert config.percentage_of_nodes_to_score == 100
    assert [one.scheduler_name for one in config.profiles] == ["decklog"]
    assert config.profiles[0].points == resolve(None).profiles[0].points


def test_an_empty_document_is_kube_schedulers_default() -> None:
    config = resolve(None)
    found = config.profiles[0]
    assert config.percentage_of_nodes_to_score == 0
    assert (config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds) == (1, 10)
    assert found.scheduler_name == "default-scheduler"
    assert found.points["filter"] == FILTERS
    assert found.points["postFilter"] == ("DynamicResources", "DefaultPreemption")
    assert found.points["bind"] == ("DefaultBinder",)
    assert found.weights == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "VolumeBinding": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }


def test_arguments_are_defaulted() -> None:
    args = profile().args
    assert args["NodeResourcesFit"]["scoringStrategy"] == {
        "type": "LeastAllocated",
        "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
    }
    assert args["DefaultPreemption"]["minCandidateNodesPercentage"] == 10
    assert "NodeAffinity" not in args


def test_given_arguments_take_the_place_of_defaults() -> None:
    given = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "NodeResourcesFitArgs",
        "ignoredResources": None,
        "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu"}]},
    }
    args = profile(pluginConfig=[{"name": "NodeResourcesFit", "args": given}]).args
    assert args["NodeResourcesFit"] == {
        "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
    }


def test_arguments_of_plugins_that_are_not_enabled_are_dropped() -> None:
    given = [{"name": "NodeAffinity", "args": {"addedAffinity": {}}}]
    off = {"multiPoint": entries((), ["NodeAffinity"])}
    assert "NodeAffinity" not in profile(pluginConfig=given, plugins=off).args


@pytest.mark.parametrize(
    ("enabled", "disabled", "want"),
    [
        pytest.param((), ("NodeName",), FILTERS[:1] + FILTERS[2:], id="one is disabled"),
        pytest.param((), ("*",), (), id="all are disabled"),
        pytest.param((), ("Unknown",), FILTERS, id="an unknown one may be disabled"),
        pytest.param(
            ("NodePorts", "NodeName"),
            (),
            ("NodePorts", "NodeName", *(n for n in FILTERS if n not in ("NodePorts", "NodeName"))),
            id="those that are named come first, in their order",
        ),
        pytest.param(
            ("NodePorts", "NodeName"), ("*",), ("NodePorts", "NodeName"), id="only those named"
        ),
        pytest.param(
            ("NodeName",),
            ("NodeName",),
            (*FILTERS[:1], *FILTERS[2:], "NodeName"),
            id="disabled and enabled: last",
        ),
    ],
)
def test_plugins_of_a_point(
    enabled: tuple[str, ...], disabled: tuple[str, ...], want: tuple[str, ...]
) -> None:
    assert at("filter", enabled=enabled, disabled=disabled) == want


def test_multi_point_is_merged_into_the_defaults() -> None:
    """A default plugin keeps its place; what is off there is off at every point."""
    multi_point = {
        "enabled": [{"name": "ImageLocality", "weight": 9}, {"name": "NodeAffinity"}],
        "disabled": [{"name": "NodePorts"}],
    }
    found = profile(plugins={"multiPoint": multi_point})
    assert found.points["filter"] == tuple(name for name in FILTERS if name != "NodePorts")
    assert found.points["score"] == profile().points["score"]
    assert found.weights["ImageLocality"] == 9
    assert found.weights["NodeAffinity"] == 1


def test_multi_point_may_start_from_nothing() -> None:
    only = {"multiPoint": entries(["NodeName", "PrioritySort", "DefaultBinder"], ["*"])}
    assert profile(plugins=only).points == {
        "queueSort": ("PrioritySort",),
        "filter": ("NodeName",),
        "bind": ("DefaultBinder",),
    }


def test_a_weight_at_score_decides() -> None:
    score = {"enabled": [{"name": "TaintToleration"}, {"name": "ImageLocality", "weight": 5}]}
    weights = profile(plugins={"score": score}).weights
    assert (weights["TaintToleration"], weights["ImageLocality"]) == (1, 5)


def test_other_plugins_may_be_known() -> None:
    plugins = {"multiPoint": entries(["RackLimit"])}
    known = {**POINTS_OF, "RackLimit": ("filter",)}
    config = resolve({"profiles": [{"plugins": plugins}]}, known=known)
    assert config.profiles[0].points["filter"] == (*FILTERS, "RackLimit")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param({"profiles": {}}, "want a list", id="profiles are no list"),
        pytest.param({"profiles": [{"plugins": []}]}, "want a mapping", id="plugins are a list"),
        pytest.param({"percentageOfNodesToScore": "50"}, "want an integer", id="text for a number"),
        pytest.param({"podMaxBackoffSeconds": True}, "want an integer", id="truth for a number"),
        pytest.param(
            {"profiles": [{"plugins": {"filter": entries([7])}}]},
            "want text",
            id="a name is no text",
        ),
        pytest.param(
            {"profiles": [{"plugins": {"filter": entries(["Fast"])}}]},
            "no plugin of that name",
            id="unknown plugin",
        ),
        pytest.param(
            {"profiles": [{"plugins": {"multiPoint": entries(["Fast"])}}]},
            "no plugin of that name",
            id="unknown plugin at all points",
        ),
        pytest.param(
            {"profiles": [{"plugins": {"score": entries(["NodeName"])}}]},
            "a point that it does not have",
            id="plugin at a point that it does not have",
        ),
    ],
)
def test_what_cannot_be_used_is_refused(document: dict[str, Any], message: str) -> None:
    with pytest.raises(BadConfiguration, match=message):
        resolve(document)


def test_a_whole_number_may_be_written_as_a_fraction() -> None:
    found = resolve(
        {"percentageOfNodesToScore": 50.0, "profiles": [{"percentageOfNodesToScore": 7}]}
    )
    assert found.percentage_of_nodes_to_score == 50
    assert found.profiles[0].percentage_of_nodes_to_score == 7


def test_default_plugins_are_named_once() -> None:
    assert (
        len({plugin.name for plugin in DEFAULT_PLUGINS}) == len(DEFAULT_PLUGINS) == len(POINTS_OF)
    )
