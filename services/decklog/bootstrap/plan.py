"""What a demo does, and who looks on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from decklog.bootstrap.world import Story


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a demo does."""

    story: Story
    folder: Path | None = None
    """None: a temporary one."""
    verifies: bool = False
    """Whether the finished history is decided again from its beginning."""
    refused: int = 0
    """Documents of the input that were refused before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What can be said at the start."""

    where: str
    """Where the history is kept, in words."""
    cluster: str
    story: Story
    nodes: int
    zones: int
    example: str = ""
    """A pod of the story, as NAMESPACE/NAME."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far the demo is."""

    decisions: int
    position: int
    seconds: float
    pods: int | None = None
    bound: int | None = None
    """None: not asked, because the answer would cost too much each time."""


class Spectator(Protocol):
    """Who looks on."""

    def begun(self, begun: Begun) -> None: ...

    def progress(self, progress: Progress) -> None: ...

    def note(self, line: str) -> None:
        """Say something that is wrong with what was given."""
        ...
