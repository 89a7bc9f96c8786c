"""What a pod asks for, by every rule that decides it."""

from typing import Any

import pytest

from decklog.objects.pod import (
    Affinity,
    ContainerPort,
    ContainerStatus,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodCondition,
    PodResources,
    Volume,
)
from decklog.objects.quantity import INT64_MAX
from decklog.objects.requests import (
    accounted,
    has_affinity,
    has_required_anti_affinity,
    host_ports,
    incoming,
    is_extended_resource,
    is_scalar_resource,
    limits,
    non_zero,
    ports_conflict,
    pvc_keys,
    required_features,
    scoring,
)
from tests.builders import make_container, make_pod, make_sidecar

MEBI = 2**20


def pod(*containers: Any, init: tuple[Any, ...] = (), **fields: Any) -> Pod:
    return make_pod(containers=containers, init_containers=init, **fields)


def cpu(milli: int) -> Any:
    return make_container(milli_cpu=milli)


def sidecar(milli: int) -> Any:
    return make_sidecar(milli_cpu=milli)


@pytest.mark.parametrize(
    ("asks", "want"),
    [
        pytest.param(pod(cpu(1000), cpu(2000)), 3000, id="containers add up"),
        pytest.param(pod(cpu(1000), cpu(1000), init=(cpu(5000),)), 5000, id="init is higher"),
        pytest.param(
            pod(cpu(1000), init=(sidecar(1000), cpu(3000))), 4000, id="init beside a sidecar"
        ),
        pytest.param(
            pod(cpu(1000), init=(cpu(3000), sidecar(2000))), 3000, id="init before the sidecar"
        ),
        pytest.param(
            pod(cpu(1000), init=(cpu(3000), sidecar(2000)), overhead={"cpu": "250m"}),
            3250,
            id="overhead comes last",
        ),
        pytest.param(
            pod(cpu(500), cpu(500), resources=PodResources(requests={"cpu": "1200m"})),
            1200,
            id="the pod as a whole",
        ),
        pytest.param(
            pod(cpu(500), resources=PodResources(requests={"cpu": "1"}), overhead={"cpu": "100m"}),
            1100,
            id="the pod as a whole, with overhead",
        ),
        pytest.param(pod(init=(cpu(3000),)), 3000, id="only init containers"),
    ],
)
def test_requests_of_containers(asks: Pod, want: int) -> None:
    assert incoming(asks)["cpu"] == want
    assert accounted(asks)["cpu"] == want


def test_only_some_resources_can_be_asked_for_as_a_whole() -> None:
    asks = pod(
        make_container(requests={"ephemeral-storage": "1Gi"}),
        resources=PodResources(requests={"ephemeral-storage": "5Gi", "hugepages-2Mi": "4Mi"}),
    )
    assert incoming(asks) == {"ephemeral-storage": 2**30, "hugepages-2Mi": 4 * MEBI}


def test_overhead_counts_for_resources_that_nobody_asks_for() -> None:
    assert incoming(pod(make_container(), overhead={"memory": "64Mi"})) == {"memory": 64 * MEBI}


def test_sums_are_exact_and_rounded_once() -> None:
    asks = pod(*[make_container(requests={"memory": "1500m", "cpu": "100u"})] * 3)
    assert incoming(asks) == {"memory": 5, "cpu": 1}


def test_a_request_too_large_for_int64_is_held_there() -> None:
    for containers in ([make_container(memory="1e30")], [make_container(memory="8Ei")] * 2):
        assert incoming(pod(*containers)) == {"memory": INT64_MAX}


def resized(requests: dict[str, str], allocated: dict[str, str], *, reason: str = "") -> Pod:
    conditions = (PodCondition(type="PodResizePending", reason=reason),) if reason else ()
    status = ContainerStatus(name="app", requests=requests, allocated=allocated)
    return pod(
        make_container(requests={"cpu": "2", "memory": "1Gi"}),
        container_statuses=(status,),
        conditions=conditions,
    )


@pytest.mark.parametrize(
    ("asks", "want"),
    [
        pytest.param(resized({"cpu": "3"}, {"cpu": "1"}), 3000, id="still larger"),
        pytest.param(resized({"cpu": "1"}, {"cpu": "1"}), 2000, id="not yet larger"),
        pytest.param(
            resized({"cpu": "1"}, {"cpu": "1"}, reason="Infeasible"), 1000, id="never larger"
        ),
        pytest.param(
            resized({"cpu": "1"}, {"cpu": "1"}, reason="Deferred"), 2000, id="later larger"
        ),
    ],
)
def test_a_node_is_charged_for_a_resize_in_progress(asks: Pod, want: int) -> None:
    assert accounted(asks)["cpu"] == want
    assert incoming(asks)["cpu"] == 2000


def test_an_infeasible_resize_leaves_out_what_the_status_does() -> None:
    asks = resized({"cpu": "1"}, {}, reason="Infeasible")
    assert accounted(asks) == {"cpu": 1000}
    assert non_zero(asks) == (1000, 200 * MEBI)


def test_the_first_condition_about_a_resize_decides() -> None:
    asks = resized({"cpu": "1"}, {"cpu": "1"}, reason="Deferred")
    second = PodCondition(type="PodResizePending", reason="Infeasible")
    both = make_pod(
        containers=asks.containers,
        container_statuses=asks.container_statuses,
        conditions=(*asks.conditions, second),
    )
    assert accounted(both)["cpu"] == 2000


