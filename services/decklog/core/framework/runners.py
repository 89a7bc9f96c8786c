"""How the plugins of a point are run, and what their answers amount to (kube-scheduler's runtime).

Filter and Score are vector operations and are run by the cycle; here are the points at which a
plugin is asked once, and the texts of what may go wrong at any point.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from decklog.core.framework.interface import (
    CycleState,
    PermitPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ReservePlugin,
)
from decklog.core.framework.status import SUCCESS, Code, Status, error
from decklog.objects.pod import Pod

PERMIT_WAIT_MS_MAX: Final = 15 * 60 * 1000
"""The longest that a Permit plugin may let a pod wait; larger values count as this."""
_NO_ERROR: Final = "%!w(<nil>)"
"""What Go prints for the error of a status that has none."""
_WAITING: Final = "one or more plugins asked to wait and no plugin rejected pod"


@dataclass(frozen=True, slots=True)
class PreFilterOutcome:
    status: Status
    node_names: frozenset[str] | None = None
    """The nodes that may still be taken; None: all."""
    narrowing: tuple[str, ...] = ()
    """The plugins that named nodes, sorted."""


AskPreFilter = Callable[[PreFilterPlugin], tuple[PreFilterResult | None, Status]]
AskPreScore = Callable[[PreScorePlugin], Status]


def run_pre_filter(
    plugins: Iterable[PreFilterPlugin], state: CycleState, ask: AskPreFilter
) -> PreFilterOutcome:
    """Ask each plugin; Skip takes it out of Filter, and those that name nodes narrow the choice."""
    names: frozenset[str] | None = None
    narrowing: list[str] = []
    remembered = SUCCESS
    for plugin in plugins:
        result, status = ask(plugin)
        if status.code is Code.SKIP:
            state.skip_filter.add(plugin.name)
        elif status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return PreFilterOutcome(_by(plugin.name, status))
        elif status.code is Code.UNSCHEDULABLE:
            remembered = _by(plugin.name, status)
        elif status.code is not Code.SUCCESS:
            text = f'running PreFilter plugin "{plugin.name}": {_as_error(status)}'
            return PreFilterOutcome(_by(plugin.name, error(text)))
        if result is not None and result.node_names is not None:
            narrowing.append(plugin.name)
            names = result.node_names if names is None else names & result.node_names
            if not names:
                return PreFilterOutcome(_no_node_left(narrowing), names, tuple(sorted(narrowing)))
    return PreFilterOutcome(remembered, names, tuple(sorted(narrowing)))


def run_pre_score(plugins: Iterable[PreScorePlugin], state: CycleState, ask: AskPreScore) -> Status:
    for plugin in plugins:
        status = ask(plugin)
        if status.code is Code.SKIP:
            state.skip_score.add(plugin.name)
        elif status.code is not Code.SUCCESS:
            return error(f'running PreScore plugin "{plugin.name}": {_as_error(status)}')
    return SUCCESS


def filter_failure(status: Status) -> Status:
    """Return what a Filter status that is neither Success nor a rejection amounts to."""
    wrapped = _NO_ERROR if status.err is None else status.err
    return _by(status.plugin, error(f'running "{status.plugin}" filter plugin: {wrapped}'))


def score_failure(plugin: str, score: int) -> Status:
    """Return what a normalised score outside of 0 … 100 amounts to."""
    return error(
        f'applying score defaultWeights on Score plugins: plugin "{plugin}" returns an invalid '
        f"score {score}, it should in the range of [0, 100] after normalizing"
    )


@dataclass(frozen=True, slots=True)
class PostFilterOutcome:
    status: Status
    result: PostFilterResult | None = None


def run_post_filter(
    plugins: Iterable[PostFilterPlugin],
    ask: Callable[[PostFilterPlugin], tuple[PostFilterResult | None, Status]],
) -> PostFilterOutcome:
    """Ask until one makes the pod schedulable, or says that nothing can."""
    reasons: list[str] = []
    kept: PostFilterResult | None = None
    rejecting = ""
    for plugin in plugins:
        result, status = ask(plugin)
        if status.code is Code.SUCCESS:
            return PostFilterOutcome(SUCCESS, result)
        if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return PostFilterOutcome(_by(plugin.name, status), result)
        if not status.is_rejected:
            return PostFilterOutcome(_by(plugin.name, error(_as_error(status))))
        reasons.extend(status.all_reasons)
        rejecting = rejecting or plugin.name
        if result is not None:
            kept = result
    status = Status(Code.UNSCHEDULABLE, tuple(reasons), plugin=rejecting)
    return PostFilterOutcome(status, kept)


def run_reserve(
    plugins: Sequence[ReservePlugin], state: CycleState, pod: Pod, node: str
) -> tuple[dict[str, Any], Status]:
    """Return every plugin's plan and whether all could reserve; the caller undoes a failure."""
    plan: dict[str, Any] = {}
    for plugin in plugins:
        planned, status = plugin.reserve(state, pod, node)
        if planned:
            plan[plugin.name] = planned
        if status.is_rejected:
            return plan, _by(plugin.name, status)
        if not status.is_success:
            wrapped = _NO_ERROR if status.err is None else status.err
            return plan, error(f'running Reserve plugin "{plugin.name}": {wrapped}')
    return plan, SUCCESS


def run_unreserve(
    plugins: Sequence[ReservePlugin], pod: Pod, node: str, plan: Mapping[str, Any]
) -> list[str]:
    """Undo the plan, last plugin first, also of those that never ran; return what can't be."""
    residue: list[str] = []
    for plugin in reversed(plugins):
        residue.extend(plugin.unreserve(pod, node, plan.get(plugin.name, {})))
    return residue


def run_permit(
    plugins: Iterable[PermitPlugin], state: CycleState, pod: Pod, node: str
) -> tuple[Status, tuple[tuple[str, int], ...]]:
    """Return Success, Wait with (plugin, ms) of each that waits, or what rejected the pod."""
    waits: list[tuple[str, int]] = []
    reasons: tuple[str, ...] = ()
    for plugin in plugins:
        status, timeout_ms = plugin.permit(state, pod, node)
        if status.is_rejected:
            return _by(plugin.name, status), ()
        if status.code is Code.WAIT:
            waits.append((plugin.name, min(timeout_ms, PERMIT_WAIT_MS_MAX)))
            reasons = status.all_reasons
        elif not status.is_success:
            wrapped = _NO_ERROR if status.err is None else status.err
            text = f'running Permit plugin "{plugin.name}": {wrapped}'
            return _by(plugin.name, error(text)), ()
    if waits:
        return Status(Code.WAIT, (*reasons, _WAITING)), tuple(waits)
    return SUCCESS, ()


def _no_node_left(narrowing: Sequence[str]) -> Status:
    if len(narrowing) == 1:
        reason = f"node(s) didn't satisfy plugin {narrowing[0]}"
    else:
        names = " ".join(sorted(narrowing))
        reason = f"node(s) didn't satisfy plugin(s) [{names}] simultaneously"
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))


def _by(plugin: str, status: Status) -> Status:
    return Status(status.code, status.reasons, status.err, plugin)


def _as_error(status: Status) -> str:
    return status.message if status.err is None else status.err
