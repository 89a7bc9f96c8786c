"""The documents: their links lead somewhere, and the commands they name exist."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.commands import parse
from tests.architecture.source import ROOT

DOCUMENTS: Final = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
GLOSSARY: Final = ROOT / "docs" / "reference" / "glossary.md"
OUR_WORDS: Final = (
    "cursor",
    "decision",
    "divergence",
    "effect",
    "event",
    "generation",
    "ledger",
    "position",
    "replay",
    "rules",
    "seq",
    "snapshot",
    "stream",
    "tick",
    "verify",
)
README_LINES_MAX: Final = 80  # One screen, then depth.


def _name(document: Path) -> str:
    return str(document.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in _links(document):
        path, _, anchor = target.partition("#")
        found = (document.parent / path).resolve() if path else document
        assert found.exists(), f"{target}: no such file"
        assert not anchor or anchor in _anchors(found), f"{target}: no such heading"


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_make_targets_exist(document: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"(?:`|^|\n)make ([a-z-]+)", document.read_text()))
    assert named <= targets


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_commands_in_shell_blocks_parse(document: Path) -> None:
    for line in _shell_lines(document):
        program, *arguments = shlex.split(line, comments=True) or [""]
        if Path(program).name == "decklog":
            parse(arguments)


def test_every_document_is_reached_from_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / target).resolve() for target in _links(index)}
    assert set((ROOT / "docs").rglob("*.md")) - {index} == linked


@pytest.mark.parametrize("word", OUR_WORDS)
def test_the_glossary_defines_our_words(word: str) -> None:
    assert f"\n**{word}**\n: " in GLOSSARY.read_text()


def test_the_readme_is_one_screen() -> None:
    assert (ROOT / "README.md").read_text().count("\n") <= README_LINES_MAX


def test_the_changelog_has_a_place_for_the_next_change() -> None:
    assert "\n## Unreleased\n" in (ROOT / "CHANGELOG.md").read_text()


def _links(document: Path) -> Iterator[str]:
    """The targets within the project; addresses elsewhere are not ours to keep."""
    for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        if "://" not in target and not target.startswith("mailto:"):
            yield target


def _anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _shell_lines(document: Path) -> Iterator[str]:
    for block in re.findall(r"^```(?:sh|shell)\n(.*?)^```", document.read_text(), re.M | re.S):
        yield from block.replace("\\\n", " ").splitlines()
