"""What is kept of an API object, what is dropped, and how a wrong one is refused."""

from typing import Any

import pytest

from decklog.objects.kinds import KIND_BY_NAME
from decklog.objects.node import Node
from decklog.objects.pod import Affinity, ContainerStatus, InlineDisk, NodeAffinity, Pod, Volume
from decklog.objects.reduce import InvalidObject, reduce_object, restore_object
from decklog.objects.selectors import LabelSelector
from decklog.objects.storage import CSINode, PersistentVolume, PersistentVolumeClaim


def raw_pod(spec: dict[str, Any] | None = None, **parts: Any) -> dict[str, Any]:
    metadata = {"name": "web", "namespace": "prod", "uid": "u1", **parts.pop("metadata", {})}
    return {"metadata": metadata, "spec": spec or {}, **parts}


def pod(spec: dict[str, Any] | None = None, **parts: Any) -> Pod:
    reduced = reduce_object(KIND_BY_NAME["Pod"], raw_pod(spec, **parts))
    assert isinstance(reduced, Pod)
    return reduced


def test_nothing_private_is_kept() -> None:
    """The log holds no env, no args, no secrets, and no annotations but a few."""
    secret = "s3cret"
    reduced = pod(
        {
            "containers": [
                {
                    "name": "c",
                    "image": "nginx",
                    "env": [{"name": "TOKEN", "value": secret}],
                    "args": [secret],
                    "command": [secret],
                    "ports": [{"containerPort": 80, "name": secret}],
                }
            ],
            "volumes": [{"name": "v", "secret": {"secretName": secret}}],
            "imagePullSecrets": [{"name": secret}],
        },
        metadata={
            "annotations": {"example.com/token": secret},
            "managedFields": [{"manager": secret}],
        },
        status={"message": secret, "conditions": [{"type": "Ready", "message": secret}]},
    )
    assert secret not in repr(reduced)
    assert secret not in repr(restore_object(reduced))


def test_annotations_of_the_list_and_of_plugins_are_kept() -> None:
    annotations = {"z.example.com/x": "1", "decklog.dev/decision": "2", "other": "3"}
    raw = raw_pod(metadata={"annotations": annotations})
    kind = KIND_BY_NAME["Pod"]
    reduced = reduce_object(kind, raw, annotation_keys=frozenset({"z.example.com/x"}))
    assert isinstance(reduced, Pod)
    assert reduced.annotations == {"decklog.dev/decision": "2", "z.example.com/x": "1"}


def test_mappings_are_sorted() -> None:
    one = pod(metadata={"labels": {"b": "1", "a": "2"}})
    assert list(one.labels) == ["a", "b"]


def test_absent_null_and_empty_are_told_apart_only_where_it_matters() -> None:
    """No selector selects nothing and an empty one everything; no label is no label."""
    nothing = pod({"affinity": None, "tolerations": None, "nodeSelector": None}, status=None)
    assert nothing == pod()
    assert pod({"nodeSelector": {}}).node_selector == {}
    preferred: dict[str, Any] = {
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}
    }
    assert pod({"affinity": preferred}).affinity == Affinity(node=NodeAffinity(preferred=()))
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    for selector, want in ((None, None), ({}, LabelSelector())):
        constraint = {**spread, "labelSelector": selector}
        reduced = pod({"topologySpreadConstraints": [constraint]})
        assert reduced.topology_spread_constraints[0].label_selector == want


def test_defaults_that_the_api_server_fills_in() -> None:
    bare = reduce_object(KIND_BY_NAME["Pod"], {"metadata": {"name": "web"}})
    assert isinstance(bare, Pod)
    assert (bare.namespace, bare.scheduler_name) == ("default", "default-scheduler")
    assert bare.uid == "default/web"
    assert pod({"schedulerName": ""}).scheduler_name == "default-scheduler"


