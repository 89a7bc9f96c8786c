"""The promises of the ledger port, on SQLite and PostgreSQL alike."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest

from decklog.adapters.ledger.heart import STEP_SECONDS_MAX
from decklog.adapters.ledger.sql import SqlLedger
from decklog.core.errors import Deposed, LedgerUnavailable, Refused
from decklog.ports.ledger import (
    ZERO_HASH,
    Anchor,
    DeadLetter,
    DecisionFilter,
    Divergence,
    Effect,
    EffectKind,
    EffectState,
    EffectUpdate,
    Head,
)
from tests.contract.ledgers import (
    AT_ONCE,
    STREAM,
    Decided,
    Ledgers,
    after,
    check_history,
    decide,
    lead,
    make_tick,
    names,
    wait_for,
)

TICKS: Final = 60
TICKS_IN_A_ROW: Final = 10
"""For all leaders of the contention test together."""
MANY: Final = 40
"""Decisions of a tick that goes in by COPY."""
BEAT: Final = timedelta(milliseconds=30)


def finished(
    effect: Effect, state: EffectState, outcome: str = "{}", *, publish: bool = True
) -> EffectUpdate:
    return EffectUpdate(seq=effect.seq, n=effect.n, state=state, outcome=outcome, publish=publish)


# --- the leader


def test_an_empty_ledger_has_no_stream(ledger: SqlLedger) -> None:
    assert list(ledger.streams()) == []
    assert ledger.head(STREAM) is None
    assert list(ledger.ticks(STREAM, after=0, limit=10)) == []
    assert list(ledger.open_assumes(STREAM)) == []


def test_the_first_leader_begins_with_generation_1_before_position_0(ledger: SqlLedger) -> None:
    want = Head(
        stream=STREAM,
        generation=1,
        tick=0,
        tick_hash=ZERO_HASH,
        seq=0,
        seq_hash=ZERO_HASH,
        cursor=-1,
        now_ms=0,
        holder="a",
    )
    assert ledger.take_over(STREAM, holder="a") == want
    assert ledger.head(STREAM) == want
    assert list(ledger.streams()) == [STREAM]


def test_nobody_takes_over_while_another_heart_beats(ledgers: Ledgers, ledger: SqlLedger) -> None:
    lead(ledger)
    assert ledgers.open().take_over(STREAM, holder="b") is None


def test_the_holder_itself_may_take_over_again(ledger: SqlLedger) -> None:
    lead(ledger)
    assert lead(ledger, ttl=timedelta(hours=1)).generation == 2


def test_the_next_generation_is_above_the_one_that_was_announced(ledger: SqlLedger) -> None:
    head = ledger.take_over(STREAM, holder="a", elected=7)
    assert head is not None
    assert head.generation == 8


def test_after_resigning_the_next_leader_begins_at_once(
    ledgers: Ledgers, ledger: SqlLedger
) -> None:
    head = lead(ledger)
    ledger.resign(STREAM, generation=head.generation)
    next_head = ledgers.open().take_over(STREAM, holder="b")
    assert next_head is not None
    assert next_head.generation == 2


def test_only_the_generation_that_leads_can_resign(ledgers: Ledgers, ledger: SqlLedger) -> None:
    old = lead(ledger)
    lead(ledger, holder="b")
    ledger.resign(STREAM, generation=old.generation)
    assert ledgers.open().take_over(STREAM, holder="c") is None


def test_streams_share_nothing(ledger: SqlLedger) -> None:
    lead(ledger)
    other = ledger.take_over("us1", holder="b")
    assert other is not None
    ledger.commit(make_tick(other, [Decided()]))
    assert list(ledger.streams()) == [STREAM, "us1"]
    assert list(ledger.decisions(STREAM, after=0, limit=10)) == []
    assert len(ledger.decisions("us1", after=0, limit=10)) == 1


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(0, id="a tick without decisions"),
        pytest.param(1, id="one decision"),
        pytest.param(MANY, id="so many that they are copied"),
    ],
)
def test_what_is_committed_is_read_back(ledger: SqlLedger, count: int) -> None:
    head = lead(ledger)
    commit = make_tick(head, [Decided(reason="why", node=None)] * count)
    ledger.commit(commit)
    assert ledger.head(STREAM) == after(head, commit)
    assert list(ledger.ticks(STREAM, after=0, limit=10)) == [commit.tick]
    rows = ledger.decisions(STREAM, after=0, limit=MANY)
    assert all(row.decided_at is not None for row in rows)
    assert [replace(row, decided_at=None) for row in rows] == list(commit.decisions)
    effects = ledger.effects(STREAM, seq_first=1, seq_last=count)
    assert [(each.seq, each.n, each.kind) for each in effects] == [
        (new.seq, new.n, new.kind) for new in commit.effects
    ]
    assert all(
        each.state is EffectState.PENDING and each.outcome_published and each.attempts == 0
        for each in effects
    )
    check_history(ledger)


def test_a_tick_that_fails_in_the_middle_leaves_nothing(ledger: SqlLedger) -> None:
    head = lead(ledger)
    good = make_tick(head, [Decided()] * 2)
    twice = replace(good, decisions=[good.decisions[0], good.decisions[0]])
    with pytest.raises(Exception, match=r"(?i)unique"):
        ledger.commit(twice)
    assert ledger.head(STREAM) == head
    ledger.commit(good)
    check_history(ledger)


def test_the_same_tick_again_is_done_already(ledger: SqlLedger) -> None:
    head = lead(ledger)
    commit = make_tick(head, [Decided()])
    ledger.commit(commit)
    ledger.commit(commit)
    assert len(check_history(ledger)[1]) == 1


def test_the_same_tick_again_is_done_also_when_somebody_else_leads_now(ledger: SqlLedger) -> None:
    commit = make_tick(lead(ledger), [Decided()])
    ledger.commit(commit)
    lead(ledger, holder="b")
    ledger.commit(commit)
    assert len(check_history(ledger)[1]) == 1


def test_another_tick_of_the_same_number_is_refused(ledger: SqlLedger) -> None:
    head = lead(ledger)
    ledger.commit(make_tick(head, [Decided()]))
    with pytest.raises(Deposed):
        ledger.commit(make_tick(head, [Decided()], salt="another"))
    assert len(check_history(ledger)[1]) == 1


def test_a_deposed_leader_commits_nothing(ledger: SqlLedger) -> None:
    old = lead(ledger, holder="a")
    new = lead(ledger, holder="b")
    with pytest.raises(Deposed, match=r"in generation 1: the ledger is at 2$"):
        ledger.commit(make_tick(old, [Decided()]))
    ledger.commit(make_tick(new, [Decided()]))
    decisions = ledger.decisions(STREAM, after=0, limit=10)
    assert [row.generation for row in decisions] == [new.generation]


def test_a_stream_that_nobody_leads_takes_no_tick(ledger: SqlLedger) -> None:
    head = replace(lead(ledger), stream="never led")
    with pytest.raises(Deposed):
        ledger.commit(make_tick(head, [Decided()]))


def test_contending_leaders_write_one_dense_history(ledgers: Ledgers) -> None:
    """Three leaders take over from each other all the time, with ticks of both kinds of insert."""
    committed = threading.Semaphore(TICKS)
    elected = threading.Barrier(3)
    deposed: list[Deposed] = []

    def rule(holder: str) -> None:
        ledger = ledgers.open()
        head = _take_over(ledger, holder)
        elected.wait()  # Whoever was elected first and second will find out that it is deposed.
        while True:
            try:
                for _ in range(TICKS_IN_A_ROW):
                    if not committed.acquire(blocking=False):
                        return
                    commit = make_tick(head, [Decided()] * (head.tick % 15))
                    _insist(ledger, commit)
                    head = after(head, commit)
            except Deposed as error:
                deposed.append(error)
            head = _take_over(ledger, holder)

    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(rule, holder) for holder in "abc"]:
            done.result()
    ticks, _ = check_history(ledgers.open())
    assert deposed
    assert len(ticks) == TICKS - len(deposed)
    assert len({tick.generation for tick in ticks}) > 1


def _take_over(ledger: SqlLedger, holder: str) -> Head:
    while True:
        try:
            return lead(ledger, holder=holder)
        except (LedgerUnavailable, AssertionError):
            pass


def _insist(ledger: SqlLedger, commit: object) -> None:
    while True:
        try:
            ledger.commit(commit)  # type: ignore[arg-type]
        except LedgerUnavailable:
            continue
        return


def test_the_leaders_heart_beats_by_itself(ledgers: Ledgers) -> None:
    ledger = ledgers.open(beat_interval=BEAT)
    lead(ledger)
    first = ledgers.heartbeat()
    wait_for(lambda: bool(ledgers.heartbeat() > first))


def test_the_leaders_heart_stops_while_its_step_hangs(ledgers: Ledgers) -> None:
    ledger = ledgers.open()
    lead(ledger)
    ledgers.clock.shift_ms += STEP_SECONDS_MAX * 1000 + 1
    last = ledgers.heartbeat()
    ledger.beat()
    assert ledgers.heartbeat() == last
    ledger.alive()
    ledger.beat()
    assert ledgers.heartbeat() > last


def test_a_deposed_leaders_heart_does_not_beat_for_the_new_one(ledgers: Ledgers) -> None:
    old = ledgers.open()
    lead(old, holder="a")
    lead(ledgers.open(), holder="b")
    last = ledgers.heartbeat()
    old.beat()
    assert ledgers.heartbeat() == last


def test_a_beat_that_cannot_be_written_is_given_up(ledgers: Ledgers) -> None:
    ledger = ledgers.open()
    lead(ledger)
    with ledgers.holding_the_head(), pytest.raises(LedgerUnavailable):
        ledger.beat()
    ledger.beat()


@pytest.mark.parametrize(
    ("revision", "readable_from", "want"),
    [
        pytest.param("9999", "9999", "from code revision 9999 on", id="too new"),
        pytest.param("0000", "0000", "this version needs 0001", id="too old"),
        pytest.param(None, None, "no schema yet", id="none"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(
    ledgers: Ledgers, revision: str | None, readable_from: str | None, want: str
) -> None:
    ledgers.set_revision(revision, readable_from)
    with pytest.raises(Refused, match=want):
        lead(ledgers.open())


def test_a_newer_schema_that_this_code_can_use_is_used(ledgers: Ledgers) -> None:
    ledgers.set_revision("9999", "0001")
    lead(ledgers.open())


def test_a_configuration_is_stored_once(ledger: SqlLedger) -> None:
    assert ledger.config("c1") is None
    ledger.put_config("c1", b"\x00one")
    ledger.put_config("c1", b"another")
    ledger.put_config("c2", b"two")
    assert ledger.config("c1") == b"\x00one"
    assert list(ledger.configs()) == [("c1", b"\x00one"), ("c2", b"two")]


# --- binders


def test_a_claim_takes_each_effect_once(ledger: SqlLedger) -> None:
    commit = decide(ledger, [Decided()] * 3)
    claimed = ledger.claim(STREAM, owner="b1", decisions=names(commit))
    assert [(each.seq, each.n, each.owner, each.state) for each in claimed] == [
        (seq, 0, "b1", EffectState.CLAIMED) for seq in (1, 2, 3)
    ]
    assert list(ledger.claim(STREAM, owner="b2", decisions=names(commit))) == []
    assert list(ledger.claim(STREAM, owner="b2", decisions=[])) == []


def test_a_claim_takes_all_effects_of_a_decision_in_order(ledger: SqlLedger) -> None:
    kinds = (EffectKind.VICTIM, EffectKind.VICTIM, EffectKind.STATUS)
    commit = decide(ledger, [Decided(kind="VictimsSelected", effects=kinds)])
    claimed = ledger.claim(STREAM, owner="b1", decisions=names(commit))
    assert [(each.n, each.kind) for each in claimed] == list(enumerate(kinds))


@pytest.mark.parametrize(
    "forge",
    [
        pytest.param(lambda seq, hash_: (seq, bytes(32)), id="another hash"),
        pytest.param(lambda seq, hash_: (seq + 1, hash_), id="the hash of another seq"),
        pytest.param(lambda seq, hash_: (seq + 100, hash_), id="a seq that does not exist"),
    ],
)
def test_a_forged_decision_claims_nothing(ledger: SqlLedger, forge: object) -> None:
    commit = decide(ledger, [Decided()] * 2)
    assert callable(forge)
    assert list(ledger.claim(STREAM, owner="b1", decisions=[forge(*names(commit)[0])])) == []


def test_a_decision_of_another_stream_claims_nothing(ledger: SqlLedger) -> None:
    commit = decide(ledger, [Decided()])
    assert list(ledger.claim("us1", owner="b1", decisions=names(commit))) == []


def test_many_binders_take_each_effect_once(ledgers: Ledgers, ledger: SqlLedger) -> None:
    """Two hear of every decision, two sweep, and forged ones are among what is heard."""
    commit = decide(ledger, [Decided()] * 200)
    heard = [name for seq, hash_ in names(commit) for name in ((seq, hash_), (seq, bytes(32)))]

    def hear(owner: str) -> list[Effect]:
        mine = ledgers.open()
        return [
            effect
            for first in range(0, len(heard), 50)
            for effect in mine.claim(STREAM, owner=owner, decisions=heard[first : first + 50])
        ]

    def sweep(owner: str) -> list[Effect]:
        mine, swept = ledgers.open(), list[Effect]()
        while found := mine.sweep(STREAM, owner=owner, seq_last=180, limit=7):
            swept += found
        return swept

    with ThreadPoolExecutor() as pool:
        tasks = [(hear, "b1"), (hear, "b2"), (sweep, "b3"), (sweep, "b4")]
        taken = [
            effect
            for task in [pool.submit(work, owner) for work, owner in tasks]
            for effect in task.result()
        ]
    assert sorted(each.seq for each in taken) == list(range(1, 201))
    stored = ledger.effects(STREAM, seq_first=1, seq_last=200)
    assert {each.seq: each.owner for each in stored} == {each.seq: each.owner for each in taken}


def test_a_sweep_takes_the_oldest_up_to_its_seq(ledger: SqlLedger) -> None:
    decide(ledger, [Decided()] * 5)
    swept = ledger.sweep(STREAM, owner="b1", seq_last=4, limit=3)
    assert [each.seq for each in swept] == [1, 2, 3]
    swept = ledger.sweep(STREAM, owner="b1", seq_last=4, limit=3)
    assert [each.seq for each in swept] == [4]


def test_effects_of_a_dead_worker_are_taken_over_once(ledgers: Ledgers, ledger: SqlLedger) -> None:
    commit = decide(ledger, [Decided()] * 3)
    ledger.work_as(STREAM, owner="dead", kind="binder")
    claimed = ledger.claim(STREAM, owner="dead", decisions=names(commit))
    ledger.finish(
        STREAM,
        owner="dead",
        updates=[
            finished(claimed[0], EffectState.UNKNOWN),
            finished(claimed[1], EffectState.DONE),
        ],
    )
    assert list(ledger.adopt(STREAM, owner="b2", limit=10)) == []
    ledgers.stop_heart("dead")
    ledger.work_as(STREAM, owner="b2", kind="binder")
    adopted = ledger.adopt(STREAM, owner="b2", limit=10)
    assert [(each.seq, each.owner, each.state) for each in adopted] == [
        (1, "b2", EffectState.UNKNOWN),
        (3, "b2", EffectState.CLAIMED),
    ]
    assert list(ledger.adopt(STREAM, owner="b3", limit=10)) == []


def test_adopting_again_returns_our_own_again_after_those_of_others(
    ledgers: Ledgers, ledger: SqlLedger
) -> None:
    commit = decide(ledger, [Decided()] * 4)
    for owner in ("dead", "b2"):
        ledger.work_as(STREAM, owner=owner, kind="binder")
    ledger.claim(STREAM, owner="b2", decisions=names(commit)[:2])
    ledger.claim(STREAM, owner="dead", decisions=names(commit)[2:])
    ledgers.stop_heart("dead")
    assert [each.seq for each in ledger.adopt(STREAM, owner="b2", limit=2)] == [3, 4]
    assert [each.seq for each in ledger.adopt(STREAM, owner="b2", limit=9)] == [1, 2, 3, 4]


def test_many_binders_adopt_each_effect_once(ledgers: Ledgers, ledger: SqlLedger) -> None:
    commit = decide(ledger, [Decided()] * 60)
    ledger.claim(STREAM, owner="never seen", decisions=names(commit))

    def adopt(owner: str) -> list[int]:
        mine = ledgers.open()
        mine.work_as(STREAM, owner=owner, kind="binder")
        return [each.seq for each in mine.adopt(STREAM, owner=owner, limit=60)]

    with ThreadPoolExecutor() as pool:
        taken = [seq for seqs in pool.map(adopt, ["b1", "b2", "b3"]) for seq in seqs]
    assert sorted(taken) == list(range(1, 61))


def test_the_workers_heart_beats_by_itself(ledgers: Ledgers) -> None:
    ledger = ledgers.open(beat_interval=BEAT)
    ledger.work_as(STREAM, owner="b1", kind="binder")
    ledgers.stop_heart("b1")
    query = "SELECT 1 FROM worker WHERE owner = 'b1' AND heartbeat_at > '2000-01-01'"
    wait_for(lambda: len(ledgers.execute(query)) == 1)


def test_what_is_put_off_is_due_when_its_time_has_come(ledger: SqlLedger) -> None:
    commit = decide(ledger, [Decided()] * 3)
    now, later, never = ledger.claim(STREAM, owner="b1", decisions=names(commit))
    waiting = EffectState.CLAIMED
    updates = [
        replace(finished(now, waiting, publish=False), next_check=AT_ONCE),
        replace(finished(later, waiting, publish=False), next_check=timedelta(hours=1)),
        finished(never, waiting, publish=False),
    ]
    ledger.finish(STREAM, owner="b1", updates=updates)
    assert [each.seq for each in ledger.due(STREAM, owner="b1", limit=10)] == [now.seq]
    assert list(ledger.due(STREAM, owner="b2", limit=10)) == []
    stored = ledger.effects(STREAM, seq_first=later.seq, seq_last=later.seq)
    assert stored[0].next_check_at is not None
    assert stored[0].attempts == 2


def test_only_the_owner_finishes_and_only_once(ledger: SqlLedger) -> None:
    commit = decide(ledger, [Decided()] * 2)
    mine, other = ledger.claim(STREAM, owner="b1", decisions=names(commit))
    done = finished(mine, EffectState.DONE, "bound")
    assert list(ledger.finish(STREAM, owner="b2", updates=[done])) == []
    assert list(ledger.finish(STREAM, owner="b1", updates=[done])) == [(mine.seq, 0)]
    contradiction = finished(mine, EffectState.REJECTED, "gone")
    assert list(ledger.finish(STREAM, owner="b1", updates=[contradiction])) == []
    stored = ledger.effects(STREAM, seq_first=1, seq_last=2)
    assert [(each.state, each.outcome) for each in stored] == [
        (EffectState.DONE, "bound"),
        (EffectState.CLAIMED, None),
    ]
    assert list(ledger.finish(STREAM, owner="b1", updates=[])) == []
    assert other.state is EffectState.CLAIMED


def test_the_same_final_update_again_counts_and_changes_nothing(ledger: SqlLedger) -> None:
    commit = decide(ledger, [Decided()])
    (effect,) = ledger.claim(STREAM, owner="b1", decisions=names(commit))
    done = finished(effect, EffectState.DONE)
    ledger.finish(STREAM, owner="b1", updates=[done])
    ledger.published(STREAM, effects=ledger.unpublished(STREAM, owner="b1", limit=10))
    assert list(ledger.finish(STREAM, owner="b1", updates=[done])) == [(effect.seq, 0)]
    assert list(ledger.unpublished(STREAM, owner="b1", limit=10)) == []


def test_an_effect_that_was_taken_over_is_no_longer_ours(
    ledgers: Ledgers, ledger: SqlLedger
) -> None:
    commit = decide(ledger, [Decided()])
    (effect,) = ledger.claim(STREAM, owner="b1", decisions=names(commit))
    ledger.adopt(STREAM, owner="b2", limit=10)
    done = finished(effect, EffectState.DONE)
    assert list(ledger.finish(STREAM, owner="b1", updates=[done])) == []


def test_a_bind_that_ends_after_its_assume_was_closed_is_late(ledger: SqlLedger) -> None:
    commit = decide(ledger, [Decided(pod="late"), Decided(pod="timely")])
    late, timely = ledger.claim(STREAM, owner="b1", decisions=names(commit))
    closing = Decided(kind="PodUnreserved", pod="late", closes_seq=late.seq, effects=())
    decide(ledger, [closing])
    updates = [finished(each, EffectState.DONE, "bound") for each in (late, timely)]
    assert len(ledger.finish(STREAM, owner="b1", updates=updates)) == 2
    stored = ledger.effects(STREAM, seq_first=1, seq_last=2)
    assert [(each.outcome, each.late_outcome) for each in stored] == [
        ("bound", "bound"),
        ("bound", None),
    ]


def test_an_outcome_is_unpublished_until_it_was_published(ledger: SqlLedger) -> None:
    commit = decide(ledger, [Decided(), Decided(effects=(EffectKind.STATUS,))])
    bind, status = ledger.claim(STREAM, owner="b1", decisions=names(commit))
    updates = [
        finished(bind, EffectState.DONE),
        finished(status, EffectState.DONE, publish=False),
    ]
    ledger.finish(STREAM, owner="b1", updates=updates)
    found = ledger.unpublished(STREAM, owner="b1", limit=10)
    assert [each.seq for each in found] == [bind.seq]
    ledger.published(STREAM, effects=found)
    ledger.published(STREAM, effects=[])
    assert list(ledger.unpublished(STREAM, owner="b1", limit=10)) == []


def test_a_final_outcome_that_came_meanwhile_stays_unpublished(ledger: SqlLedger) -> None:
    commit = decide(ledger, [Decided()])
    (effect,) = ledger.claim(STREAM, owner="b1", decisions=names(commit))
    ledger.finish(STREAM, owner="b1", updates=[finished(effect, EffectState.UNKNOWN, "?")])
    found = ledger.unpublished(STREAM, owner="b1", limit=10)
    ledger.finish(STREAM, owner="b1", updates=[finished(effect, EffectState.DONE, "bound")])
    ledger.published(STREAM, effects=found)
    (left,) = ledger.unpublished(STREAM, owner="b1", limit=10)
    assert left.state is EffectState.DONE
    ledger.published(STREAM, effects=[left])
    assert list(ledger.unpublished(STREAM, owner="b1", limit=10)) == []


def test_an_unknown_outcome_that_was_published_is_followed_by_its_final_one(
    ledger: SqlLedger,
) -> None:
    commit = decide(ledger, [Decided()])
    (effect,) = ledger.claim(STREAM, owner="b1", decisions=names(commit))
    ledger.finish(STREAM, owner="b1", updates=[finished(effect, EffectState.UNKNOWN, "?")])
    ledger.published(STREAM, effects=ledger.unpublished(STREAM, owner="b1", limit=10))
    again = finished(effect, EffectState.UNKNOWN, "??", publish=False)
    ledger.finish(STREAM, owner="b1", updates=[again])
    assert list(ledger.unpublished(STREAM, owner="b1", limit=10)) == []
    ledger.finish(STREAM, owner="b1", updates=[finished(effect, EffectState.REJECTED)])
    assert len(ledger.unpublished(STREAM, owner="b1", limit=10)) == 1


def test_what_a_dead_worker_did_not_publish_is_published_by_others(
    ledgers: Ledgers, ledger: SqlLedger
) -> None:
    commit = decide(ledger, [Decided()])
    ledger.work_as(STREAM, owner="dead", kind="binder")
    (effect,) = ledger.claim(STREAM, owner="dead", decisions=names(commit))
    ledger.finish(STREAM, owner="dead", updates=[finished(effect, EffectState.DONE)])
    assert list(ledger.unpublished(STREAM, owner="b2", limit=10)) == []
    ledgers.stop_heart("dead")
    assert len(ledger.unpublished(STREAM, owner="b2", limit=10)) == 1


def test_effects_whose_pod_has_a_later_decision_are_superseded(ledger: SqlLedger) -> None:
    decide(ledger, [Decided(pod="x"), Decided(pod="y"), Decided(pod="x")])
    asked = [(1, "uid-x"), (2, "uid-y"), (3, "uid-x")]
    assert list(ledger.superseded(STREAM, effects=asked)) == [(1, "uid-x")]
    assert list(ledger.superseded(STREAM, effects=[])) == []


def test_unfinished_effects_are_counted_up_to_the_limit(ledger: SqlLedger) -> None:
    commit = decide(ledger, [Decided()] * 5)
    claimed = ledger.claim(STREAM, owner="b1", decisions=names(commit)[:4])
    states = (EffectState.DONE, EffectState.DROPPED, EffectState.UNKNOWN)
    updates = [finished(*pair) for pair in zip(claimed, states, strict=False)]
    ledger.finish(STREAM, owner="b1", updates=updates)
    assert ledger.unfinished_effects(STREAM, limit=100) == 3
    assert ledger.unfinished_effects(STREAM, limit=2) == 2


# --- history


def test_reading_goes_on_where_it_stopped(ledger: SqlLedger) -> None:
    head = lead(ledger)
    for _ in range(3):
        commit = make_tick(head, [Decided()] * 2)
        ledger.commit(commit)
        head = after(head, commit)
    assert [tick.tick for tick in ledger.ticks(STREAM, after=1, limit=1)] == [2]
    assert [row.seq for row in ledger.decisions(STREAM, after=2, limit=3)] == [3, 4, 5]


@pytest.mark.parametrize(
    ("where", "want"),
    [
        pytest.param(DecisionFilter(), [5, 4, 3, 2, 1], id="everything"),
        pytest.param(DecisionFilter(namespace="default", pod="x"), [3, 1], id="a pod by name"),
        pytest.param(DecisionFilter(pod_uid="uid-y"), [2], id="a pod by uid"),
        pytest.param(DecisionFilter(node="n2"), [4], id="a node"),
        pytest.param(DecisionFilter(kind="PodUnschedulable"), [5], id="a kind"),
        pytest.param(DecisionFilter(reason="Unschedulable"), [5], id="a reason"),
        pytest.param(DecisionFilter(seq_first=2, seq_last=3), [3, 2], id="a range"),
        pytest.param(DecisionFilter(pod="x", node="n2"), [], id="two that do not meet"),
    ],
)
def test_decisions_are_selected_by_what_they_say(
    ledger: SqlLedger, where: DecisionFilter, want: list[int]
) -> None:
    failed = Decided(kind="PodUnschedulable", node=None, reason="Unschedulable")
    decide(
        ledger,
        [Decided(pod="x"), Decided(pod="y"), Decided(pod="x"), Decided(node="n2"), failed],
    )
    assert [row.seq for row in ledger.select(STREAM, where=where, limit=10)] == want
    oldest = ledger.select(STREAM, where=where, limit=10, newest_first=False)
    assert [row.seq for row in oldest] == want[::-1]
    assert [row.seq for row in ledger.select(STREAM, where=where, limit=1)] == want[:1]


def test_an_assume_is_open_until_its_bind_is_done_or_it_is_closed(ledger: SqlLedger) -> None:
    waiting = Decided(kind="PodWaiting", pod="w", effects=())
    commit = decide(
        ledger,
        [Decided(), Decided(), Decided(pod="x"), waiting, Decided(kind="PodUnschedulable")],
    )
    assert _open(ledger) == [1, 2, 3, 4]
    done, rejected = ledger.claim(STREAM, owner="b1", decisions=names(commit)[:2])
    updates = [finished(done, EffectState.DONE), finished(rejected, EffectState.REJECTED)]
    ledger.finish(STREAM, owner="b1", updates=updates)
    assert _open(ledger) == [2, 3, 4]
    decide(
        ledger,
        [
            Decided(kind="PodUnreserved", pod="x", closes_seq=3, effects=()),
            Decided(pod="w", closes_seq=4),
        ],
    )
    assert _open(ledger) == [2, 7]


def _open(ledger: SqlLedger) -> list[int]:
    return [row.seq for row in ledger.open_assumes(STREAM)]


# --- the auditor


def test_findings_and_cursor_are_stored_together_and_once(ledger: SqlLedger) -> None:
    lead(ledger)
    anchors = [
        Anchor(chain="tick", number=7, hash=b"t" * 32, now_ms=5),
        Anchor(chain="decision", number=9, hash=b"d" * 32, now_ms=5),
    ]
    found = Divergence(tick=6, seq=8, want=b"want", got=b"got")
    for _ in range(2):
        ledger.audited(
            STREAM, consumer="auditor", cursor=(4, 7, 9), anchors=anchors, divergences=[found]
        )
    assert list(ledger.anchors(STREAM)) == anchors[::-1]
    assert list(ledger.divergences(STREAM, limit=10)) == [found]
    assert ledger.consumer_cursor(STREAM, "auditor") == (4, 7, 9)


def test_a_cursor_never_goes_back(ledger: SqlLedger) -> None:
    assert ledger.consumer_cursor(STREAM, "auditor") is None
    ledger.audited(STREAM, consumer="auditor", cursor=(4, 7, 9))
    ledger.audited(STREAM, consumer="auditor", cursor=(3, 6, 8))
    assert ledger.consumer_cursor(STREAM, "auditor") == (4, 7, 9)
    ledger.audited(STREAM, consumer="auditor", cursor=(5, 8, 9))
    assert ledger.consumer_cursor(STREAM, "auditor") == (5, 8, 9)


def test_a_dead_letter_is_kept_once(ledgers: Ledgers, ledger: SqlLedger) -> None:
    def letter(position: int, error: str) -> DeadLetter:
        return DeadLetter(
            topic="events", position=position, error=error, code_version="0.1.0", body=b"\xff"
        )

    ledger.dead_letter(STREAM, [letter(1, "first"), letter(2, "second")])
    ledger.commit(make_tick(lead(ledger), dead_letters=[letter(2, "again"), letter(3, "third")]))
    ledger.dead_letter(STREAM, [])
    assert ledgers.execute("SELECT position, error FROM dead_letter ORDER BY position") == [
        (1, "first"),
        (2, "second"),
        (3, "third"),
    ]
