"""Files of objects: what can be used is read, and each thing that can't be says why in a line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from decklog.adapters.manifests import (
    OBJECT_BYTES_MAX,
    Manifest,
    Refused,
    UnreadableManifest,
    dump_manifests,
    read_document,
    read_manifests,
)
from decklog.core.errors import BadConfiguration
from decklog.objects.kinds import KIND_BY_NAME
from decklog.objects.reduce import reduce_object, restore_object
from tests.builders import make_node, make_pod

Write = Callable[..., Path]

POD_HEAD = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
"""
SPEC = "spec: {containers: [{name: c}]}\n"
POD = POD_HEAD + SPEC
NODE = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str | bytes, name: str = "cluster.yaml") -> Path:
        file = tmp_path / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    return write


def read(*files: Path) -> list[str]:
    """Return `Kind namespace/name` of what is read, and the lines of what is refused."""
    folder = f"{files[0].parent}/"
    found = []
    for one in read_manifests(files):
        if isinstance(one, Refused):
            found.append(str(one).replace(folder, ""))
        else:
            metadata = one.raw["metadata"]
            found.append(f"{one.kind.name} {metadata.get('namespace', '')}/{metadata['name']}")
    return found


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(POD, ["Pod default/web"], id="a document"),
        pytest.param("", [], id="an empty file"),
        pytest.param("# nothing\n---\n---\n# more\n", [], id="only comments and marks"),
        pytest.param(f"{NODE}---\n{POD}", ["Node /n1", "Pod default/web"], id="a stream"),
        pytest.param(
            f"---\n{NODE}...\n---\n{POD}...\n", ["Node /n1", "Pod default/web"], id="ends"
        ),
        pytest.param(f"%YAML 1.1\n---\n{NODE}", ["Node /n1"], id="a directive"),
        pytest.param(
            NODE.replace("\n", "\r\n") + "---\r\n" + POD, ["Node /n1", "Pod default/web"], id="CRLF"
        ),
        pytest.param("\ufeff" + NODE, ["Node /n1"], id="a byte order mark"),
        pytest.param(
            json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}),
            ["Node /n1"],
            id="JSON",
        ),
        pytest.param(
            '{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}\n'
            '{"apiVersion":"v1","kind":"Node","metadata":{"name":"n2"}}',
            ["Node /n1", "Node /n2"],
            id="JSON, one after another",
        ),
        pytest.param(
            "{apiVersion: v1, kind: Node, metadata: {name: n1}}", ["Node /n1"], id="YAML in braces"
        ),
        pytest.param(
            "apiVersion: v1\nkind: List\nitems:\n"
            "- {apiVersion: v1, kind: Node, metadata: {name: n1}}\n"
            "- {apiVersion: v1, kind: Pod, metadata: {name: web, namespace: prod}, "
            "spec: {containers: [{name: c}]}}\n",
            ["Node /n1", "Pod prod/web"],
            id="a List, as kubectl prints it",
        ),
        pytest.param(
            "apiVersion: v1\nkind: PodList\nitems:\n"
            "- {metadata: {name: web}, spec: {containers: [{name: c}]}}\n",
            ["Pod default/web"],
            id="a PodList, as the API server answers",
        ),
        pytest.param("apiVersion: v1\nkind: NodeList\nitems: null\n", [], id="an empty NodeList"),
        pytest.param(
            NODE.replace("{name: n1}", "{name: n1, namespace: default}"),
            ["Node /n1"],
            id="a namespace where there is none",
        ),
    ],
)
def test_objects_are_read(write: Write, text: str, want: list[str]) -> None:
    assert read(write(text)) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            POD_HEAD + "spec:\n  containers:\n  - name: c\n    resources: {requests: {cpu: 1x}}\n",
            "document 1 (line 1): Pod: spec.containers[0].resources.requests.cpu: "
            "invalid quantity '1x'; write it like 500m, 2 or 1Gi",
            id="a quantity that is none",
        ),
        pytest.param(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n",
            "document 1 (line 1): kind Deployment is not read; decklog reads Namespace, Node, "
            "PriorityClass, StorageClass, CSIDriver, CSINode, CSIStorageCapacity, "
            "PersistentVolume, PersistentVolumeClaim, VolumeAttachment, PodDisruptionBudget, "
            "Service, ReplicationController, ReplicaSet, StatefulSet and Pod",
            id="an unknown kind",
        ),
        pytest.param(
            "kind: [Pod\n",
            "document 1 (line 1): not YAML, did not find expected ',' or ']' at line 2; "
            "correct the syntax; often it is the indentation",
            id="not YAML",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {generateName: web-}\n",
            "document 1 (line 1): Pod: metadata.name: a name is missing; "
            "every object needs one; generateName is the API server's to fill in",
            id="no name",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\n",
            "document 1 (line 1): Pod: metadata.name: a name is missing; "
            "every object needs one; generateName is the API server's to fill in",
            id="no metadata",
        ),
        pytest.param(
            POD_HEAD + "  labels: {enabled: yes}\n",
            "document 1 (line 1): Pod: metadata.labels.enabled: want text, found True; "
            "put it in quotes",
            id="a label that YAML takes for true",
        ),
        pytest.param(
            POD_HEAD,
            "document 1 (line 1): Pod default/web has no containers; a pod needs at least one",
            id="a pod without containers",
        ),
        pytest.param(
            POD.replace("v1", "v2"),
            "document 1 (line 1): apiVersion of Pod is v2; write v1",
            id="another version",
        ),
        pytest.param(
            "metadata: {name: web}\n",
            "document 1 (line 1): kind is missing; an object has apiVersion, kind and metadata",
            id="no kind",
        ),
        pytest.param(
            "just text\n",
            "document 1 (line 1): it holds no object; an object has apiVersion, kind and metadata",
            id="text",
        ),
        pytest.param(
            POD_HEAD + "spec: {containers: web}\n",
            "document 1 (line 1): Pod: spec.containers: want a list, found 'web'; "
            "see the Kubernetes API reference for this field",
            id="a value of another type",
        ),
        pytest.param(
            POD_HEAD + "spec: {containers: !!python/object:os.system [x]}\n",
            "document 1 (line 1): not YAML, could not determine a constructor for the tag "
            "'tag:yaml.org,2002:python/object:os.system' at line 5; "
            "correct the syntax; often it is the indentation",
            id="a tag that would run code",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_and_the_rest_is_read(
    write: Write, text: str, want: str
) -> None:
    """Before, between and after good documents, and each time in one line."""
    assert read(write(text)) == [f"cluster.yaml, {want}"]
    around = read(write(f"{NODE}---\n{text}---\n{POD.replace('web', 'good')}"))
    assert [around[0], around[2]] == ["Node /n1", "Pod default/good"]
    assert around[1].startswith("cluster.yaml, document 2 (line 5): ")
    assert "\n" not in around[1]


def test_a_name_given_twice_is_refused_across_files(write: Write) -> None:
    one, other = write(POD, "a.yaml"), write(f"{NODE}---\n{POD}", "b.yaml")
    found = read(one, other)
    assert found[2] == (
        "b.yaml, document 2 (line 5): Pod default/web was given already, "
        "by a.yaml, document 1 (line 1); rename or remove one"
    )


def test_items_of_a_list_are_refused_one_by_one(write: Write) -> None:
    items = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
        "text",
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"}},
    ]
    file = write(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), "all.json")
    found = read(file)
    assert [found[0], found[3]] == ["Node /n1", "Node /n2"]
    assert found[1].startswith("all.json, document 1, item 2 (line 1): kind ConfigMap")
    assert found[2].startswith("all.json, document 1, item 3 (line 1): it holds no object")


