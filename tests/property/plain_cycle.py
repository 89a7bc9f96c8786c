"""A cycle computed from nothing, node by node: the meaning of what the engine does on columns."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from decklog.core.cache import Cache
from decklog.core.framework.interface import CycleState
from decklog.core.framework.points import Profile
from decklog.core.framework.runners import run_pre_filter, run_pre_score
from decklog.core.framework.status import Status
from decklog.core.select import mix, name_hash, salt
from decklog.objects.pod import Pod


@dataclass
class PlainResult:
    """Everything by node name."""

    rejected: dict[str, Status] = field(default_factory=dict)
    feasible: set[str] = field(default_factory=set)
    parts: dict[str, dict[str, int]] = field(default_factory=dict)
    """Plugin → node → weighted score."""
    totals: dict[str, int] = field(default_factory=dict)
    best: list[str] = field(default_factory=list)
    """The best five, best first."""
    tie_count: int = 0


def plain_cycle(
    profile: Profile, cache: Cache, pod: Pod, *, seed: int, attempt: int
) -> PlainResult:
    """Return what the cycle should come to; every node is looked at, none is nominated."""
    nodes, state, result = cache.columns, CycleState(cluster=cache), PlainResult()
    outcome = run_pre_filter(
        profile.pre_filter, state, lambda plugin: plugin.pre_filter(state, pod, nodes)
    )
    if not outcome.status.is_success:
        return result
    rows = [row for row in range(len(nodes)) if nodes.present[row]]
    if outcome.node_names is not None:
        rows = [row for row in rows if nodes.names[row] in outcome.node_names]
    _filter(profile, state, (cache, pod, rows), result)
    if not result.feasible:
        return result
    feasible = np.array([name in result.feasible for name in nodes.names], dtype=np.bool_)
    if len(result.feasible) > 1:
        status = run_pre_score(
            profile.pre_score, state, lambda plugin: plugin.pre_score(state, pod, nodes, feasible)
        )
        assert status.is_success
        _score(profile, state, (cache, pod, feasible), result)
    else:
        result.totals = dict.fromkeys(result.feasible, 0)
    salted = salt(seed, pod.uid, attempt)
    ranked = sorted(
        result.totals, key=lambda name: (-result.totals[name], mix(name_hash(name) ^ salted))
    )
    result.best = ranked[:5]
    best = result.totals[ranked[0]]
    result.tie_count = sum(total == best for total in result.totals.values())
    return result


def _filter(
    profile: Profile, state: CycleState, at: tuple[Cache, Pod, Sequence[int]], result: PlainResult
) -> None:
    cache, pod, rows = at
    nodes = cache.columns
    for row in rows:
        name = nodes.names[row]
        for plugin in profile.filter:
            if plugin.name in state.skip_filter:
                continue
            status = plugin.statuses[int(plugin.filter(state, pod, nodes)[row])]
            if not status.is_success:
                result.rejected[name] = Status(status.code, status.reasons, None, plugin.name)
                break
        else:
            result.feasible.add(name)


def _score(
    profile: Profile, state: CycleState, at: tuple[Cache, Pod, Any], result: PlainResult
) -> None:
    cache, pod, feasible = at
    names = [name for name, fits in zip(cache.columns.names, feasible, strict=True) if fits]
    result.totals = dict.fromkeys(names, 0)
    for plugin, weight in zip(profile.score, profile.weights, strict=True):
        if plugin.name in state.skip_score:
            continue
        scores = plugin.score(state, pod, cache.columns)[feasible]
        normalize = getattr(plugin, "normalize", None)
        if normalize is not None:
            scores = normalize(state, pod, scores)
        part = {name: int(score) * weight for name, score in zip(names, scores, strict=True)}
        result.parts[plugin.name] = part
        for name in names:
            result.totals[name] += part[name]
