"""Selectors and tolerations select as kube-scheduler decides; errors are in its words."""

import pytest

from decklog.objects.matching import (
    EVERYTHING,
    NOTHING,
    InvalidSelector,
    Operator,
    Requirement,
    compile_label_map,
    compile_label_selector,
    compile_node_selector,
    count_untolerated_preferences,
    first_untolerated,
    matches_labels,
    node_selector_matches,
    preferred_score,
    preferred_terms,
    required_node_affinity,
    required_node_affinity_matches,
    tolerates,
)
from decklog.objects.pod import Affinity, NodeAffinity
from decklog.objects.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    Taint,
    Toleration,
)
from tests.builders import make_pod, make_selector, make_taint, make_toleration


@pytest.mark.parametrize(
    ("selector", "labels", "want"),
    [
        pytest.param(None, {"app": "web"}, False, id="no selector selects nothing"),
        pytest.param(LabelSelector(), {}, True, id="an empty one selects everything"),
        pytest.param(make_selector(app="web"), {"app": "web"}, True, id="equal"),
        pytest.param(make_selector(app="web"), {}, False, id="no such label"),
        pytest.param(make_selector(app="", x="1"), {"app": "", "x": "1"}, True, id="empty value"),
        pytest.param(make_selector(("app", "In", ("a", "b"))), {"app": "b"}, True, id="in"),
        pytest.param(make_selector(("app", "NotIn", ("a",))), {}, True, id="absent is not in"),
        pytest.param(make_selector(("app", "NotIn", ("a",))), {"app": "a"}, False, id="not in"),
        pytest.param(make_selector(("app", "Exists", ())), {"app": ""}, True, id="exists"),
        pytest.param(make_selector(("app", "DoesNotExist", ())), {}, True, id="does not exist"),
        pytest.param(make_selector(("app", "In", ())), {"app": "a"}, False, id="does not parse"),
    ],
)
def test_label_selectors(
    selector: LabelSelector | None, labels: dict[str, str], want: bool
) -> None:
    assert matches_labels(selector, labels) is want


@pytest.mark.parametrize(
    ("selector", "want"),
    [
        pytest.param(
            make_selector(("app", "Gt", ("1",))),
            '"Gt" is not a valid label selector operator',
            id="an operator of node selectors",
        ),
        pytest.param(
            make_selector(("app", "In", ())),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            id="In without values",
        ),
        pytest.param(
            make_selector(("app", "Exists", ("x",))),
            'values: Invalid value: ["x"]: values set must be empty for exists and does not exist',
            id="Exists with values",
        ),
        pytest.param(
            make_selector(("/x", "Exists", ())),
            'key: Invalid value: "/x": prefix part must be non-empty',
            id="a key that is none",
        ),
        pytest.param(
            make_selector(("x" * 64, "In", ())),
            f'[key: Invalid value: "{"x" * 64}": name part must be no more than 63 bytes, '
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty]",
            id="two problems",
        ),
    ],
)
def test_a_label_selector_that_does_not_parse_says_why(selector: LabelSelector, want: str) -> None:
    with pytest.raises(InvalidSelector) as error:
        compile_label_selector(selector)
    assert str(error.value) == want


def test_selectors_print_as_kubernetes_prints_them() -> None:
    selector = make_selector(
        ("z", "NotIn", ("b", "a")), ("y", "DoesNotExist", ()), ("x", "Exists", ()), app="web"
    )
    assert compile_label_selector(selector).text == "app=web,x,!y,z notin (a,b)"
    assert (NOTHING.text, EVERYTHING.text) == ("", "")
    assert (NOTHING.everything, EVERYTHING.everything) == (False, True)
    assert Requirement("n", Operator.GREATER_THAN, ("5",)).text == "n>5"


def test_the_map_of_a_service_is_taken_unchecked() -> None:
    assert compile_label_map(None) is NOTHING
    assert compile_label_map({}).everything
    assert compile_label_map({"a b": "é"}).matches({"a b": "é"})


