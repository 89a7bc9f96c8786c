"""One scheduler: standby, takeover, ticks, and what it does with what it was told wrong."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from decklog.adapters.ledger.sql import SqlLedger
from decklog.adapters.log.embedded import EmbeddedLog
from decklog.core.errors import Deposed, LedgerUnavailable, LogUnavailable
from decklog.core.framework.config_body import config_body, config_hash
from decklog.core.framework.resolve import default_config
from decklog.core.rules import RULES
from decklog.events.digests import KindDigest, object_digest
from decklog.events.facts import (
    Event,
    LeaderElected,
    PodAssumed,
    ResyncFinished,
    ResyncRequested,
    ResyncStarted,
)
from decklog.objects.kinds import KINDS
from decklog.objects.meta import KubeObject
from decklog.ports.entries import event_entry, read_records
from decklog.ports.log import Entry
from decklog.scheduler import service
from decklog.scheduler.service import SchedulerService, SchedulerSettings
from tests.builders import make_node
from tests.harness import CLUSTER, EmbeddedStores, ManualClock
from tests.stepping import deleted, our_pod, refused, upserted

CONFIG: Final = default_config(seed=1)
AT_ONCE: Final = timedelta(0)
NODE: Final = make_node("a", milli_cpu=4000, resource_version="1")
POISON: Final = Entry(
    key="Pod/default/web", type="x.y.v1", id="1", time="2026-01-01T00:00:00Z", value=b"\xff",
    source="test",
)  # fmt: skip


class Wrapped:
    """A port of which single methods are replaced."""

    def __init__(self, port: Any, **methods: Any) -> None:
        self._port = port
        self._methods = methods

    def __getattr__(self, name: str) -> Any:
        return self._methods.get(name) or getattr(self._port, name)


class Desk:
    """A store into which a test writes what a watcher would, and schedulers that read it."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.stores = EmbeddedStores(folder, self.clock)
        self.opened: list[SqlLedger | EmbeddedLog] = []
        self.ledger = self.open(self.stores.ledger())
        self.events = self.open(self.stores.events())
        self.decisions = self.open(self.stores.decisions())

    def open(self, opened: Any) -> Any:
        self.opened.append(opened)
        return opened

    def close(self) -> None:
        for one in self.opened:
            one.close()

    def scheduler(self, holder: str = "s", **ports: Any) -> SchedulerService:
        settings = SchedulerSettings(
            cluster=CLUSTER, config=CONFIG, holder=holder, code_version="test", patience=AT_ONCE
        )
        given = {
            "events_log": self.events,
            "decisions_log": self.decisions,
            "ledger": self.ledger,
            **ports,
        }
        return SchedulerService(settings=settings, clock=self.clock, **given)

    def tell(self, *facts: Event) -> None:
        self.events.append(
            [event_entry(fact, cluster=CLUSTER, time_ms=self.clock.now_ms()) for fact in facts]
        )

    def list_all(self, *objects: KubeObject) -> None:
        """Tell what a watcher tells at its start."""
        for kind in KINDS:
            mine = [obj for obj in objects if isinstance(obj, kind.cls)]
            self.tell(*listing(kind.name, mine))

    def requests(self) -> list[ResyncRequested]:
        return [fact for fact in self.facts() if isinstance(fact, ResyncRequested)]

    def facts(self) -> list[Event]:
        read = read_records(self.events, after=-1, limit=10_000, timeout=AT_ONCE)
        return [record.fact for record, _ in read]

    def placed(self) -> list[str]:
        rows = self.ledger.decisions(CLUSTER, after=0, limit=1_000)
        return [row.pod for row in rows if row.kind == "PodAssumed"]


def listing(
    kind: str, objects: Sequence[KubeObject], *, digest: str = "", count: int | None = None
) -> list[Event]:
    of_kind = KindDigest()
    facts = [upserted(obj) for obj in objects]
    for fact in facts:
        entry = event_entry(fact, cluster=CLUSTER, time_ms=0)
        of_kind.put(entry.key, object_digest(entry.key, entry.value))
    finished = ResyncFinished(
        kind=kind,
        resource_version="1",
        count=len(objects) if count is None else count,
        digest=digest or of_kind.text,
    )
    return [ResyncStarted(kind=kind, resource_version="1"), *facts, finished]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


