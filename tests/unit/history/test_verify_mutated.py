"""Whoever changes one byte of history is found out, and told where.

Each test damages a copy of the same history behind the ledger's back: the file is opened raw, the
triggers that refuse it are dropped, and one value has one bit changed.
"""

import sqlite3
from typing import Any, Final

import pytest

from decklog.history.verify import Verdict, VerifyReport, Wanted, verify
from tests.unit.history.conftest import Store

TICK_COLUMNS: Final = (
    "tick",
    "generation",
    "cursor",
    "now_ms",
    "cycles",
    "config_hash",
    "rules",
    "seq",
    "payload",
    "hash",
)
DECISION_COLUMNS: Final = (
    "seq",
    "tick",
    "generation",
    "kind",
    "pod_uid",
    "namespace",
    "pod",
    "node",
    "reason",
    "closes_seq",
    "now_ms",
    "payload",
    "hash",
)
UNREADABLE: Final = 0x80
"""Changes the highest bit: a letter is no UTF-8 any more."""


def checked(store: Store) -> VerifyReport:
    with store.source() as source:
        return verify(source, Wanted())


def damage(
    store: Store, table: str, column: str, where: str = "", *, bit: int = 1, at: int = 0
) -> None:
    """Change one bit of one value of the first row that is meant."""
    with sqlite3.connect(store.folder / "decklog.db") as connection:
        connection.text_factory = bytes
        connection.execute("PRAGMA ignore_check_constraints = ON")
        triggers = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall()
        for (name,) in triggers:
            connection.execute(f"DROP TRIGGER {name.decode()}")
        query = f"SELECT rowid, {column} FROM {table} {where} ORDER BY rowid LIMIT 1"
        rowid, value = connection.execute(query).fetchone()
        kind = connection.execute(
            f"SELECT typeof({column}) FROM {table} WHERE rowid = ?", (rowid,)
        ).fetchone()[0]
        cast = "CAST(? AS TEXT)" if kind == b"text" else "?"
        connection.execute(
            f"UPDATE {table} SET {column} = {cast} WHERE rowid = ?",
            (changed(value, bit, at), rowid),
        )
    connection.close()


def changed(value: Any, bit: int, at: int) -> Any:
    if isinstance(value, int):
        return value ^ bit
    assert isinstance(value, bytes)
    return value[:at] + bytes([value[at] ^ bit]) + value[at + 1 :]


def told(report: VerifyReport) -> str:
    assert report.verdict is Verdict.VIOLATED
    return str(report.findings[0])


def test_nothing_is_found_where_nothing_was_changed(store: Store) -> None:
    report = checked(store)
    assert report.verdict is Verdict.VERIFIED
    assert report.chain.anchors == report.chain.anchors_found > 0
    assert report.replay.decisions == report.chain.head.seq > 0


@pytest.mark.parametrize("column", TICK_COLUMNS)
def test_a_changed_tick_is_named(store: Store, column: str) -> None:
    damage(store, "tick", column, "WHERE tick = 4", bit=32)
    assert told(checked(store)).startswith("tick 4:")


@pytest.mark.parametrize("column", DECISION_COLUMNS)
def test_a_changed_decision_is_named(store: Store, column: str) -> None:
    damage(store, "decision", column, "WHERE kind = 'PodUnreserved'", bit=32)
    assert told(checked(store)).startswith("decision 13:")


@pytest.mark.parametrize("at", [0, 7, 200])
def test_any_byte_of_a_payload_counts(store: Store, at: int) -> None:
    damage(store, "decision", "payload", "WHERE seq = 3", at=at)
    assert told(checked(store)).startswith("decision 3:")


@pytest.mark.parametrize(
    ("table", "column", "where", "want"),
    [
        pytest.param("tick", "config_hash", "WHERE tick = 2", "tick 2:", id="tick"),
        pytest.param("decision", "pod", "WHERE seq = 5", "decision 5:", id="decision"),
        pytest.param("decision", "decided_at", "WHERE seq = 5", "decision 5:", id="time"),
        pytest.param("decision", "stream", "WHERE seq = 5", "decision 5:", id="stream"),
        pytest.param("tick", "stream", "WHERE tick = 9", "tick 9:", id="stream of a tick"),
        pytest.param("config_version", "config_hash", "", "configuration ", id="hash"),
        pytest.param("anchor", "chain", "", "anchor ", id="anchor"),
        pytest.param("anchor", "stream", "", "anchor ", id="stream of an anchor"),
    ],
)
def test_bytes_that_are_no_text_are_named_too(
    store: Store, table: str, column: str, where: str, want: str
) -> None:
    damage(store, table, column, where, bit=UNREADABLE)
    assert told(checked(store)).startswith(want)


@pytest.mark.parametrize("column", ["config_hash", "body"])
def test_a_changed_configuration_is_named(store: Store, column: str) -> None:
    with store.source() as source:
        ((config_hash, _),) = source.ledger.configs()
    damage(store, "config_version", column)
    found = [finding.subject for finding in checked(store).findings]
    assert f"configuration {config_hash}" in found


@pytest.mark.parametrize("column", ["stream", "chain", "number", "hash", "now_ms"])
@pytest.mark.parametrize("chain", ["tick", "decision"])
def test_a_changed_anchor_is_named(store: Store, column: str, chain: str) -> None:
    damage(store, "anchor", column, f"WHERE chain = '{chain}'")
    assert told(checked(store)).startswith("anchor ")


@pytest.mark.parametrize(
    "column", ["generation", "tick", "tick_hash", "seq", "seq_hash", "cursor", "now_ms"]
)
def test_a_changed_head_is_found(store: Store, column: str) -> None:
    damage(store, "ledger_head", column, bit=2)
    assert checked(store).verdict is Verdict.VIOLATED


@pytest.mark.parametrize("table", ["tick", "decision"])
@pytest.mark.parametrize("number", [1, 6])
def test_a_missing_row_is_named(store: Store, table: str, number: int) -> None:
    column = "tick" if table == "tick" else "seq"
    with sqlite3.connect(store.folder / "decklog.db") as connection:
        connection.execute(f"DROP TRIGGER {table}_refuse_delete")
        connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (number,))
    connection.close()
    assert told(checked(store)).startswith(f"{table} {number}: it is missing")


def test_what_comes_before_the_break_is_still_decided_again(store: Store) -> None:
    damage(store, "decision", "hash", "WHERE seq = 12")
    report = checked(store)
    assert report.chain.decisions == 11
    assert report.replay.decisions == 10  # Of whole ticks.
    assert report.replay.unchecked == "stopped at the break"


def test_a_damaged_file_is_no_bug_of_ours(store: Store) -> None:
    """The page on which decisions begin is overwritten: SQLite itself finds that."""
    file = store.folder / "decklog.db"
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ((root,),) = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'decision'"
        ).fetchall()
        ((size,),) = connection.execute("PRAGMA page_size").fetchall()
    connection.close()
    with file.open("r+b") as opened:
        opened.seek((root - 1) * size)
        opened.write(b"\xff" * 64)
    assert told(checked(store)).startswith("ledger: ")


def test_a_changed_configuration_decides_nothing(store: Store) -> None:
    """Its body still reads, and would decide otherwise: it is not tried."""
    with store.source() as source:
        ((_, body),) = source.ledger.configs()
    damage(store, "config_version", "body", at=body.index(b'"seed":1') + 7, bit=2)
    report = checked(store)
    assert report.replay.decisions == report.replay.divergent == 0
    assert "was changed after it was stored" in report.replay.unchecked
