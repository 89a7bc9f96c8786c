from dataclasses import replace
from typing import Any

import pytest

from decklog.core.framework.config import SchedulerConfig
from decklog.core.framework.config_body import config_body, config_from_body, config_hash
from decklog.core.framework.resolve import default_config, resolve

SHAPE = {"shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]}
RATIO = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": SHAPE}
DOCUMENT = {
    "percentageOfNodesToScore": 30,
    "extenders": [{"urlPrefix": "http://127.0.0.1", "weight": 1}],
    "profiles": [
        {"schedulerName": "önly", "percentageOfNodesToScore": 5},
        {
            "schedulerName": "b",
            "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": RATIO}}],
        },
    ],
}


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(default_config(seed=-3), id="built in"),
        pytest.param(resolve(DOCUMENT), id="of a document"),
        pytest.param(SchedulerConfig(), id="empty"),
    ],
)
def test_a_body_gives_back_the_configuration(config: SchedulerConfig) -> None:
    body = config_body(config)
    found = config_from_body(body)
    assert config_body(found) == body
    assert config_hash(found) == config_hash(config)
    assert found.profiles == tuple(
        replace(one, args={name: listed(args) for name, args in one.args.items()})
        for one in config.profiles
    )
    assert replace(found, profiles=()) == replace(config, profiles=())


def listed(value: Any) -> Any:
    """Return the value with lists for tuples, as JSON gives it back."""
    if isinstance(value, dict):
        return {key: listed(one) for key, one in value.items()}
    return [listed(one) for one in value] if isinstance(value, list | tuple) else value


def test_everything_that_deciding_depends_on_changes_the_hash() -> None:
    config = default_config()
    others = [
        replace(config, seed=1),
        replace(config, percentage_of_nodes_to_score=99),
        replace(config, pod_initial_backoff_seconds=2),
        replace(config, pod_max_backoff_seconds=11),
        replace(config, unschedulable_flush_seconds=301),
        replace(config, profiles=()),
        replace(config, extenders=({},)),
    ]
    assert len({config_hash(one) for one in [config, *others]}) == len(others) + 1


def test_the_hash_of_the_built_in_configuration_stays() -> None:
    """Every tick records it. Whoever changes what it covers changes it on purpose, here too."""
    assert config_hash(default_config()).startswith("60d54439a73d025d")
