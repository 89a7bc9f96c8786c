"""What both cluster adapters promise: a simulated API server in process, and HTTP against it.

Rows named §1 to §4 are the behaviour of kube-apiserver v1.36 as it was observed.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from decklog.adapters.cluster.faults import CONNECTION_LOST, OVERLOADED, TIMED_OUT, BodyForm, Fault
from decklog.adapters.cluster.store import Limits
from decklog.core.errors import ClusterUnavailable
from decklog.objects.kinds import KIND_BY_NAME, KINDS
from decklog.ports.cluster import (
    ClusterReader,
    ClusterWriter,
    CreateEvent,
    DeletePod,
    GetObject,
    GetPod,
    KindNotServed,
    PatchObject,
    PatchPodStatus,
    RawObject,
    WatchEvent,
    WatchEventType,
    WatchExpired,
)
from tests.contract.cluster_worlds import (
    NODE,
    NOW,
    POD,
    World,
    binding,
    make_node,
    open_world,
    read,
    read_to_end,
    wait_until,
)

STAMP = "decklog.dev/decision"
ZERO = timedelta(0)


@pytest.fixture(params=["simulated", "http"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with open_world(request.param) as opened:
        yield opened


@pytest.fixture(params=["simulated", "http"])
def small_world(request: pytest.FixtureRequest) -> Iterator[World]:
    """A server that remembers little: ten changes of a kind, and a backlog of twenty."""
    limits = Limits(history_events_max=10, backlog_events_max=20)
    with open_world(request.param, limits=limits) as opened:
        yield opened


def test_the_adapter_has_both_ports(world: World) -> None:
    reader: ClusterReader = world.adapter
    writer: ClusterWriter = world.adapter
    assert reader.list(NODE).objects
    assert writer.ready()


# Binding, §1.


@dataclass(frozen=True, slots=True, kw_only=True)
class BindRow:
    """A pod in some state, a binding of it, and what the server must answer."""

    gates: tuple[str, ...] = ()
    held_by: str = ""
    deleted: bool = False
    pod_exists: bool = True
    node: str = "n1"
    uid: str | None = None
    resource_version: str = ""
    code: int = 409
    reason: str = "Conflict"
    message: str = ""
    details_kind: str = ""


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(BindRow(code=201, reason=""), id="right uid"),
        pytest.param(BindRow(uid="", code=201, reason=""), id="no uid"),
        pytest.param(
            BindRow(uid="other", message="Precondition failed: UID in", details_kind="pods"),
            id="wrong uid",
        ),
        pytest.param(
            BindRow(
                resource_version="1",
                message="Precondition failed: ResourceVersion in precondition: 1,",
                details_kind="pods",
            ),
            id="wrong resourceVersion",
        ),
        pytest.param(
            BindRow(
                held_by="n1",
                message='pods/binding "a1": pod a1 is already assigned to node "n1"',
                details_kind="pods/binding",
            ),
            id="already bound, same node",
        ),
        pytest.param(
            BindRow(
                held_by="n2",
                message='pods/binding "a1": pod a1 is already assigned to node "n2"',
                details_kind="pods/binding",
            ),
            id="already bound, another node: it names the holder",
        ),
        pytest.param(
            BindRow(held_by="n2", uid="other", message="UID in precondition: other"),
            id="bound and wrong uid: the uid is checked first",
        ),
        pytest.param(
            BindRow(
                held_by="n1", deleted=True, message="pod a1 is being deleted, cannot be assigned"
            ),
            id="being deleted",
        ),
        pytest.param(
            BindRow(gates=("wait",), message="pod a1 has non-empty .spec.schedulingGates"),
            id="gated",
        ),
        pytest.param(
            BindRow(pod_exists=False, code=404, reason="NotFound", message='pods "a1" not found'),
            id="no such pod",
        ),
        pytest.param(BindRow(node="ghost", code=201, reason=""), id="no such node: accepted"),
        pytest.param(
            BindRow(node="", code=500, reason="", message="target.name: Required value"),
            id="no target: an error without a reason",
        ),
    ],
)
def test_bind(world: World, row: BindRow) -> None:
    pod = world.make_pod(gates=row.gates)
    if row.held_by:
        world.bind(node=row.held_by)
    if row.deleted:
        world.cluster.delete("Pod", "a1")
    if not row.pod_exists:
        world.cluster.delete("Pod", "a1", grace_seconds=0)
    answer = world.perform(
        binding(pod, node=row.node, uid=row.uid, resource_version=row.resource_version)
    )
    assert (answer.code, answer.reason) == (row.code, row.reason)
    assert row.message in answer.message
    if row.details_kind:
        assert answer.body is not None
        assert answer.body["details"]["kind"] == row.details_kind


def test_a_bind_is_one_change_that_does_all_of_it(world: World) -> None:
    pod = world.make_pod(annotations={"kept": "1", STAMP: "old"})
    nominate = {"nominatedNodeName": "n2", "conditions": [unschedulable("no room")]}
    assert world.perform(status_patch(pod, nominate)).ok
    watch = world.watch_pods()
    assert world.perform(binding(pod, annotations={STAMP: "51.ab"})).ok
    (event,) = read(watch, 1)
    after = event.object
    assert event.type is WatchEventType.MODIFIED
    assert after["spec"]["nodeName"] == "n1"
    assert after["metadata"]["annotations"] == {"kept": "1", STAMP: "51.ab"}
    assert after["metadata"]["labels"] == {
        "app": "web",
        "topology.kubernetes.io/zone": "z1",
        "topology.kubernetes.io/region": "r1",
    }
    assert "nominatedNodeName" not in after["status"]
    (scheduled,) = after["status"]["conditions"]
    assert (scheduled["type"], scheduled["status"]) == ("PodScheduled", "True")
    assert (scheduled["lastTransitionTime"], "reason" in scheduled) == (NOW, False)
    assert after["metadata"]["generation"] == pod["metadata"]["generation"]


def test_annotations_of_a_binding_are_not_checked_and_block_the_pod_afterwards(
    world: World,
) -> None:
    for name, annotations in (("long", {STAMP: "x" * 300_000}), ("bad", {"bad key!": "1"})):
        pod = world.make_pod(name)
        assert world.perform(binding(pod, annotations=annotations)).code == 201
        answer = world.perform(status_patch(pod, {"conditions": [unschedulable("late")]}))
        assert (answer.code, answer.reason) == (422, "Invalid")
        assert "metadata.annotations" in answer.message


def test_of_many_binders_at_once_exactly_one_wins(world: World) -> None:
    calls = [binding(world.make_pod(f"a{number}")) for number in range(30)]
    rivals = [[replace(call, node=f"n{rival}") for call in calls] for rival in range(4)]
    with ThreadPoolExecutor(len(rivals)) as threads:
        answers = list(threads.map(world.adapter.perform, rivals))
    for number in range(len(calls)):
        codes = sorted(answered[number].code for answered in answers)
        assert codes == [201, 409, 409, 409]


def test_a_repeated_bind_looks_like_a_lost_race_and_a_get_tells_them_apart(world: World) -> None:
    pod = world.make_pod()
    call = binding(pod, annotations={STAMP: "7.cd"})
    world.faults.after_next.append(CONNECTION_LOST)
    first, again = world.perform(call), world.perform(call)
    assert (first.code, first.unknown, again.code) == (0, True, 409)
    found = world.perform(GetPod(namespace="default", name="a1")).body
    assert found is not None
    assert (found["spec"]["nodeName"], found["metadata"]["annotations"][STAMP]) == ("n1", "7.cd")


# Status, §2.


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchRow:
    patch: dict[str, Any]
    bound: bool = False
    uid: str | None = None
    resource_version: str = ""
    code: int = 200
    reason: str = ""
    message: str = ""


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(PatchRow(patch={"nominatedNodeName": "ghost"}), id="any node is nominated"),
        pytest.param(
            PatchRow(
                patch={"nominatedNodeName": "n1"},
                bound=True,
                code=422,
                reason="Invalid",
                message="may not be set on pods that are already bound to a node",
            ),
            id="a bound pod takes no nomination",
        ),
        pytest.param(
            PatchRow(
                patch={"phase": "Failed"},
                uid="other",
                code=422,
                reason="Invalid",
                message="field is immutable",
            ),
            id="wrong uid: 422, not 409",
        ),
        pytest.param(
            PatchRow(
                patch={"phase": "Failed"},
                resource_version="1",
                code=409,
                reason="Conflict",
                message="the object has been modified",
            ),
            id="wrong resourceVersion",
        ),
        pytest.param(
            PatchRow(
                patch={"conditions": [{"type": "PodScheduled", "status": "False"}]}, bound=True
            ),
            id="nothing stops a late unschedulable on a bound pod",
        ),
    ],
)
def test_status_patch(world: World, row: PatchRow) -> None:
    pod = world.make_pod()
    if row.bound:
        world.bind()
    call = status_patch(pod, row.patch, uid=row.uid, resource_version=row.resource_version)
    answer = world.perform(call)
    assert (answer.code, answer.reason) == (row.code, row.reason)
    assert row.message in answer.message


def test_conditions_merge_by_type(world: World) -> None:
    pod = world.make_pod()
    disrupted = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": NOW}
    world.perform(status_patch(pod, {"conditions": [unschedulable("first")]}))
    world.perform(status_patch(pod, {"conditions": [disrupted]}))
    world.perform(status_patch(pod, {"conditions": [unschedulable("second")]}))
    conditions = {one["type"]: one for one in world.pod()["status"]["conditions"]}
    assert set(conditions) == {"PodScheduled", "DisruptionTarget"}
    assert conditions["PodScheduled"]["message"] == "second"


def test_an_identical_patch_changes_nothing_and_is_no_event(world: World) -> None:
    pod = world.make_pod()
    call = status_patch(pod, {"conditions": [unschedulable("no room")], "nominatedNodeName": "n1"})
    watch = world.watch_pods()
    first, again = world.perform(call), world.perform(call)
    assert first.body is not None
    assert again.body is not None
    assert version_of(first.body) == version_of(again.body)
    world.bind()
    assert len(read(watch, 2)) == 2


@pytest.mark.parametrize("empty", ["", None])
def test_a_nomination_is_cleared_by_nothing_in_either_form(world: World, empty: str | None) -> None:
    pod = world.make_pod()
    world.perform(status_patch(pod, {"nominatedNodeName": "n1"}))
    assert world.perform(status_patch(pod, {"nominatedNodeName": empty})).ok
    assert "nominatedNodeName" not in world.pod()["status"]


def test_the_server_says_that_a_new_pod_is_gated(world: World) -> None:
    (condition,) = world.make_pod(gates=("wait",))["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "SchedulingGated")


# Deleting, §3.


def test_an_unbound_pod_goes_at_once_in_two_events(world: World) -> None:
    pod = world.make_pod()
    watch = world.watch_pods()
    assert world.perform(delete(pod)).code == 200
    marked, gone = read(watch, 2)
    assert (marked.type, gone.type) == (WatchEventType.MODIFIED, WatchEventType.DELETED)
    assert marked.object["metadata"]["deletionGracePeriodSeconds"] == 0
    assert int(gone.resource_version) > int(marked.resource_version)
    assert gone.object["metadata"]["resourceVersion"] == gone.resource_version
    assert gone.object["spec"] == marked.object["spec"]
    assert world.perform(delete(pod)).code == 404


def test_a_bound_pod_stays_until_its_kubelet_ends_it(world: World) -> None:
    pod = world.make_pod(grace_seconds=40)
    world.bind()
    watch = world.watch_pods()
    assert world.perform(delete(pod)).code == 200
    marked = world.pod()["metadata"]
    assert marked["deletionGracePeriodSeconds"] == 40
    assert marked["deletionTimestamp"] == "2027-01-15T08:00:40Z"
    assert world.perform(delete(pod)).code == 200
    assert world.pod()["metadata"] == marked, "a second delete changes nothing"
    world.kubelet.step()
    world.clock.advance(timedelta(seconds=41))
    world.kubelet.step()
    assert read(watch, 3)[-1].type is WatchEventType.DELETED


def test_a_delete_spares_a_pod_that_was_made_again(world: World) -> None:
    pod = world.make_pod()
    world.cluster.delete("Pod", "a1")
    world.make_pod()
    answer = world.perform(delete(pod))
    assert (answer.code, answer.reason) == (409, "Conflict")
    assert "the UID in the precondition" in answer.message


# Lists and watches, §4.


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_is_listed_and_watched(world: World, kind: Any) -> None:
    metadata = {"name": "one", "namespace": "default"} if kind.namespaced else {"name": "one"}
    before = world.adapter.list(kind)
    watch = world.adapter.watch(kind, resource_version=before.resource_version)
    world.cluster.create(kind.name, {"metadata": metadata})
    events = [event for event in read(watch, 1) if event.object["metadata"]["name"] == "one"]
    assert [event.type for event in events] == [WatchEventType.ADDED]
    assert events[0].object["kind"] == kind.name
    assert len(world.adapter.list(kind).objects) == len(before.objects) + 1


def test_items_of_a_list_have_no_kind(world: World) -> None:
    world.make_pod()
    listing = world.adapter.list(POD)
    assert [set(item) >= {"kind", "apiVersion"} for item in listing.objects] == [False]
    assert listing.resource_version == world.adapter.list(NODE).resource_version


def test_a_watch_tells_all_changes_once_and_in_order(world: World) -> None:
    watch = world.watch_pods()
    pods = [world.make_pod(f"a{number}") for number in range(50)]
    world.adapter.perform([binding(pod) for pod in pods])
    events = read(watch, 100)
    versions = [int(event.resource_version) for event in events]
    assert versions == sorted(set(versions))


def test_a_watch_that_ended_is_resumed_without_loss_or_repetition(world: World) -> None:
    watch = world.watch_pods()
    got = []
    for number in range(20):
        world.make_pod(f"a{number:02d}")
        if number % 5 == 4:
            got += read(watch, 5)
            watch.close()
            watch = world.watch_pods(since=got[-1].resource_version)
    names = [event.object["metadata"]["name"] for event in got]
    assert names == [f"a{number:02d}" for number in range(20)]


def test_the_server_ends_watches_cleanly_and_knows_where_they_were(world: World) -> None:
    watch = world.watch_pods()
    world.make_pod("a1")
    (seen,) = read(watch, 1)
    world.cluster.end_watches()
    assert read_to_end(watch) == []
    world.make_pod("a2")
    resumed = world.watch_pods(since=seen.resource_version)
    assert [event.object["metadata"]["name"] for event in read(resumed, 1)] == ["a2"]


def test_a_watch_without_a_version_begins_with_what_exists_by_name(world: World) -> None:
    for name in ("b", "c", "a"):
        world.make_pod(name)
    watch = world.adapter.watch(POD, resource_version="0")
    events = read(watch, 3)
    assert [event.object["metadata"]["name"] for event in events] == ["a", "b", "c"]
    assert {event.type for event in events} == {WatchEventType.ADDED}


def test_a_version_that_is_forgotten_expires_inside_the_stream(small_world: World) -> None:
    since = small_world.adapter.list(POD).resource_version
    for number in range(40):
        small_world.make_pod(f"a{number}")
    watch = small_world.watch_pods(since=since)
    with pytest.raises(WatchExpired, match="too old resource version"):
        read(watch, 1)


def test_after_a_restart_every_older_version_expires(world: World) -> None:
    since = world.adapter.list(POD).resource_version
    watch = world.watch_pods(since=since)
    world.make_pod()
    read(watch, 1)
    world.cluster.restart()
    assert read_to_end(watch) == []
    again = world.watch_pods(since=since)
    with pytest.raises(WatchExpired):
        read(again, 1)
    now = world.watch_pods()
    world.make_pod("a2")
    assert len(read(now, 1)) == 1


def test_a_version_of_the_future_is_silent_until_it_is_reached(world: World) -> None:
    now = int(world.adapter.list(POD).resource_version)
    watch = world.watch_pods(since=str(now + 3))
    for number in range(4):
        world.make_pod(f"a{number}")
    (event,) = read(watch, 1)
    assert event.object["metadata"]["name"] == "a3"


def test_a_version_that_is_no_number_is_an_error_of_the_server(world: World) -> None:
    with pytest.raises(ClusterUnavailable):
        world.adapter.watch(POD, resource_version="abc")


def test_an_idle_watch_gets_a_bookmark_a_minute_and_goes_on_from_it(world: World) -> None:
    watch = world.watch_pods()
    world.cluster.create("Node", make_node("n3"))
    world.clock.advance(timedelta(seconds=61))
    got: list[Any] = []

    def bookmark_came() -> bool:
        got.extend(watch.poll(limit=10, timeout=timedelta(milliseconds=100)))
        return bool(got)

    wait_until(bookmark_came)
    (bookmark,) = got
    assert bookmark.type is WatchEventType.BOOKMARK
    assert bookmark.resource_version == world.adapter.list(POD).resource_version


@pytest.mark.parametrize("how", ["simulated", "http"])
def test_a_slow_reader_is_cut_off_cleanly_and_loses_nothing(how: str) -> None:
    """Far more changes than the server keeps for a reader that does not read."""
    with open_world(how, limits=Limits(backlog_events_max=20)) as world:
        watch = world.watch_pods()
        for number in range(60):
            world.make_pod(f"a{number:02d}")
        got: list[WatchEvent] = []
        ends = 0
        while len(got) < 60:
            got += watch.poll(limit=100, timeout=timedelta(milliseconds=50))
            if watch.ended:
                ends += 1
                watch = world.watch_pods(since=got[-1].resource_version)
        assert [event.object["metadata"]["name"] for event in got] == [
            f"a{number:02d}" for number in range(60)
        ]
        if how == "simulated":  # Over HTTP a thread reads, and may have been quick enough.
            assert ends == 1


def test_a_closed_watch_says_nothing_more(world: World) -> None:
    watch = world.watch_pods()
    watch.close()
    world.make_pod()
    wait_until(lambda: watch.ended)
    assert watch.poll(limit=10, timeout=ZERO) == []


def test_a_kind_that_is_not_served_is_told_apart_from_an_outage(world: World) -> None:
    forbidden = Fault(code=403, reason="Forbidden", message="not allowed")
    world.faults.before_next += [forbidden, forbidden]
    with pytest.raises(KindNotServed):
        world.adapter.list(POD)
    with pytest.raises(KindNotServed):
        world.adapter.watch(POD, resource_version="1")
    world.faults.before_next += [CONNECTION_LOST, TIMED_OUT]
    with pytest.raises(ClusterUnavailable):
        world.adapter.list(POD)
    with pytest.raises(ClusterUnavailable):
        world.adapter.watch(POD, resource_version="1")


def test_a_server_that_is_not_ready_says_so(world: World) -> None:
    world.cluster.is_ready = False
    assert not world.adapter.ready()


# Failing calls, §5 and §6.


def test_a_connection_lost_before_the_effect_leaves_the_pod_unbound(world: World) -> None:
    pod = world.make_pod()
    world.faults.before_next.append(CONNECTION_LOST)
    assert world.perform(binding(pod)).unknown
    assert "nodeName" not in world.pod()["spec"]


@pytest.mark.parametrize("form", list(BodyForm))
def test_an_error_is_read_in_any_form(world: World, form: BodyForm) -> None:
    pod = world.make_pod()
    fault = Fault(code=503, reason="ServiceUnavailable", message="try later", form=form)
    world.faults.before_next.append(fault)
    answer = world.perform(binding(pod))
    want = fault.answer
    assert (answer.code, answer.reason, answer.message) == (503, want.reason, want.message)
    assert answer.unknown


def test_overload_says_when_to_come_back_and_did_nothing(world: World) -> None:
    pod = world.make_pod()
    world.faults.before_next.append(OVERLOADED)
    answer = world.perform(binding(pod))
    assert (answer.code, answer.retry_after_seconds, answer.unknown) == (429, 1, False)
    assert world.perform(binding(pod)).ok


def test_answers_come_in_the_order_of_the_calls(world: World) -> None:
    pods = [world.make_pod(f"a{number}") for number in range(40)]
    calls = [GetPod(namespace="default", name=pod["metadata"]["name"]) for pod in pods]
    answers = world.adapter.perform(calls)
    assert [answer.body for answer in answers] == pods
    assert world.adapter.perform([]) == []


# Events, claims and volumes.


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    change: dict[str, Any]
    code: int = 201
    message: str = ""


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(EventRow(change={}), id="as kube-scheduler writes it"),
        pytest.param(
            EventRow(change={"eventTime": "2027-01-15T08:00:00Z"}, code=400, message="000000"),
            id="a time without six decimals",
        ),
        pytest.param(EventRow(change={"note": "é" * 512}), id="1,024 bytes of note"),
        pytest.param(
            EventRow(change={"note": "é" * 513}, code=422, message="note"),
            id="more bytes, though fewer characters",
        ),
        pytest.param(EventRow(change={"action": ""}, code=422, message="action"), id="no action"),
        pytest.param(
            EventRow(change={"reason": "r" * 129}, code=422, message="reason"), id="long reason"
        ),
        pytest.param(EventRow(change={"type": "Odd"}, code=422, message="type"), id="odd type"),
    ],
)
def test_event_is_checked(world: World, row: EventRow) -> None:
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "a1.7", "namespace": "default"},
        "eventTime": "2027-01-15T08:00:00.000000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
        "action": "Binding",
        "reason": "Scheduled",
        "type": "Normal",
        "note": "Successfully assigned default/a1 to n1",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "a1"},
        **row.change,
    }
    call = CreateEvent(namespace="default", event=event)
    answer = world.perform(call)
    assert answer.code == row.code
    assert row.message in answer.message
    if answer.ok:
        again = world.perform(call)
        assert (again.code, again.reason) == (409, "AlreadyExists")


def test_claims_and_volumes_are_read_and_patched(world: World) -> None:
    kind = KIND_BY_NAME["PersistentVolumeClaim"]
    claim = world.cluster.create(
        kind.name, {"metadata": {"name": "data", "namespace": "default"}, "spec": {}}
    )
    selected = {"volume.kubernetes.io/selected-node": "n1"}
    version = version_of(claim)
    patch = {"metadata": {"resourceVersion": version, "annotations": selected}}
    call = PatchObject(kind=kind, namespace="default", name="data", patch=patch)
    assert world.perform(call).ok
    stale = world.perform(call)
    assert (stale.code, stale.reason) == (409, "Conflict")
    found = world.perform(GetObject(kind=kind, namespace="default", name="data")).body
    assert found is not None
    assert found["metadata"]["annotations"] == selected
    volume = KIND_BY_NAME["PersistentVolume"]
    world.cluster.create(volume.name, {"metadata": {"name": "pv1"}, "spec": {}})
    ref = {"claimRef": {"namespace": "default", "name": "data"}}
    call = PatchObject(kind=volume, namespace="", name="pv1", patch={"spec": ref})
    answer = world.perform(call)
    assert answer.body is not None
    assert answer.body["spec"] == ref


def unschedulable(message: str) -> dict[str, Any]:
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
        "lastProbeTime": None,
        "lastTransitionTime": NOW,
    }


def status_patch(
    pod: RawObject, patch: dict[str, Any], *, uid: str | None = None, resource_version: str = ""
) -> PatchPodStatus:
    metadata = pod["metadata"]
    return PatchPodStatus(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"] if uid is None else uid,
        patch=patch,
        resource_version=resource_version,
    )


def delete(pod: RawObject) -> DeletePod:
    metadata = pod["metadata"]
    return DeletePod(namespace=metadata["namespace"], name=metadata["name"], uid=metadata["uid"])


def version_of(obj: RawObject) -> str:
    version: str = obj["metadata"]["resourceVersion"]
    return version
