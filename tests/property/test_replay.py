"""Properties of replaying: whatever happened, the log and the ledger say all of it.

A story is a list of things that happen to a small cluster under the real services. After it the
world is at rest, and the history that it left is held against the state of the live scheduler.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from decklog.core.errors import Refused
from decklog.core.state import SchedulerState
from decklog.events.facts import ResyncFinished
from decklog.history.positions import AtPosition, Latest, Moment, resolve
from decklog.history.replay import rebuild
from decklog.history.source import Source
from decklog.history.verify import Verdict, Wanted, verify
from decklog.ports.cluster import BindPod
from decklog.ports.log import Entry, Log
from decklog.ports.recorded import RecordedTick, TickReader
from decklog.ports.redeciding import apply_recorded
from tests.harness import CLUSTER, World, make_raw_node, make_raw_pod, make_world
from tests.stepping import view
from tests.voyage import RefusedOnce

Happening = Callable[[World], None]
"""Something that happens to a world."""

EXAMPLES: Final = max(5, settings().max_examples // 6)
"""A story takes a quarter of a second: as long as a hundred examples of other properties."""
NODES: Final = st.sampled_from(["a", "b", "c"])
PODS: Final = st.sampled_from(["p0", "p1", "p2", "p3", "p4", "p5"])
SHAPES: Final = st.sampled_from(
    [
        {"cpu": "500m"},
        {"cpu": "1500m"},
        {"cpu": "1500m", "nodeSelector": {"disk": "ssd"}},
        {"cpu": "1500m", "priorityClassName": "urgent"},
        {"cpu": "64"},
        {"schedulingGates": [{"name": "example.com/later"}]},
        {"schedulerName": "somebody-else"},
    ]
)


NOW: Final = timedelta(0)
URGENT: Final = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 1_000,
}
GRACE: Final = timedelta(seconds=40)
"""Until then every pod that was deleted is gone."""


def create_pod(world: World, name: str, shape: dict[str, Any]) -> None:
    _try(lambda: world.create(make_raw_pod(name, **shape)))


def delete_pod(world: World, name: str) -> None:
    _try(lambda: world.cluster.delete("Pod", name))


def add_node(world: World, name: str) -> None:
    labels = {"disk": "ssd" if name == "c" else "hdd"}
    _try(lambda: world.create(make_raw_node(name, cpu="2", labels=labels)))


def delete_node(world: World, name: str) -> None:
    _try(lambda: world.cluster.delete("Node", name))


def take_pod(world: World, name: str, node: str) -> None:
    """Have somebody else bind the pod."""
    pod = world.cluster.get("Pod", name, "default")
    if pod is not None:
        uid = pod["metadata"]["uid"]
        call = BindPod(namespace="default", name=name, uid=uid, resource_version="", node=node)
        world.cluster.perform([call])


def refuse(world: World, name: str) -> None:
    world.cluster.faults = RefusedOnce({name})


def wait(world: World, seconds: int) -> None:
    world.run_for(timedelta(seconds=seconds))


def restart_scheduler(world: World) -> None:
    world.crash("scheduler")
    world.start("scheduler")


def expire_watches(world: World) -> None:
    world.cluster.restart()


def settle(world: World) -> None:
    world.run_until_quiet(timedelta(minutes=20))


def happens(what: Callable[..., None], **drawn: SearchStrategy[Any]) -> SearchStrategy[Happening]:
    """Draw something that happens; a partial, because it shows what it is."""
    return st.builds(partial, st.just(what), **drawn)


STORIES: Final = st.lists(
    st.one_of(
        happens(create_pod, name=PODS, shape=SHAPES),
        happens(create_pod, name=PODS, shape=SHAPES),
        happens(delete_pod, name=PODS),
        happens(add_node, name=NODES),
        happens(delete_node, name=NODES),
        happens(take_pod, name=PODS, node=NODES),
        happens(refuse, name=PODS),
        happens(wait, seconds=st.sampled_from([1, 2, 20, 400])),
        happens(restart_scheduler),
        happens(expire_watches),
        happens(settle),
    ),
    min_size=4,
    max_size=16,
)
slow = settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow],
)


@slow
@given(story=STORIES)
def test_a_rebuild_comes_to_the_live_state(story: Sequence[Happening]) -> None:
    with told(story) as world:
        source = source_of(world)
        found = rebuild(source, resolve(Latest(), source))
        assert found.resyncs_wrong == []
        assert comparable(found.state) == comparable(world.scheduler.state)


@slow
@given(story=STORIES)
def test_every_decision_is_decided_again(story: Sequence[Happening]) -> None:
    with told(story) as world:
        report = verify(source_of(world), Wanted())
        assert report.replay.first_divergence is None
        assert report.verdict is Verdict.VERIFIED
        assert world.service("auditor").metrics.divergences == 0


@slow
@given(story=STORIES, share=st.floats(0, 1))
def test_replay_of_a_prefix_then_the_rest_is_replay_of_all(
    story: Sequence[Happening], share: float
) -> None:
    with told(story) as world:
        source = source_of(world)
        ticks = all_ticks(source)
        cut = ticks[int(share * (len(ticks) - 1))].row
        prefix = Moment(position=cut.cursor, tick=cut.tick, seq=cut.seq, time_ms=cut.now_ms)
        found = rebuild(source, prefix)
        for tick in ticks[cut.tick :]:
            apply_recorded(found.state, tick)
        whole = rebuild(source, resolve(AtPosition(ticks[-1].row.cursor), source))
        assert view(found.state) == view(whole.state)


@slow
@given(story=STORIES, count=st.integers(1, 40))
def test_redelivered_events_change_nothing(story: Sequence[Happening], count: int) -> None:
    """A producer that had no answer appends the end of the log once more.

    A resync that is told again is believed again, and what was told after it comes anew, so that
    has to be told again too; here nothing but single events is.
    """
    with told(story) as world:
        world.run_for(GRACE)
        before, head = comparable(world.scheduler.state), world.ledger.head(CLUSTER)
        with opened_log(world) as log:
            log.append(after_the_last_resync(world)[-count:])
        world.run_until_quiet()
        after, now = comparable(world.scheduler.state), world.ledger.head(CLUSTER)
        assert head is not None
        assert now is not None
        assert now.seq == head.seq
        assert without_time(after) == without_time(before)


def test_a_rebuild_that_lacks_the_last_decision_is_not_the_live_state() -> None:
    with told([partial(create_pod, name="p0", shape={"cpu": "64"})]) as world:
        source = source_of(world)
        latest = resolve(Latest(), source)
        short = Moment(
            position=latest.position,
            tick=latest.tick,
            seq=latest.seq - 1,
            time_ms=latest.time_ms,
        )
        assert comparable(rebuild(source, short).state) != comparable(world.scheduler.state)


@contextmanager
def told(story: Sequence[Happening]) -> Iterator[World]:
    """Tell the story to a new world, and let it come to rest."""
    with tempfile.TemporaryDirectory() as folder, make_world(Path(folder)) as world:
        world.create(URGENT, make_raw_node("home", cpu="1"))  # Without nodes there is no rest.
        settle(world)
        for happening in story:
            happening(world)
            world.turn()
        settle(world)
        yield world


def after_the_last_resync(world: World) -> list[Entry]:
    entries = [entry for _, entry in world.events.read(after=-1, limit=100_000, timeout=NOW)]
    ends = [n for n, entry in enumerate(entries) if entry.type == ResyncFinished.ce_type]
    return entries[ends[-1] + 1 :]


@contextmanager
def opened_log(world: World) -> Iterator[Log]:
    log = world.stores.events()
    try:
        yield log
    finally:
        log.close()


def source_of(world: World) -> Source:
    return Source(ledger=world.ledger, events=world.events, stream=CLUSTER, clock=world.clock)


def all_ticks(source: Source) -> list[RecordedTick]:
    reader, found = TickReader(source.ledger, source.events, source.stream), []
    while ticks := reader.read():
        found.extend(ticks)
    return found


def comparable(state: SchedulerState) -> dict[str, Any]:
    """Return what can be compared with a state of another process: it may have looked later."""
    return {name: value for name, value in view(state).items() if name != "now"}


def without_time(seen: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in seen.items() if name not in ("position", "timer")}


def _try(change: Callable[[], object]) -> None:
    """Make the change, if the API server lets it."""
    try:
        change()
    except Refused:
        return
