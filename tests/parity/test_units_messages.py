"""Messages, statuses and the runners of the extension points: kube-scheduler's own answers."""

import gzip
import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from decklog.core.framework.diagnosis import failure_message, rejecting_plugins, truncated
from decklog.core.framework.interface import CycleState, PostFilterResult, PreFilterResult
from decklog.core.framework.runners import (
    filter_failure,
    run_permit,
    run_post_filter,
    run_pre_filter,
    run_reserve,
    run_unreserve,
)
from decklog.core.framework.status import CODE_NAMES, SUCCESS, Code, Status
from decklog.events.facts import PodRef, PodUnschedulable, Rejection
from decklog.objects.pod import Pod
from tests.builders import make_pod

Raw = Mapping[str, Any]
Differences = Iterator[tuple[object, object]]
"""(got, want)"""
SHOWN_MAX: Final = 20
GO_DURATIONS: Final = {0: "0s", 500: "500ms", 20_000: "20s", 900_000: "15m0s"}
CODES: Final = {name: code for code, name in CODE_NAMES.items()}


def read_status(raw: Raw) -> Status:
    return Status(
        CODES[raw["code"]], tuple(raw.get("reasons", ())), raw.get("err"), raw.get("plugin", "")
    )


def said(status: Status) -> tuple[Code, tuple[str, ...], str]:
    """Return what can be seen of a status from outside."""
    return status.code, status.all_reasons, status.plugin


def fit_error_told(case: Raw) -> Differences:
    statuses = [read_status(one) for one in case["nodes"].values()]
    fact = PodUnschedulable(
        pod=PodRef(uid="u", namespace="default", name="pod"),
        node_count=case["numAllNodes"],
        rejected=tuple(Rejection(s.plugin, int(s.code), s.all_reasons, 1) for s in statuses),
        absent=read_status(case["absent"]).all_reasons if case["absent"] else (),
        absent_count=case["numAllNodes"] - len(statuses),
        pre_filter_message=case["preFilterMsg"],
        post_filter_message=case["postFilterMsg"],
    )
    yield failure_message(fact), case["text"]


def status_told(case: Raw) -> Differences:
    status = read_status(case["status"])
    yield status.message, case["message"]
    yield list(status.all_reasons), case["allReasons"]
    yield status.is_rejected, case["isRejected"]
    yield status.is_success, case["isSuccess"]


def plugins_blamed(case: Raw) -> Differences:
    plugins, pending = rejecting_plugins(map(read_status, case["statuses"]))
    yield list(plugins), case["unschedulablePlugins"]
    yield list(pending), case["pendingPlugins"]


def note_cut(case: Raw) -> Differences:
    text = (case["prefix"] + case["unit"] * case["count"]).encode()
    cut = truncated(text)
    yield len(text), case["bytes"]
    yield len(cut), case["resultBytes"]
    yield cut != text, case["truncated"]
    yield cut[-16:], b64decode(case["resultBase64"])


@dataclass(slots=True)
class Scripted:
    """A plugin that answers what it was told to, and notes that it was called."""

    script: Raw
    called: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        name: str = self.script["plugin"]
        return name

    def answer(self) -> Status:
        self.called.append(self.name)
        return read_status({**self.script, "plugin": ""})

    def pre_filter(self, *_: object) -> tuple[PreFilterResult | None, Status]:
        status = self.answer()
        if not self.script.get("hasResult"):
            return None, status
        names = self.script.get("nodeNames", [])
        return PreFilterResult(None if names is None else frozenset(names)), status

    def post_filter(self, *_: object) -> tuple[PostFilterResult | None, Status]:
        status = self.answer()
        nominate = self.script.get("nominate")
        return None if nominate is None else PostFilterResult(nominate=nominate), status

    def reserve(self, *_: object) -> tuple[Mapping[str, Any], Status]:
        return {}, self.answer()

    def unreserve(self, pod: Pod, node: str, plan: Mapping[str, Any]) -> Sequence[str]:
        self.called.append(f"unreserve:{self.name}")
        return ()

    def permit(self, *_: object) -> tuple[Status, int]:
        return self.answer(), self.script.get("timeoutMs", 0)


