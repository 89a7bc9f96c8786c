"""Bad input: one line says what, where and what to do; the rest is still processed."""

import json
import sqlite3
from pathlib import Path
from typing import Any, Final

import pytest

from tests.stack.process import free_ports
from tests.system.commands import decklog

NODE: Final = """\
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
"""
POD: Final = """\
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 500m}}}]}
"""


def demo(folder: Path, text: str | bytes, *more: str) -> tuple[int, str, dict[str, Any]]:
    """Run a checked demo with one file; return code, what was said, and the numbers."""
    file = folder / "cluster.yaml"
    if isinstance(text, bytes):
        file.write_bytes(text)
    else:
        file.write_text(text)
    done = decklog("demo", "--check", "--manifests", file, "--output", "json", *more)
    said = done.stderr.replace(str(file), "FILE")
    return done.returncode, said, json.loads(done.stdout) if done.stdout else {}


def test_good_input_says_nothing(tmp_path: Path) -> None:
    """A pod of default-scheduler, which is every pod that says nothing, is ours."""
    code, said, found = demo(tmp_path, f"{NODE}---\n{POD}")
    assert (code, said) == (0, "")
    assert (found["nodes"], found["pods"], found["bound"]) == (1, 1, 1)


BOUND_NOWHERE: Final = POD.replace("name: web,", "name: lost,").replace(
    "spec: {", "spec: {nodeName: node-9, "
)
HUGE: Final = POD.replace("name: web,", "name: huge,").replace(
    "namespace: shop}", f"namespace: shop, annotations: {{a: {'x' * 10_000_000}}}}}"
)


@pytest.mark.parametrize(
    ("bad", "want"),
    [
        pytest.param("a: [1, 2\n", "not YAML", id="unparsable YAML"),
        pytest.param(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n",
            "FILE, document 2 (line 6): kind Deployment is not read; decklog reads ",
            id="unknown kind",
        ),
        pytest.param(
            POD.replace("500m", "lots").replace("web", "bad"),
            "write it like 500m, 2 or 1Gi",
            id="invalid quantity",
        ),
        pytest.param(
            POD.replace("web", "twin") + "---\n" + POD.replace("web", "twin"),
            "Pod shop/twin was given already, by FILE, document 2 (line 6); rename or remove one",
            id="duplicate name",
        ),
        pytest.param(
            BOUND_NOWHERE,
            "FILE, document 2 (line 6): Pod shop/lost is bound to node 'node-9', which is not in "
            "the input; add the node, or get nodes and pods with one command",
            id="bound to an unknown node",
        ),
        pytest.param(HUGE, "more than 3 MiB", id="an object of 10 MB"),
    ],
)
def test_a_bad_document_is_refused_and_the_rest_is_processed(
    bad: str, want: str, tmp_path: Path
) -> None:
    code, said, found = demo(tmp_path, f"{NODE}---\n{bad}---\n{POD}")
    assert code == 6
    assert said.count("\n") == 1
    assert want in said
    assert "FILE, document " in said
    assert found["refused"] == 1
    assert found["bound"] >= 1
    assert found["verified"] is True


def test_what_no_event_can_hold_is_refused(tmp_path: Path) -> None:
    """An API server would take it, but no log takes an entry of 2 MB."""
    labels = ", ".join(f"key-{number}: {'v' * 60}" for number in range(25_000))
    node = NODE.replace("name: node-1", f"name: big, labels: {{{labels}}}")
    code, said, found = demo(tmp_path, f"{NODE}---\n{node}---\n{POD}")
    assert code == 6
    assert "Node big takes " in said
    assert "a log takes 1000000: leave away what scheduling does not read" in said
    assert (found["nodes"], found["bound"]) == (1, 1)


@pytest.mark.parametrize(
    ("content", "want"),
    [
        pytest.param(b"kind: \xff\xfe\n", "is not UTF-8: save it as UTF-8", id="not UTF-8"),
        pytest.param(None, "No such file or directory", id="no such file"),
    ],
)
def test_a_file_that_cannot_be_read_ends_it(
    content: bytes | None, want: str, tmp_path: Path
) -> None:
    file = tmp_path / "cluster.yaml"
    if content is not None:
        file.write_bytes(content)
    done = decklog("demo", "--check", "--manifests", file)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"decklog: cannot read '{file}': ")
    assert want in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_empty_cluster_explains_every_pod(tmp_path: Path) -> None:
    code, said, found = demo(tmp_path, POD)
    assert code == 0
    assert said == "decklog: the input has no nodes: every pod will be unschedulable\n"
    assert (found["bound"], found["unschedulable"]) == (0, 1)


