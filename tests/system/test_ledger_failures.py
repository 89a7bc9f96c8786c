"""The ledger fails before and after COMMIT at every call, and nothing is decided or bound twice."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from decklog.core.errors import LedgerUnavailable
from decklog.ports.ledger import DecisionFilter
from decklog.runner import IDLE_DELAY
from tests.harness import CLUSTER, BeatingLedger, World, make_raw_node, make_raw_pod, make_world

HARMLESS: Final = frozenset({"alive", "beat", "close"})
"""Calls that do not reach the database, or whose failure has a meaning of its own."""
PODS: Final = 30


@dataclass
class FailingLedger:
    """Fails each call by `pattern`, which is asked with the number of the call to that method."""

    ledger: BeatingLedger
    pattern: Callable[[int], str]
    calls: Counter[str]
    failures: Counter[str]
    methods: frozenset[str] | None = None
    """Those that fail; None: all."""

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.ledger, name)
        spared = self.methods is not None and name not in self.methods
        if spared or name in HARMLESS or name.startswith("_"):
            return method

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls[name] += 1
            fails = self.pattern(self.calls[name])
            if fails == "before":
                self._fail(name, fails)
            answer = method(*args, **kwargs)
            if fails == "after":
                self._fail(name, fails)
            return answer

        return call

    def _fail(self, name: str, when: str) -> None:
        self.failures[f"{name} {when}"] += 1
        msg = f"{name} failed {when}"
        raise LedgerUnavailable(msg)


def fill(world: World) -> None:
    world.create(*(make_raw_node(f"node-{number}") for number in range(5)))
    world.create(*(make_raw_pod(f"pod-{number:02}", cpu="300m") for number in range(PODS)))
    world.create(make_raw_pod("giant", cpu="64"))


def placements(world: World) -> dict[str, str]:
    return {
        pod["metadata"]["name"]: pod["spec"].get("nodeName", "")
        for pod in world.cluster.raw_objects("Pod")
    }


def assert_decided_once(world: World) -> None:
    rows = world.ledger.select(
        CLUSTER, where=DecisionFilter(kind="PodAssumed"), limit=1_000, newest_first=False
    )
    assert Counter(row.pod for row in rows) == {f"pod-{number:02}": 1 for number in range(PODS)}
    everything = world.ledger.decisions(CLUSTER, after=0, limit=10_000)
    assert [row.seq for row in everything] == list(range(1, len(everything) + 1))
    assert not world.ledger.open_assumes(CLUSTER)
    assert not world.ledger.divergences(CLUSTER, limit=1)
    assert world.service("auditor").metrics.chain_breaks == 0


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    with make_world(tmp_path_factory.mktemp("undisturbed")) as world:
        fill(world)
        world.run_until_quiet()
        assert_decided_once(world)
        return placements(world)


METHODS: Final = (
    "adopt",
    "audited",
    "claim",
    "commit",
    "finish",
    "head",
    "published",
    "put_config",
    "sweep",
    "take_over",
    "ticks",
    "unpublished",
    "work_as",
)


def in_turn(call: int) -> str:
    return ("before", "after", "")[(call - 1) % 3]


def at_first(call: int) -> str:
    return ("before", "after")[call - 1] if call <= 2 else ""


@pytest.mark.parametrize("method", METHODS)
def test_a_method_that_fails_before_and_after_at_every_call_changes_nothing(
    tmp_path: Path, undisturbed: dict[str, str], method: str
) -> None:
    failures = run_disturbed(tmp_path, undisturbed, in_turn, frozenset({method}))
    assert failures[f"{method} before"] > 0
    assert failures[f"{method} after"] > 0


def test_a_ledger_whose_every_method_fails_at_first_changes_nothing(
    tmp_path: Path, undisturbed: dict[str, str]
) -> None:
    failures = run_disturbed(tmp_path, undisturbed, at_first, None)
    assert {f"{method} after" for method in METHODS} <= set(failures)


def run_disturbed(
    folder: Path,
    undisturbed: dict[str, str],
    pattern: Callable[[int], str],
    methods: frozenset[str] | None,
) -> Counter[str]:
    failures: Counter[str] = Counter()

    def disturb(_name: str, ledger: BeatingLedger) -> BeatingLedger:
        return FailingLedger(ledger, pattern, Counter(), failures, methods)

    with make_world(folder, disturb=disturb) as world:
        fill(world)
        world.run_for(timedelta(seconds=5))
        world.run_until_quiet(timedelta(minutes=5))
        assert_decided_once(world)
        assert placements(world) == undisturbed
    return failures


def test_a_scheduler_that_dies_after_a_commit_it_does_not_know_of_repeats_nothing(
    tmp_path: Path,
) -> None:
    """The next generation finds the tick in the ledger and takes it as a fact."""
    failures: Counter[str] = Counter()

    def second_after(call: int) -> str:
        return "after" if call == 2 else ""

    def disturb(name: str, ledger: BeatingLedger) -> BeatingLedger:
        if name != "scheduler":
            return ledger
        return FailingLedger(ledger, second_after, Counter(), failures)

    with make_world(tmp_path, disturb=disturb) as world:
        fill(world)
        while not failures["commit after"]:
            if not world.turn():
                world.clock.sleep(IDLE_DELAY)
        world.crash("scheduler")
        world.start("scheduler", name="second")
        world.run_until_quiet()
        assert_decided_once(world)
