"""Selectors and tolerations from decoded JSON."""

from decklog.objects.raw import Raw, items, mapping, string_map, text, texts
from decklog.objects.selectors import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Toleration,
)


def label_selector(raw: Raw, key: str, path: str) -> LabelSelector | None:
    """Return the selector; None when there is none, which selects nothing."""
    if raw.get(key) is None:
        return None
    found = mapping(raw, key, path)
    inside = f"{path}.{key}"
    return LabelSelector(
        match_labels=string_map(found, "matchLabels", inside),
        match_expressions=tuple(
            LabelSelectorRequirement(
                key=text(one, "key", inside),
                operator=text(one, "operator", inside),
                values=texts(one, "values", inside),
            )
            for one in items(found, "matchExpressions", inside)
        ),
    )


def node_selector(raw: Raw, key: str, path: str) -> NodeSelector | None:
    if raw.get(key) is None:
        return None
    found = mapping(raw, key, path)
    inside = f"{path}.{key}"
    return NodeSelector(
        terms=tuple(
            node_selector_term(term, inside) for term in items(found, "nodeSelectorTerms", inside)
        )
    )


def node_selector_term(raw: Raw, path: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        match_expressions=_requirements(raw, "matchExpressions", path),
        match_fields=_requirements(raw, "matchFields", path),
    )


def _requirements(raw: Raw, key: str, path: str) -> tuple[NodeSelectorRequirement, ...]:
    return tuple(
        NodeSelectorRequirement(
            key=text(one, "key", path),
            operator=text(one, "operator", path),
            values=texts(one, "values", path),
        )
        for one in items(raw, key, path)
    )


def toleration(raw: Raw) -> Toleration:
    path = "spec.tolerations"
    return Toleration(
        key=text(raw, "key", path),
        operator=text(raw, "operator", path),
        value=text(raw, "value", path),
        effect=text(raw, "effect", path),
    )
