"""What a failed attempt is told as: kube-scheduler's texts, from the counts that were recorded.

A message is never stored: it is written from the decision, so that it can be written again.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from decklog.core.framework.status import REJECTED, Code, Status
from decklog.events.facts import PodUnschedulable

NOTE_BYTES_MAX: Final = 1024
"""The API server refuses an Event with a longer note."""
_CUT: Final = b" ..."
_VERB: Final = re.compile(
    r"%[-+# 0]*(\[(?:[^\]]*\])?)?(\*|[0-9]*)(?:\.(?=.)(\*|[0-9]*))?(.?)", re.ASCII | re.DOTALL
)


def fit_error(
    node_count: int, counts: Mapping[str, int], *, pre_filter: str = "", post_filter: str = ""
) -> str:
    """Return the message of an attempt in which no node of `node_count` was left (FitError).

    `counts`: reason → on how many nodes; none are listed if PreFilter rejected the pod. Parts are
    sorted as text, so `10 Insufficient cpu` comes before `2 Insufficient memory`.
    """
    message = f"0/{node_count} nodes are available:"
    if pre_filter:
        message += f" {pre_filter}."
    else:
        parts = sorted(f"{count} {reason}" for reason, count in counts.items() if count)
        if parts:
            message += f" {', '.join(parts)}."
    return f"{message} {post_filter}" if post_filter else message


def failure_message(fact: PodUnschedulable) -> str:
    """Return the PodScheduled condition's message for a decision that is recorded in full."""
    if fact.error:
        return fact.error
    return fit_error(
        fact.node_count,
        reason_counts(fact),
        pre_filter=fact.pre_filter_message,
        post_filter=fact.post_filter_message,
    )


def reason_counts(fact: PodUnschedulable) -> dict[str, int]:
    """Return how many nodes each reason stands for; a node may have several."""
    counts: dict[str, int] = {}
    for group in fact.rejected:
        for reason in group.reasons:
            counts[reason] = counts.get(reason, 0) + group.count
    for reason in fact.absent:
        counts[reason] = counts.get(reason, 0) + fact.absent_count
    return counts


def rejecting_plugins(statuses: Iterable[Status]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the plugins that a failure is put down to, and those that wait for something."""
    named = [one for one in statuses if one.plugin and one.code in REJECTED]
    pending = {one.plugin for one in named if one.code == Code.PENDING}
    return tuple(sorted({one.plugin for one in named})), tuple(sorted(pending))


def go_duration(duration_ms: int) -> str:
    """Return the duration as Go prints it: `500ms`, `1.5s`, `5m0s`, `1h0m0s`."""
    if 0 < duration_ms < 1000:
        return f"{duration_ms}ms"
    minutes, ms = divmod(duration_ms, 60_000)
    seconds = f"{ms // 1000}.{ms % 1000:03}".rstrip("0").rstrip(".") + "s"
    if not minutes:
        return seconds
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{seconds}" if hours else f"{minutes}m{seconds}"


def event_note(message: str) -> str:
    """Return the note of the Event that tells a message.

    As upstream, the message is cut, and then used as a format that has nothing to format.
    """
    return truncate_note(as_format(truncate_note(message)))


def truncate_note(text: str) -> str:
    """Return the text, cut to what an Event takes; of a character that is cut nothing is left."""
    return truncated(text.encode()).decode(errors="ignore")


def truncated(text: bytes) -> bytes:
    if len(text) <= NOTE_BYTES_MAX:
        return text
    return text[: NOTE_BYTES_MAX - len(_CUT)] + _CUT


def as_format(text: str) -> str:
    """Return what Go's Sprintf makes of a text without arguments: it complains of every verb."""
    return _VERB.sub(_complaint, text)


def _complaint(found: re.Match[str]) -> str:
    index, width, precision, verb = found.groups()
    said = "%!(BADWIDTH)" if width == "*" else ""
    if precision == "*":
        said += "%!(BADPREC)"
    if verb == "%":
        return said + verb
    if not verb:
        return f"{said}%!(NOVERB)"
    return f"{said}%!{verb}({'BADINDEX' if index else 'MISSING'})"
