"""`decklog import`: public traces, turned into manifests."""

from pathlib import Path
from typing import Annotated

import typer

from decklog.cli import exit_codes

app = typer.Typer(
    name="import",
    help="Turn a public trace into Kubernetes manifests.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def _import() -> None:
    """Keep `openb` a command of a group, of which more will come."""


@app.command()
def openb(
    nodes: Annotated[Path, typer.Argument(metavar="NODES.csv", help="The trace's nodes.")],
    pods: Annotated[Path, typer.Argument(metavar="PODS.csv", help="The trace's pods.")],
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="Where the manifests go.")
    ] = Path("openb.json"),
) -> int:
    """Turn the openb trace (2023, a GPU cluster) into nodes and pods for `demo --manifests`.

    \b
    Example:
      decklog import openb nodes.csv pods.csv --out openb.json
    """
    from decklog.bootstrap.inputs import import_openb

    written = import_openb(nodes, pods, out)
    for line in written.refused:
        typer.echo(f"decklog: {line}", err=True)
    typer.echo(f"{written.nodes} nodes and {written.pods} pods written to {out}", err=True)
    return exit_codes.REFUSED if written.refused else exit_codes.OK
