"""`decklog version`."""

from typing import Annotated

import typer

from decklog.cli.options import Output, OutputOption


def version(
    output: OutputOption = Output.TABLE,
    short: Annotated[bool, typer.Option("--short", help="Print the version only.")] = False,
) -> None:
    """Print the versions of this decklog: code, deciding rules, schema.

    \b
    Example:
      decklog version --output json
    """
    from decklog.bootstrap.facts import version_facts
    from decklog.cli.render import print_object, print_table

    facts = version_facts()
    if short:
        typer.echo(facts["version"])
    elif output is Output.JSON:
        print_object("Version", facts)
    else:
        print_table(["NAME", "VALUE"], list(facts.items()))
