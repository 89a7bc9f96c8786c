"""The reference of commands, settings and metrics is what the code says."""

from pathlib import Path
from typing import Final

import pytest

from decklog.cli.document import differences, main

REFERENCE: Final = Path(__file__).parents[3] / "docs" / "reference"


def test_the_reference_is_up_to_date() -> None:
    """If this fails: `make docs`."""
    assert differences(REFERENCE) == []


def test_what_was_written_has_no_differences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == 0
    assert main([str(tmp_path), "--check"]) == 0
    (tmp_path / "config.md").write_text("")
    assert main([str(tmp_path), "--check"]) == 1
    assert capsys.readouterr().err == f"{tmp_path}/config.md: differs: run `make docs`\n"
