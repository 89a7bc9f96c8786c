"""One auditor: what it finds in a history that was changed, and how far it says it is."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from decklog.adapters.ledger.sql import SqlLedger
from decklog.adapters.log.embedded import EmbeddedLog
from decklog.auditor import service
from decklog.auditor.service import ANCHOR_MS, IDLE_MS, AuditorService
from decklog.core.errors import LedgerUnavailable
from decklog.events.codec import DecisionHeader, decode_decision, encode_decision
from decklog.events.facts import PodAssumed
from decklog.ports.ledger import Anchor, DecisionRow, Head, TickRow
from decklog.ports.sealing import chained
from tests.harness import CLUSTER, EmbeddedStores, ManualClock
from tests.voyage import sail

Change = Callable[[DecisionRow], DecisionRow]


class Changed:
    """A ledger in which somebody has changed decisions and ticks, and which may fail."""

    def __init__(
        self,
        ledger: SqlLedger,
        *,
        decisions: Change = lambda row: row,
        ticks: Callable[[TickRow], TickRow] = lambda row: row,
        failures: int = 0,
    ) -> None:
        self._ledger = ledger
        self._decisions = decisions
        self._ticks = ticks
        self._failures = failures

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def decisions(self, stream: str, *, after: int, limit: int) -> Sequence[DecisionRow]:
        rows = self._ledger.decisions(stream, after=after, limit=limit)
        return [self._decisions(row) for row in rows]

    def ticks(self, stream: str, *, after: int, limit: int) -> Sequence[TickRow]:
        return [self._ticks(row) for row in self._ledger.ticks(stream, after=after, limit=limit)]

    def audited(self, stream: str, **given: Any) -> None:
        if self._failures:
            self._failures -= 1
            msg = "down"
            raise LedgerUnavailable(msg)
        self._ledger.audited(stream, **given)


@dataclass
class Desk:
    """A recorded history that no auditor has seen."""

    clock: ManualClock
    ledger: SqlLedger
    log: EmbeddedLog

    def auditor(self, ledger: Any = None) -> AuditorService:
        return AuditorService(
            cluster=CLUSTER, log=self.log, ledger=ledger or self.ledger, clock=self.clock
        )

    @property
    def head(self) -> Head:
        head = self.ledger.head(CLUSTER)
        assert head is not None
        return head

    def audit(self, auditor: AuditorService) -> AuditorService:
        while auditor.step():
            pass
        return auditor


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a history, without what the auditor wrote while it was made."""
    folder = tmp_path_factory.mktemp("history")
    sail(folder)
    return folder


@pytest.fixture
def desk(recorded: Path, tmp_path: Path) -> Iterator[Desk]:
    shutil.copytree(recorded, tmp_path / "store")
    clock = ManualClock()
    stores = EmbeddedStores(tmp_path / "store", clock)
    made = Desk(clock, stores.ledger(), stores.events())
    with made.ledger._store.write() as connection:
        for table in ("consumer_cursor", "anchor", "divergence"):
            connection.exec_driver_sql(f"DELETE FROM {table}")
    yield made
    made.ledger.close()
    made.log.close()


def first_assume(row: DecisionRow) -> bool:
    return row.kind == "PodAssumed" and row.seq < 3


def moved(row: DecisionRow) -> DecisionRow:
    """Return the assume as if another node had been chosen, with a hash that fits."""
    header, fact = decode_decision(row.payload)
    assert isinstance(fact, PodAssumed)
    payload = encode_decision(header, replace(fact, attempt=7))
    return replace(row, payload=payload)


# -- a history as it was ---------------------------------------------------------------------------


def test_a_history_as_it_was_is_decided_again_to_its_end(desk: Desk) -> None:
    auditor = desk.audit(desk.auditor())
    head, metrics = desk.head, auditor.metrics
    assert metrics.ticks == metrics.decided == head.tick
    assert (metrics.divergences, metrics.chain_breaks, metrics.not_decided) == (0, 0, 0)
    assert metrics.verified_seq == head.seq
    assert desk.ledger.consumer_cursor(CLUSTER, "auditor") == (head.cursor, head.tick, head.seq)
    assert auditor.readiness() == {"chain": ""}


