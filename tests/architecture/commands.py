"""Command lines, parsed as the program would parse them."""

from typing import Any


def parse(arguments: list[str]) -> None:
    """Parse a command line down to its last command, and run nothing.

    The command line is imported here, so that the tests beside these do without it.
    """
    import typer.main  # noqa: PLC0415

    from decklog.cli.main import app  # noqa: PLC0415

    name: str | None = "decklog"
    command: Any = typer.main.get_command(app)
    context: Any = None
    rest = list(arguments)
    while True:
        context = command.make_context(name, rest, parent=context)
        if not hasattr(command, "resolve_command"):
            return
        left = [*context._protected_args, *context.args]
        name, command, rest = command.resolve_command(context, left)
