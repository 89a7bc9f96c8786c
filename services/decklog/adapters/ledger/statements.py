"""Every statement of the ledger that is not a plain insert, by who uses it.

`:name` is a parameter, `instant(x)` now and x seconds (`store.py`). Where a batch goes in as one
parameter it is arrays on PostgreSQL and one JSON text on SQLite.
"""

from functools import cache
from typing import Final

from decklog.adapters.ledger.store import Statement, both, each

_EFFECT: Final = (
    "seq, n, kind, pod_uid, state, owner, attempts, outcome, outcome_published, late_outcome,"
    " next_check_at"
)
_E_EFFECT: Final = ", ".join(f"e.{column}" for column in _EFFECT.split(", "))
_DECISION: Final = (
    "seq, tick, generation, kind, pod_uid, namespace, pod, node, reason, closes_seq, now_ms,"
    " payload, hash, decided_at"
)
_HEAD: Final = "stream, generation, tick, tick_hash, seq, seq_hash, cursor, now_ms, holder"

# --- the leader -----------------------------------------------------------------------------------

# A stream that nobody has led yet: position -1 is before the first one, the epoch is long ago.
BEGIN_STREAM: Final = both(
    """
    INSERT INTO ledger_head (stream, generation, tick, tick_hash, seq, seq_hash, cursor, now_ms,
                             holder, heartbeat_at)
    VALUES (:stream, 0, 0, :zero, 0, :zero, -1, 0, '', '1970-01-01 00:00:00.000+00:00')
        ON CONFLICT DO NOTHING
    """
)

# The next generation, unless another leader's heart beats. The row lock waits for the old leader's
# open commit, so nothing of an older generation lands after this one exists.
TAKE_OVER: Final = each(
    sqlite=f"""
    UPDATE ledger_head
       SET generation = max(generation, :elected) + 1, holder = :holder, heartbeat_at = instant(0)
     WHERE stream = :stream AND (heartbeat_at < instant(-:ttl) OR holder = :holder)
    RETURNING {_HEAD}
    """,
    postgresql=f"""
    UPDATE ledger_head
       SET generation = GREATEST(generation, :elected) + 1, holder = :holder,
           heartbeat_at = instant(0)
     WHERE stream = :stream AND (heartbeat_at < instant(-:ttl) OR holder = :holder)
    RETURNING {_HEAD}
    """,
)

# The fence: no row means that another generation leads, or that this very tick is already here.
ADVANCE_HEAD: Final = both(
    """
    UPDATE ledger_head
       SET tick = :tick, tick_hash = :tick_hash, seq = :seq, seq_hash = :seq_hash,
           cursor = :cursor, now_ms = :now_ms
     WHERE stream = :stream AND generation = :generation AND tick = :tick - 1
    """
)

# The leader's heartbeat: liveness only, never the cursor.
BEAT_LEADER: Final = both(
    """
    UPDATE ledger_head SET heartbeat_at = instant(0)
     WHERE stream = :stream AND generation = :generation
    """
)

# A clean stop: the next leader need not wait.
RESIGN: Final = both(
    """
    UPDATE ledger_head SET heartbeat_at = '1970-01-01 00:00:00.000+00:00'
     WHERE stream = :stream AND generation = :generation
    """
)

PUT_CONFIG: Final = both(
    """
    INSERT INTO config_version (config_hash, body) VALUES (:config_hash, :body)
        ON CONFLICT DO NOTHING
    """
)

# Two subselects, because each then reads its own small index.
UNFINISHED_EFFECTS: Final = both(
    """
    SELECT (SELECT count(*) FROM (SELECT 1 FROM effect WHERE stream = :stream
                                     AND state = 'pending' LIMIT :limit) AS p)
         + (SELECT count(*) FROM (SELECT 1 FROM effect WHERE stream = :stream
                                     AND state IN ('claimed', 'unknown') LIMIT :limit) AS h)
    """
)

CREATE_PARTITIONS: Final = both("SELECT decklog_create_partitions()")

# --- binders --------------------------------------------------------------------------------------

BEAT_WORKER: Final = both(
    """
    INSERT INTO worker (stream, owner, kind, heartbeat_at)
    VALUES (:stream, :owner, :kind, instant(0))
        ON CONFLICT (stream, owner) DO UPDATE
       SET kind = excluded.kind, heartbeat_at = excluded.heartbeat_at
    """
)

# A forged, foreign or already claimed decision finds no row. On PostgreSQL, here and below, BETWEEN
# keeps every row of the batch. It is there for the planner, who then expects few and looks each up
# by its key; otherwise, on a table that was never analysed, it walks over a whole stream.
CLAIM: Final = each(
    sqlite=f"""
    WITH want AS (SELECT json_extract(value, '$[0]') AS seq, json_extract(value, '$[1]') AS hash
                    FROM json_each(:want))
    UPDATE effect
       SET state = 'claimed', owner = :owner, claimed_at = instant(0), attempts = attempts + 1
      FROM want JOIN decision d ON d.stream = :stream AND d.seq = want.seq
                               AND hex(d.hash) = want.hash
     WHERE effect.stream = :stream AND effect.seq = want.seq AND effect.state = 'pending'
    RETURNING {_EFFECT}
    """,
    postgresql=f"""
    WITH want AS (SELECT * FROM unnest(:seqs::bigint[], :hashes::bytea[]) AS w (seq, hash)
                   WHERE w.seq BETWEEN :lo AND :hi)
    UPDATE effect e
       SET state = 'claimed', owner = :owner, claimed_at = instant(0), attempts = e.attempts + 1
      FROM want w, decision d
     WHERE d.stream = :stream AND d.seq = w.seq AND d.hash = w.hash
       AND e.stream = :stream AND e.seq = w.seq AND e.state = 'pending'
    RETURNING {_E_EFFECT}
    """,
)

# What is pending and came by no message. Several sweepers pass over each other's rows.
SWEEP: Final = each(
    sqlite=f"""
    UPDATE effect
       SET state = 'claimed', owner = :owner, claimed_at = instant(0), attempts = attempts + 1
     WHERE (stream, seq, n) IN (SELECT stream, seq, n FROM effect
                                 WHERE stream = :stream AND state = 'pending' AND seq <= :seq_last
                                 ORDER BY seq, n LIMIT :limit)
    RETURNING {_EFFECT}
    """,
    postgresql=f"""
    WITH swept AS (SELECT seq, n FROM effect
                    WHERE stream = :stream AND state = 'pending' AND seq <= :seq_last
                    ORDER BY seq, n LIMIT :limit FOR UPDATE SKIP LOCKED)
    UPDATE effect e
       SET state = 'claimed', owner = :owner, claimed_at = instant(0), attempts = e.attempts + 1
      FROM swept s
     WHERE e.stream = :stream AND e.seq = s.seq AND e.n = s.n
    RETURNING {_E_EFFECT}
    """,
)

# Our own, and those of owners whose heart stopped; theirs first, or ours would fill the limit.
ADOPT: Final = each(
    sqlite=f"""
    UPDATE effect SET owner = :owner, claimed_at = instant(0), attempts = attempts + 1
     WHERE (stream, seq, n) IN
           (SELECT e.stream, e.seq, e.n FROM effect e
             WHERE e.stream = :stream AND e.state IN ('claimed', 'unknown')
               AND (e.owner = :owner
                    OR NOT EXISTS (SELECT 1 FROM worker w
                                    WHERE w.stream = e.stream AND w.owner = e.owner
                                      AND w.heartbeat_at >= instant(-:ttl)))
             ORDER BY e.owner = :owner, e.seq, e.n LIMIT :limit)
    RETURNING {_EFFECT}
    """,
    postgresql=f"""
    WITH found AS (SELECT e.seq, e.n, e.owner FROM effect e
                    WHERE e.stream = :stream AND e.state IN ('claimed', 'unknown')
                      AND (e.owner = :owner
                           OR NOT EXISTS (SELECT 1 FROM worker w
                                           WHERE w.stream = e.stream AND w.owner = e.owner
                                             AND w.heartbeat_at >= instant(-:ttl)))
                    ORDER BY e.owner = :owner, e.seq, e.n LIMIT :limit
                      FOR UPDATE OF e SKIP LOCKED)
    UPDATE effect e SET owner = :owner, claimed_at = instant(0), attempts = e.attempts + 1
      FROM found f
     WHERE e.stream = :stream AND e.seq = f.seq AND e.n = f.n AND e.owner = f.owner
    RETURNING {_E_EFFECT}
    """,
)

