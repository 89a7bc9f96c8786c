import numpy as np

from decklog.core.framework.interface import CycleState
from decklog.core.framework.status import SKIP, SUCCESS, error, unresolvable, unschedulable
from decklog.core.plugins.dynamic_resources import DynamicResources
from decklog.objects.pod import PodResourceClaim
from tests.builders import make_node, make_pod
from tests.unit.core.columns_builders import make_columns
from tests.unit.core.plugins.judging import UNASKED, judged, scored

COLUMNS = make_columns([make_node()])


def test_a_pod_without_claims_passes() -> None:
    plugin, pod = DynamicResources(), make_pod()
    assert plugin.pre_filter(CycleState(), pod, COLUMNS) == (None, SKIP)
    assert judged(plugin, pod, [make_node()]) == [SUCCESS]
    assert scored(plugin, pod, [make_node()]) == [0]
    assert plugin.pre_enqueue(pod) == SUCCESS
    assert plugin.reserve(CycleState(), pod, "node") == ({}, SUCCESS)
    assert plugin.unreserve(pod, "node", {}) == ()


def test_a_pod_with_claims_is_refused() -> None:
    pod = make_pod(resource_claims=(PodResourceClaim(name="gpu", claim_name="gpu"),))
    want = unresolvable("decklog does not support resource claims yet")
    assert DynamicResources().pre_filter(CycleState(), pod, COLUMNS) == (None, want)


def test_post_filter_has_nothing_to_deallocate() -> None:
    plugin, state = DynamicResources(), CycleState()
    plugin.pre_filter(state, make_pod(), COLUMNS)
    want = unschedulable("no new claims to deallocate")
    assert plugin.post_filter(state, make_pod(), COLUMNS, UNASKED) == (None, want)


def test_post_filter_does_not_find_what_pre_filter_never_wrote() -> None:
    """A plugin before it rejected the pod in PreFilter: upstream then says `not found`."""
    found = DynamicResources().post_filter(CycleState(), make_pod(), COLUMNS, UNASKED)
    assert found == (None, error("not found"))


def test_before_1_34_it_says_nothing_in_post_filter() -> None:
    plugin = DynamicResources(answers_post_filter=False)
    _, status = plugin.post_filter(CycleState(), make_pod(), COLUMNS, UNASKED)
    assert status == unschedulable()
    assert np.count_nonzero(plugin.score(CycleState(), make_pod(), COLUMNS)) == 0
