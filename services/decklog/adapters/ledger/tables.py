"""The tables of the ledger, declared once for PostgreSQL and SQLite.

History is insert-only, and the database refuses anything else:

    tick ──(tick)── decision ──(seq)── effect
    one step        one fact           what it asks of the cluster; the only part that changes

`ledger_head` is one row for each stream: where both chains end, and who leads. The statements
that write are in `statements.py`; the migrations repeat these declarations as reviewed SQL, and
a test holds the two equal on both databases.
"""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

REVISION: Final = "0001"
"""The newest migration that this code knows."""
REVISION_NEEDED: Final = "0001"
"""The oldest schema that this code can work on."""
PARTITION_SIZE: Final = 1_000_000
"""Ticks and seqs in a partition: small enough to detach, a day or more of a busy cluster."""

metadata = MetaData()

# SQLite has no type for it: there it is text in UTC, of fixed width, so that it sorts by time.
_Instant: Final = DateTime(timezone=True).with_variant(Text(), "sqlite")


ledger_head: Final = Table(
    "ledger_head",
    metadata,
    Column("stream", Text, primary_key=True),
    Column("generation", BigInteger, nullable=False),
    Column("tick", BigInteger, nullable=False),
    Column("tick_hash", LargeBinary, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("seq_hash", LargeBinary, nullable=False),
    Column("cursor", BigInteger, nullable=False),
    Column("now_ms", BigInteger, nullable=False),
    Column("holder", Text, nullable=False),
    Column("heartbeat_at", _Instant, nullable=False),
)

tick: Final = Table(
    "tick",
    metadata,
    Column("stream", Text, nullable=False),
    Column("tick", BigInteger, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("cursor", BigInteger, nullable=False),
    Column("now_ms", BigInteger, nullable=False),
    Column("cycles", Integer, nullable=False),
    Column("config_hash", Text, nullable=False),
    Column("rules", Integer, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    PrimaryKeyConstraint("stream", "tick"),
    postgresql_partition_by="RANGE (tick)",
)

decision: Final = Table(
    "decision",
    metadata,
    Column("stream", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("tick", BigInteger, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("pod_uid", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("pod", Text, nullable=False),
    Column("node", Text),
    Column("reason", Text),
    Column("closes_seq", BigInteger),
    Column("now_ms", BigInteger, nullable=False),
    Column("decided_at", _Instant, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    PrimaryKeyConstraint("stream", "seq"),
    Index("decision_by_pod_uid", "stream", "pod_uid", "seq"),
    Index("decision_by_name", "stream", "namespace", "pod", "seq"),
    Index(
        "decision_closes",
        "stream",
        "closes_seq",
        postgresql_where=text("closes_seq IS NOT NULL"),
        sqlite_where=text("closes_seq IS NOT NULL"),
    ),
    # Rows come in the order of time, so a few blocks describe millions of them.
    Index("decision_decided_at", "decided_at", postgresql_using="brin", info={"postgresql": True}),
    postgresql_partition_by="RANGE (seq)",
)

_PENDING: Final = text("state = 'pending'")
_HELD: Final = text("state IN ('claimed', 'unknown')")
_UNPUBLISHED: Final = text("NOT outcome_published")

effect: Final = Table(
    "effect",
    metadata,
    Column("stream", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("n", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("pod_uid", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("owner", Text),
    Column("claimed_at", _Instant),
    Column("next_check_at", _Instant),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("outcome", Text),
    Column("outcome_published", Boolean, nullable=False),
    Column("late_outcome", Text),
    PrimaryKeyConstraint("stream", "seq", "n"),
    # Few rows are in these states at any time, so each index stays small.
    Index("effect_pending", "stream", "seq", "n", postgresql_where=_PENDING, sqlite_where=_PENDING),
    Index("effect_held", "stream", "owner", "seq", "n", postgresql_where=_HELD, sqlite_where=_HELD),
    Index(
        "effect_unpublished",
        "stream",
        "seq",
        "n",
        postgresql_where=_UNPUBLISHED,
        sqlite_where=_UNPUBLISHED,
    ),
    postgresql_partition_by="RANGE (seq)",
)

worker: Final = Table(
    "worker",
    metadata,
    Column("stream", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("heartbeat_at", _Instant, nullable=False),
    PrimaryKeyConstraint("stream", "owner"),
)

config_version: Final = Table(
    "config_version",
    metadata,
    Column("config_hash", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
)

anchor: Final = Table(
    "anchor",
    metadata,
    Column("stream", Text, nullable=False),
    Column("chain", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("now_ms", BigInteger, nullable=False),
    PrimaryKeyConstraint("stream", "chain", "number"),
)

dead_letter: Final = Table(
    "dead_letter",
    metadata,
    Column("stream", Text, nullable=False),
    Column("topic", Text, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("error", Text, nullable=False),
    Column("code_version", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("created_at", _Instant, nullable=False),
    PrimaryKeyConstraint("stream", "topic", "position"),
)

divergence: Final = Table(
    "divergence",
    metadata,
    Column("stream", Text, nullable=False),
    Column("tick", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("want", LargeBinary, nullable=False),
    Column("got", LargeBinary, nullable=False),
    Column("found_at", _Instant, nullable=False),
    PrimaryKeyConstraint("stream", "tick", "seq"),
)

consumer_cursor: Final = Table(
    "consumer_cursor",
    metadata,
    Column("stream", Text, nullable=False),
    Column("consumer", Text, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("tick", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    PrimaryKeyConstraint("stream", "consumer"),
)

schema_revision: Final = Table(
    "schema_revision",
    metadata,
    # Beside Alembic's own table, which doesn't say whether older code may run.
    Column("revision", Text, primary_key=True),
    Column("readable_from", Text, nullable=False),
)
