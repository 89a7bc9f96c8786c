"""The policy that a tick was decided under, and how people know it."""

from typing import Final

from decklog.core.errors import BadConfiguration
from decklog.core.framework.config import SchedulerConfig
from decklog.core.framework.config_body import config_from_body

HASH_DIGITS: Final = 6
"""Enough to tell one cluster's policies apart; the whole hash is in the JSON."""


def read_policy(body: bytes | None) -> SchedulerConfig | None:
    """Return the configuration; None if it is not there, or of a release that we cannot read."""
    if body is None:
        return None
    try:
        return config_from_body(body)
    except BadConfiguration:
        return None


def policy_name(config_hash: str, body: bytes | None, profile: str = "") -> str:
    """Return the profile and which version of it, as in `decklog@9f3ac1`.

    Without a profile all that the configuration has are named.
    """
    if not profile:
        config = read_policy(body)
        profile = "+".join(each.scheduler_name for each in config.profiles) if config else "?"
    return f"{profile}@{config_hash[:HASH_DIGITS]}"
