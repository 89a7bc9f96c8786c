from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from decklog.core.framework.interface import CycleState, PostFilterResult
from decklog.core.framework.status import SUCCESS, Code, Status, unschedulable
from decklog.core.plugins.default_preemption import DefaultPreemption, may_preempt
from decklog.objects.pod import Pod
from tests.builders import make_node, make_pod
from tests.unit.core.columns_builders import make_columns

COLUMNS = make_columns([make_node(name) for name in ("a", "b", "c")])


@dataclass(frozen=True)
class Said:
    """What filtering said of the nodes; rows without a node have any code."""

    of_nodes: tuple[Code, ...]

    @property
    def codes(self) -> npt.NDArray[np.uint8]:
        codes = np.full(len(COLUMNS), int(Code.UNSCHEDULABLE), dtype=np.uint8)
        codes[: len(self.of_nodes)] = self.of_nodes
        return codes

    def status(self, row: int) -> Status:
        return Status(self.of_nodes[row])


@pytest.mark.parametrize(
    ("codes", "parts"),
    [
        pytest.param(
            (Code.UNSCHEDULABLE,) * 3,
            "3 No preemption victims found for incoming pod",
            id="evicting could help, and there is nobody",
        ),
        pytest.param(
            (Code.UNSCHEDULABLE_AND_UNRESOLVABLE,) * 3,
            "3 Preemption is not helpful for scheduling",
            id="evicting cannot help",
        ),
        pytest.param(
            (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.UNSCHEDULABLE),
            "1 Preemption is not helpful for scheduling, "
            "2 No preemption victims found for incoming pod",
            id="both",
        ),
    ],
)
def test_post_filter(codes: tuple[Code, ...], parts: str) -> None:
    found = DefaultPreemption().post_filter(CycleState(), make_pod(), COLUMNS, Said(codes))
    text = f"preemption: 0/3 nodes are available: {parts}."
    assert found == (PostFilterResult(nominate=""), unschedulable(text))


def test_a_pod_that_must_not_preempt_keeps_its_nomination() -> None:
    pod = make_pod(preemption_policy="Never")
    found = DefaultPreemption().post_filter(CycleState(), pod, COLUMNS, Said(()))
    text = "preemption: not eligible due to preemptionPolicy=Never."
    assert found == (None, unschedulable(text))


def test_nobody_waits_for_a_preemption_yet() -> None:
    assert DefaultPreemption().pre_enqueue(make_pod()) == SUCCESS


LOW = make_pod("low", priority=1, node_name="a")


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(make_pod(priority=2), True, id="higher"),
        pytest.param(make_pod(priority=1), False, id="equal"),
        pytest.param(make_pod(priority=2, preemption_policy="Never"), False, id="never"),
    ],
)
def test_only_pods_of_lower_priority_may_be_evicted(pod: Pod, *, want: bool) -> None:
    assert may_preempt(pod, [LOW]) is want
    assert not may_preempt(pod, [make_pod("pending")])
