"""What a position means, against one recorded history."""

from datetime import timedelta

import pytest

from decklog.core.errors import BadConfiguration
from decklog.events.facts import LeaderElected
from decklog.history.positions import (
    AtDecision,
    AtPosition,
    AtSnapshot,
    AtTime,
    Boot,
    Latest,
    resolve,
)
from decklog.history.source import NotFound, Source
from decklog.ports.ledger import TickRow


def ticks(source: Source) -> list[TickRow]:
    return list(source.ledger.ticks(source.stream, after=0, limit=1_000))


def test_latest_is_the_end_of_log_and_ledger(source: Source) -> None:
    moment = resolve(Latest(), source)
    assert moment.is_latest
    assert moment.position == source.events.bounds()[1]
    assert (moment.tick, moment.seq) == (source.head().tick, source.head().seq)


def test_a_position_has_every_tick_whose_cursor_is_not_beyond_it(source: Source) -> None:
    for position in range(source.events.bounds()[1] + 1):
        moment = resolve(AtPosition(position), source)
        before = [tick for tick in ticks(source) if tick.cursor <= position]
        assert moment.position == position
        assert moment.tick == (before[-1].tick if before else 0)
        assert moment.seq == (before[-1].seq if before else 0)


def test_a_time_has_every_tick_up_to_it(source: Source) -> None:
    for tick in ticks(source):
        same = [other for other in ticks(source) if other.now_ms == tick.now_ms]
        moment = resolve(AtTime(tick.now_ms), source)
        assert moment.tick == same[-1].tick
        assert moment.time_ms == tick.now_ms


def test_a_decision_ends_with_itself(source: Source) -> None:
    moment = resolve(AtDecision(3), source)
    tick = ticks(source)[moment.tick - 1]
    assert moment.seq == 3 < tick.seq
    assert moment.position == tick.cursor


def test_boot_is_where_the_generation_announced_itself(source: Source) -> None:
    moment = resolve(Boot(), source)
    entry = source.events.read(after=moment.position - 1, limit=1, timeout=timedelta(0))[0][1]
    assert entry.type == LeaderElected.ce_type
    assert b'"generation":2' in entry.value


@pytest.mark.parametrize(
    ("position", "problem"),
    [
        pytest.param(AtPosition(9_999), "position 9999 is not reached yet", id="position"),
        pytest.param(AtDecision(9_999), "no decision 9999", id="decision"),
        pytest.param(AtDecision(0), "no decision 0", id="decision 0"),
        pytest.param(AtTime(0), "nothing was recorded of 'test' by 1970", id="time"),
    ],
)
def test_what_is_not_there_is_said(
    source: Source, position: AtPosition | AtDecision | AtTime, problem: str
) -> None:
    with pytest.raises(NotFound, match=problem):
        resolve(position, source)


def test_there_are_no_snapshots_yet(source: Source) -> None:
    with pytest.raises(BadConfiguration, match="takes no snapshots"):
        resolve(AtSnapshot("noon"), source)