def test_a_refusal_stays_one_short_line(write: Write) -> None:
    found = read(write(f'kind: "Po\\nd{"x" * 5000}"\n---\n{POD_HEAD}  labels: {{"a\\nb": 1}}\n'))
    assert len(found) == 2
    assert all("\n" not in line and len(line) < 800 for line in found)
    assert "metadata.labels.'a\\nb': want text, found 1" in found[1]


def test_broken_json_names_its_line(write: Write) -> None:
    (found,) = read(write('{"apiVersion": "v1",\n "kind": }', "a.json"))
    assert found == (
        "a.json, document 1 (line 1): not JSON, Expecting value at line 2; "
        "correct the syntax; often it is the indentation"
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 100_000, id="YAML"),
        pytest.param('{"a":' * 100_000, id="JSON"),
        pytest.param("- " * 100_000, id="a list in a list in a list"),
    ],
)
def test_deep_nesting_is_refused(write: Write, text: str) -> None:
    found = read(write(f"{NODE}---\n{text}\n"))
    assert found[0] == "Node /n1"
    assert len(found) == 2
    assert len(found[1]) < 300


def test_an_object_of_ten_megabytes_is_refused(write: Write) -> None:
    annotation = "x" * 10_000_000
    raw = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "big", "labels": {}}}
    raw["metadata"] = {"name": "big", "annotations": {"blob": annotation}}
    want = "an object has more than 3 MiB; no API server takes one so large; is it a List"
    for file in (
        write(json.dumps(raw), "a.json"),
        write(f"{NODE[:-12]} {{name: big, annotations: {{blob: {annotation}}}}}\n", "b.yaml"),
        write(json.dumps({"apiVersion": "v1", "kind": "List", "items": [raw]}), "c.json"),
    ):
        (found,) = read(file)
        assert want in found


def test_a_list_may_be_larger_than_an_object(write: Write) -> None:
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{i}", "annotations": {"x": "y" * 9000}},
        }
        for i in range(400)
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes})
    assert len(text) > OBJECT_BYTES_MAX
    assert len(read(write(text, "a.json"))) == 400