def test_with_nothing_new_the_ledger_is_asked_at_a_pace(desk: Desk) -> None:
    auditor = desk.audit(desk.auditor())
    asked: list[int] = []
    counting = Changed(desk.ledger, ticks=lambda row: row)
    read = counting.ticks

    def ticks(stream: str, **given: int) -> Sequence[TickRow]:
        asked.append(desk.clock.monotonic_ms())
        return read(stream, **given)

    counting.ticks = ticks  # type: ignore[method-assign]
    assert auditor._redecider is not None
    auditor._redecider.reader.ledger = counting
    for _ in range(IDLE_MS * 3):
        assert not auditor.step()
        desk.clock.advance(timedelta(milliseconds=1))
    assert len(asked) == 2


# -- anchors ---------------------------------------------------------------------------------------


def test_anchors_are_set_by_number_of_rows(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "ANCHOR_ROWS", 1)
    desk.audit(desk.auditor())
    head = desk.head
    last = {anchor.chain: anchor for anchor in desk.ledger.anchors(CLUSTER)}
    assert last["tick"] == Anchor(
        chain="tick", number=head.tick, hash=head.tick_hash, now_ms=head.now_ms
    )
    assert last["decision"] == Anchor(
        chain="decision", number=head.seq, hash=head.seq_hash, now_ms=head.now_ms
    )


def test_anchors_are_set_by_time(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "TICKS_A_STEP", 3)
    auditor = desk.auditor()
    auditor.step()
    assert desk.ledger.anchors(CLUSTER) == []
    desk.clock.advance(timedelta(milliseconds=ANCHOR_MS))
    auditor.step()
    anchors = desk.ledger.anchors(CLUSTER)
    assert {anchor.chain: anchor.number for anchor in anchors}["tick"] == 6


def test_a_chain_without_decisions_has_no_anchor_of_them(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "ANCHOR_ROWS", 1)
    monkeypatch.setattr(service, "TICKS_A_STEP", 1)
    desk.auditor().step()
    assert [anchor.chain for anchor in desk.ledger.anchors(CLUSTER)] == ["tick"]


def test_a_stop_anchors_the_end_once(desk: Desk) -> None:
    auditor = desk.audit(desk.auditor())
    assert desk.ledger.anchors(CLUSTER) == []
    auditor.stop()
    auditor.stop()
    numbers = {anchor.chain: anchor.number for anchor in desk.ledger.anchors(CLUSTER)}
    assert numbers == {"tick": desk.head.tick, "decision": desk.head.seq}
    assert len(desk.ledger.anchors(CLUSTER)) == 2


# -- going on --------------------------------------------------------------------------------------


