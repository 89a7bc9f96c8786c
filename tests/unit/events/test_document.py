"""The generated reference is what the classes say, and a difference is noticed."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from decklog.events.asyncapi import asyncapi, to_yaml
from decklog.events.codec import DECISION_KINDS, EVENT_TYPES
from decklog.events.document import differences, documents, main, write
from decklog.events.schemas import short_name, structure, value_schemas

REFERENCE: Final = Path(__file__).parents[3] / "docs" / "reference"
TYPES: Final = sorted([*EVENT_TYPES, *(cls.ce_type for cls in DECISION_KINDS.values())])


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return documents()


def test_the_reference_is_up_to_date() -> None:
    assert differences(REFERENCE) == []


def test_what_was_written_has_no_differences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == 0
    assert main([str(tmp_path), "--check"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_difference_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path)
    (tmp_path / "asyncapi.yaml").write_text("")
    (tmp_path / "events" / "README.md").unlink()
    leftover = tmp_path / "schemas" / "ship.launched.v1.json"
    leftover.write_text("{}")
    assert main([str(tmp_path), "--check"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"{tmp_path}/asyncapi.yaml: differs: run `make docs`",
        f"{tmp_path}/events/README.md: is missing: run `make docs`",
        f"{leftover}: no such event: run `make docs`",
    ]
    write(tmp_path)
    assert not leftover.exists()


def test_generating_twice_gives_the_same(files: dict[str, str]) -> None:
    assert documents() == files


@pytest.mark.parametrize("ce_type", TYPES)
def test_every_type_is_in_the_catalogue_and_has_a_schema(
    ce_type: str, files: dict[str, str]
) -> None:
    assert f"Type `{ce_type}` (" in files["events/README.md"]
    schema = json.loads(files[f"schemas/{short_name(ce_type)}.json"])
    assert schema["$id"] == f"urn:decklog:{short_name(ce_type)}"


def test_docstrings_of_fields_are_in_schema_and_catalogue(files: dict[str, str]) -> None:
    words = "The watch missed the delete; a relist found the object missing."
    schema = value_schemas()["dev.decklog.object.deleted.v1"]
    assert schema["properties"]["final_state_unknown"]["description"] == words
    assert f"| `false` | {words} |" in files["events/README.md"]


def test_the_structure_of_a_schema_has_no_words_and_everything_else() -> None:
    schema = {"description": "d", "properties": {"description": {"type": "string"}}, "items": [1]}
    assert structure(schema) == {
        "properties": {"description": {"type": "string"}},
        "items": [1],
    }


def test_yaml_says_what_the_document_says(files: dict[str, str]) -> None:
    assert yaml.safe_load(files["asyncapi.yaml"]) == asyncapi()


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({"a": {}, "b": [], "c": None, "d": True, "e": -1}, id="scalars"),
        pytest.param({"yes": 1, "on": 2, "no": "no", "1.0": "1.0", "": ""}, id="odd keys"),
        pytest.param({"a": [[1, [2]], {"b": [{"c": 3, "d": 4}]}]}, id="lists in lists"),
        pytest.param({"a": "x: y # z\n- \"\\ü\u2028'"}, id="odd text"),
    ],
)
def test_yaml_can_be_read_back(document: dict[str, Any]) -> None:
    assert yaml.safe_load(to_yaml(document)) == document


def test_every_reference_in_the_asyncapi_document_leads_somewhere() -> None:
    document = asyncapi()
    for reference in _references(document):
        found: Any = document
        for step in reference.removeprefix("#/").split("/"):
            found = found[step]


def _references(part: Any) -> list[str]:
    if isinstance(part, dict):
        own = [part["$ref"]] if isinstance(part.get("$ref"), str) else []
        return own + [each for value in part.values() for each in _references(value)]
    return [each for value in part for each in _references(value)] if isinstance(part, list) else []
