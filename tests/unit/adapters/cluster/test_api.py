"""What the simulated API server does to objects, beyond what both adapters can show."""

from typing import Any

import pytest

from decklog.adapters.cluster.faults import Fault
from decklog.adapters.cluster.requests import ApiRequest, Verb
from decklog.adapters.cluster.simulated import SimulatedCluster
from decklog.core.errors import Refused
from decklog.objects.kinds import KIND_BY_NAME
from decklog.ports.cluster import Answer
from tests.contract.cluster_worlds import ManualClock, make_node, make_pod


@pytest.fixture
def cluster() -> SimulatedCluster:
    made = SimulatedCluster(ManualClock(), seed=7)
    made.create("Node", make_node("n1"))
    made.create("Pod", make_pod("a1"))
    return made


def ask(cluster: SimulatedCluster, verb: Verb, **parts: Any) -> Answer:
    names = (
        {"namespace": "default"}
        if verb is Verb.CREATE
        else {
            "namespace": "default",
            "name": "a1",
        }
    )
    answer = cluster.handle(ApiRequest(verb=verb, **{"kind": "Pod", **names, **parts}))
    assert not isinstance(answer, Fault)
    return answer


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        pytest.param(
            {"metadata": {"name": "other"}, "target": {"name": "n1"}},
            400,
            "name in URL does not match name in Binding object",
            id="another name in the body",
        ),
        pytest.param(
            {"target": {"kind": "Pod", "name": "n1"}}, 500, "target.kind", id="target of a kind"
        ),
        pytest.param({}, 500, "target.name: Required value", id="nothing at all"),
    ],
)
def test_bindings_that_cannot_be_meant(
    cluster: SimulatedCluster, body: dict[str, Any], code: int, message: str
) -> None:
    answer = ask(cluster, Verb.CREATE, name="a1", subresource="binding", body=body)
    assert (answer.code, message in answer.message) == (code, True)


def test_a_dry_run_changes_nothing(cluster: SimulatedCluster) -> None:
    version = cluster.store.version
    body = {"target": {"kind": "Node", "name": "n1"}}
    bound = ask(cluster, Verb.CREATE, name="a1", subresource="binding", body=body, dry_run=True)
    assert bound.code == 201
    assert ask(cluster, Verb.DELETE, dry_run=True).code == 200
    assert ask(cluster, Verb.CREATE, body=make_pod("a2"), dry_run=True).code == 201
    assert cluster.store.version == version


def test_the_node_of_a_pod_is_not_set_by_a_patch(cluster: SimulatedCluster) -> None:
    answer = ask(cluster, Verb.PATCH, body={"spec": {"nodeName": "n1"}})
    assert (answer.code, answer.reason) == (422, "Invalid")
    assert "pod updates may not change fields other than" in answer.message


def test_status_is_not_written_through_the_main_resource(cluster: SimulatedCluster) -> None:
    version = cluster.store.version
    assert ask(cluster, Verb.PATCH, body={"status": {"phase": "Failed"}}).code == 200
    assert cluster.store.version == version
    made = ask(cluster, Verb.CREATE, body={**make_pod("a2"), "status": {"phase": "Running"}})
    assert made.body is not None
    assert made.body["status"]["phase"] == "Pending"


def test_gates_are_taken_away_by_an_update(cluster: SimulatedCluster) -> None:
    gated = cluster.create("Pod", make_pod("g1", gates=("wait",)))
    spec = {name: part for name, part in gated["spec"].items() if name != "schedulingGates"}
    assert "schedulingGates" not in cluster.update("Pod", {**gated, "spec": spec})["spec"]


def test_a_stale_update_conflicts(cluster: SimulatedCluster) -> None:
    old = cluster.get("Pod", "a1")
    assert old is not None
    cluster.update("Pod", labelled(old, {"new": "1"}))
    answer = ask(cluster, Verb.UPDATE, body=labelled(old, {"other": "1"}))
    assert (answer.code, answer.reason) == (409, "Conflict")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        pytest.param(make_pod("a1"), 'pods "a1" already exists', id="the same name again"),
        pytest.param(make_pod("Not_A_Name"), "RFC 1123", id="not a name"),
        pytest.param({"metadata": {}}, "name is required", id="no name"),
        pytest.param(
            {**make_pod("a2"), "spec": {"priorityClassName": "nope"}},
            "no PriorityClass with name nope was found",
            id="unknown priority class",
        ),
        pytest.param(make_pod("a2", annotations={"a": "x" * 262_144}), "Too long", id="too much"),
    ],
)
def test_pods_that_are_refused(
    cluster: SimulatedCluster, raw: dict[str, Any], message: str
) -> None:
    with pytest.raises(Refused, match=message):
        cluster.create("Pod", raw)


