"""Situations that people met with logs, commits and bindings; `cases/log.yaml` has their inputs.

They were told of consumers of a partitioned log. What must hold here is the effect, in the part of
decklog that the case concerns: the whole of it (tests/harness.py), or a log or a ledger alone.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from decklog.adapters.cluster.faults import Fault
from decklog.adapters.cluster.requests import ApiRequest
from decklog.adapters.ledger.migrate import upgrade
from decklog.adapters.ledger.sql import SqlLedger
from decklog.adapters.log.embedded import EmbeddedLog
from decklog.core.errors import Deposed, LedgerUnavailable, LogUnavailable, PositionLost
from decklog.events.codec import decode_event, encode_event, event_key, upserted
from decklog.events.facts import BindSucceeded, PodAssumed, PodUpserted
from decklog.objects.kinds import KIND_BY_NAME
from decklog.objects.pod import Pod
from decklog.objects.reduce import reduce_object
from decklog.ports.cluster import Answer
from decklog.ports.entries import event_entry, read_records
from decklog.ports.ledger import DecisionFilter, EffectState
from decklog.ports.log import Entry
from decklog.runner import Service
from tests.builders import make_node
from tests.contract.ledgers import (
    Decided,
    Ledgers,
    Loss,
    after,
    check_history,
    lead,
    losing,
    make_tick,
)
from tests.contract.logs import EmbeddedStore, make_entries, read_all
from tests.harness import CLUSTER, BeatingLedger, World, make_raw_node, make_raw_pod, make_world
from tests.parity.test_cases import rows
from tests.stepping import Steps, bound, deleted, our_pod, placed, refused, view
from tests.stepping import upserted as told

Raw = Mapping[str, Any]
CASE: Final = {row["id"][:3]: row for row in rows() if row["id"] >= "200"}
AT_ONCE: Final = timedelta(0)
ALL: Final = 100_000


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqlLedger]:
    url = f"sqlite:///{tmp_path}/ledger.db"
    upgrade(url)
    made = Ledgers(url=url, owner_url=url)
    yield made.open()
    made.close()


def binds(world: World) -> Counter[str]:
    """Return how often each pod was reported bound."""
    records = read_records(world.events, after=-1, limit=ALL, timeout=AT_ONCE)
    return Counter(
        record.fact.pod_uid for record, _ in records if isinstance(record.fact, BindSucceeded)
    )


def decided(world: World, kind: str) -> list[str]:
    where = DecisionFilter(kind=kind)
    found = world.ledger.select(CLUSTER, where=where, limit=ALL, newest_first=False)
    return [str(row.pod) for row in found]


def bind_some(world: World, count: int) -> None:
    """Run until the binder has bound this many pods."""
    while world.service("binder").metrics.bound < count:
        if not world.turn():
            world.clock.sleep(timedelta(milliseconds=10))


def test_200_work_that_is_brought_again_binds_nothing_twice(tmp_path: Path) -> None:
    case = CASE["200"]
    with make_world(tmp_path) as world:
        world.create(make_raw_node("n1"), *map(make_raw_pod, case["pods"]))
        bind_some(world, 3)
        world.crash("binder")
        decisions = world.stores.decisions()
        again = [entry for _, entry in decisions.read(after=-1, limit=ALL, timeout=AT_ONCE)]
        decisions.append(again)
        decisions.close()
        world.start("binder", name="next")
        world.run_until_quiet()
        assert set(binds(world).values()) == {case["expect"]["effective_binds"]}
        assert len(binds(world)) == len(case["pods"])
        assert len(decided(world, "PodUnreserved")) == case["expect"]["compensations"]


@dataclass
class FailingBinds:
    """Answers bindings with an error, the first `count` of them."""

    code: int
    count: int

    def before(self, request: ApiRequest) -> Fault | None:
        if "binding" not in str(request) or self.count == 0:
            return None
        self.count -= 1
        return Fault(code=self.code, reason="ServiceUnavailable")

    def after(self, request: ApiRequest, answer: Answer) -> Fault | None:
        return None


def test_202_a_failed_bind_is_tried_again_by_the_next_binder(tmp_path: Path) -> None:
    case = CASE["202"]
    with make_world(tmp_path) as world:
        faults = world.cluster.faults = FailingBinds(case["fails_with"], count=1)
        world.create(make_raw_node("n1"), make_raw_pod("p"))
        while faults.count:
            world.turn()
        world.crash("binder")
        world.start("binder", name="next")
        world.run_until_quiet()
        assert world.node_of("p") == case["expect"]["node"]
        assert list(binds(world).values()) == [case["expect"]["effective_binds"]]
        assert decided(world, "PodUnreserved") == []


def test_202_an_answer_to_an_older_assume_is_ignored() -> None:
    steps = Steps()
    pod = our_pod("p")
    steps.tick(told(make_node("n1")), told(pod))
    steps.tick(refused(1, pod))
    steps.tick(later_ms=3_000)
    assert isinstance(steps.decisions[-1], PodAssumed)
    before = view(steps.state)
    assert steps.tick(bound(1, pod, "n1")) == []
    assert view(steps.state) == {**before, "position": steps.state.position}


def test_203_the_failure_of_an_older_bind_undoes_no_later_one() -> None:
    expect = CASE["203"]["expect"]
    steps = Steps()
    pod = our_pod("p", milli_cpu=1000)
    steps.tick(told(make_node("n1", milli_cpu=1000)), told(pod))
    steps.tick(refused(1, pod), told(make_node("n1", milli_cpu=1)), told(make_node("n2")))
    steps.tick(later_ms=3_000)
    seq = len(steps.decisions)
    steps.tick(bound(seq, pod, "n2"), told(replace(pod, node_name="n2")))
    assert steps.tick(refused(1, pod, "BoundElsewhere")) == []
    assert placed(steps.state) == {pod.uid: (expect["node"], False)}
    closings = [one for one in steps.decisions if not isinstance(one, PodAssumed)]
    assert len(closings) == expect["compensations"]


def test_203_a_leader_that_wakes_up_late_commits_nothing(ledger: SqlLedger) -> None:
    old = lead(ledger, holder="a")
    new = lead(ledger, holder="b")
    with pytest.raises(Deposed):
        ledger.commit(make_tick(old, [Decided()]))
    ledger.commit(make_tick(new, [Decided()]))
    assert len(check_history(ledger)[1]) == 1


def test_204_a_hole_in_the_log_is_said_and_a_new_log_is_read_from_its_start(tmp_path: Path) -> None:
    case = CASE["204"]
    store = EmbeddedStore(tmp_path)
    log = store.open()
    log.append(make_entries(case["written"]))
    assert [position for position, _ in read_all(log)] == list(range(case["written"]))
    store.forget_before(case["forgotten_before"])
    with pytest.raises(PositionLost) as lost:
        log.read(after=case["cursor"], limit=ALL, timeout=AT_ONCE)
    assert [lost.value.after + 1, lost.value.first - 1] == case["expect"]["missing"]
    store.close()


def test_205_what_nobody_can_decode_is_kept_and_does_not_stop_the_rest(tmp_path: Path) -> None:
    case = CASE["205"]
    pods = [our_pod(f"p{number}") for number in range(len(case["entries"]))]
    with make_world(tmp_path, services=("scheduler",)) as world:
        world.run_for(timedelta(seconds=1))
        first = world.events.append(list(_poisoned(pods))) - len(pods) + 1
        world.run_for(timedelta(seconds=1))
        known = world.scheduler.state.store.objects("Pod")
        assert [n for n, pod in enumerate(pods) if pod.uid in known] == case["expect"]["applied"]
        with closing(sqlite3.connect(tmp_path / "decklog.db")) as database:
            letters = database.execute(
                "SELECT position, error, body FROM dead_letter ORDER BY position"
            ).fetchall()
        assert [position - first for position, _, _ in letters] == case["expect"]["parked"]
        assert all(error and body for _, error, body in letters)
        assert world.scheduler.state.position >= first + len(pods) - 1


def _poisoned(pods: Sequence[Pod]) -> Iterator[Entry]:
    """Return an entry for each pod; two of them nobody can decode."""
    for pod, kind in zip(pods, CASE["205"]["entries"], strict=True):
        good = event_entry(upserted(pod), cluster=CLUSTER, time_ms=0)
        match kind:
            case "ok":
                yield good
            case "bad bytes":
                yield replace(good, value=b"\xff\xfe\x00")
            case _:
                yield replace(good, type="dev.decklog.something.new.v1")


def test_206_every_string_comes_back_as_it_was_written(tmp_path: Path) -> None:
    case = CASE["206"]
    log = EmbeddedLog(tmp_path, "events")
    pods = [our_pod(f"p{n}", labels={"note": text}) for n, text in enumerate(case["strings"])]
    log.append([event_entry(upserted(pod), cluster=CLUSTER, time_ms=0) for pod in pods])
    records = read_records(log, after=-1, limit=ALL, timeout=AT_ONCE)
    facts = [record.fact for record, _ in records]
    assert [fact.pod for fact in facts if isinstance(fact, PodUpserted)] == pods
    log.close()


def test_206_half_a_character_is_replaced() -> None:
    labels = {"note": json.loads(CASE["206"]["lone_surrogate"])}
    raw = {"kind": "Pod", "metadata": {"name": "sur", "uid": "u", "labels": labels}, "spec": {}}
    fact = upserted(reduce_object(KIND_BY_NAME["Pod"], raw))
    kept = decode_event(type(fact).ce_type, event_key(fact), encode_event(fact))
    assert isinstance(kept, PodUpserted)
    assert kept.pod.labels == {"note": "x\N{REPLACEMENT CHARACTER}y"}


@pytest.mark.parametrize("variant", CASE["208"]["variants"])
def test_208_a_commit_without_an_answer_is_made_again_and_is_there_once(
    ledger: SqlLedger, variant: str
) -> None:
    when = Loss[CASE["208"]["variants"][variant].upper()]
    commit = make_tick(lead(ledger), [Decided()])
    with losing(when), pytest.raises(LedgerUnavailable):
        ledger.commit(commit)
    ledger.commit(commit)
    assert len(check_history(ledger)[1]) == 1


def test_208_somebody_elses_commit_is_not_taken_for_ours(ledger: SqlLedger) -> None:
    commit = make_tick(lead(ledger), [Decided()])
    with losing(Loss.BEFORE_COMMIT), pytest.raises(LedgerUnavailable):
        ledger.commit(commit)
    theirs = make_tick(lead(ledger, holder="b"), [Decided()], salt="theirs")
    ledger.commit(theirs)
    with pytest.raises(Deposed):
        ledger.commit(commit)
    ours = make_tick(after(lead(ledger), theirs), [Decided()])
    ledger.commit(replace(ours))


def test_210_while_the_log_takes_nothing_nothing_is_lost(tmp_path: Path) -> None:
    count = CASE["210"]["pods"]
    with make_world(tmp_path, services=("watcher",)) as world:
        world.create(make_raw_node("n1"))
        world.run_until_quiet()
        log = world.running["watcher"].opened.events
        with away(world.service("watcher")):
            world.create(*(make_raw_pod(f"p{number}") for number in range(count)))
            with pytest.raises(LogUnavailable):
                step_for_ever(world.service("watcher"))
            assert log.bounds() == world.events.bounds()
        world.run_until_quiet()
        records = read_records(world.events, after=-1, limit=ALL, timeout=AT_ONCE)
        facts = [record.fact for record, _ in records]
        names = [fact.pod.name for fact in facts if isinstance(fact, PodUpserted)]
        assert names == [f"p{number}" for number in range(count)]


def step_for_ever(service: Service) -> None:
    while True:
        service.step()


class AwayLog:
    """A log whose broker is away."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def append(self, entries: object) -> int:
        msg = "the broker is away"
        raise LogUnavailable(msg)


