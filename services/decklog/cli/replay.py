"""`decklog replay`: the cluster and the queue as the scheduler knew them at a position."""

from typing import TYPE_CHECKING, Annotated

import typer

from decklog.cli import exit_codes
from decklog.cli.options import ConfigOption, DataOption, Output, OutputOption

if TYPE_CHECKING:
    from decklog.history.replay import Replayed


def replay(
    to: Annotated[
        str, typer.Option("--to", "--at", metavar="POS", help="Position to go to: 128431, -15m, …")
    ] = "latest",
    stats: Annotated[
        bool, typer.Option("--stats", help="Only say what was replayed, and how fast.")
    ] = False,
    data: DataOption = None,
    config: ConfigOption = None,
    output: OutputOption = Output.TABLE,
) -> int:
    """Rebuild the scheduler's state as of a position from what is recorded.

    Nothing is decided again: events and decisions are applied, as a scheduler does that starts. The
    table says what was replayed; the JSON holds the nodes with what is allocated on them, the pods
    and the queue.

    \b
    Examples:
      decklog replay --to @128431 --stats
      decklog replay --at 2026-11-24T14:03:00Z --output json
    """
    from decklog.bootstrap.reading import open_source
    from decklog.cli.position import parse_position
    from decklog.cli.progress import progress_bar
    from decklog.cli.render import print_object
    from decklog.history import replay as history
    from decklog.history.cluster import cluster
    from decklog.history.positions import resolve

    with open_source(data, config) as source, progress_bar() as progress:
        moment = resolve(parse_position(to, now_ms=source.clock.now_ms()), source)
        found = history.rebuild(source, moment, lambda *told: progress("replay", *told))
    if output is Output.JSON:
        held = {} if stats else cluster(found.state)
        print_object("Cluster", {"metadata": history.stats(found), **held})
    else:
        typer.echo(_text(found))
    return exit_codes.OK


def _text(found: "Replayed") -> str:
    from decklog.history.cluster import stages

    state, moment = found.state, found.moment
    digest = found.digests.state
    counted = ", ".join(f"{count:,} {stage.lower()}" for stage, count in stages(state).items())
    what = f"{found.events:,} events, {found.ticks:,} ticks, {found.decisions:,} decisions"
    agreed = "" if found.resyncs_wrong else ", as every resync said"
    lines = [
        f"Replayed {what} in {found.seconds:.1f} s ({found.events_per_second:,.0f} events/s)",
        f"  as of    {moment}, decision {moment.seq}",
        f"  nodes    {len(state.store.objects('Node')):,}",
        f"  pods     {len(state.store.objects('Pod')):,}" + (f" ({counted})" if counted else ""),
        f"  assumes  {len(state.open_assumes):,} open",
        f"  digest   {digest[:4]}…{digest[-2:]} of all objects{agreed}",
        *(f"  resync differs at {wrong}" for wrong in found.resyncs_wrong),
    ]
    return "\n".join(lines)
