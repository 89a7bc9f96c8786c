import pytest

from decklog.core.framework.status import SUCCESS, Status, unresolvable
from decklog.core.plugins.node_name import NodeName
from tests.builders import make_node, make_pod
from tests.unit.core.plugins.judging import judged

OTHER = unresolvable("node(s) didn't match the requested node name")


@pytest.mark.parametrize(
    ("wanted", "want"),
    [
        pytest.param("", [SUCCESS, SUCCESS], id="no node is named"),
        pytest.param("b", [OTHER, SUCCESS], id="one node is named"),
        pytest.param("gone", [OTHER, OTHER], id="the node does not exist"),
    ],
)
def test_filter(wanted: str, want: list[Status]) -> None:
    nodes = [make_node("a"), make_node("b")]
    assert judged(NodeName(), make_pod(node_name=wanted), nodes) == want
