"""Which resources have columns of their own from the start."""

from typing import Final

NATIVE: Final = ("cpu", "memory", "ephemeral-storage")
"""The first rows of every resource column, in this order; scalar resources follow."""
PODS: Final = "pods"