def test_pods_of_others_are_left_alone(tmp_path: Path) -> None:
    other = POD.replace("name: web,", "name: other,").replace(
        "spec: {", "spec: {schedulerName: somebody, "
    )
    gated = POD.replace("name: web,", "name: gated,").replace(
        "spec: {", "spec: {schedulingGates: [{name: example.com/wait}], "
    )
    code, _, found = demo(tmp_path, f"{NODE}---\n{POD}---\n{other}---\n{gated}")
    assert code == 0
    assert (found["bound"], found["pending"], found["pods"]) == (1, 2, 3)


# -- what commands depend on -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "env", "want"),
    [
        pytest.param(
            ("run", "scheduler", "--wait", "1s"),
            {"DECKLOG_PG__HOST": "127.0.0.1"},
            "cannot reach Kafka at '127.0.0.1:{port}': no answer within",
            id="broker of a service",
        ),
        pytest.param(("topics", "apply"), {}, "check that the broker runs", id="broker"),
        pytest.param(
            ("migrate", "up"),
            {"DECKLOG_PG__HOST": "127.0.0.1"},
            "check that the database runs, and the DECKLOG_PG__… settings",
            id="database",
        ),
    ],
)
def test_what_cannot_be_reached_is_named(
    arguments: tuple[str, ...], env: dict[str, str], want: str
) -> None:
    (port,) = free_ports(1)
    given = {"DECKLOG_KAFKA__BOOTSTRAP": f"127.0.0.1:{port}", "DECKLOG_PG__PORT": str(port)}
    done = decklog(*arguments, env={**given, **env})
    assert done.returncode == 5
    assert want.format(port=port) in done.stderr
    assert str(port) in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_service_alone_needs_a_broker_and_a_database() -> None:
    done = decklog("run", "scheduler")
    assert done.returncode == 2
    assert "set DECKLOG_KAFKA__BOOTSTRAP and DECKLOG_PG__HOST, or `run all --data FOLDER`" in (
        done.stderr
    )


def test_the_watcher_needs_an_api_server() -> None:
    done = decklog("run", "watcher", env={"DECKLOG_KAFKA__BOOTSTRAP": "127.0.0.1:1"})
    assert done.returncode == 2
    assert "set DECKLOG_KUBE__SERVER to its URL" in done.stderr


@pytest.mark.parametrize(
    ("statement", "want"),
    [
        pytest.param(
            "UPDATE alembic_version SET version_num = '9999'",
            "its schema is 9999, and this version knows",
            id="too new",
        ),
        pytest.param("DROP TABLE alembic_version", "run `decklog migrate up`", id="none"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(statement: str, want: str, tmp_path: Path) -> None:
    assert decklog("demo", "--check", "--pods", "1", "--data", tmp_path).returncode == 0
    with sqlite3.connect(tmp_path / "decklog.db") as connection:
        connection.execute(statement)
    connection.close()
    if "9999" in statement:
        written = decklog("demo", "--check", "--data", tmp_path)
        assert written.returncode == 6
        assert want in written.stderr
    read = decklog("migrate", "status", "--data", tmp_path)
    assert read.returncode == 1
    assert read.stderr.count("\n") == 1


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = decklog("demo", "--check", "--data", tmp_path / "file" / "store")
    assert done.returncode == 2
    assert f"cannot use '{tmp_path}/file/store' as data folder" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("demo", "--nodes", "many"),
        ("demo", "--output", "xml"),
        ("sim", "serve", "--listen", "here"),
        ("migrate", "down", "base"),
        ("doctor", "--probe", "health"),
        ("migrate", "up", "--data", "x", "--wait", "soon"),
        ("nothing",),
    ],
)
def test_wrong_use_exits_2(arguments: tuple[str, ...]) -> None:
    done = decklog(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr
