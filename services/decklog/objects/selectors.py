"""Label selectors, node selectors and tolerations, as data. `matching.py` says what they select."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSelectorRequirement:
    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSelector:
    """An absent selector is None and selects nothing; an empty one selects everything."""

    match_labels: dict[str, str] = field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSelectorRequirement:
    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSelectorTerm:
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSelector:
    """Any one of the terms must match; without terms nothing does."""

    terms: tuple[NodeSelectorTerm, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferredSchedulingTerm:
    weight: int
    preference: NodeSelectorTerm


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    key: str
    value: str = ""
    effect: str = ""
    time_added: str = field(default="", compare=False)
    """Not part of what a taint means; a change of it wakes pods, as upstream has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """`toleration_seconds` is not kept: the scheduler does not read it."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
