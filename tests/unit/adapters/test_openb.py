"""The openb trace's rows become objects; a row that can't be used is refused with its line."""

from pathlib import Path

import pytest

from decklog.adapters.manifests import Refused, UnreadableManifest
from decklog.adapters.openb import import_openb
from decklog.objects.kinds import KIND_BY_NAME
from decklog.objects.pod import Pod
from decklog.objects.reduce import reduce_object
from decklog.objects.requests import incoming

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,32000,262144,0,\nn1,96000,786432,8,V100M32\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n"
)
POD = "p0,12000,16384,2,500,V100M16|V100M32,LS,Running,7,99,8\n"


def imported(tmp_path: Path, nodes: str = NODES, pods: str = PODS + POD) -> list[object]:
    for name, text in (("nodes.csv", nodes), ("pods.csv", pods)):
        (tmp_path / name).write_text(text)
    return list(import_openb(tmp_path / "nodes.csv", tmp_path / "pods.csv"))


def test_a_node_has_its_resources_and_its_model(tmp_path: Path) -> None:
    _, node, _ = imported(tmp_path)
    assert isinstance(node, dict)
    assert node["metadata"]["labels"] == {
        "kubernetes.io/hostname": "n1",
        "openb.io/gpu-model": "V100M32",
    }
    assert node["status"]["allocatable"] == {
        "cpu": "96000m",
        "memory": "786432Mi",
        "openb.io/gpu-milli": "8000",
        "pods": "110",
    }


def test_a_pod_asks_for_its_share_of_gpus_and_their_models(tmp_path: Path) -> None:
    raw = imported(tmp_path)[2]
    assert isinstance(raw, dict)
    pod = reduce_object(KIND_BY_NAME["Pod"], raw)
    assert isinstance(pod, Pod)
    assert (pod.scheduler_name, pod.priority) == ("decklog", 1000)
    assert incoming(pod) == {"cpu": 12000, "memory": 16384 * 2**20, "openb.io/gpu-milli": 1000}
    assert pod.affinity is not None
    assert pod.affinity.node is not None
    assert pod.affinity.node.required is not None
    (term,) = pod.affinity.node.required.terms
    assert term.match_expressions[0].values == ("V100M16", "V100M32")
    assert raw["metadata"]["annotations"] == {
        "openb.io/creation-time": "7",
        "openb.io/deletion-time": "99",
    }


@pytest.mark.parametrize(
    ("row", "want"),
    [
        pytest.param(
            "p1,12x,1,0,0,,LS,,0,0,0",
            "cpu_milli is '12x'; write a whole number that is not negative",
            id="no number",
        ),
        pytest.param(
            "p1,-1,1,0,0,,LS,,0,0,0",
            "cpu_milli is '-1'; write a whole number that is not negative",
            id="negative",
        ),
        pytest.param(
            "p1,1,1,0,0,,Gold,,0,0,0",
            "qos is 'Gold'; write one of LS, Guaranteed, Burstable, BE",
            id="unknown class of service",
        ),
        pytest.param(",1,1,0,0,,LS,,0,0,0", "name is empty; every row needs a name", id="no name"),
        pytest.param("p1,1,1", "qos is missing; a row has a cell for each column", id="too short"),
        pytest.param(
            "p0,1,1,0,0,,LS,,0,0,0", "p0 was given already, in line 2; remove one", id="twice"
        ),
    ],
)
def test_a_bad_row_is_refused_and_the_rest_is_imported(tmp_path: Path, row: str, want: str) -> None:
    last = POD.replace("p0", "p9")
    found = imported(tmp_path, pods=f"{PODS}{POD}{row}\n{last}")
    refused = [str(one) for one in found if isinstance(one, Refused)]
    assert refused == [f"{tmp_path / 'pods.csv'}, line 3: {want}"]
    assert isinstance(found[-1], dict)
    assert found[-1]["metadata"]["name"] == "p9"


def test_another_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableManifest, match="its first line lacks sn, gpu, model"):
        imported(tmp_path, nodes=PODS)
    with pytest.raises(UnreadableManifest, match="No such file"):
        list(import_openb(tmp_path / "no.csv", tmp_path / "pods.csv"))
    (tmp_path / "nodes.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(UnreadableManifest, match="it is not CSV in UTF-8"):
        list(import_openb(tmp_path / "nodes.csv", tmp_path / "pods.csv"))


def test_the_real_trace_is_imported_whole(openb_dir: Path | None) -> None:
    if openb_dir is None:
        pytest.skip("no --openb DIR")
    found = list(
        import_openb(
            openb_dir / "openb_node_list_all_node.csv", openb_dir / "openb_pod_list_default.csv"
        )
    )
    kinds = [one["kind"] for one in found if isinstance(one, dict)]
    assert (kinds.count("Node"), kinds.count("Pod"), len(found)) == (1523, 8152, 9675)
