"""Which resources have columns: cpu, memory, ephemeral-storage, and whatever is scalar."""

from typing import Final

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
NATIVE: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
"""The first rows of every resource column, in this order."""
_NATIVE_DOMAIN: Final = "kubernetes.io/"


def is_extended(name: str) -> bool:
    return "/" in name and _NATIVE_DOMAIN not in name and not name.startswith("requests.")


def is_scalar(name: str) -> bool:
    """Whether nodes account for the resource beside the native ones; other names are ignored."""
    return (
        is_extended(name)
        or name.startswith(("hugepages-", "attachable-volumes-"))
        or _NATIVE_DOMAIN in name
    )
