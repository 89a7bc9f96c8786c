"""Create the ledger.

History (`tick`, `decision`) is insert-only, and the database itself refuses everything else:
triggers on both databases; on PostgreSQL also the privileges of the service's role, which does
not own the tables. A row trigger does not see TRUNCATE, and a statement trigger is not inherited
by partitions, so each partition gets its own when it is created.

The roles decklog_writer and decklog_reader are created where they are missing, without a
password; the deployment sets passwords. `downgrade` leaves them: they belong to the whole server.

Revision ID: 0001
Revises:
"""

from alembic import op

revision = "0001"
down_revision = None
readable_from = "0001"


def upgrade() -> None:
    postgresql = op.get_bind().dialect.name == "postgresql"
    for table in TABLES:
        _execute(table.format_map(POSTGRESQL_TYPES if postgresql else SQLITE_TYPES))
    for statement in (*INDEXES, VIEW, *(POSTGRESQL if postgresql else SQLITE)):
        _execute(statement)


def downgrade() -> None:
    _execute("DROP VIEW open_assumes")
    for table in NAMES:
        _execute(f"DROP TABLE {table}")
    if op.get_bind().dialect.name == "postgresql":
        _execute("DROP FUNCTION decklog_create_partitions()")
        _execute("DROP FUNCTION decklog_refuse()")
        _execute("REVOKE ALL ON SCHEMA public FROM decklog_writer, decklog_reader")


def _execute(statement: str) -> None:
    """Run the statement as it stands: colon and per cent sign are no parameters."""
    op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


NAMES = (
    "ledger_head",
    "tick",
    "decision",
    "effect",
    "worker",
    "config_version",
    "anchor",
    "dead_letter",
    "divergence",
    "consumer_cursor",
    "schema_revision",
)

POSTGRESQL_TYPES = {
    "bytes": "bytea",
    "instant": "timestamp with time zone",
    "by_tick": "PARTITION BY RANGE (tick)",
    "by_seq": "PARTITION BY RANGE (seq)",
    "small": "",
}
SQLITE_TYPES = {
    "bytes": "BLOB",
    "instant": "TEXT",  # UTC, of fixed width, so that it sorts by time.
    "by_tick": "",
    "by_seq": "",
    "small": "WITHOUT ROWID",  # Short rows that are found by their key.
}

