"""Options that mean the same everywhere."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Output(StrEnum):
    TABLE = "table"
    JSON = "json"


class WideOutput(StrEnum):
    TABLE = "table"
    WIDE = "wide"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How the answer is printed.")]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", envvar="DECKLOG_CONFIG", metavar="FILE", help="File of settings, in YAML."
    ),
]
DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="DIR", help="Folder of an embedded store. Without: the running demo's."
    ),
]
