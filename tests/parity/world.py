"""A scenario's cluster: its objects in our cache, and what its steps do to them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from decklog.core.cache import Cache
from decklog.core.framework.points import Profile
from decklog.core.framework.resolve import resolve
from decklog.core.nominator import Nominator
from decklog.core.plugins.dynamic_resources import claims_resources
from decklog.core.plugins.registry import build_profiles, missing_plugins
from decklog.core.rules import V1_36
from decklog.core.schedule import Engine
from decklog.objects.kinds import KIND_BY_NAME
from decklog.objects.node import Node
from decklog.objects.pod import Pod, PodCondition
from decklog.objects.reduce import reduce_object

NOW: Final = "9999-01-01T00:00:00Z"
"""Stands for a start time that is missing: later than any in the files."""
NUMERIC_TOLERATIONS: Final = "TaintTolerationComparisonOperators"
DISRUPTED: Final = PodCondition(
    type="DisruptionTarget", status="True", reason="PreemptionByScheduler"
)


@dataclass(slots=True)
class World:
    profiles: Mapping[str, Profile]
    engine: Engine
    cache: Cache
    nominator: Nominator
    pods: dict[str, Pod] = field(default_factory=dict)
    """By `namespace/name`, the finished ones left out."""

    def profile_of(self, pod: Pod) -> Profile:
        return self.profiles[pod.scheduler_name]

    def bind(self, pod: Pod, node: str, start_time: str) -> None:
        self.cache.assume_pod(pod, node)
        self.nominator.delete(pod.uid)
        bound = replace(
            pod, node_name=node, phase="Running", start_time=start_time, nominated_node_name=""
        )
        self.cache.add_pod(bound)
        self.pods[pod.key] = bound

    def nominate(self, key: str, node: str) -> None:
        pod = replace(self.pods[key], nominated_node_name=node)
        self.pods[key] = pod
        self.nominator.delete(pod.uid)
        if node:
            self.nominator.add(pod, node)

    def terminate(self, key: str) -> None:
        pod = self.pods[key]
        changed = replace(pod, deleted=NOW, conditions=(*pod.conditions, DISRUPTED))
        self.cache.update_pod(pod, changed)
        self.pods[key] = changed

    def delete(self, key: str) -> None:
        pod = self.pods.pop(key)
        self.nominator.delete(pod.uid)
        if pod.node_name:
            self.cache.remove_pod(pod)

    def missing(self) -> list[str]:
        """Return what the scenario needs and decklog does not have yet."""
        pods = list(self.pods.values())
        found: dict[str, None] = {}
        for name, profile in self.profiles.items():
            own = [pod for pod in pods if pod.node_name or pod.scheduler_name == name]
            found.update(dict.fromkeys(missing_plugins(profile, own, self.cache)))
            found.update(dict.fromkeys(_first_forms(profile, own)))
        return list(found)


def _first_forms(profile: Profile, pods: list[Pod]) -> Iterator[str]:
    """Name the plugins that are there in their first form, where that is not enough."""
    if "DynamicResources" in profile.plugins and any(map(claims_resources, pods)):
        yield "DynamicResources"


def load(scenario: Mapping[str, Any]) -> World:
    """Return the cluster before the first step."""
    gates = scenario.get("featureGates", {})
    parity = replace(V1_36, numeric_tolerations=gates.get(NUMERIC_TOLERATIONS, False))
    config = resolve(scenario["config"] or {"percentageOfNodesToScore": 100}, parity=parity)
    profiles = build_profiles(config)
    cache, nominator = Cache(), Nominator()
    world = World(profiles, Engine(config, cache, profiles, nominator), cache, nominator)
    for raw in scenario["objects"]:
        kind = KIND_BY_NAME.get(raw["kind"])
        if kind is None:
            continue  # What only a plugin reads that is not there yet.
        item = reduce_object(kind, raw)
        if isinstance(item, Node):
            cache.add_node(item)
        elif isinstance(item, Pod):
            _add_pod(world, item)
        else:
            key = f"{item.namespace}/{item.name}" if item.namespace else item.name
            cache.set_object(kind.name, key, item)
    return world


def _add_pod(world: World, pod: Pod) -> None:
    if pod.finished:
        return
    if not pod.start_time and pod.node_name:
        pod = replace(pod, start_time=NOW)
    world.pods[pod.key] = pod
    if pod.node_name:
        world.cache.add_pod(pod)
    elif (
        pod.nominated_node_name
        and not pod.scheduling_gates
        and pod.scheduler_name in world.profiles
    ):
        world.nominator.add(pod)
