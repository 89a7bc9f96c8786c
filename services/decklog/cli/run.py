"""`decklog run`: the entry points of containers."""

from pathlib import Path
from typing import Annotated, Any

import typer

from decklog.cli.options import ConfigOption

app = typer.Typer(
    name="run",
    help="Run a service until SIGTERM.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
WaitOption = Annotated[
    str,
    typer.Option(
        "--wait", metavar="DURATION", help="How long to wait at the start for what it needs."
    ),
]


@app.command()
def watcher(config: ConfigOption = None, wait: WaitOption = "60s") -> int:
    """Run the watcher: it lists and watches the API server, and appends what changed.

    \b
    Example:
      decklog run watcher --wait 120s
    """
    return _run("watcher", config, wait)


@app.command()
def scheduler(config: ConfigOption = None, wait: WaitOption = "60s") -> int:
    """Run a scheduler: it leads, or stands by until it may.

    \b
    Example:
      decklog run scheduler
    """
    return _run("scheduler", config, wait)


@app.command()
def binder(config: ConfigOption = None, wait: WaitOption = "60s") -> int:
    """Run a binder: it carries out what was decided. Any number of them may run.

    \b
    Example:
      decklog run binder
    """
    return _run("binder", config, wait)


@app.command()
def auditor(config: ConfigOption = None, wait: WaitOption = "60s") -> int:
    """Run the auditor: it decides everything again, and compares.

    \b
    Example:
      decklog run auditor
    """
    return _run("auditor", config, wait)


@app.command("all")
def all_(
    config: ConfigOption = None,
    wait: WaitOption = "60s",
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Folder of the embedded store, made if needed."),
    ] = None,
) -> int:
    """Run all services in one process, on an embedded store or on Kafka and PostgreSQL.

    \b
    Example:
      DECKLOG_KUBE__SERVER=http://127.0.0.1:8080 decklog run all --data ./voyage
    """
    flags = {} if data is None else {"store": {"folder": data}}
    return _run("all", config, wait, flags)


def _run(name: str, config: Path | None, wait: str, flags: dict[str, Any] | None = None) -> int:
    from decklog.bootstrap.durations import parse_duration
    from decklog.bootstrap.serving import serve
    from decklog.bootstrap.sources import load_settings

    patience = parse_duration(wait)
    return serve(name, load_settings(config, flags), patience=patience)
