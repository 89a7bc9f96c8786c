"""Situations that people met, each with the right answer: one row for a case or a variant of it.

`cases/*.yaml` hold them in four forms. `recorded` names scenarios of golden/cases.jsonl.gz, whose
whole answers test_decisions.py compares: here the row says which part is the point. `steps` are
told to the scheduler's state one tick at a time (story.py). `value`, `milli_value` and `refused`
are quantities. `missing` names what decklog does not have yet. Cases about the logs, the ledger and
the binder are in test_cases_log.py.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
import yaml

from decklog.core.framework.diagnosis import event_note, failure_message
from decklog.core.framework.status import CODE_NAMES
from decklog.core.schedule import CycleResult, Failed
from decklog.objects.quantity import InvalidQuantity, amount, parse
from decklog.objects.requests import incoming
from tests.parity.compare import as_fact
from tests.parity.conftest import CARRIED
from tests.parity.runner import CASES, scenarios
from tests.parity.story import Story
from tests.parity.world import World, load

Raw = Mapping[str, Any]
FOLDER: Final = Path(__file__).parent / "cases"


def rows() -> Iterator[Raw]:
    for path in sorted(FOLDER.glob("*.yaml")):
        yield from yaml.safe_load(path.read_text(encoding="utf-8"))


def _table(*forms: str) -> pytest.MarkDecorator:
    found = [row for row in rows() if any(form in row for form in forms)]
    names = ["-".join(filter(None, (row["id"], row.get("variant")))) for row in found]
    return pytest.mark.parametrize("case", found, ids=names)


@cache
def _recorded() -> Mapping[str, Raw]:
    return {scenario["id"]: scenario for scenario in scenarios(CARRIED / CASES)}


@_table("recorded")
def test_a_recorded_case_is_answered(case: Raw) -> None:
    for name, want in case["recorded"].items():
        scenario = _recorded()[name]
        world = load(scenario)
        missing = world.missing()
        if missing:
            pytest.skip(f"needs {', '.join(missing)}")
        answer = _Answer(world, scenario["steps"][0])
        found = {key: getattr(answer, key)(value) for key, value in want.items()}
        assert found == want, f"{name}: {case['problem']}"


@_table("steps")
def test_a_case_goes_step_by_step(case: Raw) -> None:
    assert list(Story().differences(case["steps"])) == [], case["problem"]


@_table("value", "refused")
def test_a_quantity_is_read(case: Raw) -> None:
    values = {text: parse(text).value() for text in case.get("value", {})}
    milli_values = {text: parse(text).milli_value() for text in case.get("milli_value", {})}
    assert values == case.get("value", {})
    assert milli_values == case.get("milli_value", {})
    for text in case.get("refused", ()):
        with pytest.raises(InvalidQuantity):
            parse(text)


@_table("missing")
def test_a_case_waits_for_what_is_missing(case: Raw) -> None:
    pytest.skip(f"needs {case['missing']}")


def test_a_wrong_step_is_found() -> None:
    step = {"at": 0, "nodes": {"n1": {}}, "pods": {"p": {}}, "want": {"p": "unschedulable"}}
    assert list(Story().differences([step])) == [
        "at 0: want of p is 'assumed n1', not 'unschedulable'"
    ]


class _Answer:
    """What decklog says of a recorded scenario's first attempt; each method is a key of a row."""

    def __init__(self, world: World, step: Raw) -> None:
        self.world = world
        self.pod = world.pods[step["pod"]]
        self.result: CycleResult = world.engine.decide(self.pod, attempt=1)
        self.failed: Failed | None = None
        if self.result.node is None:
            outcome = world.engine.attempt(self.pod, attempt=1)
            assert isinstance(outcome, Failed)
            self.failed = outcome

    def fits(self, want: list[str]) -> list[str]:
        found = self.result.found
        if found is None:
            return []
        names = {self.world.cache.columns.names[row] for row in found.rows().tolist()}
        return [name for name in want if name in names] + sorted(names - set(want))

    def rejects(self, want: Raw) -> dict[str, list[str]]:
        """Return why the nodes were rejected, in as many words as the row has."""
        found, table = self.result.found, self.world.cache.columns
        assert found is not None
        said = {}
        for row in found.rejected_rows.tolist():
            status, name = found.reasons.statuses[found.reason[row]], table.names[row]
            words = [status.plugin, CODE_NAMES[status.code], *status.all_reasons]
            said[name] = words[: len(want.get(name, words))]
        return said

    def prefilter(self, _want: str) -> str:
        return self.result.pre_filter.status.message

    def left_out(self, want: Raw) -> dict[str, Any]:
        found, table = self.result.found, self.world.cache.columns
        assert found is not None
        looked_at = {*found.rows().tolist(), *found.rejected_rows.tolist()}
        return {
            "nodes": [name for row, name in enumerate(table.names) if row not in looked_at],
            "code": CODE_NAMES[self.result.absent.code],
            "reason": self.result.absent.message,
        }

    def message(self, _want: str) -> str:
        assert self.failed is not None
        return failure_message(as_fact(self.pod, self.failed))

    def note_bytes(self, _want: int) -> int:
        note = event_note(self.message(""))
        assert note.endswith(" ...")
        return len(note.encode())

    def victims(self, _want: list[str]) -> list[str]:
        made = None if self.failed is None else self.failed.victims
        return [] if made is None else [victim.name for victim in made.victims]

    def nominates(self, _want: str) -> str:
        assert self.failed is not None
        given = self.failed.nominate
        return self.pod.nominated_node_name if given is None else given

    def goes_to(self, _want: str) -> str | None:
        return self.result.node

    def scores(self, want: Raw) -> dict[str, Any]:
        """Return every node's total, or the scores of the plugin that the row names."""
        found, table = self.result.found, self.world.cache.columns
        assert found is not None
        names = [table.names[row] for row in found.rows().tolist()]
        scored = self.world.engine.scores(self.result, found.rows())
        parts = dict(
            zip((one.name for one in self.result.profile.score), scored.parts, strict=True)
        )
        said: dict[str, Any] = {}
        for name in want:
            part = parts.get(name)
            if part is not None:
                each = np.broadcast_to(part, len(names)).tolist()
                said[name] = dict(zip(names, each, strict=True))
        return said or dict(zip(names, scored.totals.tolist(), strict=True))

    def asks_for(self, want: Raw) -> dict[str, str]:
        asked = incoming(self.pod)
        return {name: text for name, text in want.items() if asked[name] == amount(name, text)}