def node_terms(*terms: tuple[tuple[str, str, tuple[str, ...]], ...]) -> NodeSelector:
    """Return a selector of terms, each of (key, operator, values)."""
    return NodeSelector(
        terms=tuple(
            NodeSelectorTerm(
                match_expressions=tuple(
                    NodeSelectorRequirement(key=key, operator=operator, values=values)
                    for key, operator, values in term
                    if not key.startswith("metadata.")
                ),
                match_fields=tuple(
                    NodeSelectorRequirement(key=key, operator=operator, values=values)
                    for key, operator, values in term
                    if key.startswith("metadata.")
                ),
            )
            for term in terms
        )
    )


@pytest.mark.parametrize(
    ("selector", "labels", "want"),
    [
        pytest.param(node_terms(), {}, False, id="no terms match nothing"),
        pytest.param(node_terms(()), {}, False, id="an empty term matches nothing"),
        pytest.param(node_terms((("n", "Gt", ("5",)),)), {"n": "6"}, True, id="greater"),
        pytest.param(node_terms((("n", "Gt", ("5",)),)), {"n": "5"}, False, id="not greater"),
        pytest.param(node_terms((("n", "Lt", ("5",)),)), {"n": "-4"}, True, id="less"),
        pytest.param(node_terms((("n", "Gt", ("5",)),)), {"n": "6.0"}, False, id="no integer"),
        pytest.param(node_terms((("n", "Gt", ("5",)),)), {"n": "+007"}, True, id="Go's integers"),
        pytest.param(node_terms((("n", "Gt", ("5",)),)), {"n": str(2**63)}, False, id="too large"),
        pytest.param(node_terms((("n", "Gt", ("5.5",)),)), {"n": "6"}, False, id="not parsed"),
        pytest.param(
            node_terms((("n", "Gt", ("x",)),), (("a", "Exists", ()),)), {"a": ""}, True, id="or"
        ),
        pytest.param(node_terms((("a", "NotIn", ("x",)),)), {}, True, id="absent is not in"),
        pytest.param(node_terms((("metadata.name", "In", ("n1",)),)), {}, True, id="by name"),
        pytest.param(node_terms((("metadata.name", "NotIn", ("n1",)),)), {}, False, id="not name"),
        pytest.param(node_terms((("metadata.uid", "In", ("",)),)), {}, True, id="other fields"),
        pytest.param(node_terms((("metadata.uid", "In", ("u",)),)), {}, False, id="are empty"),
    ],
)
def test_node_selectors(selector: NodeSelector, labels: dict[str, str], want: bool) -> None:
    assert node_selector_matches(selector, labels, "n1") is want


def test_a_term_that_does_not_parse_is_reported_only_where_no_other_matches() -> None:
    matcher = compile_node_selector(node_terms((("n", "Gt", ("x",)),), (("a", "Exists", ()),)))
    error = (
        'nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "x": '
        "for 'Gt', 'Lt' operators, the value must be an integer"
    )
    assert matcher.error == error
    assert matcher.judge({"a": ""}, "n1") == (True, "")
    assert matcher.judge({}, "n1") == (False, error)


def test_fields_take_one_value_and_two_operators() -> None:
    selector = node_terms((("metadata.name", "In", ("a", "b")), ("metadata.name", "Gt", ("1",))))
    assert compile_node_selector(selector).error == (
        '[nodeSelectorTerms[0].matchFields[0].values: Invalid value: ["a","b"]: '
        "must have one element, nodeSelectorTerms[0].matchFields[1].operator: "
        'Unsupported value: "Gt": supported values: "In", "NotIn"]'
    )


def test_a_pod_needs_its_node_selector_and_its_required_terms() -> None:
    required = node_terms((("disk", "In", ("ssd",)),))
    pod = make_pod(
        node_selector={"zone": "a"}, affinity=Affinity(node=NodeAffinity(required=required))
    )
    both, zone, disk = {"zone": "a", "disk": "ssd"}, {"zone": "a"}, {"disk": "ssd"}
    assert [required_node_affinity_matches(pod, labels, "n") for labels in (both, zone, disk)] == [
        True,
        False,
        False,
    ]
    assert required_node_affinity_matches(make_pod(), {}, "n")
    assert required_node_affinity_matches(make_pod(node_selector={}), {}, "n")
    assert required_node_affinity(make_pod()).judge({}, "n") == (True, "")


