"""What the demo prints: the header, how far it is, and the summary."""

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import typer

from decklog.cli.options import Output
from decklog.version import __version__

if TYPE_CHECKING:
    from decklog.bootstrap.outcome import Outcome
    from decklog.bootstrap.plan import Begun, Progress

_MB = 1_000_000


class Screen:
    """Looks on: people see it all, programs get the one object at the end."""

    def __init__(self, output: Output) -> None:
        self._is_table = output is Output.TABLE
        self._live: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop()

    def begun(self, begun: "Begun") -> None:
        if not self._is_table:
            return
        for line in header(begun):
            typer.echo(line)
        if sys.stderr.isatty():
            self._start()

    def progress(self, progress: "Progress") -> None:
        if self._live is not None:
            self._live.update(progress_line(progress))

    def note(self, line: str) -> None:
        typer.echo(f"decklog: {line}", err=True)

    def end(self, outcome: "Outcome") -> None:
        from decklog.cli.render import print_object

        self._stop()
        if self._is_table:
            for line in summary(outcome):
                typer.echo(line)
        else:
            print_object("DemoSummary", outcome.facts())

    def _start(self) -> None:
        from rich.console import Console
        from rich.status import Status

        self._live = Status("starting", console=Console(stderr=True), spinner="dots")
        self._live.start()

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


def header(begun: "Begun") -> list[str]:
    story = begun.story
    zones = f", {begun.zones} zones" if begun.zones else ""
    lines = [
        f"decklog {__version__} demo · seed {story.seed} · {begun.where}",
        f"  cluster  {begun.cluster}    {begun.nodes} nodes{zones} (simulated)",
    ]
    if story.objects is None and story.pod_count is None:
        lines.append(f"  stream   {story.rate:g} pods/s …  ^C stops")
    lines.append("Try in another shell:")
    if begun.example:
        command = f"decklog why {begun.example}"
        lines.append(f"  {command:<38}why a pod is where it is")
    lines.append(f"  {'decklog audit list':<38}what was decided")
    lines.append(f"  {'decklog verify':<38}prove the log is intact and replayable")
    return lines


def progress_line(progress: "Progress") -> str:
    parts = []
    if progress.pods is not None:
        parts.append(f"{progress.pods} pods, {progress.bound} bound")
    parts.append(f"{progress.decisions} decisions")
    parts.append(f"position {progress.position}")
    parts.append(f"{progress.seconds:.1f} s")
    return " · ".join(parts)


def summary(outcome: "Outcome") -> list[str]:
    facts = outcome.facts()
    lines = [
        "",
        f"{facts['pods']} pods on {facts['nodes']} nodes in {facts['wall_seconds']:.2f} s",
        f"  bound          {facts['bound']}",
        f"  unschedulable  {facts['unschedulable']}",
        f"  pending        {facts['pending']}",
        f"  deleted        {facts['deleted']}",
        (
            f"History   {facts['events']} events, {facts['ticks']} ticks, "
            f"{facts['decisions']} decisions, {facts['open_assumes']} assumes open"
        ),
        verdict(outcome),
        f"Cost      {facts['cpu_seconds']:.1f} s of CPU, {outcome.rss_max_bytes // _MB} MB",
    ]
    if outcome.restarts:
        died = ", ".join(f"{name} {count}" for name, count in sorted(outcome.restarts.items()))
        lines.append(f"Restarts  {died}")
    if outcome.refused:
        lines.append(f"Refused   {outcome.refused} documents of the input, the rest was processed")
    return lines


def verdict(outcome: "Outcome") -> str:
    proof = outcome.proof
    if proof.verified:
        return f"Verified. {outcome.decisions} decisions, each taken again and identical"
    if proof.verified is None:
        return "Unproved  not every decision was taken again before the end"
    said = proof.why_not or f"{proof.divergences} decisions differ: `decklog verify` says which"
    return f"VIOLATED  {said}"
