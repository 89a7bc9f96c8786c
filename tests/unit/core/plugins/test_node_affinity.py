from typing import Any

import numpy as np
import pytest

from decklog.core.errors import BadConfiguration
from decklog.core.framework.interface import CycleState
from decklog.core.framework.status import SKIP, SUCCESS, Code, unresolvable
from decklog.core.plugins.node_affinity import CONFLICT, NodeAffinity, make_node_affinity
from decklog.objects.pod import Affinity, Pod
from decklog.objects.pod import NodeAffinity as PodNodeAffinity
from decklog.objects.selectors import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from tests.builders import make_node, make_pod
from tests.unit.core.columns_builders import make_columns
from tests.unit.core.plugins.judging import judged, scored

NOT_MATCHED = unresolvable("node(s) didn't match Pod's node affinity/selector")
NOT_ENFORCED = unresolvable("node(s) didn't match scheduler-enforced node affinity")
NODES = [
    make_node("a", labels={"disk": "ssd", "tier": "1"}),
    make_node("b", labels={"disk": "hdd", "tier": "10"}),
    make_node("c"),
]


def term(*requirements: tuple[str, str, tuple[str, ...]], names: Any = ()) -> NodeSelectorTerm:
    """Return a term of requirements on labels, and of `names`: (operator, values) on the name."""
    return NodeSelectorTerm(
        match_expressions=tuple(
            NodeSelectorRequirement(key=key, operator=operator, values=values)
            for key, operator, values in requirements
        ),
        match_fields=tuple(
            NodeSelectorRequirement(key="metadata.name", operator=operator, values=values)
            for operator, values in names
        ),
    )


def with_field(key: str, value: str) -> NodeSelectorTerm:
    requirement = NodeSelectorRequirement(key=key, operator="In", values=(value,))
    return NodeSelectorTerm(match_fields=(requirement,))


def requiring(*terms: NodeSelectorTerm, **fields: Any) -> Pod:
    node = PodNodeAffinity(required=NodeSelector(terms=terms))
    return make_pod(affinity=Affinity(node=node), **fields)


def preferring(*terms: tuple[int, NodeSelectorTerm]) -> Pod:
    preferred = tuple(PreferredSchedulingTerm(weight=w, preference=t) for w, t in terms)
    return make_pod(affinity=Affinity(node=PodNodeAffinity(preferred=preferred)))


SSD = term(("disk", "In", ("ssd",)))


@pytest.mark.parametrize(
    ("pod", "fitting"),
    [
        pytest.param(make_pod(), "abc", id="nothing asked"),
        pytest.param(make_pod(node_selector={"disk": "ssd"}), "a", id="node selector"),
        pytest.param(make_pod(node_selector={"disk": "nvme"}), "", id="value that no node has"),
        pytest.param(make_pod(node_selector={"none": ""}), "", id="an absent label is not empty"),
        pytest.param(make_pod(node_selector={}), "abc", id="empty selector"),
        pytest.param(requiring(SSD), "a", id="In"),
        pytest.param(requiring(term(("disk", "NotIn", ("ssd",)))), "bc", id="NotIn"),
        pytest.param(requiring(term(("disk", "Exists", ()))), "ab", id="Exists"),
        pytest.param(requiring(term(("disk", "DoesNotExist", ()))), "c", id="DoesNotExist"),
        pytest.param(requiring(term(("tier", "Gt", ("5",)))), "b", id="Gt"),
        pytest.param(requiring(term(("tier", "Lt", ("5",)))), "a", id="Lt"),
        pytest.param(requiring(term(names=[("In", ("c",))])), "c", id="by name"),
        pytest.param(requiring(term(names=[("NotIn", ("c",))])), "ab", id="not by name"),
        pytest.param(requiring(with_field("metadata.uid", "x")), "", id="another field is empty"),
        pytest.param(requiring(with_field("metadata.uid", "")), "abc", id="and equals nothing"),
        pytest.param(
            requiring(term(("disk", "Exists", ()), ("tier", "Gt", ("5",)))),
            "b",
            id="all requirements of a term hold",
        ),
        pytest.param(requiring(SSD, term(names=[("In", ("c",))])), "ac", id="any term"),
        pytest.param(requiring(), "", id="no term matches nothing"),
        pytest.param(requiring(term()), "", id="an empty term matches nothing"),
        pytest.param(
            requiring(SSD, node_selector={"tier": "10"}), "", id="selector and terms both hold"
        ),
        pytest.param(
            requiring(term(("disk", "Like", ("s",)))), "", id="a bad term matches nothing"
        ),
        pytest.param(requiring(term(("disk", "Like", ("s",))), SSD), "a", id="beside a bad term"),
    ],
)
def test_filter(pod: Pod, fitting: str) -> None:
    want = [SUCCESS if node.name in fitting else NOT_MATCHED for node in NODES]
    assert judged(NodeAffinity(), pod, NODES) == want


