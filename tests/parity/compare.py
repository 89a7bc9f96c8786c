"""What we decide about a pod, in the words of a recorded step, and where the two differ."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from decklog.core.columns import Rows
from decklog.core.framework.diagnosis import failure_message
from decklog.core.framework.interface import Candidate, PostFilterResult
from decklog.core.framework.status import CODE_NAMES, Status
from decklog.core.plugins.victims import best_of, rank
from decklog.core.schedule import CycleResult, Engine, Failed
from decklog.events.facts import PodRef, PodUnschedulable
from decklog.objects.pod import Pod

BEST_LISTED_MAX: Final = 20
"""Compact themes list no more of the best nodes."""
CANDIDATES_LISTED_MAX: Final = 10
"""Compact themes list no candidates for preemption if there are more."""

Step = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    field: str
    want: object
    found: object

    def __str__(self) -> str:
        return f"{self.field}: want {self.want!r}, found {self.found!r}"


@dataclass(frozen=True, slots=True)
class Answer:
    """One attempt: what the cycle said, and the failure that is made of it."""

    pod: Pod
    engine: Engine
    result: CycleResult
    failed: Failed | None

    def differences(self, step: Step) -> Iterator[Difference]:
        """Return every field of the step that we answer differently."""
        found: dict[str, object] = {"result": self._result(), **self._failure(step)}
        found |= self._filtering(step)
        if self.result.found is not None:
            found |= self._choice(step)
        for name, value in found.items():
            want = step.get(name)
            if want != value:
                yield Difference(name, want, value)
        yield from self._chosen(step)

    def _result(self) -> str:
        if self.failed is None:
            return "scheduled"
        return "unschedulable" if self.failed.reason == "Unschedulable" else "error"

    def _failure(self, step: Step) -> dict[str, object]:
        failed = self.failed
        if failed is None:
            return dict.fromkeys(
                ("reason", "message", "prefilter", "unschedulablePlugins", "pendingPlugins")
            )
        status = self.result.pre_filter.status
        return {
            "reason": failed.reason,
            "message": failure_message(as_fact(self.pod, failed)),
            "prefilter": _status(status) if status.is_rejected else None,
            "unschedulablePlugins": list(failed.unschedulable_plugins) or None,
            "pendingPlugins": list(failed.pending_plugins) or None,
            "nomination": self._nomination(failed, step),
            "preemption": self._preemption(failed, step),
        }

    def _preemption(self, failed: Failed, step: Step) -> dict[str, object] | None:
        """Return what preemption found; of equal nodes the recorded one, if ours is among them."""
        made = failed.victims
        if made is None or not made.victims:
            return None
        want = step.get("preemption", {})
        best = {one.node: one for one in _best(made)}
        node = _node_of(made, step)
        said: dict[str, object] = {
            "best": sorted(best),
            "node": node,
            "victims": [victim.key for victim in best[node].victims],
        }
        if "candidates" in want or len(made.candidates) <= CANDIDATES_LISTED_MAX:
            ranked = sorted(made.candidates, key=lambda one: one.node)
            said["candidates"] = [_candidate(one) for one in ranked]
        return said

    def _nomination(self, failed: Failed, step: Step) -> str | None:
        """Return what the pod's status is set to, also if it says so already."""
        made, given = failed.victims, failed.nominate
        if made is not None and made.victims:
            given = _node_of(made, step)
        return given or ("" if given is not None and self.pod.nominated_node_name else None)

    def _filtering(self, step: Step) -> dict[str, object]:
        found, table = self.result.found, self.engine.cache.columns
        narrowed = self.result.pre_filter
        said: dict[str, object] = {"narrowed": None, "nominatedRejected": None}
        if narrowed.node_names is not None and found is not None:
            names = sorted(n for n in narrowed.node_names if table.row_of(n) is not None)
            said["narrowed"] = {"plugins": list(narrowed.narrowing), "nodes": names}
        if self._took_nominated():
            return said  # We look at no other node; the recording filtered them all the same.
        if not self.result.profile.score and "feasible" in step:
            return said  # Likewise: without scores, the first node that fits is taken.
        feasible: list[str] = []
        rejected: dict[str, Status] = {}
        if found is not None:
            feasible = sorted(table.names[row] for row in found.rows().tolist())
            statuses = found.reasons.statuses
            rejected = {
                table.names[row]: statuses[found.reason[row]]
                for row in found.rejected_rows.tolist()
            }
            if found.nominated_apart:
                name = table.names[found.nominated or 0]
                apart = _grouped({name: rejected.pop(name)})
                if narrowed.node_names is not None:
                    said["nominatedRejected"] = apart[0]
        if "feasibleCount" in step or "rejectedCounts" in step:
            counts = Counter(status.plugin for status in rejected.values())
            return said | {
                "feasibleCount": len(feasible) or None,
                "rejectedCounts": dict(counts) or None,
            }
        return said | {"feasible": feasible or None, "rejected": _grouped(rejected) or None}

    def _choice(self, step: Step) -> dict[str, object]:
        found = self.result.found
        assert found is not None
        hit = self._took_nominated()
        said: dict[str, object] = {"nominatedHit": True if hit else None}
        if "evaluated" in step:
            said["evaluated"] = found.evaluated_count
        if found.feasible_count and self.result.failure is None and self.result.profile.score:
            said["scored"] = False if self.result.scored is None else None
        if "feasible" in step and "totals" in step:
            return said | self._totals(step, self._rows(step["feasible"]))
        if found.feasible_count and "bestTotal" in step and not hit:
            return said | self._totals(step, found.rows())
        return said

    def _totals(self, step: Step, rows: Rows) -> dict[str, object]:
        """Return what the nodes score, and which are best."""
        table = self.engine.cache.columns
        names = [table.names[row] for row in rows.tolist()]
        scored = self.engine.scores(self.result, rows)
        totals: list[int] = scored.totals.tolist()
        if scored.failure is not None:
            return {"message": scored.failure.message}
        best = sorted(
            name for name, total in zip(names, totals, strict=True) if total == max(totals)
        )
        if "bestTotal" in step:
            return {
                "best": best[:BEST_LISTED_MAX],
                "bestCount": len(best),
                "bestTotal": max(totals),
            }
        plugins = [plugin.name for plugin in self.result.profile.score]
        scores = {
            plugin: part if isinstance(part, int) else _shortened(part.tolist())
            for plugin, part in zip(plugins, scored.parts, strict=True)
            if part is not None
        }
        said: dict[str, object] = {"totals": _shortened(totals), "scores": scores or None}
        return said if self._took_nominated() else said | {"best": best}

    def _rows(self, names: Sequence[str]) -> Rows:
        table = self.engine.cache.columns
        rows = [row for name in names if (row := table.row_of(name)) is not None]
        return np.array(rows, dtype=np.intp)

    def _took_nominated(self) -> bool:
        found = self.result.found
        if found is None or found.nominated is None:
            return False
        return bool(found.feasible[found.nominated]) and found.evaluated_count == 1

    def _chosen(self, step: Step) -> Iterator[Difference]:
        """Our own choice must be one of the best; which one is a draw upstream."""
        node, best = self.result.node, step.get("best", [])
        if node is None:
            return
        if len(best) < step.get("bestCount", 0):
            return
        if node not in best:
            yield Difference("chosen", best, node)


