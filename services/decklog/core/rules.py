"""The number of the rules by which decklog decides.

A change that alters any recorded decision, payload byte or tie raises RULES in the same commit.
Every tick records it; history of other rules is chain-checked and not re-decided.
"""

from dataclasses import dataclass
from typing import Final

RULES: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Parity:
    """Which kube-scheduler we answer like: each field is a rule that differs between releases."""

    release: str
    numeric_tolerations: bool
    """Operators Lt and Gt of tolerations (gate TaintTolerationComparisonOperators)."""
    dynamic_resources_post_filter: bool
    """DynamicResources answers PostFilter before DefaultPreemption (since 1.34)."""
    balanced_allocation_delta: bool
    """NodeResourcesBalancedAllocation scores the change that the pod makes (since 1.36)."""
    declared_features: bool
    """NodeDeclaredFeatures is a default plugin (since 1.36)."""


V1_36: Final = Parity(
    release="1.36",
    numeric_tolerations=False,
    dynamic_resources_post_filter=True,
    balanced_allocation_delta=True,
    declared_features=True,
)
PARITIES: Final = {parity.release: parity for parity in (V1_36,)}
"""By release, as a stored configuration names it."""
