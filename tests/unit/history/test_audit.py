"""Lists of decisions, and one decision with all that belongs to it."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from decklog.history.audit import (
    GAP_MAX,
    Asked,
    Page,
    _stretches,
    list_decisions,
    listed_facts,
    show_decision,
    shown_facts,
)
from decklog.history.positions import AtDecision, resolve
from decklog.history.source import NotFound, Source
from decklog.ports.ledger import DecisionFilter
from tests.unit.history.conftest import Store
from tests.unit.history.test_verify_mutated import damage


def ask(source: Source, where: Mapping[str, Any] | None = None, limit: int = 100) -> Page:
    return list_decisions(source, Asked(where=DecisionFilter(**where or {}), limit=limit))


def test_the_newest_come_first_and_say_what_became_of_them(source: Source) -> None:
    page = ask(source)
    assert [item.row.seq for item in page.items] == list(range(source.head().seq, 0, -1))
    results = {(item.row.pod, item.result.text) for item in page.items}
    assert {("web-1", "Bound"), ("archive", "Unschedulable"), ("taken", "Adopted")} <= results
    assert not page.more


@pytest.mark.parametrize(
    ("where", "want"),
    [
        pytest.param({"namespace": "shop"}, {"PodAssumed"}, id="namespace"),
        pytest.param({"kind": "PodUnreserved"}, {"PodUnreserved"}, id="kind"),
        pytest.param({"reason": "BindRejected"}, {"PodUnreserved"}, id="reason"),
        pytest.param({"node": "small", "pod": "taken"}, {"BindingAdopted"}, id="node and pod"),
    ],
)
def test_filters(source: Source, where: dict[str, str], want: set[str]) -> None:
    items = ask(source, where).items
    assert {item.row.kind for item in items} == want
    for item in items:
        assert all(getattr(item.row, name) == value for name, value in where.items())


def test_a_limit_says_that_there_are_more(source: Source) -> None:
    page = ask(source, limit=3)
    assert len(page.items) == 3
    assert page.more


def test_bounds_are_moments(source: Source) -> None:
    after, until = resolve(AtDecision(4), source), resolve(AtDecision(7), source)
    page = list_decisions(source, Asked(after=after, until=until))
    assert [item.row.seq for item in page.items] == [7, 6, 5]


def test_a_decision_with_all_that_belongs_to_it(source: Source) -> None:
    unreserved = ask(source, {"kind": "PodUnreserved"}).items[0].row
    assert unreserved.closes_seq is not None
    found = show_decision(source, unreserved.closes_seq)
    assert found.closed_by is not None
    assert found.closed_by.seq == unreserved.seq
    assert [effect.state.value for effect in found.effects] == ["rejected"]
    assert found.problems == ()
    told = shown_facts(found)
    assert told["payload"][0] == unreserved.closes_seq
    assert json.loads(json.dumps(told)) == told


def test_every_decision_can_be_shown(source: Source) -> None:
    for seq in range(1, source.head().seq + 1):
        assert show_decision(source, seq).problems == ()


def test_a_broken_link_is_shown(store: Store) -> None:
    damage(store, "decision", "hash", "WHERE seq = 5")
    with store.source() as source:
        assert any("decision 6" in problem for problem in show_decision(source, 6).problems)
        assert any("decision 5" in problem for problem in show_decision(source, 5).problems)


def test_there_is_no_such_decision(source: Source) -> None:
    with pytest.raises(NotFound, match=f"it goes up to {source.head().seq}"):
        show_decision(source, 4_711)


def test_lists_are_plain_data(source: Source) -> None:
    told = [listed_facts(item) for item in ask(source).items]
    assert json.loads(json.dumps(told)) == told


@pytest.mark.parametrize(
    ("numbers", "want"),
    [
        ([], []),
        ([7], [(7, 7)]),
        ([3, 1, 2], [(1, 3)]),
        ([1, GAP_MAX + 1, 3 * GAP_MAX], [(1, GAP_MAX + 1), (3 * GAP_MAX, 3 * GAP_MAX)]),
    ],
)
def test_stretches_hold_all_numbers(numbers: list[int], want: list[tuple[int, int]]) -> None:
    assert list(_stretches(numbers)) == want
