"""`decklog migrate`: the ledger's schema."""

from pathlib import Path
from typing import Annotated

import typer

from decklog.cli import exit_codes
from decklog.cli.options import ConfigOption, Output, OutputOption

app = typer.Typer(
    name="migrate",
    help="Bring the ledger's schema up to date, or back.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
StoreOption = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="An embedded store, in place of PostgreSQL."),
]
WaitOption = Annotated[
    str, typer.Option("--wait", metavar="DURATION", help="How long to wait for the database.")
]


@app.command()
def up(
    config: ConfigOption = None,
    data: StoreOption = None,
    wait: WaitOption = "0",
    output: OutputOption = Output.TABLE,
    error_unchanged: Annotated[
        bool, typer.Option("--error-unchanged", help="Exit 3 when there was nothing to do.")
    ] = False,
) -> int:
    """Run the migrations that are missing.

    It never runs on a schema that is newer than this decklog.

    \b
    Example:
      decklog migrate up --wait 120s
    """
    from decklog.bootstrap.admin import migrate_up

    before, after = migrate_up(config, data, wait)
    _print(after, output)
    unchanged = before.revision == after.revision
    return exit_codes.UNCHANGED if unchanged and error_unchanged else exit_codes.OK


@app.command()
def status(
    config: ConfigOption = None,
    data: StoreOption = None,
    wait: WaitOption = "0",
    output: OutputOption = Output.TABLE,
) -> int:
    """Say which schema the ledger has, and whether this decklog can use it.

    Exits 1 if it can't.

    \b
    Example:
      decklog migrate status --output json
    """
    from decklog.bootstrap.admin import schema_status

    found, problem = schema_status(config, data, wait)
    _print(found, output)
    if problem:
        typer.echo(f"decklog: {problem}", err=True)
    return exit_codes.NO if problem else exit_codes.OK


@app.command()
def down(
    revision: Annotated[str, typer.Argument(help="Where to go back to; base: drop every table.")],
    config: ConfigOption = None,
    data: StoreOption = None,
    wait: WaitOption = "0",
    output: OutputOption = Output.TABLE,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do it: what the tables hold is lost.")
    ] = False,
) -> int:
    """Undo migrations. The history that the dropped tables hold is lost.

    \b
    Example:
      decklog migrate down base --yes
    """
    from decklog.bootstrap.admin import migrate_down

    if not yes:
        msg = "this deletes history: say --yes if that is meant"
        raise typer.BadParameter(msg, param_hint="--yes")
    _print(migrate_down(config, data, wait, revision), output)
    return exit_codes.OK


def _print(found: object, output: Output) -> None:
    from decklog.bootstrap.admin import schema_facts
    from decklog.cli.render import print_object, print_table

    facts = schema_facts(found)
    if output is Output.JSON:
        print_object("SchemaStatus", facts)
    else:
        headers = ["SCHEMA", "READABLE-FROM", "CODE", "CURRENT"]
        print_table(headers, [[*list(facts.values())[:3], str(facts["current"]).lower()]])
