"""Which topology spread constraints hold for a pod: its own, or the plugin's defaults.

Defaults count what the pod's services and its controller select; a pod that nothing selects has
no defaults.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from decklog.core.columns import NodeColumns
from decklog.core.framework.interface import ClusterView, Mask
from decklog.core.plugins.node_affinity import required_rows
from decklog.core.pod_counts import Query
from decklog.objects.matching import (
    InvalidSelector,
    Selector,
    compile_label_map,
    compile_label_selector,
    first_untolerated,
    required_node_affinity,
)
from decklog.objects.pod import Pod, TopologySpreadConstraint

HONOR: Final = "Honor"
SYSTEM_DEFAULTS: Final[tuple[Mapping[str, Any], ...]] = (
    {
        "maxSkew": 3,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
    },
    {
        "maxSkew": 5,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
    },
)
_OWNER_KINDS: Final = {
    ("v1", "ReplicationController"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    topology_key: str
    max_skew: int
    selector: Selector
    min_domains: int
    honors_affinity: bool
    honors_taints: bool
    matches_itself: int
    """1 if the pod counts among those it is spread from."""

    @property
    def counts_nobody(self) -> bool:
        """Whether no pod counts: as upstream, an empty selector is like none."""
        return self.selector.everything or self.selector.nothing

    def query(self, namespace: str) -> Query:
        return Query(frozenset((namespace,)), self.selector, live_only=True)

    def eligible(self, pod: Pod, nodes: NodeColumns) -> Mask:
        """Return which rows count: nodes that the pod's own affinity and tolerations let it on."""
        rows = nodes.present.copy()
        if self.honors_affinity:
            rows &= required_rows(nodes, required_node_affinity(pod))
        if self.honors_taints:
            tolerated = [
                first_untolerated(taints, pod.tolerations) is None for taints in nodes.taint_sets
            ]
            rows &= np.array(tolerated, dtype=np.bool_)[nodes.taint_set_id]
        return rows


@dataclass(frozen=True, slots=True)
class Constraints:
    constraints: tuple[Constraint, ...]
    require_all: bool
    """Whether a node must carry every topology key to be scored at all."""


def constraints_of(
    pod: Pod,
    when: str,
    *,
    defaults: Sequence[Mapping[str, Any]],
    system_defaults: bool,
    cluster: ClusterView | None,
) -> Constraints:
    """Return the constraints of one kind (`whenUnsatisfiable`) that hold for the pod.

    Raises:
        InvalidSelector: one of the pod's own does not parse.
    """
    if pod.topology_spread_constraints:
        own = [one for one in pod.topology_spread_constraints if one.when_unsatisfiable == when]
        return Constraints(tuple(_own(one, pod) for one in own), require_all=True)
    listed = SYSTEM_DEFAULTS if system_defaults else tuple(defaults)
    wanted = [one for one in listed if one["whenUnsatisfiable"] == when]
    selector = deduced_selector(pod, cluster) if wanted and cluster is not None else None
    if selector is None:
        return Constraints((), require_all=not system_defaults)
    found = tuple(_default(one, selector, pod) for one in wanted)
    return Constraints(found, require_all=not system_defaults)


def _own(constraint: TopologySpreadConstraint, pod: Pod) -> Constraint:
    selector = compile_label_selector(constraint.label_selector)
    merged = {key: pod.labels[key] for key in constraint.match_label_keys if key in pod.labels}
    if merged and not selector.nothing:
        added = compile_label_map(merged).requirements
        selector = Selector((*selector.requirements, *added))
    return Constraint(
        topology_key=constraint.topology_key,
        max_skew=constraint.max_skew,
        selector=selector,
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        honors_affinity=(constraint.node_affinity_policy or HONOR) == HONOR,
        honors_taints=constraint.node_taints_policy == HONOR,
        matches_itself=int(selector.matches(pod.labels)),
    )


def _default(listed: Mapping[str, Any], selector: Selector, pod: Pod) -> Constraint:
    return Constraint(
        topology_key=listed["topologyKey"],
        max_skew=listed["maxSkew"],
        selector=selector,
        min_domains=listed.get("minDomains") or 1,
        honors_affinity=(listed.get("nodeAffinityPolicy") or HONOR) == HONOR,
        honors_taints=listed.get("nodeTaintsPolicy") == HONOR,
        matches_itself=int(selector.matches(pod.labels)),
    )


def deduced_selector(pod: Pod, cluster: ClusterView) -> Selector | None:
    """Return what the pod's services and controller select; None if that is nothing special."""
    merged: dict[str, str] = {}
    for service in cluster.objects("Service").values():
        if service.namespace != pod.namespace or service.selector is None:
            continue
        if all(pod.labels.get(key) == value for key, value in service.selector.items()):
            merged.update(service.selector)
    added: tuple[Any, ...] = ()
    owner = pod.owner
    if owner is not None and (owner.api_version, owner.kind) in _OWNER_KINDS:
        found = cluster.objects(owner.kind).get(f"{pod.namespace}/{owner.name}")
        if found is not None and owner.kind == "ReplicationController":
            merged.update(found.selector or {})
        elif found is not None:
            added = _requirements(found.selector)
    requirements = (*compile_label_map(merged).requirements, *added)
    return Selector(requirements) if requirements else None


def _requirements(selector: Any) -> tuple[Any, ...]:
    """Return an owner's requirements; a selector that is absent or does not parse adds none."""
    if selector is None:
        return ()
    try:
        return compile_label_selector(selector).requirements
    except InvalidSelector:
        return ()