@contextmanager
def away(watcher: Any) -> Iterator[None]:
    there = watcher.log
    watcher.log = AwayLog(there)
    yield
    watcher.log = there


def test_212_a_huge_object_delays_nobody(tmp_path: Path) -> None:
    case = CASE["212"]
    huge = make_raw_pod("huge", annotations={"blob": "x" * case["annotation_bytes"]})
    value = "v" * case["variable_bytes"]
    huge["spec"]["containers"][0]["env"] = [
        {"name": f"N{number}", "value": value} for number in range(case["variables"])
    ]
    with make_world(tmp_path) as world:
        world.create(make_raw_node("n1"), huge, make_raw_pod("small"))
        world.run_until_quiet()
        assert (world.node_of("huge"), world.node_of("small")) == ("n1", "n1")
        assert len(decided(world, "PodAssumed")) == 2


def _history(*, batch: int = 100) -> Steps:
    """Return a run with a tie, a failure and its back-off, told in batches of this size."""
    steps = Steps()
    pods = [our_pod(f"p{number}", milli_cpu=300) for number in range(12)]
    nodes = [make_node(f"n{number}", milli_cpu=1000) for number in range(3)]
    facts = [*map(told, nodes), *map(told, pods)]
    for start in range(0, len(facts), batch):
        steps.tick(*facts[start : start + batch], cycles=0)
    steps.tick()
    steps.tick(refused(1, pods[0]), deleted(pods[1]))
    steps.tick(later_ms=30_000)
    return steps


