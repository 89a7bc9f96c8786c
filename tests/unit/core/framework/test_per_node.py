from dataclasses import dataclass

from decklog.core.framework.interface import CycleState
from decklog.core.framework.per_node import PerNode, PerNodeScore
from decklog.core.framework.points import has_point
from decklog.core.framework.status import SUCCESS, Status, unschedulable
from decklog.objects.node import Node
from decklog.objects.pod import Pod
from tests.builders import make_node, make_pod
from tests.unit.core.columns_builders import make_columns

FULL = unschedulable("node(s) were in a full rack")


@dataclass
class RackLimit:
    """Keep pods off racks that are marked as full, and prefer racks of a low number."""

    name: str = "RackLimit"

    def filter_node(self, state: CycleState, pod: Pod, node: Node) -> Status:
        return FULL if node.labels.get("rack") == "full" else SUCCESS

    def score_node(self, state: CycleState, pod: Pod, node: Node) -> int:
        return 100 - len(node.labels.get("rack", ""))


NODES = [make_node("a"), make_node("b", labels={"rack": "full"}), make_node("c")]


def test_each_node_is_asked_about() -> None:
    plugin = PerNode(RackLimit())
    columns = make_columns(NODES)
    codes = plugin.filter(CycleState(), make_pod(), columns).tolist()
    assert [plugin.statuses[code] for code in codes[:3]] == [SUCCESS, FULL, SUCCESS]
    assert plugin.name == "RackLimit"
    assert has_point(plugin, "filter")
    assert not has_point(plugin, "score")


def test_each_node_is_scored() -> None:
    plugin = PerNodeScore(RackLimit())
    scores = plugin.score(CycleState(), make_pod(), make_columns(NODES)).tolist()
    assert scores[:3] == [100, 96, 100]
    assert plugin.name == "RackLimit"
    assert has_point(plugin, "score")
    assert not has_point(plugin, "filter")
