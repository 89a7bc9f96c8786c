from decklog.core.framework.interface import CycleState
from decklog.core.framework.status import SKIP, SUCCESS, unresolvable
from decklog.core.plugins.node_declared_features import NodeDeclaredFeatures
from tests.builders import make_container, make_node, make_pod
from tests.unit.core.columns_builders import make_columns
from tests.unit.core.plugins.judging import judged

UNDECLARED = unresolvable("node(s) didn't match Pod's required features")
RESTARTS = "RestartAllContainersOnContainerExits"
USERS = "UserNamespacesHostNetworkSupport"
NODES = [
    make_node("none"),
    make_node("one", declared_features=(RESTARTS, "Unknown")),
    make_node("both", declared_features=(USERS, RESTARTS)),
]


def test_filter() -> None:
    restarting = (make_container(restarts_all_containers=True),)
    pod = make_pod(containers=restarting)
    assert judged(NodeDeclaredFeatures(), pod, NODES) == [UNDECLARED, SUCCESS, SUCCESS]
    pod = make_pod(containers=restarting, host_network=True, host_users=False)
    assert judged(NodeDeclaredFeatures(), pod, NODES) == [UNDECLARED, UNDECLARED, SUCCESS]


def test_pre_filter_skips_pods_that_need_no_feature() -> None:
    columns = make_columns(NODES)
    pods = [make_pod(), make_pod(host_network=True), make_pod(host_users=False)]
    for pod in pods:
        assert NodeDeclaredFeatures().pre_filter(CycleState(), pod, columns) == (None, SKIP)
