"""What holds for every object, quantity and selector."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decklog.objects.kinds import KINDS, Kind
from decklog.objects.matching import (
    InvalidSelector,
    compile_label_selector,
    compile_node_selector,
    tolerates,
)
from decklog.objects.meta import KubeObject
from decklog.objects.pod import Container, ContainerStatus, Pod
from decklog.objects.quantity import INT64_MAX, InvalidQuantity, Quantity, counted, nano, parse
from decklog.objects.reduce import InvalidObject, reduce_object, restore_object
from decklog.objects.requests import accounted, incoming, non_zero, scoring
from decklog.objects.selectors import LabelSelector, NodeSelector, Taint, Toleration
from tests import strategies

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=5) | st.sampled_from(("spec", "name")), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@given(data=st.data())
def test_reducing_what_was_restored_changes_nothing(kind: Kind, data: st.DataObject) -> None:
    """A manifest of what is kept holds all that is kept, for every kind."""
    obj = data.draw(strategies.objects_of(kind))
    assert reduce_object(kind, restore_object(obj)) == obj


@given(known=strategies.objects)
def test_the_order_of_keys_changes_nothing(known: tuple[Kind, KubeObject]) -> None:
    """Equal contents have equal bytes, in whatever order a server writes its mappings."""
    kind, obj = known
    turned = _turned(restore_object(obj))
    assert repr(reduce_object(kind, turned)) == repr(obj)


def _turned(raw: Any) -> Any:
    """Return the same with the keys of every mapping in reverse."""
    if isinstance(raw, dict):
        return {key: _turned(raw[key]) for key in reversed(raw)}
    return [_turned(item) for item in raw] if isinstance(raw, list) else raw


@given(known=strategies.objects, data=st.data())
def test_a_damaged_object_is_refused_in_one_line(
    known: tuple[Kind, KubeObject], data: st.DataObject
) -> None:
    """Whatever stands in the place of a value: it is dropped, taken, or refused where it is."""
    kind, obj = known
    raw = restore_object(obj)
    paths = list(_paths(raw))
    *before, last = data.draw(st.sampled_from(paths))
    place: Any = raw
    for key in before:
        place = place[key]
    place[last] = data.draw(ANYTHING)
    try:
        reduced = reduce_object(kind, raw)
    except InvalidObject as refusal:
        error = refusal
    else:
        assert reduce_object(kind, restore_object(reduced)) == reduced
        return
    assert error.path
    assert "\n" not in str(error)


def _paths(raw: object, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the keys that lead to each value within."""
    if isinstance(raw, dict | list):
        for key, value in raw.items() if isinstance(raw, dict) else enumerate(raw):
            yield (*before, key)
            yield from _paths(value, (*before, key))


@given(text=strategies.quantity_texts())
def test_a_quantity_is_what_it_prints(text: str) -> None:
    quantity = parse(text)
    again = parse(quantity.text)
    assert again == quantity
    assert again.text == quantity.text


@given(text=st.text(alphabet="+-.0123456789eEinumkKMGTP ", max_size=12))
def test_a_quantity_is_read_or_refused(text: str) -> None:
    try:
        quantity = parse(text)
    except InvalidQuantity:
        return
    assert -INT64_MAX <= quantity.value() <= INT64_MAX
    assert -INT64_MAX <= quantity.milli_value() <= INT64_MAX
    assert parse(quantity.text) == quantity


@given(one=strategies.quantity_texts(), other=strategies.quantity_texts())
def test_sums_and_order_are_exact(one: str, other: str) -> None:
    left, right = parse(one), parse(other)
    assert _fraction(left + right) == _fraction(left) + _fraction(right)
    assert _fraction(left - right) == _fraction(left) - _fraction(right)
    assert (left < right) == (_fraction(left) < _fraction(right))
    assert (left == right) == (_fraction(left) == _fraction(right))
    assert Fraction(nano(one), 10**9) == _fraction(left)


@given(text=strategies.quantity_texts())
def test_rounding_is_away_from_zero(text: str) -> None:
    """The fast count of the hot path equals the quantity's own."""
    quantity = parse(text)
    exact = _fraction(quantity)
    assert abs(exact) <= abs(quantity.value()) < abs(exact) + 1 or abs(exact) > INT64_MAX
    assert counted("memory", nano(text)) == quantity.value()
    assert counted("cpu", nano(text)) == quantity.milli_value()


def _fraction(quantity: Quantity) -> Fraction:
    return Fraction(quantity.mantissa) * Fraction(10) ** quantity.exponent


