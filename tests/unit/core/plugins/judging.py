"""Asking a plugin about nodes, in the words of its statuses."""

from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np

from decklog.core.columns import NodeColumns
from decklog.core.framework.interface import (
    CycleState,
    FilterPlugin,
    FilterVerdict,
    PreScorePlugin,
    ScorePlugin,
)
from decklog.core.framework.status import Status
from decklog.objects.node import Node
from decklog.objects.pod import Pod
from tests.unit.core.columns_builders import make_columns

UNASKED: Final = cast("FilterVerdict", object())
"""For a PostFilter plugin that does not look at what filtering said."""


def judged(
    plugin: FilterPlugin, pod: Pod, nodes: Sequence[Node], placed: Sequence[Pod] = ()
) -> list[Status]:
    """Return the plugin's status for each node; `placed` are pods that name their node."""
    columns = make_columns(nodes, placed)
    codes = plugin.filter(CycleState(), pod, columns)
    assert codes.dtype == np.uint16
    return [plugin.statuses[code] for code in codes.tolist()[: len(nodes)]]


def reasons(
    plugin: FilterPlugin, pod: Pod, nodes: Sequence[Node], placed: Sequence[Pod] = ()
) -> list[list[str]]:
    """Return the plugin's reasons for each node; none: the node is fine."""
    return [list(status.reasons) for status in judged(plugin, pod, nodes, placed)]


def scored(
    plugin: ScorePlugin, pod: Pod, nodes: Sequence[Node], placed: Sequence[Pod] = ()
) -> list[int]:
    """Return the plugin's raw score for each node, after its PreScore if it has one."""
    columns = make_columns(nodes, placed)
    state = prescored(plugin, pod, columns)
    scores = plugin.score(state, pod, columns)
    assert scores.dtype == np.int64
    found: list[int] = scores.tolist()
    return found[: len(nodes)]


def prescored(plugin: ScorePlugin | PreScorePlugin, pod: Pod, columns: NodeColumns) -> CycleState:
    state = CycleState()
    pre_score: Any = getattr(plugin, "pre_score", None)
    if pre_score is not None:
        assert pre_score(state, pod, columns, columns.present).is_success
    return state
