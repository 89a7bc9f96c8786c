"""What selectors and tolerations select, as kube-scheduler decides it.

A selector is compiled once and asked many times. Compiling reports errors in Kubernetes' words:
a label selector that does not parse raises, a term of a node selector that does not parse
matches nothing and keeps its errors, since another term may match all the same.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Final

from decklog.objects.go_text import aggregate, listed, parse_int64, quoted
from decklog.objects.label_syntax import key_problem, value_problem
from decklog.objects.pod import Pod
from decklog.objects.selectors import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    Taint,
    Toleration,
)

Labels = Mapping[str, str]
SELECTORS_CACHED: Final = 1 << 13
"""Compiled selectors that are remembered, some 10 MB; a cluster has about one for each workload."""
NODE_NAME: Final = "metadata.name"
"""The one field of a node that terms select by; any other reads as empty."""
NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"
_PLAIN_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)


class Operator(StrEnum):
    """The value is how Kubernetes prints the operator between key and values."""

    EQUALS = "="
    IN = " in "
    NOT_IN = " notin "
    EXISTS = ""
    DOES_NOT_EXIST = "!"
    GREATER_THAN = ">"
    LESS_THAN = "<"


_LABEL_OPERATORS: Final[Mapping[str, Operator]] = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}
_NODE_OPERATORS: Final[Mapping[str, Operator]] = {
    **_LABEL_OPERATORS,
    "Gt": Operator.GREATER_THAN,
    "Lt": Operator.LESS_THAN,
}


class InvalidSelector(ValueError):
    """The selector does not parse; the message is Kubernetes'."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on the value of one label."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def accepts(self, value: str | None) -> bool:
        """Whether the condition holds for this value of the label; None: there is no such label."""
        return self.test()(value)

    def test(self) -> Callable[[str | None], bool]:
        """Return `accepts` as a function that has nothing left to look up."""
        match self.operator:
            case Operator.EQUALS | Operator.IN:
                return frozenset(self.values).__contains__
            case Operator.NOT_IN:
                unwanted = frozenset(self.values)
                return lambda value: value not in unwanted
            case Operator.EXISTS:
                return lambda value: value is not None
            case Operator.DOES_NOT_EXIST:
                return lambda value: value is None
            case Operator.GREATER_THAN | Operator.LESS_THAN:
                return self._compare()

    def _compare(self) -> Callable[[str | None], bool]:
        bound = parse_int64(self.values[0])
        greater = self.operator is Operator.GREATER_THAN

        def test(value: str | None) -> bool:
            number = None if value is None else parse_int64(value)
            if number is None or bound is None:
                return False
            return number > bound if greater else number < bound

        return test

    @property
    def text(self) -> str:
        """The requirement as Kubernetes prints it."""
        match self.operator:
            case Operator.EXISTS:
                return self.key
            case Operator.DOES_NOT_EXIST:
                return f"!{self.key}"
            case Operator.IN | Operator.NOT_IN:
                return f"{self.key}{self.operator}({','.join(sorted(self.values))})"
            case _:
                return f"{self.key}{self.operator}{self.values[0]}"


