"""The project's files, found and parsed once for all architecture tests."""

import ast
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = ("services", "migrations", "tests", "bench")


@dataclass(frozen=True)
class Source:
    """One Python file; `path` is relative to the repository, and says which rules hold."""

    path: PurePosixPath
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=str(self.path))

    @property
    def in_package(self) -> str:
        """The package of decklog that the file is in, or nothing."""
        parts = self.path.parts
        return parts[2] if parts[:2] == ("services", "decklog") and len(parts) > 3 else ""

    @property
    def is_test(self) -> bool:
        return self.path.parts[0] == "tests"


def sources() -> list[Source]:
    """Return every Python file of the project."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return [Source(PurePosixPath(path.relative_to(ROOT)), path.read_text()) for path in paths]