def test_a_pod_gets_the_defaults_that_scheduling_reads(cluster: SimulatedCluster) -> None:
    cluster.create("PriorityClass", {"metadata": {"name": "high"}, "value": 900})
    container: dict[str, Any] = {
        "name": "main",
        "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}},
        "ports": [{"containerPort": 80}],
    }
    spec = {"priorityClassName": "high", "hostNetwork": True, "containers": [container]}
    pod = cluster.create("Pod", {"metadata": {"generateName": "web-"}, "spec": spec})
    assert pod["metadata"]["name"].startswith("web-")
    assert (pod["metadata"]["namespace"], pod["metadata"]["generation"]) == ("default", 1)
    (full,) = pod["spec"]["containers"]
    assert full["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert full["ports"] == [{"protocol": "TCP", "containerPort": 80, "hostPort": 80}]
    assert (pod["spec"]["priority"], pod["spec"]["schedulerName"]) == (900, "default-scheduler")
    assert "hostPort" not in container["ports"][0], "what was given stays as it was"


BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("resources", "want"),
    [
        pytest.param({}, "BestEffort", id="nothing asked for"),
        pytest.param({"requests": {"cpu": "1"}}, "Burstable", id="no limit"),
        pytest.param({"limits": BOTH}, "Guaranteed", id="limits stand in for requests"),
        pytest.param({"limits": BOTH, "requests": {"cpu": "500m"}}, "Burstable", id="less than"),
    ],
)
def test_quality_of_service(cluster: SimulatedCluster, resources: Any, want: str) -> None:
    spec = {"containers": [{"name": "main", "resources": resources}]}
    pod = cluster.create("Pod", {"metadata": {"name": "q"}, "spec": spec})
    assert pod["status"]["qosClass"] == want


def test_the_oldest_events_go(cluster: SimulatedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decklog.adapters.cluster.api.EVENTS_MAX", 3)
    event = {
        "eventTime": "2027-01-15T08:00:00.000000Z",
        "reportingController": "c",
        "reportingInstance": "c-1",
        "action": "Binding",
        "reason": "Scheduled",
        "type": "Normal",
    }
    for number in range(5):
        cluster.create("Event", {**event, "metadata": {"name": f"e{number}"}})
    names = [found["metadata"]["name"] for found in cluster.raw_objects("Event")]
    assert names == ["e2", "e3", "e4"]


def test_a_namespace_comes_with_its_first_object(cluster: SimulatedCluster) -> None:
    cluster.create("Pod", {"metadata": {"name": "a1", "namespace": "shop"}})
    namespace = cluster.get("Namespace", "shop")
    assert namespace is not None
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "shop"}


def test_loaded_objects_keep_what_they_were(cluster: SimulatedCluster) -> None:
    pod = make_pod("old")
    pod["metadata"] |= {"uid": "u-1", "creationTimestamp": "2020-01-01T00:00:00Z"}
    pod["spec"]["nodeName"] = "n1"
    pod |= {"kind": "Pod", "status": {"phase": "Running"}}
    refused = cluster.load([pod, pod, {"kind": "Deployment"}, {}])
    found = cluster.get("Pod", "old")
    assert found is not None
    assert found["metadata"]["uid"] == "u-1"
    assert found["metadata"]["creationTimestamp"] == "2020-01-01T00:00:00Z"
    assert found["status"]["phase"] == "Running"
    assert [line.split(":")[0] for line in refused] == [
        'pods "old" already exists',
        "cannot load an object of kind 'Deployment'",
        "cannot load an object of kind ''",
    ]


def test_the_same_seed_makes_the_same_cluster() -> None:
    one, other = (SimulatedCluster(ManualClock(), seed=3) for _ in range(2))
    for made in (one, other):
        made.create("Pod", {"metadata": {"generateName": "web-"}})
    assert one.raw_objects("Pod") == other.raw_objects("Pod")


def test_calls_are_counted_as_the_permissions_that_they_need(cluster: SimulatedCluster) -> None:
    cluster.list(KIND_BY_NAME["Pod"])
    ask(cluster, Verb.GET)
    ask(cluster, Verb.CREATE, name="a1", subresource="binding", body={"target": {"name": "n1"}})
    assert cluster.calls == {
        (Verb.LIST, "Pod", ""): 1,
        (Verb.GET, "Pod", ""): 1,
        (Verb.CREATE, "Pod", "binding"): 1,
    }


def test_history_is_never_changed_by_later_writes(cluster: SimulatedCluster) -> None:
    """Watchers share the objects, so a write has to copy all that it changes."""
    before = cluster.get("Pod", "a1")
    assert before is not None
    text = repr(before)
    ask(cluster, Verb.CREATE, name="a1", subresource="binding", body={"target": {"name": "n1"}})
    ask(cluster, Verb.PATCH, subresource="status", body={"status": {"phase": "Running"}})
    ask(cluster, Verb.PATCH, body={"metadata": {"labels": {"new": "1"}}})
    ask(cluster, Verb.DELETE)
    assert repr(before) == text


def labelled(pod: Any, labels: dict[str, str]) -> dict[str, Any]:
    return {**pod, "metadata": {**pod["metadata"], "labels": labels}}
