"""Bind the pod to its node. Binding is I/O: the binder does it, the core only knows the point."""

from dataclasses import dataclass

from decklog.core.framework.interface import Reads


@dataclass(frozen=True, slots=True)
class DefaultBinder:
    name: str = "DefaultBinder"
    reads: Reads = Reads.STATIC
