"""The note by which a running demo is found by the commands of other shells."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_FILE: Final = "demo.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Where a demo that runs now keeps its history."""

    pid: int
    cluster: str
    folder: Path | None = None
    """None: in the Kafka and PostgreSQL of the settings."""


@contextmanager
def noted(note: Note) -> Iterator[None]:
    """Leave the note while the demo runs. The demo that was started last is the one found."""
    path = _path()
    content: dict[str, Any] = {"pid": note.pid, "cluster": note.cluster}
    if note.folder is not None:
        content["folder"] = str(note.folder.absolute())
    written = _write(path, content)
    try:
        yield
    finally:
        current = read_note()
        if written and current is not None and current.pid == note.pid:
            path.unlink(missing_ok=True)


def read_note() -> Note | None:
    """Return the note of a demo that still runs."""
    try:
        content = json.loads(_path().read_bytes())
        folder = content.get("folder")
        note = Note(
            pid=int(content["pid"]),
            cluster=str(content["cluster"]),
            folder=Path(folder) if folder else None,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return note if _runs(note.pid) else None


def _path() -> Path:
    """The user's own folder for such things; in none, one of the user's in the shared one."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.access(runtime, os.W_OK):
        return Path(runtime) / "decklog" / _FILE
    return Path(tempfile.gettempdir()) / f"decklog-{os.getuid()}" / _FILE


def _write(path: Path, content: dict[str, Any]) -> bool:
    """Write the note whole or not at all. Without it the demo runs too."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.parent.stat().st_uid != os.getuid():
            return False
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(content))
        draft.replace(path)
    except OSError:
        return False
    return True


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
