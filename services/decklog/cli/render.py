"""Answers, printed: plain tables for people, one versioned object for programs."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import typer

API_VERSION: Final = "decklog.dev/v1alpha1"
NONE: Final = "<none>"


def print_table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print columns as kubectl does: upper case, no lines, `<none>` for nothing."""
    typer.echo("\n".join(table_lines(headers, rows)))


def table_lines(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    from tabulate import tabulate

    cells = [[NONE if cell is None or cell == "" else str(cell) for cell in row] for row in rows]
    text = tabulate(
        cells, headers=list(headers), tablefmt="plain", disable_numparse=True, stralign="left"
    )
    return [line.rstrip() for line in text.splitlines()]


def print_object(kind: str, content: Mapping[str, Any]) -> None:
    typer.echo(json.dumps({"apiVersion": API_VERSION, "kind": kind, **content}, indent=2))


def print_list(
    kind: str, items: Sequence[Mapping[str, Any]], metadata: Mapping[str, Any] | None = None
) -> None:
    print_object(kind, {"metadata": dict(metadata or {}), "items": list(items)})