def scripted(case: Raw) -> tuple[list[Scripted], list[str]]:
    called: list[str] = []
    return [Scripted(script, called) for script in case["plugins"]], called


def pre_filter_run(case: Raw) -> Differences:
    plugins, called = scripted(case)
    state = CycleState()
    outcome = run_pre_filter(plugins, state, lambda plugin: plugin.pre_filter(state, POD, NODES))
    names = outcome.node_names
    yield called, case["called"]
    yield said(outcome.status), said(read_status(case["result"]))
    yield None if names is None else sorted(names), case["nodeNames"]
    yield list(outcome.narrowing), case["narrowing"]
    yield sorted(state.skip_filter), case["skipped"]


def post_filter_run(case: Raw) -> Differences:
    plugins, called = scripted(case)
    outcome = run_post_filter(
        plugins, lambda plugin: plugin.post_filter(CycleState(), POD, NODES, NODES)
    )
    yield called, case["called"]
    yield said(outcome.status), said(read_status(case["result"]))
    yield None if outcome.result is None else outcome.result.nominate, case["nominate"]


def filter_run(case: Raw) -> Differences:
    """The cycle takes the first status that is not Success; here is what it makes of it."""
    statuses = map(read_status, case["plugins"])
    first = next((status for status in statuses if not status.is_success), SUCCESS)
    if not (first.is_success or first.is_rejected):
        first = filter_failure(first)
    yield said(first), said(read_status(case["result"]))


def reserve_run(case: Raw) -> Differences:
    plugins, called = scripted(case)
    plan, status = run_reserve(plugins, CycleState(), POD, "n0")
    if not status.is_success:
        run_unreserve(plugins, POD, "n0", plan)
    yield called, case["called"]
    yield said(status), said(read_status(case["result"]))


def permit_run(case: Raw) -> Differences:
    plugins, called = scripted(case)
    status, waits = run_permit(plugins, CycleState(), POD, "n0")
    yield called, case["called"]
    yield said(status), said(read_status(case["result"]))
    yield {plugin: GO_DURATIONS[ms] for plugin, ms in waits}, case["waits"]


POD: Final = make_pod()
NODES: Final[Any] = None
"""Scripted plugins look at nothing."""
CHECKS: Final[Mapping[str, Callable[[Raw], Differences]]] = {
    "fitError": fit_error_told,
    "status": status_told,
    "diagnosis": plugins_blamed,
    "truncate": note_cut,
    "runPreFilter": pre_filter_run,
    "runPostFilter": post_filter_run,
    "runFilter": filter_run,
    "runReserve": reserve_run,
    "runPermit": permit_run,
}


@pytest.mark.parametrize("kind", CHECKS)
def test_the_answer_is_kube_schedulers(kind: str, golden_dir: Path) -> None:
    count, wrong = 0, []
    with gzip.open(golden_dir / "units" / "messages.jsonl.gz", "rt", encoding="utf-8") as lines:
        for number, case in enumerate(map(json.loads, lines), start=1):
            if case["kind"] != kind:
                continue
            count += 1
            wrong += [
                f"line {number}: got {got!r}, want {want!r}"
                for got, want in CHECKS[kind](case)
                if got != want
            ]
    assert count > 0
    assert not wrong, f"{len(wrong)} differ of {count}:\n" + "\n".join(wrong[:SHOWN_MAX])


def test_a_wrong_answer_is_found() -> None:
    case = {
        "status": {"code": "Error", "reasons": ["a"]},
        "message": "b",
        "allReasons": ["a"],
        "isRejected": False,
        "isSuccess": True,
    }
    assert [pair for pair in status_told(case) if pair[0] != pair[1]] == [("a", "b"), (False, True)]