TABLES = (
    """
    CREATE TABLE ledger_head (
        stream        TEXT      NOT NULL PRIMARY KEY,
        generation    BIGINT    NOT NULL,
        tick          BIGINT    NOT NULL,
        tick_hash     {bytes}   NOT NULL,
        seq           BIGINT    NOT NULL,
        seq_hash      {bytes}   NOT NULL,
        cursor        BIGINT    NOT NULL,
        now_ms        BIGINT    NOT NULL,
        holder        TEXT      NOT NULL,
        heartbeat_at  {instant} NOT NULL
    )
    """,
    """
    CREATE TABLE tick (
        stream       TEXT    NOT NULL,
        tick         BIGINT  NOT NULL,
        generation   BIGINT  NOT NULL,
        cursor       BIGINT  NOT NULL,
        now_ms       BIGINT  NOT NULL,
        cycles       INTEGER NOT NULL,
        config_hash  TEXT    NOT NULL,
        rules        INTEGER NOT NULL,
        seq          BIGINT  NOT NULL,
        payload      {bytes} NOT NULL,
        hash         {bytes} NOT NULL,
        PRIMARY KEY (stream, tick)
    ) {by_tick}
    """,
    """
    CREATE TABLE decision (
        stream      TEXT      NOT NULL,
        seq         BIGINT    NOT NULL,
        tick        BIGINT    NOT NULL,
        generation  BIGINT    NOT NULL,
        kind        TEXT      NOT NULL,
        pod_uid     TEXT      NOT NULL,
        namespace   TEXT      NOT NULL,
        pod         TEXT      NOT NULL,
        node        TEXT,
        reason      TEXT,
        closes_seq  BIGINT,
        now_ms      BIGINT    NOT NULL,
        decided_at  {instant} NOT NULL,
        payload     {bytes}   NOT NULL,
        hash        {bytes}   NOT NULL,
        PRIMARY KEY (stream, seq)
    ) {by_seq}
    """,
    """
    CREATE TABLE effect (
        stream             TEXT    NOT NULL,
        seq                BIGINT  NOT NULL,
        n                  INTEGER NOT NULL,
        kind               TEXT    NOT NULL
            CHECK (kind IN ('bind', 'status', 'victim', 'event')),
        pod_uid            TEXT    NOT NULL,
        state              TEXT    NOT NULL
            CHECK (state IN ('pending', 'claimed', 'done', 'rejected', 'unknown', 'dropped')),
        owner              TEXT,
        claimed_at         {instant},
        next_check_at      {instant},
        attempts           INTEGER NOT NULL DEFAULT 0,
        outcome            TEXT,
        outcome_published  BOOLEAN NOT NULL,
        late_outcome       TEXT,
        PRIMARY KEY (stream, seq, n)
    ) {by_seq} {small}
    """,
    """
    CREATE TABLE worker (
        stream        TEXT      NOT NULL,
        owner         TEXT      NOT NULL,
        kind          TEXT      NOT NULL,
        heartbeat_at  {instant} NOT NULL,
        PRIMARY KEY (stream, owner)
    )
    """,
    """
    CREATE TABLE config_version (
        config_hash  TEXT    NOT NULL PRIMARY KEY,
        body         {bytes} NOT NULL
    )
    """,
    """
    CREATE TABLE anchor (
        stream  TEXT    NOT NULL,
        chain   TEXT    NOT NULL CHECK (chain IN ('tick', 'decision')),
        number  BIGINT  NOT NULL,
        hash    {bytes} NOT NULL,
        now_ms  BIGINT  NOT NULL,
        PRIMARY KEY (stream, chain, number)
    )
    """,
    """
    CREATE TABLE dead_letter (
        stream        TEXT      NOT NULL,
        topic         TEXT      NOT NULL,
        position      BIGINT    NOT NULL,
        error         TEXT      NOT NULL,
        code_version  TEXT      NOT NULL,
        body          {bytes}   NOT NULL,
        created_at    {instant} NOT NULL,
        PRIMARY KEY (stream, topic, position)
    )
    """,
    """
    CREATE TABLE divergence (
        stream    TEXT      NOT NULL,
        tick      BIGINT    NOT NULL,
        seq       BIGINT    NOT NULL,
        want      {bytes}   NOT NULL,
        got       {bytes}   NOT NULL,
        found_at  {instant} NOT NULL,
        PRIMARY KEY (stream, tick, seq)
    )
    """,
    """
    CREATE TABLE consumer_cursor (
        stream    TEXT   NOT NULL,
        consumer  TEXT   NOT NULL,
        position  BIGINT NOT NULL,
        tick      BIGINT NOT NULL,
        seq       BIGINT NOT NULL,
        PRIMARY KEY (stream, consumer)
    )
    """,
    """
    CREATE TABLE schema_revision (
        revision       TEXT NOT NULL PRIMARY KEY,
        readable_from  TEXT NOT NULL
    )
    """,
)

INDEXES = (
    "CREATE INDEX decision_by_pod_uid ON decision (stream, pod_uid, seq)",
    "CREATE INDEX decision_by_name ON decision (stream, namespace, pod, seq)",
    """
    CREATE INDEX decision_closes ON decision (stream, closes_seq) WHERE closes_seq IS NOT NULL
    """,
    "CREATE INDEX effect_pending ON effect (stream, seq, n) WHERE state = 'pending'",
    """
    CREATE INDEX effect_held ON effect (stream, owner, seq, n)
     WHERE state IN ('claimed', 'unknown')
    """,
    "CREATE INDEX effect_unpublished ON effect (stream, seq, n) WHERE NOT outcome_published",
)

# Assumes that nothing has ended yet: no bind is done, and no decision closes them.
VIEW = """
    CREATE VIEW open_assumes AS
    SELECT d.stream, d.seq, d.tick, d.generation, d.kind, d.pod_uid, d.namespace, d.pod, d.node,
           d.reason, d.closes_seq, d.now_ms, d.decided_at, d.payload, d.hash
      FROM decision d
     WHERE d.kind IN ('PodAssumed', 'PodWaiting')
       AND NOT EXISTS (SELECT 1 FROM effect e
                        WHERE e.stream = d.stream AND e.seq = d.seq
                          AND e.kind = 'bind' AND e.state = 'done')
       AND NOT EXISTS (SELECT 1 FROM decision c
                        WHERE c.stream = d.stream AND c.closes_seq = d.seq)
"""