def test_what_is_added_comes_first() -> None:
    required = {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "tier", "operator": "Exists"}]}]
    }
    plugin = make_node_affinity(
        {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    )
    found = judged(plugin, make_pod(node_selector={"disk": "ssd"}), NODES)
    assert found == [SUCCESS, NOT_MATCHED, NOT_ENFORCED]


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(make_pod(), SKIP, id="nothing asked"),
        pytest.param(make_pod(node_selector={}), SUCCESS, id="an empty selector is one"),
        pytest.param(requiring(), SUCCESS, id="terms, and none"),
        pytest.param(
            requiring(term(names=[("In", ("a",)), ("In", ("b",))])),
            CONFLICT,
            id="two names at once",
        ),
    ],
)
def test_pre_filter_status(pod: Pod, want: object) -> None:
    assert NodeAffinity().pre_filter(CycleState(), pod, make_columns(NODES)) == (None, want)


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(requiring(term(names=[("In", ("a",))])), {"a"}, id="one term"),
        pytest.param(
            requiring(term(names=[("In", ("a",))]), term(names=[("In", ("b", "z"))])),
            {"a", "b", "z"},
            id="union of terms",
        ),
        pytest.param(
            requiring(term(names=[("In", ("a", "b")), ("In", ("b", "c"))])),
            {"b"},
            id="intersection inside a term",
        ),
        pytest.param(requiring(term(names=[("In", ("a",))]), SSD), None, id="a term without names"),
        pytest.param(requiring(term(names=[("NotIn", ("a",))])), None, id="NotIn names no node"),
    ],
)
def test_pre_filter_narrows(pod: Pod, want: set[str] | None) -> None:
    result, status = NodeAffinity().pre_filter(CycleState(), pod, make_columns(NODES))
    assert status == SUCCESS
    assert (None if result is None else result.node_names) == want


def test_score_sums_the_weights_of_matching_terms() -> None:
    pod = preferring((5, SSD), (2, term(("tier", "Exists", ()))), (0, SSD), (9, term()))
    assert scored(NodeAffinity(), pod, NODES) == [7, 2, 0]


def test_score_counts_what_is_added() -> None:
    preference = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["c"]}]}
    preferred = [{"weight": 3, "preference": preference}]
    plugin = make_node_affinity(
        {"addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    )
    assert scored(plugin, make_pod(), NODES) == [0, 0, 3]


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(make_pod(), Code.SKIP, id="no preferences"),
        pytest.param(preferring(), Code.SUCCESS, id="an empty list is one"),
        pytest.param(preferring((1, term(("disk", "In", ("-1",))))), Code.ERROR, id="bad value"),
        pytest.param(
            preferring((0, term(("disk", "In", ("-1",))))), Code.SUCCESS, id="bad, without weight"
        ),
    ],
)
def test_pre_score(pod: Pod, want: Code) -> None:
    columns = make_columns(NODES)
    status = NodeAffinity().pre_score(CycleState(), pod, columns, columns.present)
    assert status.code == want


def test_normalize_makes_the_best_100() -> None:
    plugin, pod = NodeAffinity(), make_pod()
    assert plugin.normalize(CycleState(), pod, np.array([0, 5, 2])).tolist() == [0, 100, 40]
    assert plugin.normalize(CycleState(), pod, np.array([0, 0])).tolist() == [0, 0]


@pytest.mark.parametrize(
    "added",
    [
        pytest.param(
            {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": "all"}},
            id="wrong form",
        ),
        pytest.param(
            {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Like"}]}]
                }
            },
            id="required term",
        ),
        pytest.param(
            {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 1,
                        "preference": {"matchExpressions": [{"key": "a", "operator": "Like"}]},
                    }
                ]
            },
            id="preferred term",
        ),
    ],
)
def test_a_term_that_does_not_parse_is_refused(added: dict[str, Any]) -> None:
    with pytest.raises(BadConfiguration, match="addedAffinity"):
        make_node_affinity({"addedAffinity": added})