DUE: Final = both(
    f"""
    SELECT {_EFFECT} FROM effect
     WHERE stream = :stream AND owner = :owner AND state IN ('claimed', 'unknown')
       AND next_check_at <= instant(0)
     ORDER BY next_check_at, seq, n LIMIT :limit
    """
)

# A repeated final update changes nothing and counts as ours: the first reply may have been lost.
# An outcome of a bind whose assume was closed meanwhile is kept a second time, as late.
_FINISH: Final = """
    SET state = g.state, outcome = g.outcome,
        attempts = {e}attempts + CASE WHEN g.state IN ('claimed', 'unknown') THEN 1 ELSE 0 END,
        outcome_published = CASE WHEN {e}state NOT IN ('claimed', 'unknown')
                                 THEN {e}outcome_published
                                 ELSE {e}outcome_published AND NOT g.publish END,
        next_check_at = instant(g.next_check),
        late_outcome = CASE WHEN {e}kind = 'bind' AND g.state NOT IN ('claimed', 'unknown')
                             AND EXISTS (SELECT 1 FROM decision c
                                          WHERE c.stream = :stream AND c.closes_seq = g.seq
                                            AND c.seq > g.seq)
                            THEN g.outcome ELSE {e}late_outcome END
"""
_STILL_OURS: Final = """
       AND {e}owner = :owner AND ({e}state IN ('claimed', 'unknown')
                                  OR {e}state = g.state AND {e}outcome = g.outcome)
"""
FINISH: Final = each(
    sqlite=f"""
    WITH given AS (SELECT json_extract(value, '$[0]') AS seq, json_extract(value, '$[1]') AS n,
                          json_extract(value, '$[2]') AS state,
                          json_extract(value, '$[3]') AS outcome,
                          json_extract(value, '$[4]') AS publish,
                          json_extract(value, '$[5]') AS next_check
                     FROM json_each(:given))
    UPDATE effect {_FINISH.format(e="effect.")}
      FROM given g
     WHERE effect.stream = :stream AND effect.seq = g.seq AND effect.n = g.n
    {_STILL_OURS.format(e="effect.")}
    RETURNING seq, n
    """,
    postgresql=f"""
    WITH given AS (SELECT * FROM unnest(:seqs::bigint[], :ns::integer[], :states::text[],
                                        :outcomes::text[], :publish::boolean[],
                                        :next_checks::double precision[])
                              AS g (seq, n, state, outcome, publish, next_check)
                    WHERE g.seq BETWEEN :lo AND :hi)
    UPDATE effect e {_FINISH.format(e="e.")}
      FROM given g
     WHERE e.stream = :stream AND e.seq = g.seq AND e.n = g.n
    {_STILL_OURS.format(e="e.")}
    RETURNING e.seq, e.n
    """,
)

# Ours, and what an owner whose heart stopped left behind: otherwise nobody would publish it.
UNPUBLISHED: Final = both(
    f"""
    SELECT {_E_EFFECT} FROM effect e
     WHERE e.stream = :stream AND NOT e.outcome_published
       AND (e.owner = :owner
            OR NOT EXISTS (SELECT 1 FROM worker w
                            WHERE w.stream = e.stream AND w.owner = e.owner
                              AND w.heartbeat_at >= instant(-:ttl)))
     ORDER BY e.seq, e.n LIMIT :limit
    """
)

# Only the outcome that was published: a final one that came meanwhile stays to be published.
PUBLISHED: Final = each(
    sqlite="""
    WITH given AS (SELECT json_extract(value, '$[0]') AS seq, json_extract(value, '$[1]') AS n,
                          json_extract(value, '$[2]') AS state,
                          json_extract(value, '$[3]') AS outcome
                     FROM json_each(:given))
    UPDATE effect SET outcome_published = true
      FROM given g
     WHERE effect.stream = :stream AND effect.seq = g.seq AND effect.n = g.n
       AND effect.state = g.state AND effect.outcome = g.outcome
    """,
    postgresql="""
    WITH given AS (SELECT * FROM unnest(:seqs::bigint[], :ns::integer[], :states::text[],
                                        :outcomes::text[]) AS g (seq, n, state, outcome)
                    WHERE g.seq BETWEEN :lo AND :hi)
    UPDATE effect e SET outcome_published = true
      FROM given g
     WHERE e.stream = :stream AND e.seq = g.seq AND e.n = g.n
       AND e.state = g.state AND e.outcome = g.outcome
    """,
)

