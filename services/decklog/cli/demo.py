"""`decklog demo`: everything at once, to look at and to check."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decklog.cli import exit_codes
from decklog.cli.options import ConfigOption, Output, OutputOption

if TYPE_CHECKING:
    from decklog.bootstrap.outcome import Outcome

STORY_PODS = 300
"""Pods of a story that has an end and no number: most of the built-in cluster's room."""
STREAM_RATE = 12.0
"""Pods a second of a demo without an end."""


CheckOption = Annotated[
    bool, typer.Option("--check", help="Run the story to its end, prove it, and exit 0 or 1.")
]
KeepOption = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="Keep the store in this folder.")
]
ManifestsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--manifests",
        metavar="FILE",
        help="Your own cluster: what `kubectl get nodes,pods -A -o yaml` prints. Repeatable.",
    ),
]
SpawnOption = Annotated[
    bool, typer.Option("--spawn", help="Each service a process, over Kafka and PostgreSQL.")
]
SeedOption = Annotated[int, typer.Option("--seed", metavar="N", help="Makes nodes, pods and ties.")]
NodesOption = Annotated[
    int, typer.Option("--nodes", metavar="N", min=0, help="Nodes of the story.")
]
PodsOption = Annotated[
    int | None,
    typer.Option("--pods", metavar="N", min=0, help="Pods of the story. Without: no end."),
]
RateOption = Annotated[
    float | None,
    typer.Option("--rate", metavar="N", min=0, help="New pods a second. 0: all at once."),
]


def demo(
    check: CheckOption = False,
    data: KeepOption = None,
    manifests: ManifestsOption = None,
    spawn: SpawnOption = False,
    seed: SeedOption = 42,
    nodes: NodesOption = 48,
    pods: PodsOption = None,
    rate: RateOption = None,
    config: ConfigOption = None,
    output: OutputOption = Output.TABLE,
) -> int:
    """Run a simulated cluster and every service of decklog, and watch it schedule.

    Without options it goes on until ^C. With --pods, --check or --manifests, and where no terminal
    is, it ends by itself when every pod is bound or explained.

    \b
    Examples:
      decklog demo
      decklog demo --check
      decklog demo --manifests cluster.yaml --data ./voyage
    """
    from decklog.bootstrap.demos import Request, run_request
    from decklog.cli.demo_text import Screen

    has_end = check or bool(manifests) or pods is not None or (rate is None and not _is_watched())
    request = Request(
        seed=seed,
        node_count=nodes,
        pod_count=pods if pods is not None else (STORY_PODS if has_end else None),
        rate=rate if rate is not None else (0.0 if has_end else STREAM_RATE),
        manifests=tuple(manifests or ()),
        folder=data,
        is_spawned=spawn,
        verifies=check,
        config=config,
    )
    with Screen(output) as screen:
        outcome = run_request(request, screen)
        screen.end(outcome)
    return _code(outcome, check=check)


def _is_watched() -> bool:
    """Whether a person looks on, who can end it."""
    return sys.stdout.isatty() or sys.stderr.isatty()


def _code(outcome: "Outcome", *, check: bool) -> int:
    if check and not outcome.is_sound:
        return exit_codes.NO
    return exit_codes.REFUSED if outcome.refused else exit_codes.OK