def run(desk: Desk, scheduler: SchedulerService, *, for_ms: int = 0) -> None:
    end_ms = desk.clock.monotonic_ms() + for_ms
    while True:
        if scheduler.step():
            continue
        if desk.clock.monotonic_ms() >= end_ms:
            return
        desk.clock.advance(timedelta(milliseconds=50))


def leading(desk: Desk, *objects: KubeObject, **ports: Any) -> SchedulerService:
    """Return a scheduler that leads and knows the cluster."""
    desk.list_all(NODE, *objects)
    scheduler = desk.scheduler(**ports)
    run(desk, scheduler)
    assert scheduler.metrics.leading
    return scheduler


def pod(name: str, **fields: Any) -> Any:
    return our_pod(name, milli_cpu=10, resource_version="1", **fields)


# -- takeover --------------------------------------------------------------------------------------


def test_the_first_leader_announces_itself_then_decides(desk: Desk) -> None:
    scheduler = leading(desk, pod("web"))
    [elected] = [fact for fact in desk.facts() if isinstance(fact, LeaderElected)]
    assert elected == LeaderElected(
        generation=1, holder="s", config_hash=config_hash(CONFIG), code_version="test", rules=RULES
    )
    assert desk.placed() == ["web"]
    assert desk.ledger.config(config_hash(CONFIG)) == config_body(CONFIG)
    assert (scheduler.metrics.generation, scheduler.metrics.position) == (1, scheduler._marker)


def test_nothing_is_decided_before_the_marker_was_read_back(desk: Desk) -> None:
    desk.list_all(NODE, pod("web"))
    scheduler = desk.scheduler()
    while not scheduler.metrics.leading:
        scheduler.step()
    marker = scheduler._marker
    reads: list[int] = []

    def without_marker(**options: Any) -> Any:
        read = [pair for pair in desk.events.read(**options) if pair[0] < marker]
        reads.append(len(read))
        return read

    scheduler.events_log = Wrapped(desk.events, read=without_marker)
    run(desk, scheduler)
    assert desk.placed() == []
    scheduler.events_log = desk.events
    run(desk, scheduler)
    assert desk.placed() == ["web"]


def test_nothing_is_decided_before_every_kind_was_listed(desk: Desk) -> None:
    scheduler = desk.scheduler()
    desk.tell(*listing("Node", [NODE]), *listing("Pod", [pod("web")]))
    run(desk, scheduler)
    assert desk.placed() == []
    assert scheduler.readiness()["cluster"] == f"{len(KINDS) - 2} kinds were not listed yet"
    desk.list_all(NODE, pod("web"))
    run(desk, scheduler)
    assert desk.placed() == ["web"]
    assert set(scheduler.readiness().values()) == {""}


def test_a_new_leader_begins_above_every_generation_in_the_log(desk: Desk) -> None:
    """The database may have been set back; the log was not."""
    marker = LeaderElected(generation=7, holder="x", config_hash="h", code_version="v", rules=RULES)
    desk.tell(marker)
    scheduler = leading(desk)
    assert scheduler.metrics.generation == 8
    head = desk.ledger.head(CLUSTER)
    assert head is not None
    assert head.generation == 8


def test_a_marker_of_a_higher_generation_makes_the_leader_go_above_it(desk: Desk) -> None:
    scheduler = leading(desk)
    desk.tell(
        LeaderElected(generation=4, holder="x", config_hash="h", code_version="v", rules=RULES)
    )
    desk.tell(upserted(pod("web")))
    run(desk, scheduler)
    elected = [fact.generation for fact in desk.facts() if isinstance(fact, LeaderElected)]
    assert elected == [1, 4, 5]
    [row] = desk.ledger.decisions(CLUSTER, after=0, limit=10)
    assert row.generation == 5


