import pytest

from decklog.core.framework.interface import PASS, CycleState
from decklog.core.framework.status import unresolvable
from decklog.core.plugins.node_unschedulable import CORDONED, STATUSES, NodeUnschedulable
from decklog.objects.node import Node
from decklog.objects.pod import Pod
from tests.builders import make_node, make_pod, make_toleration
from tests.unit.core.columns_builders import make_columns

CORDON = "node.kubernetes.io/unschedulable"
OPEN, CLOSED = make_node("open"), make_node("closed", unschedulable=True)


def tolerating(key: str, effect: str = "") -> Pod:
    return make_pod(tolerations=(make_toleration(key, operator="Exists", effect=effect),))


@pytest.mark.parametrize(
    ("pod", "nodes", "want"),
    [
        pytest.param(
            make_pod(), [OPEN, CLOSED], [PASS, CORDONED], id="only cordoned nodes are rejected"
        ),
        pytest.param(tolerating(CORDON), [OPEN, CLOSED], [PASS, PASS], id="cordon tolerated"),
        pytest.param(tolerating(""), [CLOSED], [PASS], id="everything tolerated"),
        pytest.param(
            tolerating(CORDON, "NoExecute"), [CLOSED], [CORDONED], id="another effect tolerated"
        ),
        pytest.param(tolerating("other"), [CLOSED], [CORDONED], id="something else tolerated"),
    ],
)
def test_filter(pod: Pod, nodes: list[Node], want: list[int]) -> None:
    got = NodeUnschedulable().filter(CycleState(), pod, make_columns(nodes))
    assert got.tolist()[: len(nodes)] == want


def test_preemption_cannot_help_on_a_cordoned_node() -> None:
    assert STATUSES[CORDONED] == unresolvable("node(s) were unschedulable")
