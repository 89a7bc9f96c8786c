"""A small, eventful history: every kind of thing that can become of a pod, at least once.

Pods are named for what happens to them. It takes half a second to sail, and comes out the same each
time: the same events, ticks and decisions, byte for byte.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

from decklog.adapters.cluster.faults import Fault
from decklog.adapters.cluster.requests import ApiRequest
from decklog.core.framework.config import SchedulerConfig
from decklog.ports.cluster import Answer, BindPod
from tests.harness import CLUSTER, Raw, World, make_raw_node, make_raw_pod, make_world

SECOND_LEADER: Final = "scheduler-2"
ANCHOR_AFTER: Final = timedelta(seconds=61)
INVALID: Final = Fault(code=422, reason="Invalid", message="spec.nodeName: Forbidden: no")
TAINT: Final = {"key": "gpu", "value": "true", "effect": "NoSchedule"}


@dataclass
class RefusedOnce:
    """The API server refuses for good to bind these pods, each once."""

    names: set[str] = field(default_factory=lambda: {"refused"})

    def before(self, request: ApiRequest) -> Fault | None:
        if request.subresource != "binding" or request.name not in self.names:
            return None
        self.names.remove(request.name)
        return INVALID

    def after(self, request: ApiRequest, answer: Answer) -> Fault | None:
        assert request.kind
        assert answer.code
        return None


def sail(folder: Path, config: SchedulerConfig | None = None) -> None:
    """Record the history into the folder."""
    with make_world(folder, config=config) as world:
        world.cluster.faults = RefusedOnce()
        _set_out(world)
        _meet_others(world)
        _change_leaders(world)
        _make_room(world)


def _set_out(world: World) -> None:
    world.create(
        make_raw_node("cordoned", cpu="8", unschedulable=True),
        make_raw_node("large", cpu="8", labels={"disk": "ssd"}),
        make_raw_node("small", cpu="2", labels={"disk": "hdd"}),
        make_raw_node("tainted", cpu="8", taints=[TAINT]),
    )
    world.run_until_quiet()
    world.create(
        *(make_raw_pod(f"web-{number}", namespace="shop") for number in range(6)),
        make_raw_pod("index", nodeSelector={"disk": "ssd"}),
        make_raw_pod("archive", nodeSelector={"disk": "tape"}),
        make_raw_pod("giant", cpu="64"),
        make_raw_pod("monolith", cpu="12"),
        make_raw_pod("gated", schedulingGates=[{"name": "example.com/quota"}]),
        make_raw_pod("foreign", schedulerName="default-scheduler"),
    )
    world.run_until_quiet()
    world.run_for(ANCHOR_AFTER)


def _meet_others(world: World) -> None:
    """Somebody else binds a pod, the API server refuses another, and users change their minds."""
    world.create(make_raw_pod("refused", cpu="200m"))
    _take(world, make_raw_pod("taken"), node="small")
    world.run_until_quiet()
    world.cluster.delete("Pod", "web-0", "shop")
    world.cluster.delete("Pod", "monolith", grace_seconds=0)
    world.create(make_raw_pod("monolith", cpu="500m"))
    world.run_until_quiet()
    small = dict(world.cluster.get("Node", "small") or {})
    small["metadata"] = {**small["metadata"], "labels": {"disk": "floppy"}}
    world.cluster.update("Node", small)
    world.run_for(ANCHOR_AFTER)


def _change_leaders(world: World) -> None:
    world.crash("scheduler")
    world.start("scheduler", name=SECOND_LEADER)
    world.create(make_raw_pod("late", namespace="shop"))
    world.run_until_quiet()
    world.create(make_raw_node("huge", cpu="128", memory="256Gi"))
    world.run_until_quiet()
    world.run_for(ANCHOR_AFTER)


def _make_room(world: World) -> None:
    """A pod that matters more takes the place of one that matters less."""
    world.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "urgent"},
            "value": 1_000,
        },
        make_raw_node("island", cpu="2", labels={"island": "yes"}),
    )
    world.run_until_quiet()
    there = {"island": "yes"}
    world.create(make_raw_pod("evicted", cpu="1500m", nodeSelector=there))
    world.run_until_quiet()
    world.create(
        make_raw_pod("urgent", cpu="1500m", nodeSelector=there, priorityClassName="urgent")
    )
    world.run_for(ANCHOR_AFTER)
    world.run_until_quiet()


def _take(world: World, pod: Raw, *, node: str) -> None:
    """Create the pod and bind it, before anybody of ours has a chance to."""
    made = world.cluster.create("Pod", pod)["metadata"]
    answer = world.cluster.perform(
        [
            BindPod(
                namespace=made["namespace"],
                name=made["name"],
                uid=made["uid"],
                resource_version="",
                node=node,
            )
        ]
    )
    assert answer[0].ok, answer


__all__ = ["CLUSTER", "SECOND_LEADER", "sail"]