@dataclass(frozen=True, slots=True)
class Selector:
    """A compiled selector of labels: all requirements must hold."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False
    _tests: tuple[tuple[str, Callable[[str | None], bool]], ...] = field(
        init=False, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        tests = tuple((one.key, one.test()) for one in self.requirements)
        object.__setattr__(self, "_tests", tests)

    def matches(self, labels: Labels) -> bool:
        if self.nothing:
            return False
        get = labels.get
        for key, accepts in self._tests:  # noqa: SIM110 - all() costs twice as much here
            if not accepts(get(key)):
                return False
        return True

    @property
    def everything(self) -> bool:
        return not self.nothing and not self.requirements

    @property
    def text(self) -> str:
        """The selector as Kubernetes prints it; empty for nothing, and for everything."""
        return ",".join(requirement.text for requirement in self.requirements)


NOTHING: Final = Selector(nothing=True)
EVERYTHING: Final = Selector()


def compile_label_selector(selector: LabelSelector | None) -> Selector:
    """Return the compiled selector; None selects nothing, an empty selector everything.

    Raises:
        InvalidSelector: it does not parse.
    """
    if selector is None:
        return NOTHING
    return _compiled(tuple(selector.match_labels.items()), selector.match_expressions)


def compile_label_map(labels: Mapping[str, str] | None) -> Selector:
    """Return the selector of a Service or ReplicationController; nothing is checked."""
    if labels is None:
        return NOTHING
    return Selector(
        tuple(Requirement(key, Operator.EQUALS, (labels[key],)) for key in sorted(labels))
    )


def matches_labels(selector: LabelSelector | None, labels: Labels) -> bool:
    """Whether the selector selects the labels; one that does not parse selects nothing."""
    try:
        return compile_label_selector(selector).matches(labels)
    except InvalidSelector:
        return False


@lru_cache(maxsize=SELECTORS_CACHED)
def _compiled(
    labels: tuple[tuple[str, str], ...], expressions: tuple[LabelSelectorRequirement, ...]
) -> Selector:
    found = [_requirement(key, Operator.EQUALS, (value,)) for key, value in labels]
    for one in expressions:
        operator = _LABEL_OPERATORS.get(one.operator)
        if operator is None:
            msg = f"{quoted(one.operator)} is not a valid label selector operator"
            raise InvalidSelector(msg)
        found.append(_requirement(one.key, operator, one.values))
    return Selector(tuple(sorted(found, key=lambda requirement: requirement.key)))


def _requirement(key: str, operator: Operator, values: tuple[str, ...]) -> Requirement:
    problems = _problems(key, operator, values, path="")
    if problems:
        raise InvalidSelector(aggregate(problems))
    return Requirement(key, operator, values)


def _problems(key: str, operator: Operator, values: tuple[str, ...], *, path: str) -> list[str]:
    """Return what is wrong with a requirement, in the order in which Kubernetes finds it."""
    found = []
    if problem := key_problem(key):
        found.append(f"{path}key: Invalid value: {quoted(key)}: {problem}")
    if problem := _count_problem(operator, len(values)):
        found.append(f"{path}values: Invalid value: {listed(values)}: {problem}")
    if operator in (Operator.GREATER_THAN, Operator.LESS_THAN):
        found.extend(
            f"{path}values[{index}]: Invalid value: {quoted(value)}: "
            "for 'Gt', 'Lt' operators, the value must be an integer"
            for index, value in enumerate(values)
            if parse_int64(value) is None
        )
    found.extend(
        f"{path}values[{index}][{key}]: Invalid value: {quoted(value)}: {problem}"
        for index, value in enumerate(values)
        if (problem := value_problem(value))
    )
    return found


def _count_problem(operator: Operator, count: int) -> str:
    match operator:
        case Operator.IN | Operator.NOT_IN if count == 0:
            return "for 'in', 'notin' operators, values set can't be empty"
        case Operator.EXISTS | Operator.DOES_NOT_EXIST if count > 0:
            return "values set must be empty for exists and does not exist"
        case Operator.GREATER_THAN | Operator.LESS_THAN if count != 1:
            return "for 'Gt', 'Lt' operators, exactly one value is required"
        case _:
            return ""


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """A compiled term of a node selector: its requirements on labels and on fields must hold."""

    labels: Selector = EVERYTHING
    fields: tuple[tuple[str, bool, str], ...] = ()
    """(field, wanted, value): the field must have the value, or must not have it."""
    errors: tuple[str, ...] = ()
    """Why the term does not parse; such a term matches nothing."""

    def matches(self, labels: Labels, name: str) -> bool:
        if self.errors or not self.labels.matches(labels):
            return False
        # A node without a name has no fields at all, and upstream then asks for none.
        return not name or all(
            ((name if key == NODE_NAME else "") == value) is wanted
            for key, wanted, value in self.fields
        )


@dataclass(frozen=True, slots=True)
class NodeMatcher:
    """A compiled node selector: any one of the terms must match. Empty terms are not here."""

    terms: tuple[NodeTerm, ...] = ()

    @property
    def error(self) -> str:
        """What is wrong with the selector as a whole; empty when all terms parse."""
        return aggregate([error for term in self.terms for error in term.errors])

    def matches(self, labels: Labels, name: str) -> bool:
        return any(term.matches(labels, name) for term in self.terms)

    def judge(self, labels: Labels, name: str) -> tuple[bool, str]:
        """Return whether the node matches, and the error that is reported when it does not."""
        matched = self.matches(labels, name)
        return matched, "" if matched else self.error


@lru_cache(maxsize=SELECTORS_CACHED)
def compile_node_selector(selector: NodeSelector) -> NodeMatcher:
    """Return the compiled selector; a term that does not parse keeps its errors and never matches.

    A selector without terms matches nothing, and so does a term without requirements.
    """
    return NodeMatcher(
        tuple(
            _node_term(term, f"nodeSelectorTerms[{index}].")
            for index, term in enumerate(selector.terms)
            if term.match_expressions or term.match_fields
        )
    )


def node_selector_matches(selector: NodeSelector, labels: Labels, name: str) -> bool:
    """Whether any term matches the node; terms that do not parse match nothing."""
    return compile_node_selector(selector).matches(labels, name)


@dataclass(frozen=True, slots=True)
class RequiredNodeAffinity:
    """What a pod requires of its node: all pairs of its node selector, and its required terms."""

    pairs: tuple[tuple[str, str], ...] = ()
    matcher: NodeMatcher | None = None
    """None: the pod has no required terms."""

    def matches(self, labels: Labels, name: str) -> bool:
        if any(labels.get(key) != value for key, value in self.pairs):
            return False
        return self.matcher is None or self.matcher.matches(labels, name)

    def judge(self, labels: Labels, name: str) -> tuple[bool, str]:
        """Return whether the node matches, and the error that is reported when it does not."""
        if self.matcher is None or any(labels.get(key) != value for key, value in self.pairs):
            return self.matches(labels, name), ""
        return self.matcher.judge(labels, name)


def required_node_affinity(pod: Pod) -> RequiredNodeAffinity:
    pairs = tuple((pod.node_selector or {}).items())
    affinity = pod.affinity.node if pod.affinity is not None else None
    if affinity is None or affinity.required is None:
        return RequiredNodeAffinity(pairs)
    return RequiredNodeAffinity(pairs, compile_node_selector(affinity.required))


def required_node_affinity_matches(pod: Pod, labels: Labels, name: str) -> bool:
    """Whether the node satisfies the pod's node selector and required node affinity."""
    return required_node_affinity(pod).matches(labels, name)


