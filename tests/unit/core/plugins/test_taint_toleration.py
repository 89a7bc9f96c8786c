import numpy as np
import pytest

from decklog.core.framework.interface import CycleState
from decklog.core.framework.status import SUCCESS, unresolvable
from decklog.core.plugins.taint_toleration import TaintToleration
from decklog.objects.selectors import Taint, Toleration
from tests.builders import make_node, make_pod, make_taint, make_toleration
from tests.unit.core.columns_builders import make_columns
from tests.unit.core.plugins.judging import judged, scored

UNTOLERATED = unresolvable("node(s) had untolerated taint(s)")
GPU = make_taint("gpu", "yes")
SLOW = make_taint("slow", "yes", "PreferNoSchedule")


@pytest.mark.parametrize(
    ("taints", "tolerations", "fits"),
    [
        pytest.param((), (), True, id="no taint"),
        pytest.param((GPU,), (), False, id="NoSchedule"),
        pytest.param((make_taint(effect="NoExecute"),), (), False, id="NoExecute"),
        pytest.param((SLOW,), (), True, id="PreferNoSchedule keeps nobody away"),
        pytest.param((GPU,), (make_toleration("gpu", "yes"),), True, id="equal value"),
        pytest.param((GPU,), (make_toleration("gpu", "no"),), False, id="another value"),
        pytest.param((GPU,), (make_toleration("gpu", operator="Exists"),), True, id="any value"),
        pytest.param((GPU,), (make_toleration(operator="Exists"),), True, id="any key"),
        pytest.param(
            (GPU,),
            (make_toleration("gpu", "yes", effect="NoExecute"),),
            False,
            id="another effect",
        ),
        pytest.param(
            (GPU, make_taint("disk")), (make_toleration("gpu", "yes"),), False, id="one of two"
        ),
        pytest.param(
            (GPU,), (make_toleration("gpu", "1", operator="Gt"),), False, id="gate is off"
        ),
    ],
)
def test_filter(
    taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...], *, fits: bool
) -> None:
    found = judged(TaintToleration(), make_pod(tolerations=tolerations), [make_node(taints=taints)])
    assert found == [SUCCESS if fits else UNTOLERATED]


def test_numbers_are_compared_where_the_release_does() -> None:
    pod = make_pod(tolerations=(make_toleration("tier", "5", operator="Lt"),))
    nodes = [
        make_node(name, taints=(make_taint("tier", value),))
        for name, value in (("a", "4"), ("b", "5"))
    ]
    assert judged(TaintToleration(comparison=True), pod, nodes) == [SUCCESS, UNTOLERATED]


def test_score_counts_taints_that_are_only_preferences() -> None:
    nodes = [
        make_node("none"),
        make_node("one", taints=(SLOW, GPU)),
        make_node("two", taints=(SLOW, make_taint("old", effect="PreferNoSchedule"))),
    ]
    assert scored(TaintToleration(), make_pod(), nodes) == [0, 1, 2]
    tolerating = make_pod(tolerations=(make_toleration("slow", operator="Exists"),))
    assert scored(TaintToleration(), tolerating, nodes) == [0, 0, 1]


def test_a_toleration_of_another_effect_does_not_count() -> None:
    pod = make_pod(tolerations=(make_toleration("slow", operator="Exists", effect="NoSchedule"),))
    assert scored(TaintToleration(), pod, [make_node(taints=(SLOW,))]) == [1]


@pytest.mark.parametrize(
    ("raw", "want"),
    [
        pytest.param([0, 1, 2], [100, 50, 0], id="fewest is best"),
        pytest.param([0, 0], [100, 100], id="no taint anywhere"),
        pytest.param([3, 3], [0, 0], id="all equally bad"),
        pytest.param([1, 3], [67, 0], id="cut"),
    ],
)
def test_normalize(raw: list[int], want: list[int]) -> None:
    plugin, pod = TaintToleration(), make_pod()
    assert plugin.normalize(CycleState(), pod, np.array(raw)).tolist() == want


def test_pre_score_never_skips() -> None:
    columns = make_columns([make_node()])
    status = TaintToleration().pre_score(CycleState(), make_pod(), columns, columns.present)
    assert status == SUCCESS
