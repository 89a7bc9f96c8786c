"""`decklog sim`: the simulated cluster as a server."""

from pathlib import Path
from typing import Annotated

import typer

from decklog.cli.options import ConfigOption

app = typer.Typer(
    name="sim",
    help="The simulated cluster, for other processes and kubectl.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def _sim() -> None:
    """Keep `serve` a command of a group, of which more will come."""


@app.command()
def serve(
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Where to listen. Port 0: any.")
    ] = "127.0.0.1:8080",
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Makes nodes and pods.")] = 42,
    nodes: Annotated[
        int, typer.Option("--nodes", metavar="N", min=0, help="Nodes of the cluster.")
    ] = 48,
    pods: Annotated[
        int | None,
        typer.Option(
            "--pods", metavar="N", min=0, help="Pods, which then run for ever. Without: no end."
        ),
    ] = None,
    rate: Annotated[
        float, typer.Option("--rate", metavar="N", min=0, help="New pods a second. 0: all at once.")
    ] = 5.0,
    manifests: Annotated[
        list[Path] | None,
        typer.Option("--manifests", metavar="FILE", help="Another cluster's objects. Repeatable."),
    ] = None,
    config: ConfigOption = None,
) -> int:
    """Serve a simulated cluster and its workload as a Kubernetes API, until SIGTERM.

    There is no authentication, so keep it on loopback. Its address is printed.

    \b
    Examples:
      decklog sim serve --listen 127.0.0.1:8080 --nodes 48 --rate 5
      kubectl --server http://127.0.0.1:8080 get pods -A
    """
    from decklog.bootstrap.simserve import Listening, serve_cluster
    from decklog.bootstrap.sources import load_settings
    from decklog.bootstrap.world import Story

    host, separator, port = listen.rpartition(":")
    if not separator or not port.isdigit():
        msg = f"{listen!r} is not HOST:PORT"
        raise typer.BadParameter(msg, param_hint="--listen")
    story = Story(seed=seed, node_count=nodes, pod_count=pods, rate=rate)
    where = Listening(host=host or "127.0.0.1", port=int(port))
    return serve_cluster(
        load_settings(config), story, where, manifests=tuple(manifests or ()), announce=typer.echo
    )
