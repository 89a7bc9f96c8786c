"""One tick: the bounded step in which the scheduler moves from one recorded state to the next.

The order is exact and is the contract of every record: set `now`; apply the events in the order of
their positions; close what they ended (PodUnreserved, BindingAdopted, by position); fire the timers
that are due, by (deadline, kind, pod uid); then cycles. Who decides is the source's business: the
leader proposes, a rebuild reads the ledger, verify does both and compares.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from decklog.core.deciding import PERMIT, Decider
from decklog.core.state import Ask, Ending, SchedulerState
from decklog.events.facts import BindingAdopted, Decision, PodUnschedulable, Record, VictimsSelected

CYCLES_MAX: Final = 100
"""Cycles a tick: bounds what a crash can cost, and keeps a commit under 10 ms."""
EVENTS_MAX: Final = 5_000
"""Events a tick: about 0.2 s of applying."""

Propose = Callable[[], Sequence[Decision]]


class DecisionSource(Protocol):
    def closing(self, propose: Propose) -> Sequence[Decision]:
        """Return the one decision that closes what an event or a timer ended."""
        ...

    def cycle(self, propose: Propose) -> Sequence[Decision]:
        """Return what the next cycle decides; nothing ends the tick."""
        ...


@dataclass(slots=True)
class Proposals:
    """The leader's source: what is proposed is decided, up to a number of cycles."""

    cycles_left: int = CYCLES_MAX

    def closing(self, propose: Propose) -> Sequence[Decision]:
        return propose()

    def cycle(self, propose: Propose) -> Sequence[Decision]:
        if self.cycles_left == 0:
            return ()
        self.cycles_left -= 1
        return propose()


@dataclass(slots=True)
class Recorded:
    """A rebuild's source: what the ledger holds is taken as fact, and nothing is decided again."""

    decisions: deque[Decision]

    def closing(self, propose: Propose) -> Sequence[Decision]:
        return (self.decisions.popleft(),) if self.decisions else ()

    def cycle(self, propose: Propose) -> Sequence[Decision]:
        if not self.decisions:
            return ()
        first = self.decisions.popleft()
        if (
            isinstance(first, VictimsSelected)
            and self.decisions
            and isinstance(self.decisions[0], PodUnschedulable)
        ):
            return (first, self.decisions.popleft())
        return (first,)


@dataclass(slots=True)
class Compared:
    """Verify's source: decides again and keeps that, and takes what is recorded."""

    recorded: Recorded
    cycles_left: int
    proposed: list[Decision] = field(default_factory=list)

    def closing(self, propose: Propose) -> Sequence[Decision]:
        self.proposed.extend(propose())
        return self.recorded.closing(propose)

    def cycle(self, propose: Propose) -> Sequence[Decision]:
        if self.cycles_left > 0:
            self.cycles_left -= 1
            self.proposed.extend(propose())
        return self.recorded.cycle(propose)


@dataclass(frozen=True, slots=True, kw_only=True)
class TickResult:
    cursor: int
    now_ms: int
    cycles: int
    decisions: tuple[Decision, ...]
    moved: bool
    """Whether anything was applied, moved or popped: only then is the tick recorded."""


@dataclass(slots=True)
class TickRunner:
    state: SchedulerState
    decider: Decider = field(init=False)

    def __post_init__(self) -> None:
        self.decider = Decider(self.state)

    def run(
        self,
        *,
        now_ms: int,
        records: Sequence[Record],
        source: DecisionSource,
        ask: Ask | None = None,
    ) -> TickResult:
        """Run one tick and return what was decided, in order."""
        state, decider = self.state, self.decider
        state.set_now(now_ms)
        for record in records:
            state.apply(record)
        decided: list[Decision] = []
        for cause in decider.take_causes():
            self._close(source, cause, decided)
        timers = decider.due()
        for timer in timers:
            if timer.kind == PERMIT:
                ending = decider.timed_out(timer)
                self._close(source, ending, decided)
            else:
                state.queue.fire(timer)
        cycles = 0
        while self._take(source.cycle, lambda: decider.propose(ask), decided):
            cycles += 1
        return TickResult(
            cursor=state.position,
            now_ms=now_ms,
            cycles=cycles,
            decisions=tuple(decided),
            moved=bool(records or timers or decided),
        )

    def _close(
        self, source: DecisionSource, cause: Ending | BindingAdopted, decided: list[Decision]
    ) -> None:
        self._take(source.closing, lambda: (self.decider.closing(cause),), decided)

    def _take(
        self,
        choose: Callable[[Propose], Sequence[Decision]],
        propose: Propose,
        decided: list[Decision],
    ) -> bool:
        """Let the source choose, accept its choice, and take back a proposal it did not choose."""
        proposed: list[Decision] = []

        def proposing() -> Sequence[Decision]:
            proposed.extend(propose())
            return proposed

        chosen = tuple(choose(proposing))
        if proposed and tuple(proposed) != chosen:
            self.decider.retract(proposed)
        for decision in chosen:
            self.decider.accept(decision)
        decided.extend(chosen)
        return bool(chosen)
