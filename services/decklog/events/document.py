"""Write the reference of events, or check that it is what it should be.

    python -m decklog.events.document [--check] [FOLDER]

The folder is `docs/reference` if none is given. With `--check` nothing is written, and the exit
code is 1 if a file differs, is missing, or should not be there.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from decklog.events.asyncapi import asyncapi, to_yaml
from decklog.events.catalogue import catalogue
from decklog.events.schemas import short_name, value_schemas

_NOTICE = "# Generated from services/decklog/events by `make docs`: change those, not this file.\n"


def documents() -> dict[str, str]:
    """Return every generated file by its path in the reference."""
    schemas = {
        f"schemas/{short_name(ce_type)}.json": _json(schema)
        for ce_type, schema in value_schemas().items()
    }
    return {
        "asyncapi.yaml": _NOTICE + to_yaml(asyncapi()),
        "events/README.md": catalogue(),
        **schemas,
    }


def differences(folder: Path) -> list[str]:
    """Return one line for each file that is not as it should be."""
    want = documents()
    found = [
        f"{folder / path}: {'differs' if (folder / path).exists() else 'is missing'}"
        for path, text in want.items()
        if not (folder / path).exists() or (folder / path).read_text() != text
    ]
    return found + [f"{path}: no such event" for path in _leftovers(folder, want)]


def write(folder: Path) -> None:
    """Write every file, and remove schemas of events that are no more."""
    want = documents()
    for path, text in want.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    for leftover in _leftovers(folder, want):
        leftover.unlink()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m decklog.events.document")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("docs/reference"))
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a difference")
    given = parser.parse_args(arguments)
    if not given.check:
        write(given.folder)
        return 0
    found = differences(given.folder)
    sys.stderr.writelines(f"{line}: run `make docs`\n" for line in found)
    return 1 if found else 0


def _leftovers(folder: Path, want: dict[str, str]) -> list[Path]:
    schemas = sorted((folder / "schemas").glob("*.json"))
    return [path for path in schemas if path.relative_to(folder).as_posix() not in want]


def _json(schema: object) -> str:
    return json.dumps(schema, ensure_ascii=False, indent=2) + "\n"


if __name__ == "__main__":
    sys.exit(main())
