"""Vectors named (T) in kube-scheduler's unit tests stand here as rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from decklog.core.cache import Cache
from decklog.core.framework.interface import CycleState
from decklog.core.framework.status import SKIP, SUCCESS, Code, Status
from decklog.core.plugins.pod_topology_spread import STATUSES, PodTopologySpread
from decklog.core.plugins.spread_constraints import deduced_selector
from decklog.objects.meta import OwnerReference
from decklog.objects.node import Node
from decklog.objects.pod import Pod, TopologySpreadConstraint
from decklog.objects.policy import ReplicaSet, ReplicationController, Service
from decklog.objects.selectors import LabelSelector, LabelSelectorRequirement, Taint
from tests.unit.core.columns_builders import make_cache, make_node, make_pod

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
GREEN = LabelSelector(match_labels={"color": "green"})
_, MISSING, SKEWED = STATUSES


def make_host(name: str, zone: str = "", **fields: Any) -> Node:
    labels = {HOST: name} | ({ZONE: zone} if zone else {})
    return make_node(name, labels=labels, **fields)


def green(name: str, on: str = "", **fields: Any) -> Pod:
    return make_pod(name, on=on, labels={"color": "green"}, **fields)


def spread(
    key: str = ZONE, when: str = "DoNotSchedule", skew: int = 1, **fields: Any
) -> TopologySpreadConstraint:
    known: dict[str, Any] = {"topology_key": key, "when_unsatisfiable": when, "max_skew": skew}
    return TopologySpreadConstraint(**known | {"label_selector": GREEN} | fields)


def greens(*counts: int, names: Sequence[str] = "abcdef") -> list[Pod]:
    return [
        green(f"{name}{number}", on=name)
        for name, count in zip(names, counts, strict=False)
        for number in range(count)
    ]


@dataclass
class Asked:
    """The plugin, asked about a pod in a cluster."""

    pod: Pod
    cache: Cache
    plugin: PodTopologySpread = field(default_factory=PodTopologySpread)

    def __post_init__(self) -> None:
        self.columns = self.cache.columns
        self.state = CycleState(cluster=self.cache)

    def filtered(self) -> list[Status]:
        _, status = self.plugin.pre_filter(self.state, self.pod, self.columns)
        assert status == SUCCESS
        codes = self.plugin.filter(self.state, self.pod, self.columns)
        return [STATUSES[code] for code in codes]

    def scored(self, feasible: Sequence[bool] | None = None) -> tuple[list[int], list[int]]:
        """Return raw and normalised scores of the feasible nodes."""
        mask = np.array(feasible or [True] * len(self.columns), dtype=np.bool_)
        assert self.plugin.pre_score(self.state, self.pod, self.columns, mask) == SUCCESS
        raw = self.plugin.score(self.state, self.pod, self.columns)[mask]
        return raw.tolist(), self.plugin.normalize(self.state, self.pod, raw).tolist()


ZONES = [make_host("a", "z1"), make_host("b", "z1"), make_host("c", "z2")]


@pytest.mark.parametrize(
    ("constraint", "counts", "want"),
    [
        pytest.param(spread(), (0, 0, 0), [SUCCESS] * 3, id="nobody there yet"),
        pytest.param(spread(), (1, 0, 0), [SKEWED, SKEWED, SUCCESS], id="a zone is ahead by one"),
        pytest.param(spread(skew=2), (1, 0, 0), [SUCCESS] * 3, id="and may be"),
        pytest.param(spread(HOST), (1, 0, 0), [SKEWED, SUCCESS, SUCCESS], id="by hostname"),
        pytest.param(spread("rack"), (0, 0, 0), [MISSING] * 3, id="no node has the key"),
        pytest.param(spread(min_domains=3), (1, 0, 1), [SKEWED] * 3, id="too few domains"),
        pytest.param(spread(min_domains=2), (1, 0, 1), [SUCCESS] * 3, id="domains enough"),
        pytest.param(
            spread(label_selector=None), (5, 0, 0), [SUCCESS] * 3, id="no selector counts nobody"
        ),
        pytest.param(
            spread(label_selector=LabelSelector()),
            (5, 0, 0),
            [SUCCESS] * 3,
            id="an empty selector counts nobody either",
        ),
    ],
)
def test_filter(
    constraint: TopologySpreadConstraint, counts: tuple[int, ...], want: list[Status]
) -> None:
    pod = green("new", topology_spread_constraints=(constraint,))
    assert Asked(pod, make_cache(ZONES, greens(*counts))).filtered() == want


def test_the_first_constraint_that_fails_gives_the_reason() -> None:
    pod = green("new", topology_spread_constraints=(spread("rack"), spread(HOST)))
    assert Asked(pod, make_cache(ZONES, greens(1))).filtered() == [MISSING] * 3


def test_a_pod_that_its_selector_misses_may_join_a_full_domain() -> None:
    pod = make_pod("new", topology_spread_constraints=(spread(HOST),))
    assert Asked(pod, make_cache(ZONES, greens(1))).filtered() == [SUCCESS] * 3


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(green("x", on="a", namespace="other"), id="another namespace"),
        pytest.param(green("x", on="a", deleted="2026-01-01T00:00:00Z"), id="terminating"),
        pytest.param(make_pod("x", on="a", labels={"color": "red"}), id="not selected"),
    ],
)
def test_who_is_not_counted(other: Pod) -> None:
    pod = green("new", topology_spread_constraints=(spread(HOST),))
    assert Asked(pod, make_cache(ZONES, [other])).filtered() == [SUCCESS] * 3


def test_match_label_keys_narrow_the_selector_to_the_pods_own_revision() -> None:
    pod = make_pod(
        "new",
        labels={"color": "green", "hash": "2"},
        topology_spread_constraints=(spread(HOST, match_label_keys=("hash", "absent")),),
    )
    assert Asked(pod, make_cache(ZONES, greens(3))).filtered() == [SUCCESS] * 3


TAINTED = make_host("t", "z3", taints=(Taint(key="gpu", effect="NoSchedule"),))


@pytest.mark.parametrize(
    ("policy", "want"),
    [
        pytest.param(None, [SKEWED] * 3 + [SUCCESS], id="a tainted zone counts by default"),
        pytest.param("Honor", [SUCCESS] * 4, id="and does not where taints are honored"),
    ],
)
def test_taints_policy(policy: str | None, want: list[Status]) -> None:
    constraint = spread(node_taints_policy=policy)
    pod = green("new", topology_spread_constraints=(constraint,))
    cache = make_cache([*ZONES, TAINTED], greens(1, 0, 1))
    assert Asked(pod, cache).filtered() == want


@pytest.mark.parametrize(
    ("policy", "want"),
    [
        pytest.param(None, [SUCCESS, SUCCESS, SUCCESS], id="other zones are no domains"),
        pytest.param("Ignore", [SKEWED, SKEWED, SUCCESS], id="unless affinity is ignored"),
    ],
)
def test_affinity_policy(policy: str | None, want: list[Status]) -> None:
    constraint = spread(node_affinity_policy=policy)
    pod = green("new", node_selector={ZONE: "z1"}, topology_spread_constraints=(constraint,))
    assert Asked(pod, make_cache(ZONES, greens(1))).filtered() == want


def test_a_pod_more_or_less_changes_the_verdict() -> None:
    pod = green("new", topology_spread_constraints=(spread(),))
    asked = Asked(pod, make_cache(ZONES, greens(1)))
    asked.filtered()
    other = green("other", on="c")
    asked.plugin.add_pod(asked.state, pod, other, 2, asked.columns)
    assert [STATUSES[code] for code in asked.plugin.filter(asked.state, pod, asked.columns)] == [
        SUCCESS
    ] * 3
    asked.plugin.remove_pod(asked.state, pod, other, 2, asked.columns)
    stranger = green("stranger", on="c", namespace="other")
    asked.plugin.add_pod(asked.state, pod, stranger, 2, asked.columns)
    codes = asked.plugin.filter(asked.state, pod, asked.columns)
    assert [STATUSES[code] for code in codes] == [SKEWED, SKEWED, SUCCESS]


HOSTS = [make_host(name) for name in "abcd"]


@pytest.mark.parametrize(
    ("skew", "counts", "feasible", "normalised"),
    [
        pytest.param(1, (2, 1, 0, 3), None, [20, 60, 100, 0], id="skew 1"),
        pytest.param(2, (2, 1, 0, 3), None, [33, 66, 100, 16], id="skew 2"),
        pytest.param(3, (4, 3, 2, 1), None, [44, 66, 77, 100], id="skew 3"),
        pytest.param(
            1, (4, 2, 1, 0), [True, True, True, False], [33, 83, 100], id="three are feasible"
        ),
        pytest.param(1, (1, 1, 1, 1), None, [100] * 4, id="all equal"),
    ],
)
def test_score(
    skew: int, counts: tuple[int, ...], feasible: list[bool] | None, normalised: list[int]
) -> None:
    constraint = spread(HOST, "ScheduleAnyway", skew)
    pod = green("new", topology_spread_constraints=(constraint,))
    assert Asked(pod, make_cache(HOSTS, greens(*counts))).scored(feasible)[1] == normalised


def test_a_node_without_a_key_scores_nothing() -> None:
    constraint = spread(ZONE, "ScheduleAnyway")
    pod = green("new", topology_spread_constraints=(constraint,))
    cache = make_cache([*ZONES, make_host("bare")], greens(1))
    assert Asked(pod, cache).scored()[1] == [0, 0, 100, 0]


def test_where_every_counted_node_scores_0_all_of_them_get_the_most() -> None:
    constraint = spread(ZONE, "ScheduleAnyway")
    pod = green("new", topology_spread_constraints=(constraint,))
    cache = make_cache([*ZONES, make_host("bare")])
    assert Asked(pod, cache).scored()[1] == [100, 100, 100, 0]


def test_a_selector_of_nobody_counts_nobody_by_hostname() -> None:
    constraint = spread(HOST, "ScheduleAnyway", label_selector=None)
    pod = green("new", topology_spread_constraints=(constraint,))
    assert Asked(pod, make_cache(ZONES, greens(1))).scored() == ([0, 0, 0], [100, 100, 100])


def test_domains_without_a_feasible_node_do_not_count() -> None:
    constraint = spread(ZONE, "ScheduleAnyway")
    pod = green("new", topology_spread_constraints=(constraint,))
    raw, _ = Asked(pod, make_cache(ZONES, greens(0, 0, 4))).scored([True, True, False])
    assert raw == [0, 0]


def test_without_constraints_there_is_nothing_to_do() -> None:
    asked = Asked(make_pod("new"), make_cache(ZONES))
    assert asked.plugin.pre_filter(asked.state, asked.pod, asked.columns) == (None, SKIP)
    mask = np.ones(3, dtype=np.bool_)
    assert asked.plugin.pre_score(asked.state, asked.pod, asked.columns, mask) == SKIP


@pytest.mark.parametrize("when", ["DoNotSchedule", "ScheduleAnyway"])
def test_a_selector_that_does_not_parse_fails_the_cycle(when: str) -> None:
    bad = LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="Near"),))
    constraint = spread(HOST, when, label_selector=bad)
    asked = Asked(make_pod("new", topology_spread_constraints=(constraint,)), make_cache(ZONES))
    if when == "DoNotSchedule":
        status = asked.plugin.pre_filter(asked.state, asked.pod, asked.columns)[1]
    else:
        mask = np.ones(3, dtype=np.bool_)
        status = asked.plugin.pre_score(asked.state, asked.pod, asked.columns, mask)
    assert status.code is Code.ERROR


def make_service(selector: dict[str, str] | None) -> Service:
    return Service(uid="s", namespace="default", name="s", selector=selector)


def owned(kind: str, version: str) -> Pod:
    owner = OwnerReference(api_version=version, kind=kind, name="web", uid="o")
    return green("new", owner=owner)


def test_default_constraints_follow_what_selects_the_pod() -> None:
    cache = make_cache(HOSTS, greens(2, 1, 0, 3))
    asked = Asked(green("new"), cache)
    mask = np.ones(4, dtype=np.bool_)
    assert asked.plugin.pre_score(asked.state, asked.pod, asked.columns, mask) == SKIP
    cache.set_object("Service", "default/s", make_service({"color": "green"}))
    assert asked.scored()[1] == [42, 71, 100, 28]


def test_listed_defaults_filter_too() -> None:
    listed = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule"}
    cache = make_cache(HOSTS, greens(1))
    cache.set_object("Service", "default/s", make_service({"color": "green"}))
    plugin = PodTopologySpread(defaults=(listed,), system_defaults=False)
    assert Asked(green("new"), cache, plugin).filtered() == [SKEWED, SUCCESS, SUCCESS, SUCCESS]


@pytest.mark.parametrize(
    ("service", "want"),
    [
        pytest.param(make_service({"color": "green"}), "color=green", id="selects the pod"),
        pytest.param(make_service({"color": "red"}), None, id="selects others"),
        pytest.param(make_service({}), None, id="selects everybody"),
        pytest.param(make_service(None), None, id="selects nobody"),
        pytest.param(
            Service(uid="s", namespace="x", name="s", selector={"color": "green"}),
            None,
            id="another namespace",
        ),
    ],
)
def test_services_select(service: Service, want: str | None) -> None:
    cache = make_cache()
    cache.set_object("Service", f"{service.namespace}/s", service)
    found = deduced_selector(green("new"), cache)
    assert (found.text if found else None) == want


@pytest.mark.parametrize(
    ("pod", "selector", "want"),
    [
        pytest.param(owned("ReplicaSet", "apps/v1"), GREEN, "color=green", id="replica set"),
        pytest.param(owned("ReplicaSet", "apps/v2"), GREEN, None, id="another version"),
        pytest.param(owned("Job", "batch/v1"), GREEN, None, id="another kind"),
        pytest.param(owned("ReplicaSet", "apps/v1"), None, None, id="no selector"),
        pytest.param(
            owned("ReplicaSet", "apps/v1"),
            LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="x"),)),
            None,
            id="a selector that does not parse",
        ),
    ],
)
def test_owners_select(pod: Pod, selector: LabelSelector | None, want: str | None) -> None:
    cache = make_cache()
    owner = ReplicaSet(uid="o", namespace="default", name="web", selector=selector)
    cache.set_object("ReplicaSet", "default/web", owner)
    found = deduced_selector(pod, cache)
    assert (found.text if found else None) == want


def test_a_replication_controllers_value_wins_over_a_services() -> None:
    cache = make_cache()
    cache.set_object("Service", "default/s", make_service({"color": "green"}))
    controller = ReplicationController(
        uid="o", namespace="default", name="web", selector={"color": "blue"}
    )
    cache.set_object("ReplicationController", "default/web", controller)
    found = deduced_selector(owned("ReplicationController", "v1"), cache)
    assert found is not None
    assert found.text == "color=blue"
    cache.delete_object("ReplicationController", "default/web")
    assert deduced_selector(owned("ReplicationController", "v1"), cache) is not None
