"""The exit codes, under the name by which commands know them."""

from decklog.bootstrap.exit_codes import (
    BUG,
    INTERRUPTED,
    NO,
    NOT_FOUND,
    OK,
    REFUSED,
    TERMINATED,
    UNAVAILABLE,
    UNCHANGED,
    USAGE,
)

__all__ = [
    "BUG",
    "INTERRUPTED",
    "NO",
    "NOT_FOUND",
    "OK",
    "REFUSED",
    "TERMINATED",
    "UNAVAILABLE",
    "UNCHANGED",
    "USAGE",
]
