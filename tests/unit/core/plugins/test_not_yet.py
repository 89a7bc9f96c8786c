from collections.abc import Mapping
from typing import Any

import pytest

from decklog.core.cache import Cache
from decklog.core.framework.config import SchedulerConfig
from decklog.core.framework.interface import CycleState
from decklog.core.framework.resolve import default_config
from decklog.core.framework.status import SKIP, SUCCESS, Status, unresolvable
from decklog.core.plugins.not_yet import NotYet
from decklog.core.plugins.registry import build_profiles, missing_plugins
from decklog.objects.pod import InlineDisk, Pod, Volume
from tests.builders import make_node, make_pod
from tests.unit.core.columns_builders import make_cache
from tests.unit.core.plugins.judging import judged


def plugins(config: SchedulerConfig | None = None) -> Mapping[str, NotYet]:
    config = config or default_config()
    profile = build_profiles(config)[config.profiles[0].scheduler_name]
    return {n: one for n, one in profile.plugins.items() if isinstance(one, NotYet)}


def refusal(name: str, pod: Pod, cache: Cache | None = None) -> Status:
    cache = cache or make_cache([make_node()])
    _, status = plugins()[name].pre_filter(CycleState(cluster=cache), pod, cache.columns)
    return status


def with_volume(**source: Any) -> Pod:
    return make_pod(volumes=(Volume(name="v", **source),))


@pytest.mark.parametrize(
    ("name", "pod", "what"),
    [
        pytest.param(
            "VolumeBinding", with_volume(claim_name="c"), "persistent volume claims", id="claim"
        ),
        pytest.param(
            "VolumeZone", with_volume(ephemeral=True), "persistent volume claims", id="ephemeral"
        ),
        pytest.param(
            "VolumeRestrictions",
            with_volume(disk=InlineDisk(kind="iscsi")),
            "iscsi volumes",
            id="disk that cannot be shared",
        ),
        pytest.param(
            "NodeVolumeLimits",
            with_volume(disk=InlineDisk(kind="azureDisk")),
            "azureDisk volumes",
            id="disk that is counted",
        ),
        pytest.param(
            "NodeVolumeLimits", with_volume(csi_driver="d"), "inline csi volumes", id="csi"
        ),
    ],
)
def test_a_pod_that_needs_the_plugin_is_refused(name: str, pod: Pod, what: str) -> None:
    assert refusal(name, pod) == unresolvable(f"decklog does not support {what} yet")
    assert plugins()[name].used_by([make_pod(), pod], Cache())


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod(), id="plain"),
        pytest.param(with_volume(image="data:1"), id="image volume"),
    ],
)
def test_other_pods_pass(pod: Pod) -> None:
    for name, plugin in plugins().items():
        assert refusal(name, pod) == SKIP
        assert not plugin.used_by([pod], Cache())


def test_a_disk_that_can_be_shared_is_not_restricted() -> None:
    assert refusal("VolumeRestrictions", with_volume(disk=InlineDisk(kind="azureDisk"))) == SKIP


def test_at_all_other_points_they_say_nothing() -> None:
    cache = make_cache([make_node()])
    columns, state, pod = cache.columns, CycleState(), make_pod()
    for plugin in plugins().values():
        assert judged(plugin, pod, [make_node()]) == [SUCCESS]
        assert plugin.pre_score(state, pod, columns, columns.present) == SKIP
        assert not plugin.score(state, pod, columns).any()
        assert plugin.reserve(state, pod, "node") == ({}, SUCCESS)
        assert plugin.unreserve(pod, "node", {}) == ()


def test_missing_plugins_are_named() -> None:
    profile = build_profiles(default_config())["decklog"]
    pods = [make_pod(), with_volume(claim_name="c")]
    assert missing_plugins(profile, pods, Cache()) == (
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
    )
