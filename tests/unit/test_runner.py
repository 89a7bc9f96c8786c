"""The loop: who is stepped, who has to wait, and how it ends."""

from dataclasses import dataclass, field

import pytest

from decklog.core.errors import Deposed, LogUnavailable
from decklog.runner import IDLE_DELAY, RETRY_DELAY_SECONDS_MAX, Loop, Paced
from tests.harness import ManualClock


@dataclass
class Scripted:
    """A service that does in each step what its script says; after it, nothing."""

    name: str
    script: list[bool | Exception] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    def step(self) -> bool:
        self.log.append(self.name)
        found = self.script.pop(0) if self.script else False
        if isinstance(found, Exception):
            raise found
        return found

    def readiness(self) -> dict[str, str]:
        return {}

    def stop(self) -> None:
        self.log.append(f"stop {self.name}")


def make_loop(*services: Scripted) -> tuple[Loop, ManualClock]:
    clock = ManualClock()
    return Loop([Paced(service) for service in services], clock), clock


def test_every_service_is_stepped_in_each_turn() -> None:
    log: list[str] = []
    loop, _ = make_loop(Scripted("a", [True], log), Scripted("b", [], log))
    assert loop.turn() is True
    assert loop.turn() is False
    assert log == ["a", "b", "a", "b"]


def test_a_turn_says_when_it_was() -> None:
    loop, clock = make_loop()
    clock.advance(IDLE_DELAY)
    loop.turn()
    assert loop.beat_ms == clock.monotonic_ms()


def test_nobody_sleeps_while_anybody_has_something_to_do() -> None:
    service = Scripted("a", [True, True, False])
    loop, clock = make_loop(service)
    loop.run(lambda: clock.monotonic_ms() > 0)
    assert len(service.log) == 4
    assert clock.monotonic_ms() == 5


def test_services_are_stopped_in_the_reverse_order() -> None:
    log: list[str] = []
    loop, _ = make_loop(Scripted("a", [], log), Scripted("b", [], log))
    loop.run(lambda: True)
    assert log == ["stop b", "stop a"]


def test_a_failing_service_backs_off_and_others_go_on() -> None:
    failing = Scripted("a", [LogUnavailable("down")])
    other = Scripted("b", [True, True])
    loop, clock = make_loop(failing, other)
    assert loop.turn() is True
    paced = loop.services[0]
    assert (paced.failures, paced.failing) == (1, "down")
    assert isinstance(paced.error, LogUnavailable)
    paced.not_before_ms = clock.monotonic_ms() + 10
    assert loop.turn() is True
    assert (len(failing.log), len(other.log)) == (1, 2)


def test_a_service_that_has_recovered_is_not_failing_any_more() -> None:
    service = Scripted("a", [LogUnavailable("down"), True])
    loop, clock = make_loop(service)
    loop.turn()
    clock.sleep(IDLE_DELAY * 1000)
    assert loop.turn() is True
    paced = loop.services[0]
    assert (paced.failures, paced.failing, paced.error) == (0, "", None)


def test_a_service_is_tried_again_for_ever_and_never_waits_longer_than_the_limit() -> None:
    service = Scripted("a", [LogUnavailable("down")] * 50)
    loop, clock = make_loop(service)
    for _ in range(50):
        loop.turn()
        wait_ms = loop.services[0].not_before_ms - clock.monotonic_ms()
        assert 0 <= wait_ms <= RETRY_DELAY_SECONDS_MAX * 1000
        clock.sleep(IDLE_DELAY * 2001)
    assert loop.services[0].failures == 50


def test_any_other_error_ends_the_loop() -> None:
    loop, _ = make_loop(Scripted("a", [Deposed("eu1", generation=1, found=2)]))
    with pytest.raises(Deposed):
        loop.run(lambda: False)
