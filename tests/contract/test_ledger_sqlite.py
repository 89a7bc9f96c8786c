"""What only SQLite promises: readers beside a writer, and plans that need no luck."""

import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy.exc import IntegrityError, OperationalError

from decklog.adapters.ledger import statements
from decklog.adapters.ledger.sql import SqlLedger
from decklog.adapters.ledger.store import Statement
from decklog.core.errors import LedgerUnavailable
from tests.contract.ledgers import (
    STREAM,
    Decided,
    Ledgers,
    after,
    check_history,
    decide,
    lead,
    make_tick,
)

TICKS: Final = 30
# Reads another stream's tables while this process writes, then says what it saw.
READER: Final = """
import sys
from decklog.adapters.clock import SystemClock
from decklog.adapters.ledger.sql import SqlLedger
ledger = SqlLedger(sys.argv[1], clock=SystemClock(), read_only=True)
print(len(ledger.decisions("eu1", after=0, limit=1000)))
"""
WALKS: Final = re.compile(r"SCAN (?!json_each|CONSTANT)\w+|SEARCH \w+ .*\(stream=\?\)")
"""A step of a plan that reads a whole table, or all of a stream."""
MAY_WALK: Final = {
    "STREAMS": "there are few",
    "CONFIGS": "all are asked for",
    "ANCHORS": "all are asked for",
    "DIVERGENCES": "all are asked for",
    "OPEN_ASSUMES": "no index says which assumes are open",
    "UNFINISHED_EFFECTS": "in the small indexes of the two states",
    "ADOPT": "in the small index of what is held",
    "UNPUBLISHED": "in the small index of what is unpublished",
    "HEAD": "one row",
    "TAKE_OVER": "one row",
    "ADVANCE_HEAD": "one row",
    "BEAT_LEADER": "one row",
    "RESIGN": "one row",
}


@pytest.fixture
def ledgers(sqlite_ledgers: Ledgers) -> Ledgers:
    return sqlite_ledgers


@pytest.fixture
def ledger(ledgers: Ledgers) -> SqlLedger:
    return ledgers.open()


@pytest.mark.parametrize("table", ["tick", "decision"])
@pytest.mark.parametrize("change", ["UPDATE {} SET now_ms = 0", "DELETE FROM {}"])
def test_history_cannot_be_changed(
    ledgers: Ledgers, ledger: SqlLedger, table: str, change: str
) -> None:
    decide(ledger, [Decided()])
    with pytest.raises(IntegrityError, match="history is insert-only"):
        ledgers.execute(change.format(table))
    check_history(ledger)


def test_readers_see_whole_ticks_while_a_writer_runs(ledgers: Ledgers, ledger: SqlLedger) -> None:
    head = lead(ledger)
    done = threading.Event()
    seen: list[int] = []

    def read() -> None:
        reader = ledgers.open(read_only=True)
        while not done.is_set():
            seen.append(len(reader.decisions(STREAM, after=0, limit=1_000)))

    reading = threading.Thread(target=read)
    reading.start()
    try:
        for _ in range(TICKS):
            commit = make_tick(head, [Decided()] * 5)
            ledger.commit(commit)
            head = after(head, commit)
    finally:
        done.set()
        reading.join()
    assert seen == sorted(seen)
    assert all(count % 5 == 0 for count in seen)


def test_another_process_reads_while_a_transaction_is_open(
    ledgers: Ledgers, ledger: SqlLedger
) -> None:
    decide(ledger, [Decided()] * 3)
    with ledgers.holding_the_head():
        done = subprocess.run(
            [sys.executable, "-c", READER, ledgers.url], capture_output=True, text=True, check=True
        )
    assert done.stdout == "3\n"


def test_who_opened_it_to_read_cannot_write(ledgers: Ledgers, ledger: SqlLedger) -> None:
    decide(ledger, [Decided()])
    with pytest.raises(OperationalError, match="readonly"):
        lead(ledgers.open(read_only=True))


def test_a_store_that_nobody_may_write_to_can_be_read(
    ledgers: Ledgers, ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one on a read-only mount; root, who may do everything, is told otherwise."""
    decide(ledger, [Decided()])
    ledgers.close()
    folder = Path(ledgers.url.removeprefix("sqlite:///")).parent
    assert [file.name for file in folder.iterdir()] == ["ledger.db"]
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    check_history(ledgers.open(read_only=True))
    assert [file.name for file in folder.iterdir()] == ["ledger.db"]


def test_a_writer_that_waits_too_long_says_so(
    ledgers: Ledgers, ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = lead(ledger)
    monkeypatch.setattr("decklog.adapters.ledger.store.BUSY_TIMEOUT_SECONDS", 0.1)
    hasty = ledgers.open()
    with ledgers.holding_the_head(), pytest.raises(LedgerUnavailable, match="locked") as raised:
        hasty.commit(make_tick(head))
    assert isinstance(raised.value.__cause__, OperationalError)
    hasty.commit(make_tick(head))


def test_no_statement_walks_a_table(ledgers: Ledgers) -> None:
    """A new store has the statistics of a large one; without them most of these would."""
    walking = {
        name: step
        for name, text in _statements().items()
        for step in _plan(ledgers, text)
        if name not in MAY_WALK and WALKS.search(step)
    }
    assert not walking


@pytest.mark.parametrize(
    ("name", "index"),
    [
        pytest.param("UNFINISHED_EFFECTS", "effect_pending", id="pending effects are counted"),
        pytest.param("UNFINISHED_EFFECTS", "effect_held", id="held effects are counted"),
        pytest.param("ADOPT", "effect_held", id="effects are adopted"),
        pytest.param("UNPUBLISHED", "effect_unpublished", id="outcomes are published"),
        pytest.param("SWEEP", "effect_pending", id="effects are swept"),
        pytest.param("DUE", "effect_held", id="effects are due"),
    ],
)
def test_statements_find_states_by_their_index(ledgers: Ledgers, name: str, index: str) -> None:
    assert any(f"USING INDEX {index}" in step for step in _plan(ledgers, _statements()[name]))


def _statements() -> dict[str, str]:
    plain = {
        name: value.sqlite
        for name, value in vars(statements).items()
        if isinstance(value, Statement) and name != "CREATE_PARTITIONS"
    }
    by_name = statements.select_decisions(("namespace", "pod"), newest_first=True)
    by_uid = statements.select_decisions(("pod_uid",), newest_first=True)
    return plain | {"by name": by_name.sqlite, "by uid": by_uid.sqlite}


def _plan(ledgers: Ledgers, text: str) -> list[str]:
    path = ledgers.url.removeprefix("sqlite:///")
    connection = sqlite3.connect(path)
    try:
        connection.create_function("instant", 1, lambda seconds: None)
        values = dict.fromkeys(re.findall(r":([a-z_]+)", text), json.dumps([]))
        return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]
    finally:
        connection.close()
