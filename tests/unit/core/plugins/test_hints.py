"""What an event means to a pod that waits: hints and registrations, where no recorded case says."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from decklog.core.framework.events import ADD, NODE, NODE_ADD, POD, Happening, Registration
from decklog.core.framework.interface import ClusterEvent
from decklog.core.plugins import hints, pod_hints
from decklog.core.plugins.registrations import registrations_of
from decklog.objects.matching import InvalidSelector
from decklog.objects.pod import (
    Affinity,
    InlineDisk,
    NodeAffinity,
    PodAffinity,
    PodAffinityTerm,
    Volume,
)
from decklog.objects.selectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from decklog.objects.storage import (
    CSIDriver,
    CSINode,
    CSINodeDriver,
    CSIStorageCapacity,
    PersistentVolume,
    StorageClass,
    VolumeAttachment,
)
from tests.builders import (
    make_claim,
    make_namespace,
    make_node,
    make_pod,
    make_selector,
    make_taint,
)

POD_ = make_pod("p")
GONE = make_pod("gone", node_name="n1")
NODE_ = make_node("n1")


def disk(kind: str, *parts: str, read_only: bool = False, monitors: Sequence[str] = ()) -> Any:
    found = InlineDisk(kind=kind, parts=parts, read_only=read_only, monitors=tuple(monitors))
    return make_pod("p", node_name="n1", volumes=(Volume(name="v", disk=found),))


def unparsable() -> Any:
    requirement = NodeSelectorRequirement(key="zone", operator="Near", values=("a",))
    terms = (NodeSelectorTerm(match_expressions=(requirement,)),)
    return make_pod("p", affinity=Affinity(node=NodeAffinity(required=NodeSelector(terms=terms))))


def capacity(**fields: Any) -> CSIStorageCapacity:
    return CSIStorageCapacity(uid="u", namespace="default", name="c", **fields)


@pytest.mark.parametrize(
    ("hint", "pod", "old", "new", "want"),
    [
        pytest.param(hints.node_unschedulable, POD_, NODE_, None, True, id="no node to look at"),
        pytest.param(hints.taint_toleration, POD_, NODE_, None, True, id="no node for its taints"),
        pytest.param(hints.node_affinity, POD_, NODE_, None, True, id="no node for its labels"),
        pytest.param(hints.fits_node, POD_, NODE_, None, True, id="no node for its room"),
        pytest.param(hints.declared_features, POD_, NODE_, None, True, id="no node with features"),
        pytest.param(
            hints.declared_features, POD_, None, NODE_, True, id="a node with what is required"
        ),
        pytest.param(
            hints.declared_features,
            make_pod("p", host_network=True, host_users=False),
            None,
            NODE_,
            False,
            id="a node without what is required",
        ),
        pytest.param(
            hints.declared_features, POD_, NODE_, NODE_, False, id="it had what is required before"
        ),
        pytest.param(
            hints.node_affinity,
            unparsable(),
            None,
            NODE_,
            True,
            id="a selector that does not parse",
        ),
        pytest.param(
            hints.taint_toleration,
            POD_,
            make_node("n1", taints=(make_taint(),)),
            NODE_,
            True,
            id="the taint went",
        ),
        pytest.param(hints.room_freed, POD_, None, POD_, True, id="nothing to compare with"),
        pytest.param(hints.room_freed, POD_, GONE, None, True, id="a placed pod is gone"),
        pytest.param(hints.room_freed, POD_, make_pod("x"), None, False, id="an unplaced one is"),
        pytest.param(
            hints.disks_freed, disk("gcePersistentDisk", "d"), NODE_, None, False, id="no pod"
        ),
        pytest.param(
            hints.disks_freed, disk("gcePersistentDisk", "d"), disk("gcePersistentDisk", "d"), None,
            True, id="the disk of one is the other's",
        ),
        pytest.param(
            hints.disks_freed,
            disk("gcePersistentDisk", "d", read_only=True),
            disk("gcePersistentDisk", "d", read_only=True), None, False, id="both only read it",
        ),
        pytest.param(
            hints.disks_freed, disk("awsElasticBlockStore", "d", read_only=True),
            disk("awsElasticBlockStore", "d", read_only=True), None, True,
            id="an EBS volume is one node's, also to read",
        ),
        pytest.param(
            hints.disks_freed, disk("rbd", "pool", "image", monitors=("m1", "m2")),
            disk("rbd", "pool", "image", monitors=("m2",)), None, True, id="they share a monitor",
        ),
        pytest.param(
            hints.disks_freed, disk("rbd", "pool", "image", monitors=("m1",)),
            disk("rbd", "pool", "image", monitors=("m2",)), None, False, id="no monitor is shared",
        ),
        pytest.param(
            hints.disks_freed, disk("azureDisk", "d"), disk("azureDisk", "d"), None, False,
            id="a kind that knows no conflict",
        ),
        pytest.param(
            hints.disks_freed, disk("iscsi", "d"), disk("azureDisk", "d"), None, False,
            id="disks of two kinds",
        ),
        pytest.param(hints.attachment_gone, POD_, None, None, True, id="no attachment to look at"),
        pytest.param(
            hints.attachment_gone, disk("cinder", "d"),
            VolumeAttachment(uid="u", name="a", attacher="cinder.csi.openstack.org"), None, True,
            id="the driver of its own disk",
        ),
        pytest.param(
            hints.attachment_gone, POD_,
            VolumeAttachment(uid="u", name="a", attacher="x"), None, False, id="it has no volume",
        ),
        pytest.param(hints.limit_raised, POD_, None, None, True, id="no limits to compare"),
        pytest.param(
            hints.limit_raised, POD_, CSINode(uid="u", name="n"),
            CSINode(uid="u", name="n", drivers=(CSINodeDriver(name="d", count=2),)), True,
            id="a driver that may attach two",
        ),
        pytest.param(hints.topologies_changed, POD_, None, None, True, id="a new class"),
        pytest.param(
            hints.topologies_changed, POD_, StorageClass(uid="u", name="s"),
            StorageClass(uid="u", name="s"), False, id="the same topologies",
        ),
        pytest.param(hints.migration_changed, POD_, None, None, True, id="a new CSI node"),
        pytest.param(hints.capacity_no_longer_checked, POD_, None, None, True, id="a new driver"),
        pytest.param(
            hints.capacity_no_longer_checked, POD_, CSIDriver(uid="u", name="d"),
            CSIDriver(uid="u", name="d"), False, id="a driver that it has no volume of",
        ),
        pytest.param(hints.capacity_raised, POD_, None, None, True, id="a new capacity"),
        pytest.param(
            hints.capacity_raised, POD_, capacity(capacity="1Gi"),
            capacity(capacity="2Gi"), True, id="a larger one",
        ),
        pytest.param(
            hints.capacity_raised, POD_, capacity(capacity="1Gi"),
            capacity(), False, id="it says none any more",
        ),
        pytest.param(
            hints.capacity_raised, POD_, capacity(),
            capacity(maximum_volume_size="1Gi"), True,
            id="it says one for the first time",
        ),
        pytest.param(
            hints.claim_or_ephemeral, make_pod("p", volumes=(Volume(name="v", ephemeral=True),)),
            None, make_claim("p-v"), True, id="the claim of an ephemeral volume",
        ),
        pytest.param(
            hints.claim_of_pod, make_pod("p", volumes=(Volume(name="v", ephemeral=True),)),
            None, make_claim("p-v"), False, id="which is not one that the pod names",
        ),
        pytest.param(hints.claim_of_pod, POD_, None, NODE_, False, id="no claim"),
        pytest.param(hints.zones_changed, POD_, None, None, True, id="a new volume"),
        pytest.param(
            hints.zones_changed, POD_, PersistentVolume(uid="u", name="v"),
            PersistentVolume(uid="u", name="v"), False, id="the same zones",
        ),
        pytest.param(hints.never, POD_, None, None, False, id="never"),
        pytest.param(pod_hints.affinity_node, POD_, NODE_, None, True, id="no node for affinity"),
    ],
)  # fmt: skip
def test_whether_an_event_may_help(hint: Any, pod: Any, old: Any, new: Any, want: bool) -> None:
    assert hint(pod, old, new) is want


def wanting(*, namespaces: tuple[str, ...] = ("default",)) -> Any:
    term = PodAffinityTerm(
        topology_key="zone", label_selector=make_selector(app="db"), namespaces=namespaces
    )
    return make_pod("p", affinity=Affinity(pod=PodAffinity(required=(term,))))


def test_a_pod_that_comes_to_match_the_affinity_helps() -> None:
    before = make_pod("db", node_name="n1")
    after = make_pod("db", node_name="n1", labels={"app": "db"})
    assert pod_hints.affinity_pod(wanting(), before, after)
    assert not pod_hints.affinity_pod(wanting(), after, after)


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param({}, {"team": "x"}, True, id="comes to be picked"),
        pytest.param({"team": "x"}, {}, True, id="ceases to be picked"),
        pytest.param(None, {"team": "x"}, True, id="new, and picked"),
        pytest.param(None, {}, False, id="new, and not picked"),
        pytest.param({}, {"other": "x"}, False, id="never picked"),
        pytest.param({"team": "x"}, {"team": "x"}, False, id="labels as before"),
    ],
)
def test_a_namespace_helps_whose_pick_changes(old: Any, new: Any, *, want: bool) -> None:
    term = PodAffinityTerm(topology_key="zone", namespace_selector=make_selector(team="x"))
    pod = make_pod("p", affinity=Affinity(pod=PodAffinity(required=(term,))))
    before = None if old is None else make_namespace("far", **old)
    assert pod_hints.affinity_namespace(pod, before, make_namespace("far", **new)) is want


def test_the_own_namespace_always_helps_when_its_labels_change() -> None:
    before, after = make_namespace("default"), make_namespace("default", team="x")
    assert pod_hints.affinity_namespace(make_pod("p"), before, after)


# -- registrations ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Says:
    """A plugin that says itself what it waits for."""

    events: tuple[ClusterEvent, ...]
    name: str = "Says"

    def events_to_register(self) -> Sequence[ClusterEvent]:
        return self.events


@dataclass(frozen=True)
class SaysNothing:
    name: str = "SaysNothing"


def registered(plugin: Any) -> list[Registration]:
    return registrations_of({"gold": [plugin]})["gold"]


def test_a_plugin_may_say_itself_what_it_waits_for() -> None:
    event = ClusterEvent(resource=POD, action=ADD, hint=None)
    assert registered(Says((event,))) == [Registration("Says", POD, ADD)]
    assert registered(Says(())) == []


def test_who_waits_for_new_nodes_is_woken_by_any_taint_change() -> None:
    """A node may come with a taint first, which then goes."""
    event = ClusterEvent(resource=NODE, action=ADD, hint=None)
    assert [one.action.bit_count() for one in registered(Says((event,)))] == [1, 1]


def test_a_plugin_that_says_nothing_depends_on_everything() -> None:
    assert all(one.helps(POD_, None, None) for one in registered(SaysNothing()))
    assert any(one.matches(NODE_ADD) for one in registered(SaysNothing()))


# -- matching --------------------------------------------------------------------------------------


def test_who_listens_to_everything_hears_everything() -> None:
    everything = Registration("X", "*", (1 << 13) - 1)
    assert everything.matches(Happening("anything", 1))


def test_a_hint_that_cannot_tell_may_help() -> None:
    def unsure(pod: Any, old: Any, new: Any) -> bool:
        msg = "odd"
        raise InvalidSelector(msg)

    assert Registration("X", POD, ADD, unsure).helps(POD_, None, None)


def test_an_event_is_called_by_its_resource_and_action_or_by_its_own_name() -> None:
    assert NODE_ADD.label == "NodeAdd"
    assert Happening("Node", ADD, "Mine").label == "Mine"
    assert Happening("", 0).label == ""