def test_a_marker_that_could_not_be_written_is_written_before_anything_is_decided(
    desk: Desk,
) -> None:
    scheduler = leading(desk)
    desk.tell(
        LeaderElected(generation=4, holder="x", config_hash="h", code_version="v", rules=RULES),
        upserted(pod("web")),
    )
    failures = iter([True, True])

    def append(entries: Any) -> int:
        if next(failures, False):
            msg = "down"
            raise LogUnavailable(msg)
        return int(desk.events.append(entries))

    scheduler.events_log = Wrapped(desk.events, append=append)
    scheduler.step()
    for _ in range(2):
        with pytest.raises(LogUnavailable):
            scheduler.step()
    assert desk.placed() == []
    run(desk, scheduler)
    elected = [fact.generation for fact in desk.facts() if isinstance(fact, LeaderElected)]
    assert elected == [1, 4, 5]
    assert desk.placed() == ["web"]


@pytest.mark.parametrize("taken", [True, False], ids=["another leads", "the head is gone"])
def test_a_leader_that_is_not_the_ledgers_any_more_ends(desk: Desk, taken: bool) -> None:
    scheduler = leading(desk)
    desk.tell(
        LeaderElected(generation=4, holder="x", config_hash="h", code_version="v", rules=RULES)
    )
    if taken:
        desk.clock.advance(timedelta(minutes=1))
        assert desk.ledger.take_over(CLUSTER, holder="x", elected=3) is not None
    else:
        scheduler.ledger = Wrapped(desk.ledger, head=lambda _: None)
    with pytest.raises(Deposed):
        run(desk, scheduler)


def test_a_leader_whose_going_above_is_refused_ends(desk: Desk) -> None:
    scheduler = leading(desk)
    desk.tell(
        LeaderElected(generation=4, holder="x", config_hash="h", code_version="v", rules=RULES)
    )
    scheduler.ledger = Wrapped(desk.ledger, take_over=lambda *_, **__: None)
    with pytest.raises(Deposed):
        run(desk, scheduler)


def test_a_standby_asks_once_a_second_and_leads_when_the_heart_has_stopped(desk: Desk) -> None:
    leading(desk)
    asked: list[int] = []

    def take_over(*args: Any, **options: Any) -> Any:
        asked.append(desk.clock.monotonic_ms())
        return desk.ledger.take_over(*args, **options)

    standby = desk.scheduler("standby", ledger=Wrapped(desk.ledger, take_over=take_over))
    run(desk, standby, for_ms=3_500)
    assert asked == [0, 1_000, 2_000, 3_000]
    assert standby.readiness()["effects"] == ""
    run(desk, standby, for_ms=4_000)
    assert (standby.metrics.leading, standby.metrics.generation) == (True, 2)


def test_a_takeover_applies_what_nobody_has_decided_on_yet(desk: Desk) -> None:
    """Read ahead by the rebuild, or read from the log: nothing is passed, nothing comes twice."""
    leading(desk, pod("first"))
    desk.tell(*(upserted(pod(f"pod-{number}")) for number in range(5)))
    desk.clock.advance(timedelta(minutes=1))
    heir = desk.scheduler("heir")
    run(desk, heir)
    assert desk.placed() == ["first", *(f"pod-{number}" for number in range(5))]


def test_events_that_were_read_ahead_are_kept_until_a_tick_has_applied_them(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "EVENTS_MAX", 2)
    monkeypatch.setattr(service, "UNFINISHED_CHECK_MS", 0)
    leading(desk, pod("first"))
    desk.tell(*(upserted(pod(f"pod-{number}")) for number in range(5)))
    desk.clock.advance(timedelta(minutes=1))
    failures = iter([True] * 3)

    def unfinished(*args: Any, **options: Any) -> int:
        if next(failures, False):
            msg = "down"
            raise LedgerUnavailable(msg)
        return int(desk.ledger.unfinished_effects(*args, **options))

    heir = desk.scheduler("heir", ledger=Wrapped(desk.ledger, unfinished_effects=unfinished))
    for _ in range(3):
        with pytest.raises(LedgerUnavailable):
            run(desk, heir)
    run(desk, heir)
    assert desk.placed() == ["first", *(f"pod-{number}" for number in range(5))]


def test_logical_time_goes_on_from_the_later_of_record_and_wall_clock(desk: Desk) -> None:
    first = leading(desk, pod("web"))
    desk.clock.advance(timedelta(minutes=1))
    desk.clock._started_ms -= 10 * 60_000  # The wall clock was set back.
    heir = desk.scheduler("heir")
    run(desk, heir)
    assert heir.state.now_ms >= first.state.now_ms
    before = heir.state.now_ms
    desk.clock._started_ms += 60 * 60_000
    desk.tell(deleted(pod("web")))
    run(desk, heir, for_ms=100)
    assert heir.state.now_ms - before <= 150


