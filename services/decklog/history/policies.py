"""How people know the policy that a tick was decided under."""

from typing import Final

from decklog.core.framework.config_body import config_from_body

HASH_DIGITS: Final = 6
"""Enough to tell one cluster's policies apart; the whole hash is in the JSON."""


def policy_name(config_hash: str, body: bytes | None, profile: str = "") -> str:
    """Return the profile and which version of it, as in `decklog@9f3ac1`.

    Without a profile all that the configuration has are named.
    """
    if not profile and body is not None:
        profile = "+".join(each.scheduler_name for each in config_from_body(body).profiles)
    return f"{profile or '?'}@{config_hash[:HASH_DIGITS]}"
