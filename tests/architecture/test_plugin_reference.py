"""The reference names every plugin, and every reason that a filter gives."""

import pytest

from decklog.core.framework.defaults import DEFAULT_PLUGINS
from decklog.core.framework.interface import FilterPlugin
from decklog.core.framework.resolve import default_config
from decklog.core.plugins.registry import build_profiles
from tests.architecture.source import ROOT

REFERENCE = (ROOT / "docs" / "reference" / "plugins.md").read_text()
FILTERS = build_profiles(default_config())["decklog"].filter


@pytest.mark.parametrize("name", [plugin.name for plugin in DEFAULT_PLUGINS])
def test_the_plugin_is_in_the_reference(name: str) -> None:
    assert name in REFERENCE


@pytest.mark.parametrize("plugin", FILTERS, ids=lambda plugin: plugin.name)
def test_its_reasons_are_in_the_reference(plugin: FilterPlugin) -> None:

    assert all(reason in REFERENCE for status in plugin.statuses for reason in status.reasons)
