from dataclasses import replace

import pytest

from decklog.core.framework.interface import CycleState
from decklog.core.framework.status import SKIP, SUCCESS, unschedulable
from decklog.core.plugins.node_ports import NodePorts
from decklog.objects.pod import ContainerPort, Pod
from tests.builders import make_container, make_node, make_pod, make_sidecar
from tests.unit.core.columns_builders import make_columns
from tests.unit.core.plugins.judging import judged

TAKEN = unschedulable("node(s) didn't have free ports for the requested pod ports")


def using(port: int, ip: str = "", protocol: str = "TCP", *, name: str = "pod") -> Pod:
    ports = (ContainerPort(host_port=port, host_ip=ip, protocol=protocol),)
    return make_pod(name, containers=(make_container(ports=ports),))


@pytest.mark.parametrize(
    ("wants", "used", "fits"),
    [
        pytest.param(using(80), using(81), True, id="another port"),
        pytest.param(using(80), using(80), False, id="same port"),
        pytest.param(using(80), using(80, protocol="UDP"), True, id="another protocol"),
        pytest.param(using(80), using(80, "10.0.0.1"), False, id="any address wanted"),
        pytest.param(using(80, "10.0.0.1"), using(80), False, id="any address used"),
        pytest.param(
            using(80, "10.0.0.1"), using(80, "10.0.0.2"), True, id="two different addresses"
        ),
        pytest.param(using(80, "10.0.0.1"), using(80, "10.0.0.1"), False, id="same address"),
    ],
)
def test_filter(wants: Pod, used: Pod, *, fits: bool) -> None:
    placed = replace(used, uid="other", name="other", node_name="busy")
    nodes = [make_node("busy"), make_node("idle")]
    assert judged(NodePorts(), wants, nodes, [placed]) == [SUCCESS if fits else TAKEN, SUCCESS]


def test_a_sidecars_port_counts() -> None:
    sidecar = make_sidecar(ports=(ContainerPort(host_port=80),))
    placed = make_pod("other", init_containers=(sidecar,), node_name="node")
    assert judged(NodePorts(), using(80), [make_node()], [placed]) == [TAKEN]


def test_pre_filter_skips_pods_without_host_ports() -> None:
    columns = make_columns([make_node()])
    assert NodePorts().pre_filter(CycleState(), make_pod(), columns) == (None, SKIP)
    assert NodePorts().pre_filter(CycleState(), using(80), columns) == (None, SUCCESS)