def test_only_volumes_that_scheduling_reads_are_kept() -> None:
    reduced = pod(
        {
            "volumes": [
                {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "b", "emptyDir": {}},
                {"name": "c", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
                {"name": "d", "rbd": {"image": "i", "pool": "p", "monitors": ["m"], "user": "u"}},
                {"name": "e", "csi": {"driver": "d", "volumeAttributes": {"x": "y"}}},
                {"name": "f", "image": {"reference": "nginx", "pullPolicy": "Always"}},
            ]
        }
    )
    disk = InlineDisk(kind="rbd", parts=("p", "i"), monitors=("m",))
    assert reduced.volumes == (
        Volume(name="a", claim_name="data"),
        Volume(name="c", ephemeral=True),
        Volume(name="d", disk=disk),
        Volume(name="e", csi_driver="d"),
        Volume(name="f", image="nginx"),
    )


def test_a_restart_policy_makes_only_init_containers_sidecars() -> None:
    always = {"name": "c", "restartPolicy": "Always"}
    reduced = pod({"containers": [always], "initContainers": [always, {"name": "d"}]})
    assert [one.restart_policy for one in reduced.containers] == [""]
    assert [one.restart_policy for one in reduced.init_containers] == ["Always", ""]


def test_container_statuses_are_kept_only_where_they_say_more_than_the_spec() -> None:
    """Every running container reports its resources; only a resize makes them differ."""
    asked = {"cpu": "1", "memory": "1Gi"}

    def statuses(*reported: dict[str, Any]) -> tuple[ContainerStatus, ...]:
        spec = {
            "containers": [{"name": "c", "resources": {"requests": asked}}],
            "initContainers": [{"name": "init", "resources": {"requests": asked}}],
        }
        return pod(spec, status={"containerStatuses": list(reported)}).container_statuses

    same = {"name": "c", "resources": {"requests": asked}, "allocatedResources": asked}
    other = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
    assert statuses(same) == ()
    assert statuses({"name": "c"}, {"name": "c", "allocatedResources": {"cpu": "9"}}) == ()
    assert statuses({**other, "name": "gone"}, {**other, "name": "init"}) == ()
    assert statuses(other) == (ContainerStatus(name="c", requests={"cpu": "2"}),)


def test_the_beta_annotation_is_the_storage_class() -> None:
    annotations = {"volume.beta.kubernetes.io/storage-class": "", "x": "y"}
    for kind, cls in (
        ("PersistentVolumeClaim", PersistentVolumeClaim),
        ("PersistentVolume", PersistentVolume),
    ):
        raw = {
            "metadata": {"name": "x", "annotations": annotations},
            "spec": {"storageClassName": "fast"},
        }
        reduced = reduce_object(KIND_BY_NAME[kind], raw)
        assert isinstance(reduced, cls)
        assert reduced.storage_class == ""
        assert reduced.annotations == {}


def test_only_csi_nodes_keep_migrated_plugins() -> None:
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/gce-pd"}
    metadata = {"name": "n1", "annotations": annotations}
    node = reduce_object(KIND_BY_NAME["Node"], {"metadata": metadata})
    csi_node = reduce_object(KIND_BY_NAME["CSINode"], {"metadata": metadata})
    assert isinstance(node, Node)
    assert isinstance(csi_node, CSINode)
    assert node.annotations == {}
    assert csi_node.annotations == annotations


def test_only_the_controller_owns() -> None:
    other = {"apiVersion": "v1", "kind": "X", "name": "a", "uid": "1"}
    controller = {**other, "name": "b", "controller": True}
    reduced = pod(metadata={"ownerReferences": [other, controller]})
    assert reduced.owner is not None
    assert reduced.owner.name == "b"
    assert pod(metadata={"ownerReferences": [other]}).owner is None


def test_conditions_of_other_types_are_dropped_whatever_they_hold() -> None:
    found = [{"type": "Ready", "status": 5}, {"type": []}, {"type": "PodScheduled"}]
    assert [one.type for one in pod(status={"conditions": found}).conditions] == ["PodScheduled"]


def test_half_a_surrogate_pair_is_replaced() -> None:
    """JSON can escape it, and no encoding can write it: it must not stop the log."""
    reduced = pod(status={"conditions": [{"type": "PodScheduled", "message": "x\ud800é🚀"}]})
    assert reduced.conditions[0].message == "x\ufffdé🚀"


@pytest.mark.parametrize(
    ("raw", "want"),
    [
        pytest.param(
            raw_pod({"containers": [{"resources": {"requests": {"cpu": "1x"}}}]}),
            "spec.containers[0].resources.requests.cpu: invalid quantity '1x'",
            id="quantity",
        ),
        pytest.param(
            raw_pod({"overhead": {"cpu": True}}),
            "spec.overhead.cpu: invalid quantity True",
            id="quantity of another type",
        ),
        pytest.param(
            raw_pod({"priority": "high"}),
            "spec.priority: want an integer, found 'high'",
            id="integer",
        ),
        pytest.param(
            raw_pod({"priority": 2**63}),
            "spec.priority: want an integer of 64 bits, found 9223372036854775808",
            id="integer too large",
        ),
        pytest.param(
            raw_pod({"hostNetwork": 1}),
            "spec.hostNetwork: want true or false, found 1",
            id="boolean",
        ),
        pytest.param(
            raw_pod({"tolerations": [{}, {"key": 5}]}),
            "spec.tolerations[1].key: want text, found 5",
            id="text",
        ),
        pytest.param(
            raw_pod({"volumes": {}}), "spec.volumes: want a list, found a mapping", id="list"
        ),
        pytest.param(
            raw_pod({"containers": [None]}),
            "spec.containers[0]: a mapping is missing",
            id="nothing in a list",
        ),
        pytest.param(
            raw_pod(metadata={"labels": {"a": "b", 1: "c"}}),
            "metadata.labels.1: want a key that is text, found 1",
            id="key",
        ),
        pytest.param(
            raw_pod({"schedulingGates": [{"name": 7}]}),
            "spec.schedulingGates[0].name: want text, found 7",
            id="a name in a list of mappings",
        ),
        pytest.param({"metadata": {}}, "metadata.name: a name is missing", id="no name"),
        pytest.param({}, "metadata.name: a name is missing", id="no metadata"),
        pytest.param([], "want a mapping, found a list", id="no object"),
    ],
)
def test_a_wrong_object_says_where_and_what(raw: Any, want: str) -> None:
    with pytest.raises(InvalidObject) as error:
        reduce_object(KIND_BY_NAME["Pod"], raw)
    assert str(error.value) == want


def test_numbers_are_taken_as_quantities() -> None:
    asked = {"cpu": 2, "memory": 1.5, "example.com/gpu": 1e30}
    reduced = pod({"containers": [{"name": "c", "resources": {"requests": asked}}]})
    assert reduced.containers[0].requests == {
        "cpu": "2",
        "example.com/gpu": "1e+30",
        "memory": "1.5",
    }


def test_what_is_restored_is_a_manifest() -> None:
    spec = {
        "schedulerName": "decklog",
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
    }
    assert restore_object(pod(spec, status={"phase": "Pending"})) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "prod", "uid": "u1"},
        "spec": spec,
        "status": {"phase": "Pending"},
    }
