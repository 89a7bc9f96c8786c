"""Walks recorded scenarios: at each step we decide, compare, and go on with what was recorded."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from decklog.core.framework.status import CODE_NAMES
from decklog.core.schedule import Failed
from decklog.objects.pod import Pod
from tests.parity.compare import Answer, Difference, Step
from tests.parity.world import World, load

CASES: Final = "cases.jsonl.gz"
"""Situations that people met, beside the generated ones."""


@dataclass(slots=True)
class Report:
    """What became of the scenarios of a theme."""

    theme: str
    passed: int = 0
    steps: int = 0
    failures: list[str] = field(default_factory=list)
    """One line for each scenario that differs: its id, the step, and the first differences."""
    not_run: Counter[str] = field(default_factory=Counter)
    """What scenarios need that is not there yet → their number; a scenario may need several."""
    not_run_count: int = 0

    @property
    def run(self) -> int:
        return self.passed + len(self.failures)

    def __str__(self) -> str:
        line = f"{self.theme}: {self.run} run, {self.passed} passed, {self.not_run_count} not run"
        needs = ", ".join(f"{name} {count}" for name, count in self.not_run.most_common())
        return f"{line} ({needs})" if needs else line


def themes(folder: Path) -> list[Path]:
    """Return the files of scenarios in a folder of recorded answers."""
    found = sorted((folder / "decisions").glob("*.jsonl.gz"))
    cases = folder / CASES
    return [*found, cases] if cases.exists() else found


def run_theme(path: Path) -> Report:
    report = Report(path.name.removesuffix(".jsonl.gz"))
    for scenario in scenarios(path):
        run_scenario(scenario, report)
    return report


def scenarios(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def run_scenario(scenario: Mapping[str, Any], report: Report) -> None:
    world = load(scenario)
    missing = world.missing()
    if missing:
        report.not_run.update(missing)
        report.not_run_count += 1
        return
    for number, step in enumerate(scenario["steps"]):
        differences = list(walk(world, step))
        report.steps += 1
        if differences:
            shown = "; ".join(map(str, differences[:3]))
            report.failures.append(f"{scenario['id']} step {number} {step['pod']}: {shown}")
            return
    report.passed += 1


def walk(world: World, step: Step) -> Iterator[Difference]:
    """Decide, say what differs from the step, and do what the step says happened."""
    pod = world.pods[step["pod"]]
    match step["result"]:
        case "gated":
            yield from _gated(world, pod, step)
        case "skipped":
            if not pod.deleted:
                yield Difference("result", "skipped", "tried")
        case _:
            yield from _decided(world, pod, step)
    for change in step.get("then", ()):
        _happen(world, change)


def _decided(world: World, pod: Pod, step: Step) -> Iterator[Difference]:
    engine = world.engine
    if "start" in step:
        engine.start_index = step["start"]
    result = engine.decide(pod, attempt=step.get("attempt", 1))
    failed = None
    if result.node is None:
        outcome = engine.attempt(pod, attempt=step.get("attempt", 1))
        assert isinstance(outcome, Failed)
        failed = outcome
    yield from Answer(pod, engine, result, failed).differences(step)


def _gated(world: World, pod: Pod, step: Step) -> Iterator[Difference]:
    for plugin in world.profile_of(pod).pre_enqueue:
        status = plugin.pre_enqueue(pod)
        if not status.is_success:
            found = {
                "plugin": plugin.name,
                "code": CODE_NAMES[status.code],
                "reasons": list(status.all_reasons),
            }
            if found != step["gated"]:
                yield Difference("gated", step["gated"], found)
            return
    yield Difference("gated", step["gated"], None)


def _happen(world: World, change: Mapping[str, Any]) -> None:
    match change["op"]:
        case "bind":
            pod = world.pods[change["pod"]]
            world.bind(pod, change["node"], change["startTime"])
        case "nominate":
            world.nominate(change["pod"], change["node"])
        case "terminate":
            world.terminate(change["pod"])
        case "delete":
            world.delete(change["pod"])
        case op:
            msg = f"a step says {op!r}, which nobody knows"
            raise ValueError(msg)
