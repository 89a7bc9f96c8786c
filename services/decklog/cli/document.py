"""Generate the reference of commands, settings and metrics from the code.

python -m decklog.cli.document docs/reference [--check]
"""

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import typer.main

from decklog.bootstrap.metric_table import described
from decklog.bootstrap.settings import Settings
from decklog.bootstrap.sources import setting_paths, variable
from decklog.cli.main import app

GENERATED: Final = "<!-- Generated from the code by `make docs`: change it there. -->\n"


def main(arguments: Sequence[str]) -> int:
    """Write the pages, or with --check only say which differ."""
    folder = Path(arguments[0])
    if "--check" in arguments:
        found = differences(folder)
        for name in found:
            sys.stderr.write(f"{folder / name}: differs: run `make docs`\n")
        return 1 if found else 0
    for name, text in pages().items():
        (folder / name).write_text(text)
    return 0


def differences(folder: Path) -> list[str]:
    """Return the pages that are not what the code says."""
    return [
        name
        for name, text in pages().items()
        if not (folder / name).exists() or (folder / name).read_text() != text
    ]


def pages() -> Mapping[str, str]:
    return {"cli.md": _commands(), "config.md": _settings(), "metrics.md": _metrics()}


# -- commands --------------------------------------------------------------------------------------


def _commands() -> str:
    root: Any = typer.main.get_command(app)
    lines = [
        GENERATED,
        "# Commands\n",
        f"{root.help}\n",
        "What they exit with is on [a page of its own](exit-codes.md), and so are the",
        "[settings](config.md) that they read.\n",
    ]
    for path, command in _walk(root, ("decklog",)):
        lines += _command(path, command)
    return "\n".join(lines).rstrip() + "\n"


def _walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command that does something; groups are only names."""
    children = getattr(command, "commands", None)
    if children is None:
        yield path, command
        return
    for name in sorted(children):
        yield from _walk(children[name], (*path, name))


def _command(path: tuple[str, ...], command: Any) -> list[str]:
    context = typer.main.get_command(app).make_context("decklog", [], resilient_parsing=True)
    usage = " ".join([*path, *command.collect_usage_pieces(context)])
    text, _, example = (command.help or "").partition("\b")
    lines = [f"## {' '.join(path)}\n", text.strip() + "\n", "```", usage, "```\n"]
    rows = [_parameter(each, context) for each in command.params if each.name != "help"]
    rows = [row for row in rows if row is not None]
    if rows:
        lines += ["| | | default |", "|---|---|---|", *rows, ""]
    if example.strip():
        body = example.strip().splitlines()[1:]
        lines += ["```sh", *(line.strip() for line in body), "```\n"]
    return lines


def _parameter(parameter: Any, context: Any) -> str | None:
    record = parameter.get_help_record(context)
    if record is None:
        return None
    name = record[0].replace("|", "\\|")
    default = parameter.default
    shown = "" if default in (None, False) else f"`{getattr(default, 'value', default)}`"
    if parameter.param_type_name == "argument" and not parameter.required:
        name = f"[{name}]"
    return f"| `{name}` | {parameter.help or ''} | {shown} |"


# -- settings --------------------------------------------------------------------------------------


def _settings() -> str:
    lines = [
        GENERATED,
        "# Settings\n",
        "A value comes from the first of: a flag; the variable; a file of the variable's name in",
        "lower case under `/run/secrets`; the file given by `--config` or `DECKLOG_CONFIG`, in",
        "YAML with the same sections; the default. An unknown key is an error, an unknown",
        "`DECKLOG_…` variable is reported at the start.\n",
        "| variable | default | |",
        "|---|---|---|",
    ]
    for path in setting_paths(Settings):
        field = _field(path)
        default = getattr(field.default, "get_secret_value", lambda: field.default)()  # noqa: B023
        shown = "" if default in (None, "") else f"`{default}`"
        lines.append(f"| `{variable(path)}` | {shown} | {' '.join(field.description.split())} |")
    return "\n".join(lines) + "\n"


def _field(path: tuple[str, ...]) -> Any:
    model: Any = Settings
    for section in path[:-1]:
        model = model.model_fields[section].annotation
    return model.model_fields[path[-1]]


# -- metrics ---------------------------------------------------------------------------------------


def _metrics() -> str:
    lines = [
        GENERATED,
        "# Metrics\n",
        "Each service serves these as `/metrics` on its operations port (9400 if not set). What",
        "kube-scheduler measures too has its name. No label is a pod or a node.\n",
        "| metric | type | labels | |",
        "|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for name, kind, labels, text in described(Path(folder)):
            lines.append(f"| `{name}` | {kind} | {', '.join(labels)} | {text} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
