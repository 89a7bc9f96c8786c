"""The program `decklog`: its commands, and the way from an error to an exit code.

Modules of commands are imported here, so they import at their top only what is cheap.
"""

import sys
from typing import Any, Final

import typer

from decklog.bootstrap.exit_codes import INTERRUPTED, USAGE
from decklog.bootstrap.run import guarded
from decklog.cli import (
    audit,
    demo,
    doctor,
    imports,
    migrate,
    replay,
    run,
    sim,
    topics,
    verify,
    version,
    why,
)

app = typer.Typer(
    name="decklog",
    help="Ask your Kubernetes scheduler why, about any pod, at any time, and prove the answer.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("doctor")(doctor.doctor)
app.command("version")(version.version)
app.add_typer(imports.app, name="import")
app.add_typer(run.app, name="run")
app.add_typer(sim.app, name="sim")
app.add_typer(migrate.app, name="migrate")
app.add_typer(topics.app, name="topics")
# History: one line for each command of the read side.
app.command("why")(why.why)
app.add_typer(audit.app, name="audit")
app.command("replay")(replay.replay)
app.command("verify")(verify.verify)


def main() -> None:
    """Run the command of this process, and exit with its code."""
    sys.exit(guarded(_command))


def _command() -> int | None:
    try:
        code = app(prog_name="decklog", standalone_mode=False)
        sys.stdout.flush()
    except _USAGE_ERROR as error:
        error.show()
        return USAGE
    except typer.Abort:
        return INTERRUPTED
    return code if isinstance(code, int) else None


_USAGE_ERROR: Final[Any] = typer.BadParameter.__mro__[2]
"""What every wrong use raises, missing commands and options included; Typer hides its name."""
