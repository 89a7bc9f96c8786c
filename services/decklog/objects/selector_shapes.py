"""Which keys of selectors, tolerations and taints are kept."""

from typing import Final

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
from decklog.objects.shape import each, inside, integer, shape, text, text_map, texts

_REQUIREMENT: Final = {"key": text("key"), "operator": text("operator"), "values": texts("values")}
_LABEL_REQUIREMENT: Final = shape(LabelSelectorRequirement, _REQUIREMENT, key="", operator="")
_NODE_REQUIREMENT: Final = shape(NodeSelectorRequirement, _REQUIREMENT, key="", operator="")

LABEL_SELECTOR: Final = shape(
    LabelSelector,
    {
        "matchLabels": text_map("match_labels"),
        "matchExpressions": each("match_expressions", _LABEL_REQUIREMENT),
    },
)
NODE_SELECTOR_TERM: Final = shape(
    NodeSelectorTerm,
    {
        "matchExpressions": each("match_expressions", _NODE_REQUIREMENT),
        "matchFields": each("match_fields", _NODE_REQUIREMENT),
    },
)
NODE_SELECTOR: Final = shape(NodeSelector, {"nodeSelectorTerms": each("terms", NODE_SELECTOR_TERM)})
PREFERRED_TERM: Final = shape(
    PreferredSchedulingTerm,
    {"weight": integer("weight"), "preference": inside("preference", NODE_SELECTOR_TERM)},
    weight=0,
    preference=NodeSelectorTerm(),
)
TOLERATION: Final = shape(
    Toleration,
    {
        "key": text("key"),
        "operator": text("operator"),
        "value": text("value"),
        "effect": text("effect"),
    },
)
TAINT: Final = shape(
    Taint,
    {
        "key": text("key"),
        "value": text("value"),
        "effect": text("effect"),
        "timeAdded": text("time_added"),
    },
    key="",
)
