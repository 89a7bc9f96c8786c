"""Runs a plugin that judges one node at a time.

A third-party plugin may be written so; and the plain per-node reading of a rule is its meaning, to
which tests hold the vectorised plugins.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from decklog.core.columns import NodeColumns
from decklog.core.framework.interface import CycleState, ReasonCodes, Scores
from decklog.core.framework.status import SUCCESS, Status
from decklog.core.interning import Interner
from decklog.objects.node import Node
from decklog.objects.pod import Pod


class NodeFilter(Protocol):
    @property
    def name(self) -> str: ...
    def filter_node(self, state: CycleState, pod: Pod, node: Node) -> Status: ...


class NodeScore(Protocol):
    @property
    def name(self) -> str: ...
    def score_node(self, state: CycleState, pod: Pod, node: Node) -> int: ...


@dataclass(frozen=True, slots=True)
class PerNode:
    """Equivalent to asking the plugin about each row in turn, and exactly that slow."""

    plugin: NodeFilter
    _statuses: Interner[Status] = field(default_factory=lambda: Interner(SUCCESS))

    @property
    def name(self) -> str:
        return self.plugin.name

    @property
    def statuses(self) -> Sequence[Status]:
        return self._statuses.values

    def filter(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> ReasonCodes:
        codes = np.zeros(len(nodes), dtype=np.uint16)
        for row in range(len(nodes)):
            status = self.plugin.filter_node(state, pod, nodes.node(row))
            codes[row] = self._statuses.number(status)
        return codes


@dataclass(frozen=True, slots=True)
class PerNodeScore:
    """The same for a plugin that scores."""

    plugin: NodeScore

    @property
    def name(self) -> str:
        return self.plugin.name

    def score(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> Scores:
        scores = [self.plugin.score_node(state, pod, nodes.node(row)) for row in range(len(nodes))]
        return np.array(scores, dtype=np.int64)
