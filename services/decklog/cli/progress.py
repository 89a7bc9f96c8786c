"""How far a long command is: on standard error, and only for people who watch it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, int, int], None]
"""Told the part of the work, how far it is, and how far it goes."""


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Show a bar for each part of the work, and leave nothing behind."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
    bars: dict[str, TaskID] = {}
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:

        def told(part: str, done: int, total: int) -> None:
            if part not in bars:
                bars[part] = shown.add_task(part, total=total)
            shown.update(bars[part], completed=done, total=total)

        yield told
