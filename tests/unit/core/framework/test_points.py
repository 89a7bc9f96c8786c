"""A plugin has the points whose methods it has."""

import pytest

from decklog.core.errors import BadConfiguration
from decklog.core.framework.config import ProfileConfig
from decklog.core.framework.interface import EVERYTHING, Reads
from decklog.core.framework.points import has_point, make_profile, reads_of
from tests.unit.core.small_plugins import Book, Cordon, Crowd, Room


def test_a_profile_has_its_plugins_in_the_order_of_each_point() -> None:
    config = ProfileConfig(
        scheduler_name="s",
        points={"filter": ("Room", "Cordon"), "score": ("Room",), "reserve": ("Book",)},
        weights={"Room": 3},
    )
    plugins = {plugin.name: plugin for plugin in (Cordon(), Room(), Book())}
    profile = make_profile(config, plugins)
    assert [plugin.name for plugin in profile.filter] == ["Room", "Cordon"]
    assert (profile.name, profile.weights, profile.permit) == ("s", (3,), ())


@pytest.mark.parametrize("name", ["Cordon", "Unknown"])
def test_a_plugin_where_it_is_not_is_refused(name: str) -> None:
    config = ProfileConfig(scheduler_name="s", points={"score": (name,)})
    with pytest.raises(BadConfiguration, match=f"profile 's' has '{name}' at score"):
        make_profile(config, {"Cordon": Cordon()})


def test_points_and_reads_of_a_plugin() -> None:
    assert has_point(Room(), "filter")
    assert not has_point(Room(), "permit")
    assert reads_of(Room()) == Reads.RESOURCES
    assert reads_of(Crowd()) == EVERYTHING
