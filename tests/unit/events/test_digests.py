"""How a reader finds that what it heard is not what there is."""

import pytest

from decklog.events.digests import Digests, KindDigest, object_digest
from decklog.events.facts import Event, ResyncFinished, ResyncRequested, ResyncStarted
from decklog.objects.pod import Pod
from decklog.ports.entries import event_entry
from tests.builders import make_node
from tests.stepping import deleted, our_pod, upserted

A, B = our_pod("a"), our_pod("b")


def told(*facts: Event) -> tuple[Digests, list[str]]:
    """Return what a reader knows after these facts, and what it found wrong."""
    digests, wrong = Digests(), []
    for fact in facts:
        entry = event_entry(fact, cluster="test", time_ms=0)
        found = digests.apply(fact, entry.key, entry.value)
        if found is not None:
            wrong.append(found)
    return digests, wrong


def started(*, full: bool = True) -> ResyncStarted:
    return ResyncStarted(kind="Pod", resource_version="1", full=full)


def finished(*pods: Pod) -> ResyncFinished:
    of_kind = KindDigest()
    for pod in pods:
        entry = event_entry(upserted(pod), cluster="test", time_ms=0)
        of_kind.put(entry.key, object_digest(entry.key, entry.value))
    return ResyncFinished(kind="Pod", resource_version="1", count=len(pods), digest=of_kind.text)


@pytest.mark.parametrize(
    ("facts", "want"),
    [
        pytest.param([upserted(A), upserted(B), finished(B, A)], [], id="in any order"),
        pytest.param([upserted(A, labels={"x": "y"}), upserted(A), finished(A)], [], id="the last"),
        pytest.param([upserted(A), upserted(B), deleted(A), finished(B)], [], id="deleted"),
        pytest.param([deleted(A), finished()], [], id="deleted, and never known"),
        pytest.param(
            [upserted(A), started(), upserted(B), finished(B)], [], id="what a list lacks is gone"
        ),
        pytest.param(
            [upserted(A), started(full=False), upserted(B), finished(A, B)],
            [],
            id="only what differs was told",
        ),
        pytest.param(
            [upserted(A), finished(A, B)],
            ["the log holds 1 objects, the list 2"],
            id="one is missing",
        ),
        pytest.param(
            [upserted(A), started(), finished(), finished()], [], id="the end of no resync"
        ),
    ],
)
def test_what_a_finished_resync_shows(facts: list[Event], want: list[str]) -> None:
    assert told(*facts)[1] == want


def test_a_version_that_differs_shows() -> None:
    _, [wrong] = told(upserted(A, labels={"x": "y"}), finished(A))
    assert wrong.startswith("digest ")
    assert wrong.endswith(f", of the list {finished(A).digest}")


def test_facts_that_are_no_objects_count_for_nothing() -> None:
    digests, wrong = told(ResyncRequested(kind="Pod", reason="x"))
    assert (digests.state, wrong) == ("0" * 32, [])


def test_the_state_of_all_kinds_depends_on_every_object_and_on_no_order() -> None:
    node = make_node("a")
    one, two = told(upserted(A), upserted(node))[0], told(upserted(node), upserted(A))[0]
    assert one.state == two.state != told(upserted(A))[0].state


def test_equal_bytes_under_another_key_are_another_object() -> None:
    assert object_digest("Pod/default/a", b"{}") != object_digest("Pod/default/b", b"{}")
