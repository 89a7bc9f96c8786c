"""What is kept between cycles is bounded, and right also when a bound is passed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from decklog.core import pod_class, row_loads, touch_log
from decklog.core.framework.status import Status
from decklog.core.nominator import Nominator
from decklog.core.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from decklog.core.ports import PortTable
from decklog.core.reasons import ReasonTable
from decklog.core.row_loads import KeptLoads
from decklog.core.row_verdicts import row_score
from decklog.core.touch_log import TouchLog
from decklog.objects.pod import Container
from tests.unit.core.columns_builders import make_cache, make_columns, make_node, make_pod
from tests.unit.core.small_plugins import Room


def test_what_changed_longer_ago_than_is_kept_may_be_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(touch_log, "ROWS_MAX", 2)
    log: TouchLog[int] = TouchLog()
    for row in range(5):
        log.append(row)
    assert (log.position, log.start) == (5, 2)
    assert log.since(1) is None
    assert log.since(2) == [2, 3, 4]
    assert list(log.since(5) or ()) == []
    log.touch_all()
    assert log.since(5) is None


def test_classes_of_pods_are_made_anew_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pod_class, "CLASSES_MAX", 2)
    columns = make_columns([make_node("a")])
    pods = [make_pod(f"p{number}", cpu=f"{number + 1}00m") for number in range(3)]
    first = columns.pod_class(pods[0])
    assert columns.pod_class(pods[0]) is first
    for pod in pods[1:]:
        columns.pod_class(pod)
    again = columns.pod_class(pods[0])
    assert again is not first
    assert again.accounted.tolist() == first.accounted.tolist()


def test_pods_are_looked_up_by_their_spec_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pod_class, "PODS_MAX", 2)
    columns = make_columns([make_node("a")])
    kinds = [columns.pod_class(make_pod(f"p{number}")) for number in range(5)]
    assert all(kind is kinds[0] for kind in kinds)


def test_a_port_that_is_none_is_in_nobodys_way() -> None:
    ports = PortTable()
    ports.add(0, ("", "TCP", 0))
    assert not ports.in_use(1, ("", "TCP", 0)).any()
    ports.remove(0, ("", "TCP", 0))


@dataclass(frozen=True, slots=True)
class Twice(Room):
    """Names each of its statuses under two codes, Success too."""

    statuses: Sequence[Status] = (*Room().statuses, *Room().statuses)


def test_a_reason_has_one_number_and_no_reason_is_none() -> None:
    half = len(Room().statuses)
    numbers = ReasonTable([Twice()]).numbers(0, np.arange(2 * half, dtype=np.uint16))
    assert numbers[:half].tolist() == numbers[half:].tolist()
    assert numbers[half] == 0


def test_what_lower_pods_ask_for_is_summed_again_when_a_new_resource_comes() -> None:
    cache = make_cache([make_node("a"), make_node("b")], [make_pod("low", on="a", priority=-1)])
    columns = cache.columns
    kept = KeptLoads(columns, Nominator())
    assert kept.lower(0).requested[0].tolist() == [100, 0]
    nominator = Nominator()
    asking = make_pod("n", priority=5)
    container = asking.containers[0]
    odd = make_pod(
        "odd",
        priority=5,
        containers=(type(container)(name="c", requests={"cpu": "1", "example.com/new": "3"}),),
    )
    nominator.add(odd, "b")
    loads = KeptLoads(columns, nominator).nominated(0)
    row = columns.resource_row("example.com/new")
    assert row is not None
    assert loads.requested[row].tolist() == [0, 3]
    assert loads.requested[0].tolist() == [0, 1000]


def test_sums_are_kept_for_few_priorities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_loads, "PRIORITIES_MAX", 2)
    cache = make_cache([make_node("a")], [make_pod("low", on="a", priority=-1)])
    kept = KeptLoads(cache.columns, Nominator())
    first = kept.lower(0)
    assert kept.lower(0) is first
    kept.lower(1)
    kept.lower(2)
    assert kept.lower(0) is not first


def test_amounts_that_floats_cannot_hold_are_for_the_plugin_to_judge() -> None:
    columns = make_columns(
        [make_node("a", allocatable={"cpu": "4", "memory": "32Gi", "pods": "9"})],
        [make_pod("huge", on="a", memory="8Ei")],
    )
    kind = columns.pod_class(make_pod("p"))
    of_row = row_score(NodeResourcesBalancedAllocation(), kind, columns)
    assert of_row is not None
    assert of_row(0) is None


def test_a_resource_that_became_known_after_the_class_counts_as_not_asked_for() -> None:
    plugin = NodeResourcesBalancedAllocation(resources=(("cpu", 1), ("x.io/gpu", 1)))
    columns, pod = make_columns([make_node("a")]), make_pod("p")
    kind = columns.pod_class(pod)
    asking = Container(name="c", requests={"x.io/gpu": "1"})
    columns.class_on_node(make_pod("q", containers=(asking,)))
    assert row_score(plugin, kind, columns) is None
