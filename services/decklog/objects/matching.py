"""What selectors and tolerations select, as kube-scheduler v1.36 decides it.

A selector that does not parse selects nothing; where upstream reports the error, so does
`problem_of…`. The compiled forms are made once for a selector and asked many times.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from decklog.objects.pod import NodeAffinity, Pod
from decklog.objects.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    Taint,
    Toleration,
)

Labels = Mapping[str, str]
_NAME: Final = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)$", re.ASCII)
_PREFIX: Final = re.compile(
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", re.ASCII
)
_NAME_MAX: Final = 63
_PREFIX_MAX: Final = 253
_INT64: Final = re.compile(r"^[+-]?[0-9]+$", re.ASCII)
_PLAIN_INTEGER: Final = re.compile(r"^(0|-?[1-9][0-9]*)$", re.ASCII)
_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1
NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"


def is_label_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and (not prefix or len(prefix) > _PREFIX_MAX or _PREFIX.match(prefix) is None):
        return False
    return "/" not in prefix and 0 < len(name) <= _NAME_MAX and _NAME.match(name) is not None


def is_label_value(value: str) -> bool:
    return value == "" or (len(value) <= _NAME_MAX and _NAME.match(value) is not None)


def parse_int64(text: str) -> int | None:
    """Return the integer as Go's ParseInt reads it, or None."""
    if _INT64.match(text) is None:
        return None
    number = int(text)
    return number if _INT64_MIN <= number <= _INT64_MAX else None


@dataclass(frozen=True, slots=True)
class Requirement:
    """One compiled requirement on labels: `operator` is in, notin, exists, !, gt or lt."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()
    bound: int = 0

    def matches(self, labels: Labels) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value is not None and value in self.values
            case "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
            case _:
                number = None if value is None else parse_int64(value)
                if number is None:
                    return False
                return number > self.bound if self.operator == "gt" else number < self.bound

    @property
    def text(self) -> str:
        joined = ",".join(sorted(self.values))
        match self.operator:
            case "in" if len(self.values) == 1:
                return f"{self.key}={joined}" if self.bound else f"{self.key} in ({joined})"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({joined})"
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case _:
                return f"{self.key}{'>' if self.operator == 'gt' else '<'}{self.bound}"


@dataclass(frozen=True, slots=True)
class Selector:
    """A compiled selector: all of its requirements must hold."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Labels) -> bool:
        if self.nothing:
            return False
        return all(requirement.matches(labels) for requirement in self.requirements)

    @property
    def everything(self) -> bool:
        return not self.nothing and not self.requirements


NOTHING: Final = Selector(nothing=True)
EVERYTHING: Final = Selector()


class InvalidSelector(ValueError):
    """The selector does not parse."""


def compile_label_selector(selector: LabelSelector | None) -> Selector:
    """Return the compiled selector: None selects nothing, an empty one everything.

    Raises:
        InvalidSelector: it does not parse.
    """
    if selector is None:
        return NOTHING
    found = [_equals(key, value) for key, value in selector.match_labels.items()]
    found.extend(
        _label_requirement(one.key, one.operator, one.values) for one in selector.match_expressions
    )
    return Selector(tuple(sorted(found, key=lambda requirement: requirement.key)))


def matches_labels(selector: LabelSelector | None, labels: Labels) -> bool:
    """Say whether the selector selects the labels; one that does not parse selects nothing."""
    try:
        return compile_label_selector(selector).matches(labels)
    except InvalidSelector:
        return False


def _equals(key: str, value: str) -> Requirement:
    _check(key, (value,))
    return Requirement(key, "in", frozenset((value,)), bound=1)


_LABEL_OPERATORS: Final = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def _label_requirement(key: str, operator: str, values: Sequence[str]) -> Requirement:
    if operator not in _LABEL_OPERATORS:
        msg = f"{operator!r} is not a valid label selector operator"
        raise InvalidSelector(msg)
    if operator in ("In", "NotIn") and not values:
        msg = "for 'in', 'notin' operators, values set can't be empty"
        raise InvalidSelector(msg)
    if operator in ("Exists", "DoesNotExist") and values:
        msg = "values set must be empty for exists and does not exist"
        raise InvalidSelector(msg)
    _check(key, values)
    return Requirement(key, _LABEL_OPERATORS[operator], frozenset(values))


def _check(key: str, values: Iterable[str]) -> None:
    if not is_label_key(key):
        msg = f"invalid label key {key!r}"
        raise InvalidSelector(msg)
    for value in values:
        if not is_label_value(value):
            msg = f"invalid label value {value!r} of key {key!r}"
            raise InvalidSelector(msg)


# ---------------------------------------------------------------------------------------------
# Nodes


@dataclass(frozen=True, slots=True)
class CompiledTerm:
    """A node selector term: labels and the node's name must both match."""

    labels: Selector
    names: tuple[tuple[bool, str], ...] = ()
    """(wanted, name): the node's name must be it, or must not."""
    empty: bool = False
    problem: str = ""

    def matches(self, labels: Labels, name: str) -> bool:
        if self.empty or self.problem:
            return False
        return self.labels.matches(labels) and all(
            (name == other) is wanted for wanted, other in self.names
        )


