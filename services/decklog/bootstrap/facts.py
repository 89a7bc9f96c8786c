"""What this code is."""

import platform
from typing import Any

from decklog.core.rules import RULES
from decklog.version import __version__


def version_facts() -> dict[str, Any]:
    """Return the versions that matter for reading somebody's history."""
    from decklog.adapters.ledger.tables import REVISION, REVISION_NEEDED

    return {
        "version": __version__,
        "rules": RULES,
        "schema": REVISION,
        "schemaNeeded": REVISION_NEEDED,
        "python": platform.python_version(),
    }
