"""What only PostgreSQL promises: partitions, roles, and history that its owner can't change."""

import re
from collections.abc import Sequence
from typing import Final

import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.exc import ProgrammingError

from decklog.adapters.ledger import statements
from decklog.adapters.ledger.leader import PARTITION_DUE
from decklog.adapters.ledger.sql import SqlLedger
from decklog.adapters.ledger.store import Statement
from decklog.adapters.ledger.tables import PARTITION_SIZE
from decklog.ports.ledger import Head
from tests.contract.ledgers import (
    STREAM,
    Decided,
    Ledgers,
    after,
    check_history,
    decide,
    lead,
    make_tick,
    names,
)
from tests.stack.postgres import PostgresServer

pytestmark = pytest.mark.postgres

CHANGES: Final = [
    "UPDATE {} SET now_ms = 0",
    "DELETE FROM {}",
    "TRUNCATE {}",
    "TRUNCATE {} CASCADE",
]
PARTITIONED: Final = ("tick", "decision", "effect")
FORBIDDEN_TO_THE_WRITER: Final = [
    *(change.format(table) for change in CHANGES for table in ("tick", "decision")),
    "DELETE FROM effect",
    "TRUNCATE effect",
    "DELETE FROM ledger_head",
    "UPDATE anchor SET now_ms = 0",
    "DELETE FROM dead_letter",
    "UPDATE config_version SET body = ''",
    "UPDATE divergence SET seq = 0",
    "INSERT INTO decision_0 SELECT * FROM decision",
    "DROP TABLE decision_0",
    "DROP TABLE decision",
    "ALTER TABLE decision DISABLE TRIGGER ALL",
    "CREATE TABLE mine ()",
    "UPDATE alembic_version SET version_num = ''",
    "UPDATE schema_revision SET readable_from = ''",
]
FORBIDDEN_TO_THE_READER: Final = [
    "INSERT INTO ledger_head SELECT 'mine', 0, 0, '', 0, '', 0, 0, '', now()",
    "UPDATE ledger_head SET generation = 99",
    "INSERT INTO decision SELECT * FROM decision",
    "UPDATE effect SET state = 'done'",
    "INSERT INTO config_version VALUES ('c', '')",
    "SELECT decklog_create_partitions()",
    "CREATE TABLE mine ()",
]


@pytest.fixture
def ledgers(postgresql_ledgers: Ledgers) -> Ledgers:
    return postgresql_ledgers


@pytest.fixture
def ledger(ledgers: Ledgers) -> SqlLedger:
    return ledgers.open()


@pytest.mark.parametrize("table", ["tick", "decision", "tick_0", "decision_0"])
def test_even_the_owner_cannot_change_history(
    ledgers: Ledgers, ledger: SqlLedger, table: str
) -> None:
    decide(ledger, [Decided()])
    for change in CHANGES:
        with pytest.raises(ProgrammingError, match="history is insert-only"):
            ledgers.execute(change.format(table))
    check_history(ledger)


def test_a_partition_that_holds_nothing_yet_is_guarded_too(ledgers: Ledgers) -> None:
    for table in ("tick_1", "tick_2", "decision_1", "decision_2"):
        with pytest.raises(ProgrammingError, match="history is insert-only"):
            ledgers.execute(f"TRUNCATE {table}")


def test_the_writer_adds_to_history_and_nothing_else(ledgers: Ledgers, ledger: SqlLedger) -> None:
    decide(ledger, [Decided()])
    for statement in FORBIDDEN_TO_THE_WRITER:
        with pytest.raises(ProgrammingError, match=r"permission denied|must be owner"):
            _execute(ledgers.url, statement)


def test_the_reader_reads(ledgers: Ledgers, ledger: SqlLedger) -> None:
    commit = decide(ledger, [Decided()])
    url = ledgers.url.replace("decklog_writer", "decklog_reader")
    reader = ledgers.open(url=url, read_only=True)
    assert len(check_history(reader)[1]) == 1
    assert len(reader.open_assumes(STREAM)) == 1
    assert len(reader.effects(STREAM, seq_first=1, seq_last=1)) == len(commit.effects)
    for statement in FORBIDDEN_TO_THE_READER:
        with pytest.raises(ProgrammingError, match="permission denied"):
            _execute(url, statement)


def test_a_tick_may_cross_into_the_next_partition(ledgers: Ledgers, ledger: SqlLedger) -> None:
    """The head stands shortly before the border, as if a million decisions had been."""
    head = _jump(ledgers, ledger, seq=PARTITION_SIZE - 5)
    commit = make_tick(head, [Decided()] * 20)
    ledger.commit(commit)
    assert _count(ledgers, "decision_0") == 4
    assert _count(ledgers, "decision_1") == 16
    assert _count(ledgers, "effect_1") == 16
    claimed = ledger.claim(STREAM, owner="b1", decisions=names(commit))
    assert [each.seq for each in claimed] == [row.seq for row in commit.decisions]
    rows = ledger.decisions(STREAM, after=PARTITION_SIZE - 5, limit=100)
    assert [row.seq for row in rows] == [row.seq for row in commit.decisions]


def test_the_next_two_partitions_are_made_at_take_over(ledgers: Ledgers, ledger: SqlLedger) -> None:
    _jump(ledgers, ledger, seq=7 * PARTITION_SIZE + 1, tick=3 * PARTITION_SIZE)
    lead(ledger)
    assert _blocks(ledgers, "tick") == [0, 1, 2, 3, 4, 5]
    assert _blocks(ledgers, "decision") == _blocks(ledgers, "effect") == [0, 1, 2, 7, 8, 9]