def as_fact(pod: Pod, failed: Failed) -> PodUnschedulable:
    """Return the failure as it would be recorded."""
    return PodUnschedulable(
        pod=PodRef(uid=pod.uid, namespace=pod.namespace, name=pod.name),
        reason=failed.reason,
        node_count=failed.node_count,
        rejected=failed.rejected,
        absent=failed.absent,
        absent_count=failed.absent_count,
        pre_filter_message=failed.pre_filter_message,
        post_filter_message=failed.post_filter_message,
        error=failed.error,
    )


def _status(status: Status) -> dict[str, object]:
    return {
        "plugin": status.plugin,
        "code": CODE_NAMES[status.code],
        "reasons": list(status.all_reasons),
    }


def _node_of(made: PostFilterResult, step: Step) -> str:
    """Return the node on which room is made; of equal ones the recorded one, if it is of them."""
    best = [one.node for one in _best(made)]
    recorded: str = step.get("preemption", {}).get("node", "")
    if made.nominate in best and recorded in best:
        return recorded
    return made.nominate or ""


def _best(made: PostFilterResult) -> list[Candidate]:
    return [one.candidate for one in best_of(list(map(rank, made.candidates)))]


def _candidate(candidate: Candidate) -> dict[str, object]:
    said: dict[str, object] = {
        "node": candidate.node,
        "victims": [victim.key for victim in candidate.victims],
    }
    if candidate.pdb_violations:
        said["pdbViolations"] = candidate.pdb_violations
    return said


def _grouped(rejected: Mapping[str, Status]) -> list[dict[str, object]]:
    """Return the rejections as the files list them."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for name in sorted(rejected):
        status = rejected[name]
        key = (status.plugin, CODE_NAMES[status.code], status.all_reasons)
        groups.setdefault(key, []).append(name)
    return [
        {"plugin": plugin, "code": code, "reasons": list(reasons), "nodes": nodes}
        for (plugin, code, reasons), nodes in sorted(groups.items())
    ]


def _shortened(values: Sequence[int]) -> int | list[int]:
    """Return one number if all are equal, as the files do."""
    return values[0] if len(set(values)) == 1 else list(values)
