"""What a decision came to, in one word or two: the decision itself, and what became of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from decklog.events.facts import (
    BindFailed,
    BindingAdopted,
    BindSucceeded,
    BindUnknown,
    Decision,
    GangCommitted,
    PodAssumed,
    PodSkipped,
    PodUnreserved,
    PodUnschedulable,
    PodWaiting,
    VictimsSelected,
)
from decklog.history.since import Outcome
from decklog.ports.entries import to_rfc3339
from decklog.ports.ledger import Effect, EffectKind, EffectState


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What was decided, and how far it came."""

    text: str
    """Bound, Assumed, Waiting, Unschedulable, Unreserved, Adopted and so on."""
    node: str = ""
    detail: str = ""
    effect: str = ""
    """State of what the decision asks of the cluster; empty: nothing, or it is not known."""
    is_pending: bool = False
    """Whether the pod still waits for a node."""


def result_of(
    fact: Decision, effects: Sequence[Effect] = (), outcome: Outcome | None = None
) -> Result:
    """Return what the decision came to, given its effects in the ledger or an event that tells."""
    state, detail = _bind_state(effects, outcome)
    match fact:
        case PodAssumed(node=node):
            text = _PLACED.get(state, ASSUMED)
            detail = detail or (f"its bind is {state.value}" if text == ASSUMED else "")
            return Result(text=text, node=node, detail=detail, effect=state.value)
        case PodUnschedulable(reason=reason):
            told = next((effect.state.value for effect in effects), "")
            return Result(text=reason, effect=told, is_pending=True)
        case PodUnreserved(node=node, reason=reason, message=message, pending=pending):
            detail = f"{reason}: {message}" if message else reason
            return Result(text="Unreserved", node=node, detail=detail, is_pending=pending)
        case _:
            return _other_result(fact)


def _other_result(fact: Decision) -> Result:
    match fact:
        case PodWaiting(node=node, waits=waits):
            first = min(waits, key=lambda wait: wait.deadline_ms)
            until = f"{first.plugin} has time until {to_rfc3339(first.deadline_ms)}"
            return Result(text="Waiting", node=node, detail=until)
        case BindingAdopted(node=node, was=was):
            how = "it carries our stamp" if was == "stamped" else f"it was {was} here"
            return Result(text="Adopted", node=node, detail=f"bound by somebody else: {how}")
        case PodSkipped(reason=reason):
            return Result(text="Skipped", detail=f"not tried: {reason}")
        case VictimsSelected(node=node, victims=victims):
            detail = f"{len(victims)} pods make room"
            return Result(text="Preempting", node=node, detail=detail, is_pending=True)
        case GangCommitted(seq_first=first, seq_last=last):
            return Result(text="GangCommitted", detail=f"decisions {first} to {last}")
        case _:
            return Result(text=type(fact).__name__)


ASSUMED: Final = "Assumed"
_PLACED: Final[Mapping[EffectState, str]] = {
    EffectState.DONE: "Bound",
    EffectState.REJECTED: "BindRejected",
    EffectState.UNKNOWN: "BindUnknown",
}


def _bind_state(effects: Sequence[Effect], outcome: Outcome | None) -> tuple[EffectState, str]:
    """Return how the bind stands; a final answer in the log counts before the ledger's state."""
    match outcome:
        case BindSucceeded():
            return EffectState.DONE, ""
        case BindFailed(reason=reason, message=message):
            return EffectState.REJECTED, message or reason
        case _:
            pass
    effect = next((effect for effect in effects if effect.kind is EffectKind.BIND), None)
    if effect is not None:
        done = effect.state is EffectState.DONE
        return effect.state, "" if done else outcome_text(effect)
    if isinstance(outcome, BindUnknown):
        return EffectState.UNKNOWN, outcome.message
    return EffectState.PENDING, ""


def outcome_text(effect: Effect) -> str:
    """Return in words what came of an effect."""
    if not effect.outcome:
        return ""
    try:
        told: Any = msgspec.json.decode(effect.outcome)
    except msgspec.DecodeError:
        return effect.outcome
    if not isinstance(told, dict):
        return str(told)
    return str(told.get("message") or told.get("reason") or told.get("outcome") or "")
