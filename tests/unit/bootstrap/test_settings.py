"""Where settings come from, which one wins, and what is said about a wrong one."""

from pathlib import Path
from typing import Any

import pytest

from decklog.bootstrap.settings import Settings
from decklog.bootstrap.sources import load_settings, setting_paths, unknown_variables
from decklog.core.errors import BadConfiguration


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    folder = tmp_path / "secrets"
    folder.mkdir()
    return folder


def test_the_defaults_are_one_process_on_an_embedded_store() -> None:
    settings = load_settings()
    assert settings.is_embedded
    assert (settings.cluster, settings.operations.port) == ("demo", 9400)


def test_a_variable_sets_a_section_s_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECKLOG_KAFKA__BOOTSTRAP", "kafka:9092")
    monkeypatch.setenv("DECKLOG_PG__PORT", "5433")
    settings = load_settings()
    assert (settings.kafka.bootstrap, settings.pg.port) == ("kafka:9092", 5433)
    assert not settings.is_embedded


def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECKLOG_PG__PORT", "")
    assert load_settings().pg.port == 5432


def test_flag_beats_variable_beats_secret_beats_file_beats_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, secrets: Path
) -> None:
    file = tmp_path / "decklog.yaml"
    file.write_text(
        "pg: {host: file, user: file, password: file, database: file, sslmode: require}\n"
    )
    (secrets / "decklog_pg__password").write_text("secret\n")
    (secrets / "decklog_pg__user").write_text("secret\n")
    (secrets / "decklog_pg__host").write_text("secret\n")
    monkeypatch.setenv("DECKLOG_PG__USER", "variable")
    monkeypatch.setenv("DECKLOG_PG__HOST", "variable")
    pg = load_settings(file, {"pg": {"host": "flag"}}, secrets).pg
    got = (pg.host, pg.user, pg.password.get_secret_value(), pg.database, pg.port)
    assert got == ("flag", "variable", "secret", "file", 5432)
    assert pg.sslmode == "require"


def test_a_folder_of_secrets_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    assert load_settings(secrets_folder=tmp_path / "none").cluster == "demo"


def test_the_file_may_be_named_by_a_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "decklog.yaml"
    file.write_text("cluster: eu1\n")
    monkeypatch.setenv("DECKLOG_CONFIG", str(file))
    assert load_settings().cluster == "eu1"
    assert unknown_variables() == []


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            "kafka: {bootstap: a}",
            "kafka.bootstap in {file} is not a setting; did you mean kafka.bootstrap?",
            id="misspelt key",
        ),
        pytest.param(
            "kafak: {bootstrap: a}",
            "kafak in {file} is not a setting; did you mean kafka?",
            id="misspelt section",
        ),
        pytest.param("xyzzy: 1", "xyzzy in {file} is not a setting", id="nothing is near"),
        pytest.param(
            "pg: {port: many}",
            "setting pg.port in {file}: input should be a valid integer",
            id="not a number",
        ),
        pytest.param("- a\n", "{file} holds no settings: a mapping of sections", id="a list"),
    ],
)
def test_a_wrong_file_is_named(text: str, want: str, tmp_path: Path) -> None:
    file = tmp_path / "decklog.yaml"
    file.write_text(text)
    with pytest.raises(BadConfiguration) as caught:
        load_settings(file)
    assert want.format(file=repr(str(file))) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_wrong_variable_is_named_and_its_value_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECKLOG_PG__PORT", "hunter2")
    with pytest.raises(BadConfiguration, match="DECKLOG_PG__PORT") as caught:
        load_settings()
    assert "hunter2" not in str(caught.value)


def test_a_misspelt_key_of_a_section_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECKLOG_KAFKA__BOOTSTAP", "a")
    want = "DECKLOG_KAFKA__BOOTSTAP is not a setting; did you mean DECKLOG_KAFKA__BOOTSTRAP?"
    with pytest.raises(BadConfiguration) as caught:
        load_settings()
    assert str(caught.value) == want


def test_other_misspelt_variables_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not refused: Kubernetes itself sets DECKLOG_PORT where a Service is called decklog."""
    monkeypatch.setenv("DECKLOG_KAKFA__BOOTSTRAP", "a")
    monkeypatch.setenv("DECKLOG_PORT", "tcp://10.0.0.1:80")
    load_settings()
    assert [str(each) for each in unknown_variables()] == [
        "DECKLOG_KAKFA__BOOTSTRAP is not a setting; did you mean DECKLOG_KAFKA__BOOTSTRAP?",
        "DECKLOG_PORT is not a setting; did you mean DECKLOG_PG__PORT?",
    ]


def test_secrets_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECKLOG_PG__PASSWORD", "hunter2")
    monkeypatch.setenv("DECKLOG_KAFKA__SASL_PASSWORD", "hunter2")
    settings = load_settings()
    assert "hunter2" not in f"{settings.masked()} {settings!r}"
    assert settings.pg.password.get_secret_value() == "hunter2"


def test_settings_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_settings().cluster = "other"


@pytest.mark.parametrize("path", list(setting_paths(Settings)), ids=".".join)
def test_every_setting_is_described(path: tuple[str, ...]) -> None:
    model: Any = Settings
    for section in path[:-1]:
        model = model.model_fields[section].annotation
    assert model.model_fields[path[-1]].description
