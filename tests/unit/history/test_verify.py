"""What verify says where the chains hold: it differs, it cannot be looked at, or it is fine."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from decklog.core.errors import LogUnavailable
from decklog.history import verify as verifying
from decklog.history.positions import AtDecision, AtPosition, resolve
from decklog.history.source import Source
from decklog.history.verify import Verdict, Wanted, facts, verify
from decklog.ports import redeciding
from decklog.ports.log import Entry, Log
from tests.recording import forged, record
from tests.unit.history.conftest import Store
from tests.unit.history.test_golden import filled


class SilentLog:
    """A log that knows how far it goes, and does not answer."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def append(self, entries: Sequence[Entry]) -> int:
        raise NotImplementedError

    def read(self, *, after: int, limit: int, timeout: timedelta) -> Sequence[tuple[int, Entry]]:
        msg = "cannot read the log: the broker does not answer"
        raise LogUnavailable(msg)

    def bounds(self) -> tuple[int, int]:
        return self._log.bounds()

    def identity(self) -> str:
        return self._log.identity()

    def close(self) -> None:
        self._log.close()


def cut(store: Store, where: str) -> None:
    """Delete entries of the events log, as retention or a careless hand does."""
    with sqlite3.connect(store.folder / "log.db") as connection:
        connection.execute(f'DELETE FROM "log_test.events" WHERE {where}')
    connection.close()


def test_a_forged_decision_is_found_by_deciding_again(source: Source, tmp_path: Path) -> None:
    def place_elsewhere(seq: int, payload: list[Any]) -> None:
        if seq == 4:
            payload[8]["node"] = "large" if payload[8]["node"] == "small" else "small"

    text = record(source.ledger, source.events, source.stream)
    with filled(forged(text, place_elsewhere), tmp_path) as other:
        report = verify(other, Wanted())
    assert report.chain.findings == []
    first = report.replay.first_divergence
    assert first is not None
    assert (first.tick, first.seq) == (2, 4)
    assert report.verdict is Verdict.VIOLATED


def test_one_difference_causes_no_second_one(source: Source, tmp_path: Path) -> None:
    """What is recorded is applied, not what was decided again: the rest has the recorded past."""

    def claim_another_tie(seq: int, payload: list[Any]) -> None:
        if seq == 2:
            payload[8]["tie_count"] = 2

    text = record(source.ledger, source.events, source.stream)
    with filled(forged(text, claim_another_tie), tmp_path) as other:
        report = verify(other, Wanted())
    assert report.replay.divergent == 1
    assert report.replay.decisions == report.chain.head.seq


def test_a_forged_past_that_cannot_be_is_said(source: Source, tmp_path: Path) -> None:
    def assume_twice(seq: int, payload: list[Any]) -> None:
        if seq == 3:
            payload[5:8] = ["5c1d2e4f", "shop", "ghost"]

    text = record(source.ledger, source.events, source.stream)
    with filled(forged(text, assume_twice), tmp_path) as other:
        report = verify(other, Wanted())
    assert report.verdict is Verdict.VIOLATED
    assert str(report.findings[0]).startswith("tick 2: what it records cannot be")


def test_lost_events_are_no_violation(store: Store) -> None:
    with store.source() as source:
        last = source.events.bounds()[1]
    cut(store, f"position > {last - 5}")
    with store.source() as source:
        report = verify(source, Wanted())
    assert report.verdict is Verdict.REFUSED
    assert 0 < report.replay.ticks < report.chain.ticks
    assert report.replay.unchecked.startswith("cannot read after position")


@pytest.mark.parametrize("where", ["position < 3", "position >= 0", "position = 50"])
def test_a_log_with_a_hole_is_no_violation(store: Store, where: str) -> None:
    cut(store, where)
    with store.source() as source:
        report = verify(source, Wanted())
    assert report.verdict is Verdict.REFUSED
    assert report.chain.findings == []


def test_a_log_that_does_not_answer_is_unavailable(source: Source) -> None:
    report = verify(replace(source, events=SilentLog(source.events)), Wanted())
    assert report.verdict is Verdict.UNAVAILABLE
    assert report.chain.ticks == report.chain.head.tick


@pytest.mark.parametrize(
    ("is_strict", "want"), [(False, Verdict.VERIFIED), (True, Verdict.REFUSED)]
)
def test_ticks_of_other_rules_are_not_decided_again(
    source: Source, monkeypatch: pytest.MonkeyPatch, is_strict: bool, want: Verdict
) -> None:
    monkeypatch.setattr(verifying, "RULES", 99)
    monkeypatch.setattr(redeciding, "RULES", 99)
    report = verify(source, Wanted(is_strict=is_strict))
    assert report.verdict is want
    assert report.replay.decisions == 0
    assert report.replay.other_rules == {1: [report.chain.head.tick, report.chain.head.seq]}
    assert report.replay.versions == {1: "test"}


def test_only_what_is_wanted_is_decided_again(source: Source) -> None:
    after, until = resolve(AtDecision(7), source), resolve(AtPosition(80), source)
    report = verify(source, Wanted(after=after, until=until))
    assert report.verdict is Verdict.VERIFIED
    assert report.chain.decisions == report.chain.head.seq
    assert report.replay.ticks == until.tick - after.tick
    assert report.replay.last_position <= 80


def test_both_generations_are_decided_again(source: Source) -> None:
    generations = {tick.generation for tick in source.ledger.ticks("test", after=0, limit=100)}
    assert generations == {1, 2}
    assert verify(source, Wanted()).replay.ticks == source.head().tick


def test_facts_are_plain_data(source: Source) -> None:
    told = facts(verify(source, Wanted()))
    assert json.loads(json.dumps(told)) == told
    assert told["verdict"] == "verified"
    assert told["replay"]["identical"] == told["chain"]["decisions"]


def test_progress_goes_through_both_parts(source: Source) -> None:
    told: list[tuple[str, int, int]] = []
    verify(source, Wanted(), lambda *step: told.append(step))
    last = source.head().tick
    assert ("chain", last, last) in told
    assert ("replay", last, last) in told