def test_214_the_same_inputs_give_the_same_decisions() -> None:
    steps = _history()
    assert steps.decisions == _history().decisions
    assert steps.decisions == _history(batch=CASE["214"]["batches_of"]).decisions
    assert view(steps.rebuilt()) == view(steps.state)


def test_215_history_that_is_read_again_changes_nothing() -> None:
    steps = _history()
    records = [record for step in steps.history for record in step.records]
    before = view(steps.state)
    for first in (0, CASE["215"]["again_from"]):
        for record in records[first:]:
            steps.state.apply(record)
        assert view(steps.state) == before
        assert not steps.state.causes


def test_217_the_position_is_the_order_whatever_the_clocks_say() -> None:
    times = CASE["217"]["times"]
    steps = Steps()
    p = our_pod("p", created=times[0])
    steps.tick(told(make_node("n1")), told(p))
    steps.tick(told(replace(p, node_name="n1", start_time=times[1])), bound(1, p, "n1"))
    steps.tick(deleted(p), told(our_pod("q", created=times[4])))
    last = steps.decisions[-1]
    assert isinstance(last, PodAssumed)
    assert last.pod.name == "q"
    assert list(placed(steps.state)) == [last.pod.uid]


def test_222_without_the_ledger_nothing_is_decided_and_nothing_is_lost(tmp_path: Path) -> None:
    is_down = False

    def disturb(_name: str, ledger: BeatingLedger) -> BeatingLedger:
        return DownLedger(ledger, lambda: is_down)

    with make_world(tmp_path, disturb=disturb) as world:
        world.create(make_raw_node("n1"), make_raw_pod("a"))
        world.run_until_quiet()
        is_down = True
        world.create(make_raw_pod("b"))
        for _ in range(CASE["222"]["down_calls"]):
            world.turn()
            world.clock.sleep(timedelta(milliseconds=100))
        assert world.node_of("b") == ""
        assert any(paced.failing for paced in world.loop.services)
        is_down = False
        world.run_until_quiet()
        assert (world.node_of("a"), world.node_of("b")) == ("n1", "n1")
        assert decided(world, "PodAssumed") == ["a", "b"]
        effects = world.ledger.effects(CLUSTER, seq_first=1, seq_last=2)
        assert {effect.state for effect in effects} == {EffectState.DONE}


class DownLedger:
    """A ledger whose database is away while the function says so."""

    def __init__(self, ledger: BeatingLedger, is_down: Callable[[], bool]) -> None:
        self._ledger = ledger
        self._is_down = is_down

    def __getattr__(self, name: str) -> Any:
        if self._is_down() and not name.startswith("_") and name not in ("beat", "close"):
            return self._refuse
        return getattr(self._ledger, name)

    def _refuse(self, *_args: Any, **_kwargs: Any) -> Any:
        msg = "the database is away"
        raise LedgerUnavailable(msg)
