"""Log lines: where they go, and how they look. Configured once for each process."""

import logging
import sys
from enum import Enum
from typing import Any, Final, TextIO

import structlog

from decklog.bootstrap.settings import LogSettings
from decklog.version import __version__

LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
FOREIGN_LOGGERS: Final = ("kafka", "urllib3", "alembic", "sqlalchemy")
"""They speak of their own retries; what matters of it comes to us as an error."""


class Audience(Enum):
    """Who reads: a command's diagnostics must not mix with its data."""

    COMMAND = "stderr"
    SERVICE = "stdout"


def configure_logging(settings: LogSettings, audience: Audience, **bound: Any) -> None:
    """Write lines for the audience; `bound` goes into each of them."""
    stream = sys.stderr if audience is Audience.COMMAND else sys.stdout
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _renderer(settings, stream),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[settings.level]),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(**bound)
    for name in FOREIGN_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def log_start(**facts: Any) -> None:
    structlog.get_logger().info("Started", version=__version__, **facts)


def _renderer(settings: LogSettings, stream: TextIO) -> Any:
    is_console = settings.format == "console"
    if settings.format == "json" or not (is_console or stream.isatty()):
        return structlog.processors.JSONRenderer()
    return structlog.dev.ConsoleRenderer(colors=stream.isatty())
