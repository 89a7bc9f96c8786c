"""`decklog topics`: the Kafka topics of a cluster."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from decklog.cli import exit_codes
from decklog.cli.options import ConfigOption, Output, OutputOption

app = typer.Typer(
    name="topics",
    help="Create and look at a cluster's Kafka topics.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
WaitOption = Annotated[
    str, typer.Option("--wait", metavar="DURATION", help="How long to wait for the broker.")
]


@app.command()
def apply(
    config: ConfigOption = None,
    wait: WaitOption = "0",
    output: OutputOption = Output.TABLE,
    error_unchanged: Annotated[
        bool, typer.Option("--error-unchanged", help="Exit 3 when there was nothing to do.")
    ] = False,
) -> int:
    """Create the topics that are missing.

    It deletes none, and changes none that is there: what differs is printed.

    \b
    Example:
      decklog topics apply --wait 120s
    """
    from decklog.bootstrap.admin import apply_topics

    found = apply_topics(config, wait)
    _print(found, output)
    created = any(topic["state"] == "created" for topic in found)
    return exit_codes.UNCHANGED if error_unchanged and not created else exit_codes.OK


@app.command("list")
def list_(
    config: ConfigOption = None, wait: WaitOption = "0", output: OutputOption = Output.TABLE
) -> int:
    """List decklog's topics, of all clusters.

    \b
    Example:
      decklog topics list --output json
    """
    from decklog.bootstrap.admin import list_topics
    from decklog.cli.render import print_list, print_table

    found = list_topics(config, wait)
    if output is Output.JSON:
        print_list("TopicList", found)
    else:
        headers = ["NAME", "PARTITIONS", "REPLICATION", "CLEANUP", "RETENTION-MS"]
        print_table(headers, [list(topic.values()) for topic in found])
    return exit_codes.OK


@app.command()
def describe(
    config: ConfigOption = None, wait: WaitOption = "0", output: OutputOption = Output.TABLE
) -> int:
    """Say how this cluster's topics differ from what they should be; create nothing.

    Exits 1 if one is missing or differs.

    \b
    Example:
      decklog topics describe
    """
    from decklog.bootstrap.admin import describe_topics

    found = describe_topics(config, wait)
    _print(found, output)
    wrong = any(topic["state"] in ("missing", "differs") for topic in found)
    return exit_codes.NO if wrong else exit_codes.OK


def _print(found: Sequence[Mapping[str, Any]], output: Output) -> None:
    from decklog.cli.render import print_list, print_table

    if output is Output.JSON:
        print_list("TopicList", found)
        return
    rows = [[topic["name"], topic["state"], "; ".join(topic["drift"])] for topic in found]
    print_table(["NAME", "STATE", "DIFFERENCE"], rows)