@lru_cache(maxsize=8192)
def compile_term(term_key: "TermKey") -> CompiledTerm:
    """Compile a term, given as its hashable key."""
    expressions, fields = term_key
    if not expressions and not fields:
        return CompiledTerm(NOTHING, empty=True)
    try:
        labels = Selector(tuple(_node_requirement(*one) for one in expressions))
        names = tuple(_field_requirement(*one) for one in fields)
    except InvalidSelector as error:
        return CompiledTerm(NOTHING, problem=str(error))
    return CompiledTerm(labels, names)


TermKey = tuple[
    tuple[tuple[str, str, tuple[str, ...]], ...], tuple[tuple[str, str, tuple[str, ...]], ...]
]


def compiled(term: NodeSelectorTerm) -> CompiledTerm:
    return compile_term((_parts(term.match_expressions), _parts(term.match_fields)))


def _parts(
    requirements: Sequence[NodeSelectorRequirement],
) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    return tuple((one.key, one.operator, one.values) for one in requirements)


def _node_requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    if operator not in ("Gt", "Lt"):
        if operator not in _LABEL_OPERATORS:
            msg = f"{operator!r} is not a valid node selector operator"
            raise InvalidSelector(msg)
        return _label_requirement(key, operator, values)
    bound = parse_int64(values[0]) if len(values) == 1 else None
    if bound is None:
        msg = "for 'Gt', 'Lt' operators, exactly one integer is required"
        raise InvalidSelector(msg)
    _check(key, values)
    return Requirement(key, operator.lower(), bound=bound)


def _field_requirement(key: str, operator: str, values: tuple[str, ...]) -> tuple[bool, str]:
    if operator not in ("In", "NotIn"):
        msg = f"{operator!r} is not a valid node field selector operator"
        raise InvalidSelector(msg)
    if len(values) != 1:
        msg = "must have one element"
        raise InvalidSelector(msg)
    if key != "metadata.name":
        # The API server refuses any other field; it reads as empty.
        return (values[0] == "") is (operator == "In"), values[0] if values[0] else "\0"
    return operator == "In", values[0]


def node_selector_matches(selector: NodeSelector, labels: Labels, name: str) -> bool:
    """Say whether any term matches; terms that do not parse match nothing."""
    return any(compiled(term).matches(labels, name) for term in selector.terms)


def required_node_affinity_matches(pod: Pod, labels: Labels, name: str) -> bool:
    """Say whether the node satisfies the pod's nodeSelector and required node affinity."""
    if any(labels.get(key) != value for key, value in (pod.node_selector or {}).items()):
        return False
    affinity = node_affinity(pod)
    if affinity is None or affinity.required is None:
        return True
    return node_selector_matches(affinity.required, labels, name)


def node_affinity(pod: Pod) -> NodeAffinity | None:
    return pod.affinity.node if pod.affinity is not None else None


def preferred_terms(
    terms: Sequence[PreferredSchedulingTerm],
) -> list[tuple[int, CompiledTerm]]:
    """Return the compiled terms that can add to a score.

    Raises:
        InvalidSelector: a term with a weight does not parse.
    """
    found = []
    for term in terms:
        one = compiled(term.preference)
        if term.weight == 0 or one.empty:
            continue
        if one.problem:
            raise InvalidSelector(one.problem)
        found.append((term.weight, one))
    return found


# ---------------------------------------------------------------------------------------------
# Taints


def tolerates(toleration: Toleration, taint: Taint, *, comparison: bool = False) -> bool:
    """Say whether the toleration tolerates the taint; `comparison` switches Lt and Gt on."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "" | "Equal":
            return toleration.value == taint.value
        case "Lt" | "Gt" if comparison:
            return _compares(toleration, taint)
        case _:
            return False


def _compares(toleration: Toleration, taint: Taint) -> bool:
    wanted, found = _plain_integer(toleration.value), _plain_integer(taint.value)
    if wanted is None or found is None:
        return False
    return found < wanted if toleration.operator == "Lt" else found > wanted


def _plain_integer(text: str) -> int | None:
    return parse_int64(text) if _PLAIN_INTEGER.match(text) else None


def first_untolerated(
    taints: Iterable[Taint], tolerations: Sequence[Toleration], *, comparison: bool = False
) -> Taint | None:
    """Return the first taint that keeps the pod off the node; None if none does."""
    for taint in taints:
        if taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not any(
            tolerates(toleration, taint, comparison=comparison) for toleration in tolerations
        ):
            return taint
    return None


def count_untolerated_preferences(
    taints: Iterable[Taint], tolerations: Sequence[Toleration], *, comparison: bool = False
) -> int:
    """Count PreferNoSchedule taints that are not tolerated."""
    relevant = [one for one in tolerations if one.effect in ("", PREFER_NO_SCHEDULE)]
    return sum(
        taint.effect == PREFER_NO_SCHEDULE
        and not any(tolerates(one, taint, comparison=comparison) for one in relevant)
        for taint in taints
    )


Matcher = Callable[[Labels], bool]
