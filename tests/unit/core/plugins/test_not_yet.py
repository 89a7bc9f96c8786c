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
from decklog.objects.pod import (
    Affinity,
    InlineDisk,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    Volume,
    WeightedPodAffinityTerm,
)
from tests.builders import ZONE, make_namespace, make_node, make_pod, make_selector
from tests.unit.core.columns_builders import make_cache
from tests.unit.core.plugins.judging import judged

WEB = PodAffinityTerm(topology_key=ZONE, label_selector=make_selector(app="web"))


def apart_from(*terms: PodAffinityTerm) -> Affinity:
    return Affinity(pod_anti=PodAffinity(required=terms))


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
            "InterPodAffinity",
            make_pod(affinity=Affinity(pod=PodAffinity(required=(WEB,)))),
            "affinity between pods",
            id="affinity",
        ),
        pytest.param(
            "InterPodAffinity",
            make_pod(
                affinity=Affinity(
                    pod_anti=PodAffinity(preferred=(WeightedPodAffinityTerm(weight=1, term=WEB),))
                )
            ),
            "affinity between pods",
            id="preferred anti-affinity",
        ),
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
        pytest.param(make_pod(affinity=Affinity(pod=PodAffinity())), id="empty stanza"),
    ],
)
def test_other_pods_pass(pod: Pod) -> None:
    for name, plugin in plugins().items():
        assert refusal(name, pod) == SKIP
        assert not plugin.used_by([pod], Cache())


def test_a_disk_that_can_be_shared_is_not_restricted() -> None:
    assert refusal("VolumeRestrictions", with_volume(disk=InlineDisk(kind="azureDisk"))) == SKIP


@pytest.mark.parametrize(
    ("term", "refused"),
    [
        pytest.param(WEB, True, id="own namespace"),
        pytest.param(
            PodAffinityTerm(topology_key=ZONE, label_selector=make_selector(app="db")),
            False,
            id="other labels",
        ),
        pytest.param(
            PodAffinityTerm(
                topology_key=ZONE, label_selector=WEB.label_selector, namespaces=("prod",)
            ),
            True,
            id="named namespace",
        ),
        pytest.param(
            PodAffinityTerm(
                topology_key=ZONE,
                label_selector=WEB.label_selector,
                namespace_selector=make_selector(team="x"),
            ),
            True,
            id="selected namespace",
        ),
        pytest.param(
            PodAffinityTerm(
                topology_key=ZONE,
                label_selector=WEB.label_selector,
                namespace_selector=make_selector(team="y"),
            ),
            False,
            id="namespace that is not selected",
        ),
    ],
)
def test_the_anti_affinity_of_placed_pods_is_not_overlooked(
    term: PodAffinityTerm, *, refused: bool
) -> None:
    """A pod without any affinity may be kept away by another's: it is not placed in silence."""
    placed = make_pod("old", namespace="prod", node_name="node", affinity=apart_from(term))
    cache = make_cache([make_node()], [placed])
    cache.set_object("Namespace", "prod", make_namespace("prod", team="x"))
    pod = make_pod("new", namespace="prod", labels={"app": "web"})
    want = unresolvable("decklog does not support the anti-affinity of pod prod/old yet")
    assert refusal("InterPodAffinity", pod, cache) == (want if refused else SKIP)


def test_anti_affinity_stays_in_its_namespace() -> None:
    placed = make_pod("old", namespace="prod", node_name="node", affinity=apart_from(WEB))
    pod = make_pod("new", labels={"app": "web"})
    assert refusal("InterPodAffinity", pod, make_cache([make_node()], [placed])) == SKIP


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
    pods = [make_pod(), with_volume(claim_name="c"), make_pod(affinity=apart_from(WEB))]
    assert missing_plugins(profile, pods, Cache()) == (
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "InterPodAffinity",
    )