def test_aliases_that_multiply_are_refused(write: Write) -> None:
    """Nine lines stand for a billion strings; nobody writes them out."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for i in range(1, 9):
        lines.append(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]")
    (found,) = read(write("\n".join([*lines, NODE])))
    assert "an object has more than 3 MiB" in found


def test_an_object_within_itself_is_refused(write: Write) -> None:
    (found,) = read(write(f"{NODE}spec: &x\n  again: *x\n"))
    assert "an object has more than 3 MiB" in found


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param("12:30:45", "12:30:45", id="sexagesimal"),
        pytest.param("2026-01-02", "2026-01-02", id="date"),
        pytest.param("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", id="time"),
        pytest.param("1e3", "1e3", id="exponent"),
        pytest.param("=", "=", id="value tag"),
        pytest.param("!!binary aGk=", "aGk=", id="binary"),
    ],
)
def test_scalars_that_look_like_something_else_stay_text(
    write: Write, value: str, want: str
) -> None:
    file = write(f"{POD_HEAD}  labels: {{x: {value}}}\n{SPEC}")
    (found,) = read_manifests([file])
    assert isinstance(found, Manifest)
    assert found.raw["metadata"]["labels"] == {"x": want}


@pytest.mark.parametrize(
    ("value", "want"),
    [("1", "1"), ("0.5", "0.5"), ("1_000", "1000"), ("500m", "500m"), ("1e3", "1e3")],
)
def test_quantities_may_be_numbers(write: Write, value: str, want: str) -> None:
    file = write(
        POD_HEAD + f"spec: {{containers: [{{resources: {{requests: {{cpu: {value}}}}}}}]}}\n"
    )
    (found,) = read_manifests([file])
    assert isinstance(found, Manifest)
    pod = restore_object(reduce_object(found.kind, found.raw))
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": want}


@pytest.mark.parametrize(
    ("content", "want"),
    [
        pytest.param(
            b"kind: \xff\n", "byte 0xff at 6 is not UTF-8: save it as UTF-8", id="Latin 1"
        ),
        pytest.param(
            NODE.encode("utf-16"),
            "it is UTF-16, as PowerShell writes: save it as UTF-8",
            id="UTF-16",
        ),
    ],
)
def test_a_file_that_is_not_text_is_an_error(write: Write, content: bytes, want: str) -> None:
    file = write(content)
    with pytest.raises(UnreadableManifest) as error:
        list(read_manifests([file]))
    assert str(error.value) == f"cannot read {str(file)!r}: {want}"


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    for file, why in ((tmp_path / "no.yaml", "No such file or directory"), (tmp_path, "directory")):
        with pytest.raises(UnreadableManifest, match=why):
            list(read_manifests([file]))


def test_what_is_dumped_is_read_again(tmp_path: Path) -> None:
    objects = [restore_object(make_node("n1")), restore_object(make_pod("é", milli_cpu=500))]
    for name in ("all.json", "all.yaml"):
        file = tmp_path / name
        assert dump_manifests(objects, file) == 2
        read_back = list(read_manifests([file]))
        assert [one.raw for one in read_back if isinstance(one, Manifest)] == objects
        assert not file.with_name(f"{name}.part").exists()
    assert dump_manifests([], tmp_path / "none.yaml") == 0
    assert read(tmp_path / "none.yaml") == []


def test_a_dump_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "all.json"
    dump_manifests([restore_object(make_node())], file)
    with pytest.raises(TypeError):
        dump_manifests([{"x": object()}], file)
    assert len(read(file)) == 1


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("a: {b: [1, true, x]}\n", {"a": {"b": [1, True, "x"]}}, id="a mapping"),
        pytest.param("# nothing\n", None, id="nothing"),
        pytest.param("---\n- 1\n", [1], id="a list"),
    ],
)
def test_a_document_is_read_as_it_is(write: Write, text: str, want: object) -> None:
    assert read_document(write(text)) == want


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("a: 1\n---\nb: 2\n", "holds 2 documents, and one is wanted", id="two"),
        pytest.param("a: [1\n", r"document 1 \(line 1\): not YAML", id="not YAML"),
    ],
)
def test_a_document_that_is_none_is_bad_configuration(write: Write, text: str, why: str) -> None:
    with pytest.raises(BadConfiguration, match=why):
        read_document(write(text))


def test_every_kind_that_decklog_watches_is_read(write: Write) -> None:
    documents = [
        {"apiVersion": kind.api_version, "kind": name, "metadata": {"name": "x"}}
        | ({"spec": {"containers": [{"name": "c"}]}} if name == "Pod" else {})
        for name, kind in KIND_BY_NAME.items()
    ]
    found = read(write("\n---\n".join(json.dumps(one) for one in documents)))
    assert [line.partition(" ")[0] for line in found] == list(KIND_BY_NAME)