# -- ticks -----------------------------------------------------------------------------------------


def test_a_tick_that_could_not_be_committed_is_committed_as_it_is(desk: Desk) -> None:
    scheduler = leading(desk)
    desk.tell(upserted(pod("web")))
    commits: list[Any] = []

    def commit(tick: Any) -> None:
        commits.append(tick)
        if len(commits) < 3:
            msg = "down"
            raise LedgerUnavailable(msg)
        desk.ledger.commit(tick)

    scheduler.ledger = Wrapped(desk.ledger, commit=commit)
    for _ in range(2):
        with pytest.raises(LedgerUnavailable):
            scheduler.step()
    desk.tell(upserted(pod("later")))
    scheduler.step()
    assert commits[0] is commits[1] is commits[2]
    assert desk.placed() == ["web"]


def test_a_stop_commits_what_is_decided_and_gives_the_lead_up(desk: Desk) -> None:
    scheduler = leading(desk)
    desk.tell(upserted(pod("web")))
    fail = iter([True])

    def commit(tick: Any) -> None:
        if next(fail, False):
            msg = "down"
            raise LedgerUnavailable(msg)
        desk.ledger.commit(tick)

    scheduler.ledger = Wrapped(desk.ledger, commit=commit)
    with pytest.raises(LedgerUnavailable):
        scheduler.step()
    scheduler.stop()
    assert desk.placed() == ["web"]
    heir = desk.scheduler("heir")
    run(desk, heir)
    assert heir.metrics.leading
    standby = desk.scheduler("standby")
    standby.stop()


def test_decisions_are_relayed_in_order_and_a_lost_relay_is_only_counted(desk: Desk) -> None:
    def append(_: Any) -> int:
        msg = "down"
        raise LogUnavailable(msg)

    scheduler = leading(desk, decisions_log=Wrapped(desk.decisions, append=append))
    desk.tell(upserted(pod("a")), upserted(pod("b")))
    run(desk, scheduler)
    assert scheduler.metrics.relay_lost == 2
    assert desk.placed() == ["a", "b"]
    scheduler.decisions_log = desk.decisions
    desk.tell(upserted(pod("c")))
    run(desk, scheduler)
    [(_, entry)] = desk.decisions.read(after=-1, limit=10, timeout=AT_ONCE)
    assert entry.key == "uid-default-c"


def test_a_timer_makes_a_tick_without_any_event(desk: Desk) -> None:
    scheduler = leading(desk, pod("web"))
    desk.tell(refused(1, pod("web")))
    run(desk, scheduler)
    ticks = scheduler.metrics.ticks
    run(desk, scheduler, for_ms=3_000)
    assert desk.placed() == ["web", "web"]
    assert scheduler.metrics.ticks == ticks + 1


def test_with_nothing_to_do_there_is_no_tick(desk: Desk) -> None:
    scheduler = leading(desk)
    ticks = scheduler.metrics.ticks
    run(desk, scheduler, for_ms=5_000)
    assert scheduler.metrics.ticks == ticks


# -- back-pressure ---------------------------------------------------------------------------------


def test_no_cycle_runs_while_the_binder_is_behind(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "CYCLES_MAX", 2)
    monkeypatch.setattr(service, "UNFINISHED_ROOM", 4)
    scheduler = leading(desk, *(pod(f"pod-{number:02}") for number in range(20)))
    run(desk, scheduler, for_ms=1_000)
    assert desk.placed() == [f"pod-{number:02}" for number in range(6)]
    assert scheduler.readiness()["effects"] == "the binder has 6 effects to finish"
    assert scheduler.metrics.unfinished == 6
    scheduler.ledger = Wrapped(desk.ledger, unfinished_effects=lambda *_, **__: 0)
    run(desk, scheduler, for_ms=100)
    assert len(desk.placed()) > 6


