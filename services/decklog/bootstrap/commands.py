"""What every command that reads settings does first."""

from pathlib import Path

from decklog.bootstrap.logging import Audience, configure_logging
from decklog.bootstrap.run import say
from decklog.bootstrap.settings import Settings
from decklog.bootstrap.sources import load_settings, unknown_variables


def command_settings(config: Path | None) -> Settings:
    """Read the settings, send log lines to standard error, and name variables that are none."""
    settings = load_settings(config)
    configure_logging(settings.log, Audience.COMMAND)
    for unknown in unknown_variables():
        say(str(unknown))
    return settings