def test_preferred_terms_add_their_weights() -> None:
    def term(weight: int, *parts: tuple[str, str, tuple[str, ...]]) -> PreferredSchedulingTerm:
        return PreferredSchedulingTerm(weight=weight, preference=node_terms(parts).terms[0])

    terms = preferred_terms(
        [
            term(5, ("a", "Exists", ())),
            term(0, ("b", "Gt", ("x",))),
            term(9),
            term(-2, ("b", "Exists", ())),
        ]
    )
    assert preferred_score(terms, {"a": "", "b": ""}, "n") == 3
    assert preferred_score(terms, {"b": ""}, "n") == -2
    with pytest.raises(InvalidSelector, match=r"^\[0\]\.matchExpressions\[0\]\.values"):
        preferred_terms([term(1, ("b", "Gt", ("x",)))])


@pytest.mark.parametrize(
    ("toleration", "taint", "want"),
    [
        pytest.param(make_toleration("k", "v"), make_taint("k", "v"), True, id="equal"),
        pytest.param(make_toleration("k", "w"), make_taint("k", "v"), False, id="another value"),
        pytest.param(make_toleration("j", "v"), make_taint("k", "v"), False, id="another key"),
        pytest.param(
            make_toleration("k", operator="Exists"), make_taint("k", "v"), True, id="any value"
        ),
        pytest.param(make_toleration(operator="Exists"), make_taint("k"), True, id="any key"),
        pytest.param(
            make_toleration("k", "v", effect="NoExecute"),
            make_taint("k", "v"),
            False,
            id="another effect",
        ),
        pytest.param(
            make_toleration("k", "v", operator=""), make_taint("k", "v"), True, id="no operator"
        ),
        pytest.param(
            make_toleration("k", "v", operator="In"), make_taint("k", "v"), False, id="unknown"
        ),
    ],
)
def test_tolerations(toleration: Toleration, taint: Taint, want: bool) -> None:
    assert tolerates(toleration, taint) is want


@pytest.mark.parametrize(
    ("operator", "value", "taint", "want"),
    [
        pytest.param("Lt", "5", "4", True, id="the taint's value is less"),
        pytest.param("Lt", "5", "5", False, id="is not less"),
        pytest.param("Gt", "5", "6", True, id="is greater"),
        pytest.param("Gt", "-5", "-4", True, id="negative"),
        pytest.param("Gt", "5", "+6", False, id="a plus sign is no integer here"),
        pytest.param("Gt", "5", "06", False, id="nor are leading zeros"),
        pytest.param("Gt", "5", str(2**63), False, id="nor what exceeds int64"),
    ],
)
def test_numeric_tolerations_need_their_gate(
    operator: str, value: str, taint: str, want: bool
) -> None:
    toleration = make_toleration("k", value, operator=operator)
    assert tolerates(toleration, make_taint("k", taint), comparison=True) is want
    assert tolerates(toleration, make_taint("k", taint)) is False


def test_the_first_taint_that_keeps_the_pod_off() -> None:
    soft = make_taint("a", effect="PreferNoSchedule")
    hard, harder = make_taint("b"), make_taint("c", effect="NoExecute")
    assert first_untolerated([soft, hard, harder], []) == hard
    assert (
        first_untolerated([soft, hard, harder], [make_toleration("b", operator="Exists")]) == harder
    )
    assert first_untolerated([soft], []) is None


def test_only_tolerations_of_preferences_count_in_scores() -> None:
    taints = [make_taint(key, effect="PreferNoSchedule") for key in ("a", "b", "c")]
    tolerations = [
        make_toleration("a", operator="Exists"),
        make_toleration("b", operator="Exists", effect="NoSchedule"),
    ]
    assert count_untolerated_preferences([*taints, make_taint("d")], tolerations) == 2
