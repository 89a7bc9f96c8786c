"""From older versions of an event's body to the newest, one version at a time.

An upcast is a pure function from the decoded body of version n to that of n + 1. Once a version
was written its upcast stays for ever: the log is never rewritten. The table is only added to, and
is empty as long as every event has one version.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

Body = dict[str, Any]
Upcast = Callable[[Body], Body]
Upcasts = Mapping[tuple[str, int], Upcast]
"""(type without its version, version that it reads) → function."""

UPCASTS: Final[Upcasts] = {}


def split_type(ce_type: str) -> tuple[str, int]:
    """Return the type without its version, and the version; 0 if it names none."""
    base, _, version = ce_type.rpartition(".v")
    if base and version.isascii() and version.isdigit() and not version.startswith("0"):
        return base, int(version)
    return ce_type, 0


def upcast(base: str, version: int, body: Body, *, to: int, upcasts: Upcasts = UPCASTS) -> Body:
    """Lift the body from `version` to version `to`.

    Raises:
        LookupError: a step is missing, so this version cannot be read.
    """
    for step in range(version, to):
        if (base, step) not in upcasts:
            msg = f"no upcast reads {base}.v{step}"
            raise LookupError(msg)
        body = upcasts[base, step](body)
    return body
