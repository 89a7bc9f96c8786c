"""One row's verdicts in plain integers, for the plugins that are asked about single rows most.

After a placement one row differs, and numpy takes some ten times as long as Python to look at a
single number. Each function here is equivalent to its plugin asked about that row alone
(tests/unit/core/test_row_verdicts.py holds them equal); where it does not know the answer, or the
plugin has arguments that it does not know, the plugin is asked.
"""

from collections.abc import Callable
from typing import Final

from decklog.core.framework.interface import SCORE_MAX, FilterPlugin, ScorePlugin
from decklog.core.node_table import NodeTable
from decklog.core.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from decklog.core.plugins.node_resources_fit import NodeResourcesFit
from decklog.core.plugins.scoring_strategy import LEAST_ALLOCATED
from decklog.core.pod_class import PodClass

Fits = Callable[[int], bool]
"""Whether the row certainly passes; False: the plugin must say."""
Score = Callable[[int], int | None]
"""The row's raw score; None: the plugin must say."""
DEFAULTED: Final = 2
"""Resources of which nodes count requests with defaults: cpu and memory, the first rows."""
EXACT_MAX: Final = 1 << 53
"""Beyond this numpy's products may wrap and floats round: there the plugin must say."""


def row_filter(plugin: FilterPlugin, kind: PodClass, table: NodeTable) -> Fits | None:
    """Return what says at once that a row passes, or None if nothing does for this plugin."""
    if isinstance(plugin, NodeResourcesFit):
        return _fits(kind, table)
    return None


def row_score(plugin: ScorePlugin, kind: PodClass, table: NodeTable) -> Score | None:
    """Return the plugin's raw score of a row, or None if only the plugin knows it."""
    if isinstance(plugin, NodeResourcesFit) and plugin.strategy.type == LEAST_ALLOCATED:
        return _least_allocated(plugin, kind, table)
    if isinstance(plugin, NodeResourcesBalancedAllocation):
        return _balanced(plugin, kind, table)
    return None


def _fits(kind: PodClass, table: NodeTable) -> Fits:
    asked = [(resource, amount) for resource, amount in enumerate(kind.requests.tolist()) if amount]

    def fits(row: int) -> bool:
        if table.pod_count.item(row) >= table.allowed_pods.item(row):
            return False
        allocatable, requested = table.allocatable, table.requested
        for resource, amount in asked:
            free = allocatable.item(resource, row) - requested.item(resource, row)
            if not amount <= free <= EXACT_MAX:
                return False
        return True

    return fits


def _least_allocated(plugin: NodeResourcesFit, kind: PodClass, table: NodeTable) -> Score:
    asked = kind.scoring.tolist()
    counted = [
        (resource, weight, asked[resource])
        for name, weight in plugin.strategy.resources
        if (resource := table.resource_row(name)) is not None and (resource < 3 or asked[resource])
    ]

    def score(row: int) -> int | None:
        total = weights = 0
        for resource, weight, amount in counted:
            allocatable = table.allocatable.item(resource, row)
            if allocatable == 0:
                continue
            requested = table.non_zero_requested if resource < DEFAULTED else table.requested
            used = requested.item(resource, row) + amount
            if allocatable > EXACT_MAX or not 0 <= used <= EXACT_MAX:
                return None
            if used < allocatable:
                total += (allocatable - used) * SCORE_MAX // allocatable * weight
            weights += weight
        return total // max(weights, 1)

    return score


def _balanced(
    plugin: NodeResourcesBalancedAllocation, kind: PodClass, table: NodeTable
) -> Score | None:
    asked = kind.accounted.tolist()
    asked += [0] * (len(table.resource_names) - len(asked))  # Those that became known later.
    counted = [
        (resource, asked[resource])
        for name, _ in plugin.resources
        if (resource := table.resource_row(name)) is not None and (resource < 3 or asked[resource])
    ]
    if len(counted) != 2 or not plugin.by_change:
        return None
    (one, one_amount), (other, other_amount) = counted

    def score(row: int) -> int | None:
        ones, others = table.allocatable.item(one, row), table.allocatable.item(other, row)
        if ones == 0 or others == 0:
            return SCORE_MAX // 2 + SCORE_MAX // 4
        one_used, other_used = table.requested.item(one, row), table.requested.item(other, row)
        if not (0 <= one_used <= EXACT_MAX and 0 <= other_used <= EXACT_MAX):
            return None
        before = _evenness(one_used, ones, other_used, others)
        after = _evenness(one_used + one_amount, ones, other_used + other_amount, others)
        change = SCORE_MAX // 2 + after - before
        return SCORE_MAX // 2 + (change // 2 if change >= 0 else -(-change // 2))

    return score


def _evenness(one_used: int, ones: int, other_used: int, others: int) -> int:
    """Return 0 … 100 as for two fractions; as floats, since the plugin divides floats."""
    one, other = (
        min(float(one_used) / float(ones), 1.0),
        min(float(other_used) / float(others), 1.0),
    )
    return int((1 - abs(one - other) / 2) * SCORE_MAX)
