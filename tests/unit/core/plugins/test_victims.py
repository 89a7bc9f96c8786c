"""Whom to evict from a node, and which of the nodes is best: upstream's rules, row by row."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from decklog.core.framework.interface import Candidate
from decklog.core.framework.status import SUCCESS, Status, error, unschedulable
from decklog.core.plugins.victims import NO_VICTIMS, best_of, budgets, rank, select_victims
from decklog.objects.pod import Pod
from decklog.objects.policy import PodDisruptionBudget
from decklog.objects.selectors import LabelSelector, LabelSelectorRequirement
from tests.builders import make_pod

FULL: Final = unschedulable("Insufficient cpu")
LABELS: Final = {"app": "web"}
PREEMPTOR: Final = make_pod("high", priority=100)


def victim(name: str, priority: int = 0, *, start: int = 1, **fields: Any) -> Pod:
    return make_pod(name, priority=priority, start_time=f"2026-01-0{start}T00:00:00Z", **fields)


@dataclass
class Slots:
    """A node on which the preemptor fits beside so many others."""

    room: int
    placed: dict[str, Pod] = field(default_factory=dict)

    @property
    def pods(self) -> Sequence[Pod]:
        return list(self.placed.values())

    def add(self, pod: Pod) -> None:
        self.placed[pod.name] = pod

    def remove(self, pod: Pod) -> None:
        del self.placed[pod.name]

    def status(self) -> Status:
        return SUCCESS if len(self.placed) <= self.room else FULL


def selected(
    room: int, pods: Sequence[Pod], *limits: PodDisruptionBudget
) -> tuple[list[str], int] | Status:
    node = Slots(room, {pod.name: pod for pod in pods})
    found = select_victims(node, "n", PREEMPTOR, budgets({limit.name: limit for limit in limits}))
    if isinstance(found, Status):
        return found
    return [one.name for one in found.victims], found.pdb_violations


@pytest.mark.parametrize(
    ("room", "pods", "want"),
    [
        pytest.param(0, [], NO_VICTIMS, id="nobody is there"),
        pytest.param(0, [victim("a", 100)], NO_VICTIMS, id="equal priority stays"),
        pytest.param(0, [victim("a", 101), victim("b")], FULL, id="the others are too many"),
        pytest.param(1, [victim("a"), victim("b", 1)], (["a"], 0), id="the lowest goes"),
        pytest.param(
            1, [victim("a", start=2), victim("b", start=1)], (["a"], 0), id="the youngest goes"
        ),
        pytest.param(1, [make_pod("a"), victim("b", start=9)], (["a"], 0), id="no start is now"),
        pytest.param(
            0,
            [victim("a"), victim("b", 2), victim("c", 1)],
            (["b", "c", "a"], 0),
            id="the most important first",
        ),
        pytest.param(2, [victim("a"), victim("b")], None, id="it fits beside all"),
    ],
)
def test_select_victims(room: int, pods: list[Pod], want: object) -> None:
    if want is None:
        want = error('expected at least one victim pod on node "n"')
    assert selected(room, pods) == want


def budget(allowed: int, **fields: Any) -> PodDisruptionBudget:
    known: dict[str, Any] = {
        "uid": "u",
        "namespace": "default",
        "name": "pdb",
        "disruptions_allowed": allowed,
    }
    return PodDisruptionBudget(**{**known, "selector": LabelSelector(match_labels=LABELS)} | fields)


INVALID: Final = LabelSelector(
    match_expressions=(LabelSelectorRequirement(key="app", operator="Near", values=()),)
)


@pytest.mark.parametrize(
    ("limit", "labels", "violations"),
    [
        pytest.param(budget(1), LABELS, 1, id="one of two may go"),
        pytest.param(budget(2), LABELS, 0, id="both may go"),
        pytest.param(budget(-1), LABELS, 2, id="none may go"),
        pytest.param(budget(0, disrupted_pods=("a", "b")), LABELS, 0, id="they go already"),
        pytest.param(budget(1, disrupted_pods=("a",)), LABELS, 0, id="one goes already"),
        pytest.param(budget(0, namespace="other"), LABELS, 0, id="another namespace"),
        pytest.param(budget(0), {"app": "db"}, 0, id="others are meant"),
        pytest.param(budget(0, selector=LabelSelector()), LABELS, 0, id="an empty selector"),
        pytest.param(budget(0, selector=None), LABELS, 0, id="no selector"),
        pytest.param(budget(0, selector=INVALID), LABELS, 0, id="a selector that does not parse"),
        pytest.param(
            budget(
                0,
                selector=LabelSelector(
                    match_expressions=(
                        LabelSelectorRequirement(key="x", operator="DoesNotExist", values=()),
                    )
                ),
            ),
            {},
            0,
            id="a pod without labels",
        ),
    ],
)
def test_budgets(limit: PodDisruptionBudget, labels: dict[str, str], violations: int) -> None:
    pods = [victim("a", labels=labels), victim("b", labels=labels)]
    found = selected(0, pods, limit)
    assert not isinstance(found, Status)
    assert (sorted(found[0]), found[1]) == (["a", "b"], violations)


def test_who_would_violate_a_budget_is_given_back_first() -> None:
    pods = [victim("a", 1), victim("b", labels=LABELS)]
    assert selected(1, pods) == (["b"], 0)
    assert selected(1, pods, budget(0)) == (["a"], 0)


def candidate(node: str, *victims: Pod, violations: int = 0) -> Candidate:
    return Candidate(node=node, victims=victims, pdb_violations=violations)


LOW, MID, NEG = victim("low", 1), victim("mid", 2), victim("neg", -1)


@pytest.mark.parametrize(
    ("candidates", "want"),
    [
        pytest.param(
            [candidate("a", LOW, violations=1), candidate("b", MID, MID)], ["b"], id="budgets first"
        ),
        pytest.param(
            [candidate("a", MID, MID), candidate("b", MID, LOW), candidate("c", LOW, LOW)],
            ["c"],
            id="then the highest victim",
        ),
        pytest.param(
            [candidate("a", MID, MID), candidate("b", MID, LOW), candidate("c", MID, MID)],
            ["b"],
            id="then the sum",
        ),
        pytest.param(
            [
                candidate("a", MID, NEG, MID, NEG),
                candidate("b", MID, NEG),
                candidate("c", MID, NEG, LOW),
            ],
            ["b"],
            id="a victim more always costs",
        ),
        pytest.param(
            [
                candidate(
                    "a",
                    *(victim(f"v{n}", 1_000_000_000) for n in range(3)),
                    victim("v", 147_483_648),
                ),
                candidate("b", victim("w", 1_000_000_000), *(victim(f"w{n}") for n in range(4))),
            ],
            ["a"],
            id="equal sums: fewer victims",
        ),
        pytest.param(
            [
                candidate("a", victim("1", start=4), victim("2", start=2)),
                candidate("b", victim("1", start=5), victim("2", start=1)),
                candidate("c", victim("1", start=3), victim("2", start=6)),
            ],
            ["c"],
            id="then the latest of the earliest starts",
        ),
        pytest.param(
            [
                candidate("a", victim("1", 1, start=4), victim("2", start=1)),
                candidate("b", victim("1", 1, start=3), victim("2", start=2)),
            ],
            ["a"],
            id="of the victims of highest priority only",
        ),
        pytest.param([candidate("a", LOW), candidate("b", LOW)], ["a", "b"], id="any of equals"),
        pytest.param([], [], id="none"),
    ],
)
def test_best_of(candidates: list[Candidate], want: list[str]) -> None:
    found = best_of(list(map(rank, candidates)))
    assert [one.candidate.node for one in found] == want