def test_events_are_applied_and_closings_decided_while_the_binder_is_behind(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "UNFINISHED_ROOM", 0)
    scheduler = leading(desk, pod("web"))
    assert desk.placed() == ["web"]
    desk.tell(upserted(pod("later")), deleted(pod("web")))
    run(desk, scheduler)
    rows = desk.ledger.decisions(CLUSTER, after=0, limit=10)
    assert [row.kind for row in rows] == ["PodAssumed", "PodUnreserved"]
    assert scheduler.state.position == desk.events.bounds()[1]


def test_a_new_leader_asks_how_far_the_binder_is_before_its_first_cycle(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    leading(desk, pod("web"))
    monkeypatch.setattr(service, "UNFINISHED_ROOM", 0)
    desk.tell(upserted(pod("later")))
    desk.clock.advance(timedelta(minutes=1))
    run(desk, desk.scheduler("heir"), for_ms=1_000)
    assert desk.placed() == ["web"]


# -- what it was told wrong ------------------------------------------------------------------------


def test_a_digest_that_differs_asks_for_the_kind_again(desk: Desk) -> None:
    scheduler = leading(desk)
    desk.tell(*listing("Pod", [pod("web")], digest="f" * 32))
    run(desk, scheduler)
    [request] = desk.requests()
    assert request.kind == "Pod"
    assert request.reason.startswith("digest ")


def test_a_count_that_differs_asks_for_the_kind_again(desk: Desk) -> None:
    """One watch event was dropped: the log holds fewer objects than the list."""
    scheduler = leading(desk)
    desk.tell(*listing("Pod", [pod("web")], count=2))
    run(desk, scheduler)
    assert [request.reason for request in desk.requests()] == [
        "the log holds 1 objects, the list 2"
    ]


def test_a_standby_asks_for_nothing(desk: Desk) -> None:
    scheduler = leading(desk)
    desk.tell(*listing("Pod", [], count=2))
    run(desk, scheduler)
    standby = desk.scheduler("standby")
    run(desk, standby)
    assert len(desk.requests()) == 1


def test_a_request_that_could_not_be_appended_is_appended_later(desk: Desk) -> None:
    scheduler = leading(desk)
    desk.tell(*listing("Pod", [], count=2))
    fails = iter([True])

    def append(entries: Any) -> int:
        if next(fails, False):
            msg = "down"
            raise LogUnavailable(msg)
        return int(desk.events.append(entries))

    scheduler.events_log = Wrapped(desk.events, append=append)
    with pytest.raises(LogUnavailable):
        run(desk, scheduler)
    run(desk, scheduler)
    assert len(desk.requests()) == 1


def test_a_poison_event_is_dead_lettered_with_its_tick_and_its_object_read_again(
    desk: Desk,
) -> None:
    scheduler = leading(desk, pod("web"))
    letters: list[Any] = []

    def commit(tick: Any) -> None:
        letters.extend(tick.dead_letters)
        desk.ledger.commit(tick)

    scheduler.ledger = Wrapped(desk.ledger, commit=commit)
    position = desk.events.append([POISON])
    desk.tell(upserted(pod("later")))
    run(desk, scheduler)
    assert desk.placed() == ["web", "later"]
    [letter] = letters
    assert (letter.topic, letter.position, letter.body) == ("events", position, b"\xff")
    assert letter.code_version == "test"
    [request] = desk.requests()
    assert request.reason.startswith("undecodable event of Pod/default/web")


def test_a_rebuild_asks_for_nothing_that_the_past_gave_cause_to(desk: Desk) -> None:
    scheduler = leading(desk)
    desk.events.append([POISON])
    run(desk, scheduler)
    desk.clock.advance(timedelta(minutes=1))
    heir = desk.scheduler("heir")
    run(desk, heir)
    assert heir.metrics.leading
    assert len(desk.requests()) == 1


def test_what_is_decided_is_in_the_ledger_as_it_is_in_the_state(desk: Desk) -> None:
    scheduler = leading(desk, pod("web"))
    head = desk.ledger.head(CLUSTER)
    assert head is not None
    assert (head.seq, head.cursor) == (scheduler.state.seq, scheduler.state.position)
    [row] = desk.ledger.open_assumes(CLUSTER)
    assert row.kind == PodAssumed.__name__
    assert scheduler.state.open_assumes["uid-default-web"].seq == row.seq