SUPERSEDED: Final = each(
    sqlite="""
    SELECT json_extract(value, '$[0]') AS seq, json_extract(value, '$[1]') AS pod_uid
      FROM json_each(:given)
     WHERE EXISTS (SELECT 1 FROM decision d
                    WHERE d.stream = :stream AND d.pod_uid = json_extract(value, '$[1]')
                      AND d.seq > json_extract(value, '$[0]'))
    """,
    postgresql="""
    SELECT g.seq, g.pod_uid
      FROM unnest(:seqs::bigint[], :pod_uids::text[]) AS g (seq, pod_uid)
     WHERE EXISTS (SELECT 1 FROM decision d
                    WHERE d.stream = :stream AND d.pod_uid = g.pod_uid AND d.seq > g.seq)
    """,
)

# --- the auditor ----------------------------------------------------------------------------------

PUT_ANCHOR: Final = both(
    """
    INSERT INTO anchor (stream, chain, number, hash, now_ms)
    VALUES (:stream, :chain, :number, :hash, :now_ms) ON CONFLICT DO NOTHING
    """
)

PUT_DIVERGENCE: Final = both(
    """
    INSERT INTO divergence (stream, tick, seq, want, got, found_at)
    VALUES (:stream, :tick, :seq, :want, :got, instant(0)) ON CONFLICT DO NOTHING
    """
)

PUT_DEAD_LETTER: Final = both(
    """
    INSERT INTO dead_letter (stream, topic, position, error, code_version, body, created_at)
    VALUES (:stream, :topic, :position, :error, :code_version, :body, instant(0))
        ON CONFLICT DO NOTHING
    """
)

# A cursor never goes back: a slower auditor's older one is a duplicate.
MOVE_CURSOR: Final = both(
    """
    INSERT INTO consumer_cursor AS c (stream, consumer, position, tick, seq)
    VALUES (:stream, :consumer, :position, :tick, :seq)
        ON CONFLICT (stream, consumer) DO UPDATE
       SET position = excluded.position, tick = excluded.tick, seq = excluded.seq
     WHERE c.tick <= excluded.tick
    """
)

# --- readers --------------------------------------------------------------------------------------

STREAMS: Final = both("SELECT stream FROM ledger_head ORDER BY stream")
HEAD: Final = both(f"SELECT {_HEAD} FROM ledger_head WHERE stream = :stream")
TICKS: Final = both(
    """
    SELECT tick, generation, cursor, now_ms, cycles, config_hash, rules, seq, payload, hash
      FROM tick WHERE stream = :stream AND tick > :after ORDER BY tick LIMIT :limit
    """
)
DECISIONS: Final = both(
    f"""
    SELECT {_DECISION} FROM decision
     WHERE stream = :stream AND seq > :after ORDER BY seq LIMIT :limit
    """
)
EFFECTS: Final = both(
    f"""
    SELECT {_EFFECT} FROM effect
     WHERE stream = :stream AND seq BETWEEN :lo AND :hi ORDER BY seq, n
    """
)
OPEN_ASSUMES: Final = both(
    f"SELECT {_DECISION} FROM open_assumes WHERE stream = :stream ORDER BY seq"
)
CONFIG: Final = both("SELECT body FROM config_version WHERE config_hash = :config_hash")
CONFIGS: Final = both("SELECT config_hash, body FROM config_version ORDER BY config_hash")
ANCHORS: Final = both(
    """
    SELECT chain, number, hash, now_ms FROM anchor WHERE stream = :stream ORDER BY chain, number
    """
)
DIVERGENCES: Final = both(
    """
    SELECT tick, seq, want, got FROM divergence WHERE stream = :stream
     ORDER BY tick, seq LIMIT :limit
    """
)
CONSUMER_CURSOR: Final = both(
    """
    SELECT position, tick, seq FROM consumer_cursor
     WHERE stream = :stream AND consumer = :consumer
    """
)


@cache
def select_decisions(columns: tuple[str, ...], *, newest_first: bool) -> Statement:
    """Return the statement that compares these columns with parameters of the same names."""
    conditions = "".join(f" AND {column} = :{column}" for column in columns)
    order = "DESC" if newest_first else "ASC"
    return both(
        f"SELECT {_DECISION} FROM decision"
        f" WHERE stream = :stream AND seq BETWEEN :lo AND :hi{conditions}"
        f" ORDER BY seq {order} LIMIT :limit"
    )
