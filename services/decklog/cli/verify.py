"""`decklog verify`: prove that history is what was committed, and decide it again."""

from typing import TYPE_CHECKING, Annotated

import typer

from decklog.cli import exit_codes
from decklog.cli.options import ConfigOption, DataOption, Output, OutputOption

if TYPE_CHECKING:
    from decklog.history.source import Source
    from decklog.history.verify import Wanted


def verify(
    since: Annotated[
        str | None,
        typer.Option("--from", metavar="POS", help="Decide again what came after this position."),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--to", metavar="POS", help="Decide again what came up to this position."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 6 if ticks of other rules were met.")
    ] = False,
    data: DataOption = None,
    config: ConfigOption = None,
    output: OutputOption = Output.TABLE,
) -> int:
    """Prove that history is whole, and that it can be decided again.

    Both hash chains are walked from their start, always; then every tick is decided again from the
    events that it had, and the bytes are compared. Exits 0 if all is well, 1 if a chain is broken
    or a decision differs, and 4, 5 or 6 if it could not be looked at.

    \b
    Examples:
      decklog verify
      decklog verify --data ./voyage --from -24h --strict
      decklog verify --output json
    """
    from decklog.bootstrap.reading import open_source
    from decklog.cli.progress import progress_bar
    from decklog.cli.render import print_object
    from decklog.cli.verify_text import report_text
    from decklog.history import verify as history

    with open_source(data, config) as source:
        wanted = _wanted(source, since, until, is_strict=strict)
        with progress_bar() as progress:
            report = history.verify(source, wanted, progress)
    code = _code(report.verdict.value)
    if output is Output.JSON:
        print_object("VerifyReport", {**history.facts(report), "exitCode": code})
    else:
        typer.echo(report_text(report, code))
    return code


def _wanted(source: "Source", since: str | None, until: str | None, *, is_strict: bool) -> "Wanted":
    from decklog.cli.position import parse_position
    from decklog.history.positions import resolve
    from decklog.history.verify import Wanted

    now_ms = source.clock.now_ms()
    moments = [
        None if text is None else resolve(parse_position(text, now_ms=now_ms), source)
        for text in (since, until)
    ]
    return Wanted(after=moments[0], until=moments[1], is_strict=is_strict)


def _code(verdict: str) -> int:
    return {
        "verified": exit_codes.OK,
        "violated": exit_codes.NO,
        "unavailable": exit_codes.UNAVAILABLE,
        "refused": exit_codes.REFUSED,
    }[verdict]
