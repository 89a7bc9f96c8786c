"""The runner sees a difference: a recorded answer that is changed by hand makes it fail."""

import copy
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.parity.conftest import CARRIED
from tests.parity.runner import Report, run_scenario, scenarios

Scenario = dict[str, Any]


def first_scenario(theme: str, wanted: Callable[[dict[str, Any]], bool]) -> tuple[Scenario, int]:
    """Return a scenario with the first step that is wanted, and the step's number."""
    for scenario in scenarios(CARRIED / "decisions" / f"{theme}.jsonl.gz"):
        for number, step in enumerate(scenario["steps"]):
            if wanted(step):
                return scenario, number
    msg = f"no step of theme {theme} is wanted"
    raise LookupError(msg)


def failures(scenario: Scenario) -> list[str]:
    report = Report("changed")
    run_scenario(scenario, report)
    return report.failures


def is_scheduled(step: dict[str, Any]) -> bool:
    return "scores" in step and len(step["feasible"]) > 1 and "rejected" in step


CHANGES: Final = {
    "result": "unschedulable",
    "feasible": ["n-999"],
    "rejected": [],
    "scores": {},
    "totals": 1,
    "best": ["n-999"],
    "scored": False,
}


@pytest.mark.parametrize("field", CHANGES)
def test_a_changed_answer_of_a_placed_pod_is_seen(field: str) -> None:
    scenario, number = first_scenario("resources", is_scheduled)
    assert not failures(scenario)
    changed = copy.deepcopy(scenario)
    changed["steps"][number][field] = CHANGES[field]
    assert f"{field}: want" in failures(changed)[0]


@pytest.mark.parametrize(
    ("theme", "field"),
    [
        ("resources", "message"),
        ("resources", "reason"),
        ("resources", "unschedulablePlugins"),
        ("node-affinity", "prefilter"),
        ("node-affinity", "narrowed"),
    ],
)
def test_a_missing_answer_is_seen(theme: str, field: str) -> None:
    scenario, number = first_scenario(theme, lambda step: field in step)
    assert not failures(scenario)
    changed = copy.deepcopy(scenario)
    del changed["steps"][number][field]
    assert f"{field}: want None" in failures(changed)[0]


def test_a_node_outside_of_the_best_is_seen() -> None:
    scenario, number = first_scenario("scoring", is_scheduled)
    step = scenario["steps"][number]
    worst = [name for name in step["feasible"] if name not in step["best"]]
    changed = copy.deepcopy(scenario)
    changed["steps"][number]["best"] = worst
    assert "chosen: want" in failures(changed)[0]