POSTGRESQL = (
    "CREATE INDEX decision_decided_at ON decision USING brin (decided_at)",
    """
    CREATE FUNCTION decklog_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'cannot % table %: history is insert-only', lower(TG_OP), TG_TABLE_NAME;
    END $$
    """,
    """
    CREATE TRIGGER tick_refuse_change BEFORE UPDATE OR DELETE ON tick
        FOR EACH ROW EXECUTE FUNCTION decklog_refuse()
    """,
    """
    CREATE TRIGGER tick_refuse_truncate BEFORE TRUNCATE ON tick
        FOR EACH STATEMENT EXECUTE FUNCTION decklog_refuse()
    """,
    """
    CREATE TRIGGER decision_refuse_change BEFORE UPDATE OR DELETE ON decision
        FOR EACH ROW EXECUTE FUNCTION decklog_refuse()
    """,
    """
    CREATE TRIGGER decision_refuse_truncate BEFORE TRUNCATE ON decision
        FOR EACH STATEMENT EXECUTE FUNCTION decklog_refuse()
    """,
    # Creates what every stream needs for the block that it is in and for the next two. It takes no
    # argument, so its caller decides nothing. A partition is attached, not created in place: that
    # needs a lock under which everybody else reads and writes on.
    """
    CREATE FUNCTION decklog_create_partitions() RETURNS void
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    DECLARE
        size CONSTANT bigint := 1000000;
        ahead CONSTANT bigint := 2;
        child text;
        part record;
    BEGIN
        PERFORM pg_advisory_xact_lock(hashtext('decklog_create_partitions'));
        FOR part IN
            SELECT DISTINCT kind.parent, number.block
              FROM (SELECT tick / size AS ticks, seq / size AS seqs FROM ledger_head
                    UNION SELECT 0, 0) AS head
             CROSS JOIN LATERAL (VALUES ('tick', head.ticks), ('decision', head.seqs),
                                        ('effect', head.seqs)) AS kind (parent, reached)
             CROSS JOIN LATERAL generate_series(kind.reached, kind.reached + ahead)
                                AS number (block)
             WHERE to_regclass(kind.parent || '_' || number.block) IS NULL
             ORDER BY kind.parent, number.block
        LOOP
            child := part.parent || '_' || part.block;
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)',
                           child, part.parent);
            IF part.parent <> 'effect' THEN
                EXECUTE format('CREATE TRIGGER %I BEFORE TRUNCATE ON %I FOR EACH STATEMENT '
                               'EXECUTE FUNCTION decklog_refuse()',
                               child || '_refuse_truncate', child);
            END IF;
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)',
                           part.parent, child, part.block * size, (part.block + 1) * size);
        END LOOP;
    END $$
    """,
    "SELECT decklog_create_partitions()",
    # Another database of the same server may be creating them at this moment.
    """
    DO $$
    DECLARE
        wanted text;
    BEGIN
        FOREACH wanted IN ARRAY ARRAY['decklog_writer', 'decklog_reader'] LOOP
            IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = wanted) THEN
                BEGIN
                    EXECUTE format('CREATE ROLE %I LOGIN', wanted);
                EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
                END;
            END IF;
        END LOOP;
    END $$
    """,
    "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
    "GRANT USAGE ON SCHEMA public TO decklog_writer, decklog_reader",
    """
    GRANT SELECT ON ledger_head, tick, decision, effect, open_assumes, worker, config_version,
                    anchor, dead_letter, divergence, consumer_cursor, schema_revision,
                    alembic_version
        TO decklog_writer, decklog_reader
    """,
    """
    GRANT INSERT ON ledger_head, tick, decision, effect, worker, config_version, anchor,
                    dead_letter, divergence, consumer_cursor
        TO decklog_writer
    """,
    "GRANT UPDATE ON ledger_head, effect, worker, consumer_cursor TO decklog_writer",
    "REVOKE ALL ON FUNCTION decklog_create_partitions() FROM PUBLIC",
    "GRANT EXECUTE ON FUNCTION decklog_create_partitions() TO decklog_writer",
)

_TRIGGERS = tuple(
    f"""
    CREATE TRIGGER {table}_refuse_{verb} BEFORE {verb} ON {table}
    BEGIN
        SELECT RAISE(ABORT, 'cannot {verb} table {table}: history is insert-only');
    END
    """
    for table in ("tick", "decision")
    for verb in ("update", "delete")
)

# What ANALYZE would find in a store of a million decisions. Without it the planner takes a stream
# for a handful of rows and walks whole tables; and an empty store has nothing to analyse.
_STATISTICS = (
    "ANALYZE",
    "DELETE FROM sqlite_stat1",
    """
    INSERT INTO sqlite_stat1 (tbl, idx, stat)
    VALUES ('tick', 'sqlite_autoindex_tick_1', '1000000 1000000 1'),
           ('decision', 'sqlite_autoindex_decision_1', '1000000 1000000 1'),
           ('decision', 'decision_by_pod_uid', '1000000 1000000 5 1'),
           ('decision', 'decision_by_name', '1000000 1000000 50000 5 1'),
           ('decision', 'decision_closes', '10000 10000 1'),
           ('effect', 'effect', '1000000 1000000 1 1'),
           ('effect', 'effect_pending', '1000 1000 1 1'),
           ('effect', 'effect_held', '1000 1000 500 1 1'),
           ('effect', 'effect_unpublished', '1000 1000 1 1')
    """,
)

SQLITE = (*_TRIGGERS, *_STATISTICS)
