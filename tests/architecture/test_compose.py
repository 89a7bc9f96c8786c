"""The deployment files: parsed by the real tools, and held to what the services promise.

There is no Docker engine here. `docker-compose config` is Compose's own parser, so what it
prints is what an engine would get.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from tests.architecture.commands import parse
from tests.architecture.source import ROOT
from tests.stack.postgres import PostgresServer, find_binaries

COMPOSE: Final = ROOT / "docker-compose.yml"
DEPLOY: Final = ROOT / "deploy"
BIN: Final = Path(sys.executable).parent
INFRASTRUCTURE: Final = {"kafka", "postgres"}
ONE_SHOTS: Final = {"migrate", "topics"}
KNOWS_THE_API_SERVER: Final = {"watcher", "binder"}
DATABASE_ROLES: Final = {
    "migrate": "decklog_owner",
    "scheduler": "decklog_writer",
    "binder": "decklog_writer",
    "auditor": "decklog_writer",
}
SECRET_OF_ROLE: Final = {"decklog_owner": "pg_owner", "decklog_writer": "pg_writer"}

Service = dict[str, Any]


@pytest.fixture(scope="module")
def services() -> dict[str, Service]:
    done = _run("docker-compose", "-f", str(COMPOSE), "config", "--format", "json")
    assert done.returncode == 0, done.stderr
    parsed: dict[str, dict[str, Service]] = json.loads(done.stdout)
    return parsed["services"]


@pytest.fixture(scope="module")
def ours(services: dict[str, Service]) -> dict[str, Service]:
    """The services that run our image."""
    return {name: each for name, each in services.items() if each["image"] == "decklog:dev"}


def test_compose_accepts_the_file_without_a_warning() -> None:
    done = _run("docker-compose", "-f", str(COMPOSE), "--profile", "*", "config", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_compose_refuses_an_unknown_key(tmp_path: Path) -> None:
    """Otherwise the test above would prove nothing."""
    broken = tmp_path / "docker-compose.yml"
    broken.write_text("services: {a: {image: b, helthcheck: {}}}\n")
    assert _run("docker-compose", "-f", str(broken), "config", "-q").returncode != 0


def test_the_dockerfile_is_clean() -> None:
    done = _run("hadolint", "--no-color", str(DEPLOY / "Dockerfile"))
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_gets_every_file_that_it_copies() -> None:
    """.dockerignore leaves everything out and takes single paths back in."""
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    taken = {line[1:].rstrip("/") for line in ignored if line.startswith("!")}
    copies = re.findall(r"^COPY (?!--from)(.+) \S+$", (DEPLOY / "Dockerfile").read_text(), re.M)
    wanted = {path.removeprefix("./") for copy in copies for path in copy.split()}
    assert wanted == taken
    assert not [path for path in wanted if not (ROOT / path).exists()]


def test_there_are_all_services_and_no_other(services: dict[str, Service]) -> None:
    apart = {"cluster", "watcher", "scheduler", "binder", "auditor"}
    assert set(services) == INFRASTRUCTURE | ONE_SHOTS | apart


def test_our_containers_may_do_little(ours: dict[str, Service]) -> None:
    for name, service in ours.items():
        uid = str(service["user"]).partition(":")[0]
        assert uid not in {"0", "root"}, name
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert int(service["mem_limit"]) > 0, name


def test_ports_are_published_on_loopback_only(services: dict[str, Service]) -> None:
    for name, service in services.items():
        for port in service.get("ports", []):
            assert port.get("host_ip") == "127.0.0.1", name


def test_what_stays_up_says_whether_it_is_healthy(services: dict[str, Service]) -> None:
    assert {name for name in services if "healthcheck" not in services[name]} == ONE_SHOTS


def test_somebody_waits_for_each_one_shot(services: dict[str, Service]) -> None:
    """`up --wait` takes an exited one-shot that nobody depends on for a failure."""
    waited_for = {
        dependency
        for service in services.values()
        for dependency, how in service.get("depends_on", {}).items()
        if how["condition"] == "service_completed_successfully"
    }
    once = {name for name, each in services.items() if str(each["restart"]) != "unless-stopped"}
    assert once == waited_for == ONE_SHOTS


def test_only_watcher_and_binder_know_the_api_server(services: dict[str, Service]) -> None:
    knows = {name for name, each in services.items() if _mentions(each, "DECKLOG_KUBE")}
    assert knows == KNOWS_THE_API_SERVER


def test_each_service_has_the_database_role_that_it_needs(ours: dict[str, Service]) -> None:
    roles = {
        name: each["environment"]["DECKLOG_PG__USER"]
        for name, each in ours.items()
        if _mentions(each, "DECKLOG_PG")
    }
    assert roles == DATABASE_ROLES
    for name, service in ours.items():
        secrets = [secret["source"] for secret in service.get("secrets", [])]
        assert secrets == ([SECRET_OF_ROLE[roles[name]]] if name in roles else []), name


def test_variables_of_the_file_are_not_settings() -> None:
    """A DECKLOG_… in a person's shell would be taken for a setting by every command."""
    variables = re.findall(r"\$\{(\w+)", COMPOSE.read_text())
    assert variables
    assert not [name for name in variables if name.startswith("DECKLOG_")]


