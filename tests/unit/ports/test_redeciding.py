"""Reading history as it was recorded, and deciding it again: what is read, and what cannot be."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from decklog.adapters.ledger.sql import SqlLedger
from decklog.adapters.log.embedded import EmbeddedLog
from decklog.core.errors import IllegalTransition, LogUnavailable, PositionLost
from decklog.core.rules import RULES
from decklog.core.state import SchedulerState
from decklog.events.facts import ResyncStarted
from decklog.ports import recorded as recorded_module
from decklog.ports.ledger import DecisionRow, TickRow
from decklog.ports.log import Entry
from decklog.ports.recorded import TickReader
from decklog.ports.redeciding import Redecided, Redecider, _answers, apply_recorded
from decklog.ports.sealing import decode_tick
from tests.harness import CLUSTER, EmbeddedStores, ManualClock
from tests.stepping import CONFIG
from tests.voyage import sail

ALL = 1_000


class Wrapped:
    """A port of which single methods are replaced."""

    def __init__(self, port: Any, **methods: Any) -> None:
        self._port = port
        self._methods = methods

    def __getattr__(self, name: str) -> Any:
        return self._methods.get(name) or getattr(self._port, name)


@dataclass(frozen=True)
class History:
    ledger: SqlLedger
    log: EmbeddedLog

    def reader(self, **ports: Any) -> TickReader:
        return TickReader(ports.get("ledger", self.ledger), ports.get("log", self.log), CLUSTER)

    def redecider(self, *, first_tick: int = 1, **ports: Any) -> Redecider:
        ledger, log = ports.get("ledger", self.ledger), ports.get("log", self.log)
        return Redecider(ledger, log, CLUSTER, first_tick=first_tick)

    def walk(self, **options: Any) -> list[Redecided]:
        return list(self.redecider(**options).walk(limit=ALL))

    def ticks(self) -> Sequence[TickRow]:
        return self.ledger.ticks(CLUSTER, after=0, limit=ALL)

    def with_ticks(self, **changes: Any) -> Any:
        """Return the ledger as if every tick had these columns."""

        def ticks(stream: str, **given: int) -> list[TickRow]:
            return [replace(row, **changes) for row in self.ledger.ticks(stream, **given)]

        return Wrapped(self.ledger, ticks=ticks)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    folder = tmp_path_factory.mktemp("history")
    sail(folder)
    stores = EmbeddedStores(folder, ManualClock())
    opened = History(stores.ledger(), stores.events())
    yield opened
    opened.ledger.close()
    opened.log.close()


# -- reading ---------------------------------------------------------------------------------------


def test_every_tick_comes_with_its_events_and_its_decisions(history: History) -> None:
    ticks = history.reader().read()
    rows = history.ticks()
    assert [tick.row for tick in ticks] == list(rows)
    assert [len(tick.entries) for tick in ticks] == [len(tick.records) for tick in ticks]
    positions = [record.position for tick in ticks for record in tick.records]
    assert positions == list(range(rows[-1].cursor + 1))
    seqs = [row.seq for tick in ticks for row in tick.rows]
    assert seqs == list(range(1, rows[-1].seq + 1))
    for tick in ticks:
        assert all(record.position <= tick.row.cursor for record in tick.records)
        assert tick.header == decode_tick(tick.row.payload)


@pytest.mark.parametrize("limit", [1, 3, 500])
def test_reading_in_parts_reads_the_same(history: History, limit: int) -> None:
    reader, found = history.reader(), []
    while ticks := reader.read(limit=limit):
        assert len(ticks) <= limit
        found.extend(ticks)
    assert found == history.reader().read()


def test_reading_ends_where_it_is_told_to(history: History) -> None:
    reader = history.reader()
    assert [tick.row.tick for tick in reader.read(through=3)] == [1, 2, 3]
    assert reader.read(through=3) == []
    assert reader.read(limit=0) == []


def test_what_was_read_ahead_is_handed_out_once(history: History) -> None:
    reader = history.reader()
    [tick] = reader.read(through=1)
    rest = reader.rest()
    assert rest[0][0].position == tick.row.cursor + 1
    assert reader.position == rest[-1][0].position
    assert reader.rest() == []


def test_few_events_are_read_at_once(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = history.reader().read()
    monkeypatch.setattr(recorded_module, "READ_MAX", 2)
    monkeypatch.setattr(recorded_module, "EVENTS_MAX", 5)
    reader, found = history.reader(), []
    while ticks := reader.read():
        found.extend(ticks)
    assert found == whole


def test_decisions_come_in_pages(history: History) -> None:
    def decisions(stream: str, *, after: int, limit: int) -> Sequence[DecisionRow]:
        return history.ledger.decisions(stream, after=after, limit=min(limit, 2))

    assert history.reader(ledger=Wrapped(history.ledger, decisions=decisions)).read() == (
        history.reader().read()
    )


def test_decisions_that_are_gone_leave_their_ticks_without(history: History) -> None:
    ledger = Wrapped(history.ledger, decisions=lambda *_, **__: [])
    assert all(tick.rows == [] for tick in history.reader(ledger=ledger).read())


def test_a_log_that_ends_before_the_tick_is_lost(history: History) -> None:
    log = Wrapped(history.log, bounds=lambda: (0, 3))
    with pytest.raises(PositionLost):
        history.reader(log=log).read()


def test_a_read_that_failed_is_read_again_whole(history: History) -> None:
    failures = iter([True, False, True])

    def read(**options: Any) -> Sequence[tuple[int, Entry]]:
        if next(failures, False):
            msg = "down"
            raise LogUnavailable(msg)
        return history.log.read(**{**options, "limit": 5})

    reader = history.reader(log=Wrapped(history.log, read=read))
    for _ in range(2):
        with pytest.raises(LogUnavailable):
            reader.read()
    assert reader.read() == history.reader().read()


def test_events_before_the_first_resync_are_the_tail_of_a_lost_history(history: History) -> None:
    """Retention cut the log: what is left of the past begins with its first resync."""
    first = next(
        record.position
        for tick in history.reader().read()
        for record in tick.records
        if isinstance(record.fact, ResyncStarted) and record.position > 0
    )

    def read(*, after: int, limit: int, timeout: timedelta) -> Sequence[tuple[int, Entry]]:
        return history.log.read(after=max(after, first - 1), limit=limit, timeout=timeout)

    log = Wrapped(history.log, read=read, bounds=lambda: (first, history.log.bounds()[1]))
    ticks = history.reader(log=log).read()
    assert ticks[0].records[0].position == first
    assert not ticks[0].before_start


# -- deciding again --------------------------------------------------------------------------------


def test_a_history_is_decided_again_without_a_difference(history: History) -> None:
    walked = history.walk()
    assert all(one.decided and not one.divergences for one in walked)
    assert [one.tick.row.tick for one in walked] == [row.tick for row in history.ticks()]


def test_what_is_before_the_range_is_applied_only(history: History) -> None:
    walked = history.walk(first_tick=5)
    assert [one.decided for one in walked[:5]] == [False] * 4 + [True]
    assert {one.why_not for one in walked[:4]} == {"before the range"}


def test_a_walk_that_was_left_goes_on_where_it_was(history: History) -> None:
    redecider = history.redecider()
    first = next(redecider.walk(limit=ALL))
    assert redecider.next_tick is not None
    assert redecider.next_tick.row.tick == 2
    assert next(redecider.walk(limit=ALL)).tick.row.tick == first.tick.row.tick + 1
    list(redecider.walk(limit=ALL))
    assert redecider.next_tick is None


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(None, "is not in the ledger", id="not there"),
        pytest.param(b"{", "configuration", id="not one that can be read"),
    ],
)
def test_ticks_of_a_configuration_that_cannot_be_built_are_not_decided(
    history: History, body: bytes | None, want: str
) -> None:
    ledger = Wrapped(history.ledger, config=lambda _: body)
    walked = history.walk(ledger=ledger)
    assert not any(one.decided for one in walked)
    assert want in walked[0].why_not


def test_ticks_of_other_rules_are_applied_as_facts(history: History) -> None:
    walked = history.walk(ledger=history.with_ticks(rules=RULES + 1))
    assert {one.why_not for one in walked} == {
        f"rules {RULES + 1}, and this is decklog with rules {RULES}"
    }


def test_another_configuration_is_decided_by_a_state_of_its_own(history: History) -> None:
    """A tick of another hash has the state folded anew, as a scheduler that starts has."""
    redecider = history.redecider()
    walked = list(redecider.walk(limit=3))
    before = redecider.state
    redecider._config_hash = "another"
    walked += redecider.walk(limit=ALL)
    assert redecider.state is not before
    assert all(one.decided and not one.divergences for one in walked)


def test_extenders_answers_are_given_back_in_their_order() -> None:
    """A request without a recorded answer is a difference to be found, not an end."""
    ask = _answers((b"one", b"two"))
    assert [ask(b"?") for _ in range(3)] == [b"one", b"two", b""]


def test_a_tick_before_the_beginning_only_moves_time_and_number(history: History) -> None:
    [tick] = history.reader().read(limit=1)
    state = SchedulerState(CONFIG)
    row = replace(tick.row, seq=7)
    apply_recorded(state, replace(tick, row=row, before_start=True))
    assert (state.seq, state.now_ms, state.position) == (7, row.now_ms, -1)


def test_a_tick_that_cannot_be_is_walked_to_again(history: History) -> None:
    redecider = history.redecider()
    ticks = history.reader().read()
    at = next(index for index, tick in enumerate(ticks) if tick.decisions)
    twice = replace(ticks[at], decisions=[*ticks[at].decisions, ticks[at].decisions[0]])
    redecider._ahead = deque([*ticks[:at], twice])
    with pytest.raises(IllegalTransition):
        list(redecider.walk(limit=ALL))
    assert redecider.next_tick is twice