def test_the_next_two_partitions_are_made_at_80_percent(
    ledgers: Ledgers, ledger: SqlLedger
) -> None:
    due = 2 * PARTITION_SIZE + PARTITION_DUE
    lead(ledger)
    head = _jump(ledgers, ledger, seq=due - 3)
    first = make_tick(head, [Decided()] * 2)
    ledger.commit(first)
    assert _blocks(ledgers, "decision")[-1] == 4
    assert _blocks(ledgers, "tick") == [0, 1, 2]
    ledgers.execute("DROP TABLE decision_3, decision_4, effect_3, effect_4")
    second = make_tick(after(head, first), [Decided()])
    ledger.commit(second)
    assert _blocks(ledgers, "decision") == _blocks(ledgers, "effect") == [0, 1, 2, 3, 4]
    third = make_tick(after(after(head, first), second), [Decided()])
    ledgers.execute("DROP TABLE decision_4, effect_4")
    ledger.commit(third)
    assert _blocks(ledgers, "decision")[-1] == 3, "asked again before the next 80 %"


def test_a_new_partition_is_like_the_others(ledgers: Ledgers, ledger: SqlLedger) -> None:
    """Indexes, checks and triggers: what is created in place and what is attached must agree."""
    _jump(ledgers, ledger, seq=5 * PARTITION_SIZE)
    lead(ledger)
    for table in PARTITIONED:
        first, last = (
            _described(ledgers, f"{table}_{_blocks(ledgers, table)[number]}") for number in (0, -1)
        )
        assert first == last
    with pytest.raises(ProgrammingError, match="history is insert-only"):
        ledgers.execute("TRUNCATE decision_5")


def test_roles_are_made_once_for_the_whole_server(
    ledgers: Ledgers, postgres_server: PostgresServer
) -> None:
    found = ledgers.execute(
        "SELECT rolname, rolcanlogin, rolsuper, rolcreatedb, rolcreaterole FROM pg_roles"
        " WHERE rolname IN ('decklog_writer', 'decklog_reader') ORDER BY 1"
    )
    assert found == [
        ("decklog_reader", True, False, False, False),
        ("decklog_writer", True, False, False, False),
    ]
    assert postgres_server.user == "decklog_owner"


def test_a_batch_is_looked_up_by_key_however_far_apart_it_is(
    ledgers: Ledgers, ledger: SqlLedger
) -> None:
    """With statistics and, as in every new partition, without them."""
    head = lead(ledger)
    for _ in range(6):
        commit = make_tick(head, [Decided()] * 500)
        ledger.commit(commit)
        head = after(head, commit)
    for prepare in ("SELECT 1", "ANALYZE effect, decision"):
        ledgers.execute(prepare)
        for statement in (statements.CLAIM, statements.FINISH, statements.PUBLISHED):
            plan = _plan(ledgers, statement, seqs=[1, *range(2_900, 3_000)])
            assert "Index Scan using effect_0_" in plan, plan
            assert not re.search(r"Seq Scan on \w+_0|Index Cond: .*seq [<>]=", plan), plan


def _plan(ledgers: Ledgers, statement: Statement, *, seqs: Sequence[int]) -> str:
    """Return how the owner's server would find the batch in effect and decision."""
    count = len(seqs)
    values = {
        "stream": STREAM,
        "owner": "b1",
        "seqs": list(seqs),
        "hashes": [bytes(32)] * count,
        "lo": min(seqs),
        "hi": max(seqs),
        "ns": [0] * count,
        "states": ["done"] * count,
        "outcomes": ["{}"] * count,
        "publish": [True] * count,
        "next_checks": [None] * count,
    }
    with psycopg.connect(ledgers.owner_url.replace("+psycopg", "")) as connection:
        rows = connection.execute(f"EXPLAIN {statement.postgresql}", values).fetchall()
    return "\n".join(row[0] for row in rows if "Function Scan" not in row[0])


def _jump(ledgers: Ledgers, ledger: SqlLedger, *, seq: int, tick: int = 0) -> Head:
    """Move the head as if much had been decided, and return it."""
    lead(ledger)
    ledgers.execute(f"UPDATE ledger_head SET seq = {seq}, tick = {tick}")
    head = ledger.head(STREAM)
    assert head is not None
    return head


def _blocks(ledgers: Ledgers, table: str) -> list[int]:
    rows = ledgers.execute(
        f"SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = '{table}'::regclass"
    )
    return sorted(int(name.rpartition("_")[2]) for (name,) in rows)


def _described(ledgers: Ledgers, table: str) -> list[str]:
    """Return what stands on a partition, without its name."""
    number = table.rpartition("_")[2]
    rows = ledgers.execute(
        f"""
        SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = '{table}'::regclass
        UNION ALL
        SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = '{table}'::regclass
        UNION ALL
        SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = '{table}'::regclass
        """
    )
    return sorted(text.replace(f"_{number}", "_N") for (text,) in rows)


def _count(ledgers: Ledgers, table: str) -> int:
    ((count,),) = ledgers.execute(f"SELECT count(*) FROM {table}")
    return int(count)


def _execute(url: str, statement: str) -> None:
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(statement)
    finally:
        engine.dispose()