@given(pod=strategies.pods())
def test_requests_are_what_the_specification_says(pod: Pod) -> None:
    """The quick sums equal the formula, written down once more and slowly."""
    assert incoming(pod) == _rounded(_plain_sum(pod, {}))
    resizes = {status.name: status for status in pod.container_statuses}
    if pod.status_resources is None and pod.resources is None:
        assert accounted(pod) == _rounded(_plain_sum(pod, resizes))
    if not resizes and pod.status_resources is None:
        assert accounted(pod) == incoming(pod)


@given(pod=strategies.pods())
def test_defaults_only_add_what_is_missing(pod: Pod) -> None:
    alone = replace(pod, resources=None, container_statuses=(), status_resources=None)
    asked, scored = incoming(alone), scoring(alone)
    assert scored.keys() >= asked.keys()
    others = asked.keys() - {"cpu", "memory"}
    assert {name: scored[name] for name in others} == {name: asked[name] for name in others}
    assert non_zero(alone) == (scored.get("cpu", 0), scored.get("memory", 0))


def _plain_sum(pod: Pod, resizes: Mapping[str, ContainerStatus]) -> dict[str, Fraction]:
    infeasible = next((c.reason for c in pod.conditions if c.type == "PodResizePending"), "")

    def asks(container: Container, *, resizable: bool) -> dict[str, Fraction]:
        spec = _fractions(container.requests)
        status = resizes.get(container.name) if resizable else None
        if status is None:
            return spec
        found = _highest(_fractions(status.requests), _fractions(status.allocated))
        return found if infeasible == "Infeasible" else _highest(found, spec)

    total: dict[str, Fraction] = {}
    for container in pod.containers:
        total = _sum(total, asks(container, resizable=True))
    sidecars: dict[str, Fraction] = {}
    start: dict[str, Fraction] = {}
    for container in pod.init_containers:
        if container.restart_policy == "Always":
            total = _sum(total, asks(container, resizable=True))
            sidecars = _sum(sidecars, asks(container, resizable=True))
            start = _highest(start, sidecars)
        else:
            start = _highest(start, _sum(sidecars, asks(container, resizable=False)))
    effective = _highest(total, start)
    if pod.resources is not None:
        for name, text in pod.resources.requests.items():
            if name in ("cpu", "memory") or name.startswith("hugepages-"):
                effective[name] = _fraction(parse(text))
    return _sum(effective, _fractions(pod.overhead))


def _fractions(texts: Mapping[str, str] | None) -> dict[str, Fraction]:
    return {name: _fraction(parse(text)) for name, text in (texts or {}).items()}


def _sum(one: dict[str, Fraction], other: dict[str, Fraction]) -> dict[str, Fraction]:
    names = one.keys() | other.keys()
    return {name: one.get(name, Fraction(0)) + other.get(name, Fraction(0)) for name in names}


def _highest(one: dict[str, Fraction], other: dict[str, Fraction]) -> dict[str, Fraction]:
    return {
        name: max(each[name] for each in (one, other) if name in each)
        for name in one.keys() | other.keys()
    }


def _rounded(amounts: dict[str, Fraction]) -> dict[str, int]:
    found = {}
    for name, exact in amounts.items():
        scaled = exact * 1000 if name == "cpu" else exact
        whole = math.ceil(abs(scaled))
        found[name] = max(-INT64_MAX, min(INT64_MAX, whole if scaled >= 0 else -whole))
    return found


@given(selector=strategies.label_selectors, labels=strategies.labels)
def test_a_selector_selects_what_all_its_parts_select(
    selector: LabelSelector, labels: dict[str, str]
) -> None:
    """The compiled selector equals its plain reading, one requirement after the other."""
    try:
        compiled = compile_label_selector(selector)
    except InvalidSelector:
        return
    want = all(labels.get(key) == value for key, value in selector.match_labels.items())
    for one in selector.match_expressions:
        has, value = one.key in labels, labels.get(one.key)
        want &= {
            "In": has and value in one.values,
            "NotIn": not has or value not in one.values,
            "Exists": has,
            "DoesNotExist": not has,
        }[one.operator]
    assert compiled.matches(labels) == want


@given(selector=strategies.node_selectors, labels=strategies.labels, name=strategies.names)
def test_a_node_selector_is_any_of_its_terms(
    selector: NodeSelector, labels: dict[str, str], name: str
) -> None:
    matcher = compile_node_selector(selector)
    alone = [compile_node_selector(NodeSelector(terms=(term,))) for term in selector.terms]
    assert matcher.matches(labels, name) == any(one.matches(labels, name) for one in alone)
    assert bool(matcher.error) == any(one.error for one in alone)


@given(taint=strategies.taints, toleration=strategies.tolerations)
def test_a_toleration_of_anything_tolerates_all(taint: Taint, toleration: Toleration) -> None:
    assert tolerates(Toleration(operator="Exists"), taint)
    assert tolerates(toleration, taint, comparison=True) >= tolerates(toleration, taint)