def test_a_resize_of_the_pod_as_a_whole() -> None:
    def asks(reason: str) -> dict[str, int]:
        return accounted(
            pod(
                cpu(500),
                resources=PodResources(requests={"cpu": "2", "memory": "1Gi"}),
                status_resources=PodResources(requests={"cpu": "3", "hugepages-2Mi": "2Mi"}),
                status_allocated={"cpu": "1"},
                conditions=(PodCondition(type="PodResizePending", reason=reason),),
            )
        )

    assert asks("") == {"cpu": 3000, "memory": 1024 * MEBI}
    assert asks("Infeasible") == {"cpu": 3000, "memory": 0}


@pytest.mark.parametrize(
    ("asks", "want"),
    [
        pytest.param(pod(make_container()), (100, 200), id="nothing asked for"),
        pytest.param(pod(cpu(500), make_container()), (600, 400), id="for each container"),
        pytest.param(pod(cpu(0)), (0, 200), id="an explicit zero stays"),
        pytest.param(pod(), (0, 0), id="no containers"),
        pytest.param(
            pod(
                make_container(),
                init=(make_container(),),
                resources=PodResources(requests={"memory": "1200Mi"}),
            ),
            (100, 1200),
            id="only for what the pod as a whole leaves open",
        ),
        pytest.param(
            pod(
                make_container(),
                resources=PodResources(requests={"cpu": "500m"}),
                overhead={"memory": "64Mi"},
            ),
            (500, 64),
            id="overhead alone suppresses a default then",
        ),
        pytest.param(
            pod(make_container(), overhead={"memory": "64Mi"}), (100, 264), id="but not otherwise"
        ),
    ],
)
def test_defaults_for_scores(asks: Pod, want: tuple[int, int]) -> None:
    assert non_zero(asks) == (want[0], want[1] * MEBI)


def test_scores_of_the_incoming_pod_ignore_what_it_asks_for_as_a_whole() -> None:
    """An oddity that is kept: upstream passes no options there."""
    asks = pod(
        make_container(requests={"example.com/gpu": "1"}),
        resources=PodResources(requests={"cpu": "4", "memory": "4Gi"}),
    )
    assert scoring(asks) == {"cpu": 100, "memory": 200 * MEBI, "example.com/gpu": 1}


def test_overhead_is_added_to_limits_that_are_not_zero() -> None:
    asks = pod(
        make_container(limits={"cpu": "1", "memory": "0"}),
        overhead={"cpu": "100m", "memory": "1Mi", "hugepages-2Mi": "2Mi"},
    )
    assert limits(asks) == {"cpu": 1100, "memory": 0}


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        ("example.com/gpu", True, True),
        ("hugepages-2Mi", False, True),
        ("attachable-volumes-gce-pd", False, True),
        ("x.kubernetes.io/y", False, True),
        ("requests.example.com/x", False, False),
        ("cpu", False, False),
        ("pods", False, False),
        ("weird", False, False),
        ("example.com/not a name", False, False),
    ],
)
def test_kinds_of_resources(name: str, extended: bool, scalar: bool) -> None:
    assert (is_extended_resource(name), is_scalar_resource(name)) == (extended, scalar)


def test_host_ports_are_those_of_containers_and_sidecars() -> None:
    def with_port(make: Any, number: int, **fields: Any) -> Any:
        return make(ports=(ContainerPort(host_port=number, **fields),))

    asks = pod(
        with_port(make_container, 80),
        init=(
            with_port(make_container, 81),
            with_port(make_sidecar, 82, host_ip="10.0.0.1", protocol="UDP"),
        ),
    )
    assert host_ports(asks) == (("0.0.0.0", "TCP", 80), ("10.0.0.1", "UDP", 82))


@pytest.mark.parametrize(
    ("want", "used", "conflict"),
    [
        (("0.0.0.0", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("0.0.0.0", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), False),
        (("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "UDP", 80), False),
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 81), False),
        (("0.0.0.0", "TCP", 0), ("0.0.0.0", "TCP", 0), False),
    ],
)
def test_port_conflicts(
    want: tuple[str, str, int], used: tuple[str, str, int], conflict: bool
) -> None:
    assert ports_conflict(want, [used]) is conflict


def test_claims_are_those_that_are_named() -> None:
    volumes = (
        Volume(name="a", claim_name="data"),
        Volume(name="b", ephemeral=True),
        Volume(name="c", claim_name="data"),
        Volume(name="d", image="nginx"),
    )
    assert pvc_keys(make_pod(namespace="prod", volumes=volumes)) == ("prod/data", "prod/data")
    assert pvc_keys(make_pod()) == ()


def test_affinity_to_pods_counts_even_when_it_is_empty() -> None:
    anti = PodAffinity(required=(PodAffinityTerm(topology_key="zone"),))
    stanzas = [None, Affinity(), Affinity(pod=PodAffinity()), Affinity(pod_anti=anti)]
    pods = [make_pod(affinity=stanza) for stanza in stanzas]
    assert [has_affinity(each) for each in pods] == [False, False, True, True]
    assert [has_required_anti_affinity(each) for each in pods] == [False, False, False, True]


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param({}, set(), id="none"),
        pytest.param(
            {"init_containers": (make_container(restarts_all_containers=True),)},
            {"RestartAllContainersOnContainerExits"},
            id="restarts all containers",
        ),
        pytest.param(
            {"host_network": True, "host_users": False},
            {"UserNamespacesHostNetworkSupport"},
            id="user namespace on the host's network",
        ),
        pytest.param({"host_network": True, "host_users": True}, set(), id="the host's users"),
        pytest.param({"host_network": True}, set(), id="users not given"),
    ],
)
def test_required_features(fields: dict[str, Any], want: set[str]) -> None:
    assert required_features(make_pod(**fields)) == want
