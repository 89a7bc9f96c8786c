"""An explanation as people read it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from decklog.cli.render import table_lines
from decklog.history.why import Explanation
from decklog.ports.entries import to_rfc3339

if TYPE_CHECKING:
    from decklog.history.undecided import Undecided

LABEL: Final = 11
"""Width of the labels at the left."""
COLUMN: Final = 46
"""Where the second half of the first lines begins."""
UID_MAX: Final = 12
_SHORT: Final[Mapping[str, str]] = {
    "DynamicResources": "DEVICES",
    "ImageLocality": "IMAGE",
    "InterPodAffinity": "PODAFFINITY",
    "NodeAffinity": "AFFINITY",
    "NodeResourcesBalancedAllocation": "BALANCE",
    "NodeResourcesFit": "RESOURCES",
    "PodTopologySpread": "SPREAD",
    "TaintToleration": "TAINT",
    "VolumeBinding": "VOLUME",
}
"""Default plugins over their columns; others by their names."""


def explanation_text(found: Explanation) -> str:
    lines = [*_head(found), ""]
    for label, section in (
        ("FEASIBLE", _feasible(found)),
        ("REJECTED", _rejected(found)),
        ("SCORES", _scores(found)),
        ("DECIDED BY", _decided_by(found)),
        ("MESSAGE", [found.message] if found.message else []),
        ("NOTE", list(found.notes)),
        ("NEXT", list(_next(found))),
    ):
        lines.extend(labelled(label, section))
    return "\n".join(line.rstrip() for line in lines)


def undecided_text(found: "Undecided") -> str:
    pod, where = found.pod, found.standing
    reason_class = f" ({found.reason_class})" if found.reason_class else ""
    stage = where.stage.value + (f" on {where.node}" if where.node else "")
    return "\n".join(
        [
            _beside("POD", f"{pod.key} (uid {short(pod.uid)})", "DECISION", "none yet"),
            _beside("RESULT", stage + reason_class, "AS OF", str(found.moment)),
            *labelled("MESSAGE", [found.message]),
        ]
    )


def short(uid: str) -> str:
    """Return as much of a uid as tells pods apart; `--output json` has the whole."""
    return uid if len(uid) <= UID_MAX else f"{uid[:8]}…{uid[-2:]}"


def labelled(label: str, section: Sequence[str]) -> list[str]:
    """Put the label beside the section's first line; nothing where there is no section."""
    return [f"{label if index == 0 else '':<{LABEL}}{line}" for index, line in enumerate(section)]


def _head(found: Explanation) -> Iterator[str]:
    row, result = found.row, found.result
    attempt = f"  attempt {found.attempt}" if found.attempt else ""
    yield _beside(
        "POD", f"{found.pod.key} (uid {short(found.pod.uid)})", "DECISION", f"{row.seq}{attempt}"
    )
    decided = f"position {found.tick.cursor}, {to_rfc3339(row.now_ms)}"
    yield _beside("RESULT", _result(found), "DECIDED", decided)
    if result.detail:
        yield from labelled("", [result.detail])
    policy = f"{found.policy}  rules {found.tick.rules}  seed {found.seed}"
    yield _beside("POLICY", policy, "AS OF", str(found.moment))


def _result(found: Explanation) -> str:
    result = found.result
    where = {"Bound": " to ", "Assumed": " on ", "Waiting": " on ", "Unreserved": " from "}
    text = result.text + (f"{where.get(result.text, ' on ')}{result.node}" if result.node else "")
    if found.reason_class is not None:
        text += f" ({found.reason_class})"
    if found.same_as is not None:
        text += f", as in decision {found.same_as}"
    return text


def _feasible(found: Explanation) -> list[str]:
    if found.feasible is None or found.evaluated is None:
        return []
    if found.node_count is None:
        return [f"{found.feasible} of {found.evaluated} nodes that were evaluated"]
    left = found.node_count - found.evaluated
    more = f", not evaluated {left}" if left else ""
    return [f"{found.feasible} of {found.node_count} nodes  (evaluated {found.evaluated}{more})"]


def _rejected(found: Explanation) -> list[str]:
    if not found.rejected:
        return []
    rows = [
        [group.count, group.plugin, group.reason, group.reason_class, ", ".join(group.examples)]
        for group in found.rejected
    ]
    return table_lines(["NODES", "PLUGIN", "REASON", "CLASS", "EXAMPLE"], rows)


def _scores(found: Explanation) -> list[str]:
    if not found.top:
        return []
    if not found.top[0].scores:
        return [f"none: {found.top[0].node} was the only node to take"]
    used = [
        index
        for index in range(len(found.plugins))
        if any(score.scores[index] is not None for score in found.top)
    ]
    names = [_SHORT.get(found.plugins[index], found.plugins[index].upper()) for index in used]
    rows = [
        [
            "*" if place == 0 else " ",
            score.node,
            score.total,
            *("-" if score.scores[index] is None else score.scores[index] for index in used),
        ]
        for place, score in enumerate(found.top)
    ]
    lines = table_lines([" ", "NODE", "TOTAL", *names], rows)
    skipped = [plugin for index, plugin in enumerate(found.plugins) if index not in used]
    if skipped:
        lines.append(f"  not relevant to this pod: {', '.join(skipped)}")
    return lines


def _decided_by(found: Explanation) -> list[str]:
    if not found.top or not found.top[0].scores:
        return []
    gains = " and ".join(f"{plugin} +{gain}" for plugin, gain in found.decisive)
    others = len(found.top) - 1
    against = "the next best node" if others == 1 else f"the mean of the next {others}"
    lines = []
    if gains:
        lines.append(f"{gains} against {against}; margin {found.margin}")
    if found.tie_count > 1:
        lines.append(
            f"tie-break: {found.tie_count} nodes share the total {found.top[0].total}; the hash of "
            f"name, seed {found.seed}, uid and attempt chose"
        )
    else:
        lines.append("no tie-break was needed")
    return lines


def _next(found: Explanation) -> Iterator[str]:
    yield f"decklog audit show {found.row.seq}"
    if found.previous is not None:
        yield f"decklog why {found.pod.uid} --at decision/{found.previous}"


def _beside(label: str, text: str, other: str, more: str) -> str:
    left = f"{label:<{LABEL}}{text}"
    return f"{left:<{LABEL + COLUMN}}  {other:<{LABEL}}{more}"