def preferred_terms(terms: Sequence[PreferredSchedulingTerm]) -> list[tuple[int, NodeTerm]]:
    """Return (weight, compiled term) of every term that can add to a score.

    Raises:
        InvalidSelector: one of them does not parse.
    """
    found = [
        (term.weight, _node_term(term.preference, f"[{index}]."))
        for index, term in enumerate(terms)
        if term.weight and (term.preference.match_expressions or term.preference.match_fields)
    ]
    errors = [error for _, term in found for error in term.errors]
    if errors:
        raise InvalidSelector(aggregate(errors))
    return found


def preferred_score(terms: Iterable[tuple[int, NodeTerm]], labels: Labels, name: str) -> int:
    """Return the sum of the weights of the terms that match the node."""
    return sum(weight for weight, term in terms if term.matches(labels, name))


def tolerates(toleration: Toleration, taint: Taint, *, comparison: bool = False) -> bool:
    """Whether the toleration tolerates the taint.

    `comparison` is the gate TaintTolerationComparisonOperators: with it off, Lt and Gt never do.
    """
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


def first_untolerated(
    taints: Iterable[Taint], tolerations: Sequence[Toleration], *, comparison: bool = False
) -> Taint | None:
    """Return the first taint that keeps the pod off the node; None if there is none."""
    for taint in taints:
        if taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not any(
            tolerates(toleration, taint, comparison=comparison) for toleration in tolerations
        ):
            return taint
    return None


def count_untolerated_preferences(
    taints: Iterable[Taint], tolerations: Sequence[Toleration], *, comparison: bool = False
) -> int:
    """Return how many PreferNoSchedule taints are not tolerated, as TaintToleration scores them."""
    relevant = [one for one in tolerations if one.effect in ("", PREFER_NO_SCHEDULE)]
    return sum(
        taint.effect == PREFER_NO_SCHEDULE
        and not any(tolerates(one, taint, comparison=comparison) for one in relevant)
        for taint in taints
    )


def _node_term(term: NodeSelectorTerm, path: str) -> NodeTerm:
    errors: list[str] = []
    requirements = []
    for index, one in enumerate(term.match_expressions):
        where = f"{path}matchExpressions[{index}]."
        operator = _NODE_OPERATORS.get(one.operator)
        if operator is None:
            errors.append(_unsupported(where, one.operator, _NODE_OPERATORS))
            continue
        errors.extend(_problems(one.key, operator, one.values, path=where))
        requirements.append(Requirement(one.key, operator, one.values))
    for index, one in enumerate(term.match_fields):
        errors.extend(_field_problems(one, f"{path}matchFields[{index}]."))
    if errors:
        return NodeTerm(NOTHING, errors=tuple(errors))
    return NodeTerm(
        Selector(tuple(requirements)),
        tuple((one.key, one.operator == "In", one.values[0]) for one in term.match_fields),
    )


def _field_problems(requirement: NodeSelectorRequirement, path: str) -> list[str]:
    if requirement.operator not in ("In", "NotIn"):
        return [_unsupported(path, requirement.operator, ("In", "NotIn"))]
    if len(requirement.values) != 1:
        shown = listed(requirement.values)
        return [f"{path}values: Invalid value: {shown}: must have one element"]
    return []


def _unsupported(path: str, operator: str, supported: Iterable[str]) -> str:
    names = ", ".join(map(quoted, supported))
    return f"{path}operator: Unsupported value: {quoted(operator)}: supported values: {names}"


def _compares(toleration: Toleration, taint: Taint) -> bool:
    wanted, found = _plain_integer(toleration.value), _plain_integer(taint.value)
    if wanted is None or found is None:
        return False
    return found < wanted if toleration.operator == "Lt" else found > wanted


def _plain_integer(text: str) -> int | None:
    """Return the integer; neither a plus sign nor leading zeros are taken here."""
    return parse_int64(text) if _PLAIN_INTEGER.fullmatch(text) else None