def test_the_cluster_id_is_a_uuid(services: dict[str, Service]) -> None:
    assert len(services["kafka"]["environment"]["CLUSTER_ID"]) == 22


@pytest.mark.parametrize("file", sorted((DEPLOY / "compose").iterdir()), ids=lambda file: file.name)
def test_mounted_files_can_be_read_by_any_user(file: Path) -> None:
    assert file.stat().st_mode & 0o004


def test_every_command_parses(ours: dict[str, Service]) -> None:
    for service in ours.values():
        parse(service["command"])
        if "healthcheck" in service:
            cmd, program, *arguments = service["healthcheck"]["test"]
            assert (cmd, program) == ("CMD", "decklog")
            parse(arguments)


def test_every_environment_name_is_a_setting(ours: dict[str, Service]) -> None:
    from decklog.bootstrap.settings import Settings  # noqa: PLC0415 - the tests above do without

    known = set(_setting_names(Settings))
    for name, service in ours.items():
        given = {key for key in service.get("environment", {}) if key.startswith("DECKLOG_")}
        secrets = {secret["target"].upper() for secret in service.get("secrets", [])}
        assert given | secrets <= known, name


@pytest.mark.postgres
@pytest.mark.usefixtures("postgres_server")  # Skips where there is none.
def test_the_roles_script_creates_both_roles(tmp_path: Path) -> None:
    """On a server of its own, because roles belong to a whole server."""
    for name in ("owner", "writer", "reader"):
        shutil.copy(DEPLOY / "compose" / f"pg_{name}.dev", tmp_path / f"pg_{name}")
    with PostgresServer() as server:
        done = subprocess.run(
            [DEPLOY / "compose" / "roles.sh"],
            env={
                "PATH": f"{find_binaries()}:{os.environ['PATH']}",
                "PGHOST": server.host,
                "PGPORT": str(server.port),
                "POSTGRES_USER": server.user,
                "POSTGRES_DB": "postgres",
                "POSTGRES_PASSWORD_FILE": str(tmp_path / "pg_owner"),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        with psycopg.connect(server.dsn("postgres")) as connection:
            roles = connection.execute(
                "SELECT rolname FROM pg_authid WHERE rolpassword IS NOT NULL ORDER BY rolname"
            )
            assert roles.fetchall() == [("decklog_reader",), ("decklog_writer",)]


def _run(tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / tool, *arguments], capture_output=True, text=True, check=False, cwd=ROOT
    )


def _mentions(service: Service, prefix: str) -> bool:
    return any(name.startswith(prefix) for name in service.get("environment", {}))


def _setting_names(model: Any, prefix: str = "DECKLOG_") -> Iterator[str]:
    for field, definition in model.model_fields.items():
        name = f"{prefix}{field.upper()}"
        yield name
        if hasattr(definition.annotation, "model_fields"):
            yield from _setting_names(definition.annotation, f"{name}__")