def test_an_auditor_that_was_restarted_goes_on_where_it_was(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its state is folded from the beginning, and nothing is decided or found twice."""
    monkeypatch.setattr(service, "TICKS_A_STEP", 5)
    wrong = Changed(desk.ledger, decisions=lambda row: moved(row) if first_assume(row) else row)
    before = desk.auditor(wrong)
    for _ in range(3):
        before.step()
    cursor = desk.ledger.consumer_cursor(CLUSTER, "auditor")
    assert cursor is not None
    assert before.metrics.divergences == 2
    after = desk.auditor(wrong)
    after.step()
    assert desk.ledger.consumer_cursor(CLUSTER, "auditor") == cursor
    desk.audit(after)
    assert after.metrics.divergences == 0
    assert after.metrics.decided == desk.head.tick - cursor[1]
    assert len(desk.ledger.divergences(CLUSTER, limit=10)) == 2


def test_what_was_found_is_stored_although_the_ledger_failed(desk: Desk) -> None:
    failing = Changed(
        desk.ledger, decisions=lambda row: moved(row) if first_assume(row) else row, failures=2
    )
    auditor = desk.auditor(failing)
    for _ in range(2):
        with pytest.raises(LedgerUnavailable):
            auditor.step()
    desk.audit(auditor)
    assert auditor.metrics.ticks == desk.head.tick
    assert len(desk.ledger.divergences(CLUSTER, limit=10)) == 2


def test_a_stop_stores_how_far_it_is(desk: Desk) -> None:
    auditor = desk.auditor(Changed(desk.ledger, failures=1))
    with pytest.raises(LedgerUnavailable):
        auditor.step()
    auditor.stop()
    assert desk.ledger.consumer_cursor(CLUSTER, "auditor") is not None
    auditor.stop()


# -- a history that was changed --------------------------------------------------------------------


def test_a_decision_that_differs_is_found_and_causes_no_second_finding(desk: Desk) -> None:
    def change(row: DecisionRow) -> DecisionRow:
        return moved(row) if row.seq == 1 else row

    auditor = desk.audit(desk.auditor(Changed(desk.ledger, decisions=change)))
    [found] = desk.ledger.divergences(CLUSTER, limit=10)
    [row] = desk.ledger.decisions(CLUSTER, after=0, limit=1)
    assert (found.tick, found.seq) == (row.tick, 1)
    assert found.got == row.payload
    assert found.want == moved(row).payload
    assert auditor.metrics.ticks == desk.head.tick


def test_a_broken_chain_is_said_once_and_counted(desk: Desk) -> None:
    def change(row: DecisionRow) -> DecisionRow:
        return replace(row, hash=bytes(32)) if row.seq in (1, 20) else row

    auditor = desk.audit(desk.auditor(Changed(desk.ledger, decisions=change)))
    assert auditor.readiness()["chain"].startswith("decision 1: its hash does not follow")
    assert auditor.metrics.chain_breaks >= 2


def test_a_column_that_differs_from_its_payload_breaks_the_chain(desk: Desk) -> None:
    def change(row: DecisionRow) -> DecisionRow:
        return replace(row, node="elsewhere") if row.seq == 1 else row

    auditor = desk.audit(desk.auditor(Changed(desk.ledger, decisions=change)))
    assert "column node is 'elsewhere'" in auditor.readiness()["chain"]


def test_a_tick_that_was_changed_breaks_the_chain(desk: Desk) -> None:
    def change(row: TickRow) -> TickRow:
        return replace(row, cycles=row.cycles + 1) if row.tick == 2 else row

    auditor = desk.audit(desk.auditor(Changed(desk.ledger, ticks=change)))
    assert auditor.readiness()["chain"].startswith("tick 2: column cycles is")


def test_what_cannot_have_been_decided_is_a_finding_and_the_end_of_the_walk(desk: Desk) -> None:
    """A second assume of one pod: whoever forges the hashes too cannot make it possible."""
    rows = [
        row
        for row in desk.ledger.decisions(CLUSTER, after=0, limit=100)
        if row.kind == "PodAssumed"
    ]
    _, twice = decode_decision(rows[0].payload)

    def change(row: DecisionRow) -> DecisionRow:
        if row.seq != rows[1].seq:
            return row
        header = DecisionHeader(row.seq, row.tick, row.generation, row.now_ms)
        payload = encode_decision(header, twice)
        return replace(row, payload=payload, hash=chained(rows[0].hash, payload))

    auditor = desk.audit(desk.auditor(Changed(desk.ledger, decisions=change)))
    tick = rows[1].tick
    assert auditor.readiness()["chain"].startswith(f"tick {tick}: what it records cannot be: ")
    [found] = desk.ledger.divergences(CLUSTER, limit=10)
    assert found.tick == tick
    assert b"which is assumed already" in found.got
    cursor = desk.ledger.consumer_cursor(CLUSTER, "auditor")
    assert cursor is not None
    assert cursor[1] == tick - 1
    assert not auditor.step()


def test_what_cannot_be_in_the_first_tick_of_a_step_is_stored_too(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "TICKS_A_STEP", 1)

    def change(row: DecisionRow) -> DecisionRow:
        if row.seq != 1:
            return row
        header, fact = decode_decision(row.payload)
        assert isinstance(fact, PodAssumed)
        nobody = replace(fact, pod=replace(fact.pod, uid="uid-of-nobody"))
        return replace(row, payload=encode_decision(header, nobody))

    desk.audit(desk.auditor(Changed(desk.ledger, decisions=change)))
    [found] = desk.ledger.divergences(CLUSTER, limit=10)
    assert b"which does not exist" in found.got


def test_ticks_of_other_rules_are_applied_and_not_decided(desk: Desk) -> None:
    def change(row: TickRow) -> TickRow:
        return replace(row, rules=row.rules + 1)

    auditor = desk.audit(desk.auditor(Changed(desk.ledger, ticks=change)))
    assert auditor.metrics.decided == 0
    assert auditor.metrics.not_decided == desk.head.tick
    assert auditor.metrics.divergences == 0
