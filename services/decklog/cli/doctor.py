"""`decklog doctor`: so far only the probe that containers use as their health check."""

import os
from typing import Annotated

import typer

from decklog.cli import exit_codes

_PORT_VARIABLE = "DECKLOG_OPERATIONS__PORT"


def doctor(
    probe: Annotated[
        str,
        typer.Option("--probe", metavar="NAME", help="livez, readyz or startupz, or readyz/CHECK."),
    ],
    host: Annotated[
        str, typer.Option("--host", metavar="HOST", help="Where the service runs.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option("--port", metavar="PORT", envvar=_PORT_VARIABLE, help="Its operations port."),
    ] = 9400,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing; the exit code says it.")
    ] = False,
) -> int:
    """Ask a running service whether it is alive, or ready.

    Exits 0 for yes, 1 for no, and 5 where nothing answers. It reads no settings but the port, so
    that a health check costs little.

    \b
    Example:
      decklog doctor --probe readyz --quiet
    """
    from http.client import HTTPConnection, HTTPException

    if probe.partition("/")[0] not in ("livez", "readyz", "startupz", "healthz"):
        msg = "probes are livez, readyz, startupz, and readyz/CHECK"
        raise typer.BadParameter(msg, param_hint="--probe")
    connection = HTTPConnection(host, port, timeout=3)
    try:
        connection.request("GET", f"/{probe}?verbose")
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
    except (OSError, HTTPException) as error:
        if not quiet:
            typer.echo(f"decklog: nothing answers at {host}:{port}: {error}", err=True)
        return exit_codes.UNAVAILABLE
    finally:
        connection.close()
    if not quiet:
        typer.echo(text.strip() + os.linesep, nl=False)
    return exit_codes.OK if answer.status == 200 else exit_codes.NO
