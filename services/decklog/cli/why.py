"""`decklog why`: the question that decklog is for."""

from typing import TYPE_CHECKING, Annotated

import typer

from decklog.cli import exit_codes
from decklog.cli.options import ConfigOption, DataOption, Output, OutputOption

if TYPE_CHECKING:
    from decklog.history.positions import Moment
    from decklog.history.source import Source

AtOption = Annotated[
    str,
    typer.Option("--at", metavar="POS", help="Position to explain: 128431, -15m, a time, …"),
]


def why(
    pod: Annotated[str, typer.Argument(metavar="POD", help="NAMESPACE/NAME, or the pod's uid.")],
    at: AtOption = "latest",
    data: DataOption = None,
    config: ConfigOption = None,
    output: OutputOption = Output.TABLE,
) -> int:
    """Say why POD is on its node, or why it is on none.

    What is printed is the pod's last decision as of the position: where it went, which nodes were
    rejected by which plugin and why, how the best ones scored, and what became of it. A pod about
    which nothing was decided yet is explained too, by replaying what the scheduler was told.

    \b
    Examples:
      decklog why shop/cart-7d9f
      decklog why shop/cart-7d9f --at -15m
      decklog why shop/cart-7d9f --at decision/51210 --output json
    """
    from decklog.bootstrap.reading import open_source
    from decklog.cli.position import parse_position
    from decklog.history.positions import resolve

    with open_source(data, config) as source:
        position = parse_position(at, now_ms=source.clock.now_ms())
        _print(source, pod, resolve(position, source), output)
    return exit_codes.OK


def _print(source: "Source", pod: str, moment: "Moment", output: Output) -> None:
    from decklog.cli.render import print_object
    from decklog.cli.why_text import explanation_text, undecided_text
    from decklog.history.why import explain, facts

    found = explain(source, pod, moment)
    if found is not None and output is Output.JSON:
        print_object("Explanation", facts(found))
    elif found is not None:
        typer.echo(explanation_text(found))
    else:
        from decklog.history import undecided

        reason = undecided.explain_undecided(source, pod, moment)
        if output is Output.JSON:
            print_object("Explanation", undecided.facts(reason))
        else:
            typer.echo(undecided_text(reason))
