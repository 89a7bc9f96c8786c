"""The resolved configuration as bytes: what its hash is taken of, and what verify decides by.

Canonical JSON: keys sorted, nothing between tokens. Equal configurations have equal bytes.
"""

import json
from dataclasses import asdict
from hashlib import sha256
from typing import Any

from decklog.core.errors import BadConfiguration
from decklog.core.framework.config import ProfileConfig, SchedulerConfig
from decklog.core.rules import PARITIES


def config_body(config: SchedulerConfig) -> bytes:
    body = {**asdict(config), "parity": config.parity.release}
    return json.dumps(
        body, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    ).encode()


def config_hash(config: SchedulerConfig) -> str:
    """Return the SHA-256 of the body, as 64 hex digits."""
    return sha256(config_body(config)).hexdigest()


def config_from_body(body: bytes) -> SchedulerConfig:
    """Return the configuration that was written; `config_body` of it gives the same bytes.

    Raises:
        BadConfiguration: it is none that this release can read.
    """
    try:
        raw = json.loads(body)
        return SchedulerConfig(
            **{
                **raw,
                "profiles": tuple(_profile(profile) for profile in raw["profiles"]),
                "extenders": tuple(raw["extenders"]),
                "parity": PARITIES[raw["parity"]],
            }
        )
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        msg = f"cannot read a stored configuration: {type(error).__name__}: {error}"
        raise BadConfiguration(msg) from error


def _profile(raw: dict[str, Any]) -> ProfileConfig:
    points = {point: tuple(names) for point, names in raw["points"].items()}
    return ProfileConfig(**{**raw, "points": points})
