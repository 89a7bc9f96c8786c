"""Whether history is as it was committed, and whether it can be decided again, byte for byte.

Three answers are kept apart: it is as it should be; it is not (a chain is broken, or a decision
differs); it could not be looked at (events are gone, the log does not answer, other rules).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from decklog.core.errors import (
    BadConfiguration,
    IllegalTransition,
    LogUnavailable,
    PositionLost,
    Refused,
)
from decklog.core.rules import RULES
from decklog.events.facts import LeaderElected
from decklog.history.chains import ChainReport, Finding, check_chains
from decklog.history.collecting import no_collecting
from decklog.history.policies import policy_name
from decklog.history.positions import Moment
from decklog.history.source import Source
from decklog.ports.entries import to_rfc3339
from decklog.ports.ledger import Divergence
from decklog.ports.recorded import TICKS_MAX, RecordedTick
from decklog.ports.redeciding import Redecided, Redecider

Progress = Callable[[str, int, int], None]
"""Told the part of the work, how far it is, and how far it goes."""


class Verdict(Enum):
    VERIFIED = "verified"
    VIOLATED = "violated"
    UNAVAILABLE = "unavailable"
    """It could not be looked at now."""
    REFUSED = "refused"
    """It cannot be looked at: events are gone, or it was decided by other rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be decided again: the ticks after one moment, up to another."""

    after: Moment | None = None
    until: Moment | None = None
    is_strict: bool = False
    """Whether ticks of other rules make the answer a refusal."""


@dataclass(slots=True)
class Replay:
    """What deciding again showed."""

    first_position: int | None = None
    last_position: int = -1
    first_time_ms: int = 0
    last_time_ms: int = 0
    empty_positions: int = 0
    """Positions that hold no event; a log need not be dense."""
    ticks: int = 0
    decisions: int = 0
    divergent: int = 0
    events: int = 0
    first_divergence: Divergence | None = None
    policies: list[str] = field(default_factory=list)
    other_rules: dict[int, list[int]] = field(default_factory=dict)
    """Rules → (ticks, decisions) that were not decided again."""
    versions: dict[int, str] = field(default_factory=dict)
    """Rules → the release that decided by them, as its leaders said."""
    finding: Finding | None = None
    unchecked: str = ""
    """Why deciding again ended before its end."""
    is_unavailable: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    stream: str
    wanted: Wanted
    chain: ChainReport
    replay: Replay
    seconds: float = 0.0

    @property
    def findings(self) -> Sequence[Finding]:
        found = self.replay.finding
        return [*self.chain.findings, *([found] if found else [])]

    @property
    def verdict(self) -> Verdict:
        if self.findings or self.replay.divergent:
            return Verdict.VIOLATED
        if self.replay.unchecked:
            return Verdict.UNAVAILABLE if self.replay.is_unavailable else Verdict.REFUSED
        if self.replay.other_rules and self.wanted.is_strict:
            return Verdict.REFUSED
        return Verdict.VERIFIED

    @property
    def other_ticks(self) -> int:
        """Return how many ticks were not decided again because other rules decided them."""
        return sum(ticks for ticks, _ in self.replay.other_rules.values())


def verify(source: Source, wanted: Wanted, progress: Progress = lambda *_: None) -> VerifyReport:
    """Walk both chains from their start, then decide again what is wanted.

    Raises:
        NotFound: there is no such history.
        LedgerUnavailable: the ledger did not answer.
    """
    started_ms = source.clock.monotonic_ms()
    total = source.head().tick
    chain = check_chains(source, lambda tick: progress("chain", tick, total))
    broken = chain.break_at
    last = chain.ticks if wanted.until is None else min(chain.ticks, wanted.until.tick)
    walk = _Walk(source, first_tick=wanted.after.tick + 1 if wanted.after else 1)
    with no_collecting():
        walk.run(last, lambda tick: progress("replay", tick, last))
    if broken is not None and not walk.found.unchecked:
        walk.found.unchecked = "stopped at the break"
    seconds = (source.clock.monotonic_ms() - started_ms) / 1000
    return VerifyReport(
        stream=source.stream, wanted=wanted, chain=chain, replay=walk.found, seconds=seconds
    )


@dataclass(slots=True)
class _Walk:
    """Decides ticks again and counts what that shows."""

    source: Source
    first_tick: int
    found: Replay = field(default_factory=Replay)
    _redecider: Redecider = field(init=False)
    _done: int = 0
    """The last tick that was walked."""
    _configs: dict[str, str] = field(default_factory=dict)
    """Config hash → how people know the policy."""

    def __post_init__(self) -> None:
        source = self.source
        self._redecider = Redecider(
            source.ledger, source.events, source.stream, first_tick=self.first_tick
        )

    def run(self, last: int, progress: Callable[[int], None]) -> None:
        started_ms = self.source.clock.monotonic_ms()
        try:
            self._check_beginning(last)
            self._walk(last, progress)
        except (PositionLost, Refused, BadConfiguration) as error:
            self.found.unchecked = str(error)
        except LogUnavailable as error:
            self.found.unchecked, self.found.is_unavailable = str(error), True
        except IllegalTransition as error:
            tick = self._done + 1
            problem = f"what it records cannot be: {error}"
            self.found.finding = Finding(subject=f"tick {tick}", problem=problem, tick=tick)
        self.found.seconds = (self.source.clock.monotonic_ms() - started_ms) / 1000

    def _check_beginning(self, last: int) -> None:
        """Without the first events nothing is known exactly: attempts, back-offs, open assumes."""
        first, newest = self.source.events.bounds()
        if first > 0 and last > 0:
            msg = (
                f"the log holds positions {first} to {newest}, and history begins at 0: "
                "nothing can be decided again without its beginning"
            )
            raise Refused(msg)

    def _walk(self, last: int, progress: Callable[[int], None]) -> None:
        limit = TICKS_MAX
        while self._done < last:
            try:
                for redecided in self._redecider.walk(limit=min(limit, last - self._done)):
                    self._note(redecided)
                    self._done = redecided.tick.row.tick
                    progress(self._done)
            except PositionLost:
                if limit == 1:
                    raise
                limit = limit // 2  # The first ones of them may be there.

    def _note(self, redecided: Redecided) -> None:
        tick, found = redecided.tick, self.found
        self._note_events(tick)
        if tick.row.tick < self.first_tick:
            return
        if not redecided.decided and tick.row.rules != RULES:
            counts = found.other_rules.setdefault(tick.row.rules, [0, 0])
            counts[0] += 1
            counts[1] += len(tick.rows)
        elif not redecided.decided and (tick.rows or tick.row.cycles):
            msg = f"tick {tick.row.tick} cannot be decided again: {redecided.why_not}"
            raise Refused(msg)
        else:
            found.ticks += 1
            found.decisions += len(tick.rows)
            self._note_policy(tick)
        if redecided.divergences:
            found.divergent += len(redecided.divergences)
            found.first_divergence = found.first_divergence or redecided.divergences[0]

    def _note_events(self, tick: RecordedTick) -> None:
        found = self.found
        for record in tick.records:
            if found.first_position is None:
                found.first_position = record.position
                found.first_time_ms = tick.row.now_ms
            else:
                found.empty_positions += record.position - found.last_position - 1
            found.last_position = record.position
            if isinstance(record.fact, LeaderElected):
                found.versions[record.fact.rules] = record.fact.code_version
        found.events += len(tick.records)
        found.last_time_ms = tick.row.now_ms

    def _note_policy(self, tick: RecordedTick) -> None:
        config_hash = tick.row.config_hash
        if config_hash not in self._configs:
            body = self.source.ledger.config(config_hash)
            self._configs[config_hash] = policy_name(config_hash, body)
            self.found.policies.append(self._configs[config_hash])


def facts(report: VerifyReport) -> dict[str, Any]:
    """Return the report as plain data."""
    chain, replay = report.chain, report.replay
    return {
        "stream": report.stream,
        "verdict": report.verdict.value,
        "requested": {
            "from": str(report.wanted.after.position) if report.wanted.after else None,
            "to": str(report.wanted.until.position) if report.wanted.until else None,
        },
        "found": {
            "firstPosition": None if replay.first_position is None else str(replay.first_position),
            "lastPosition": None if replay.first_position is None else str(replay.last_position),
            "events": replay.events,
            "emptyPositions": replay.empty_positions,
            "from": to_rfc3339(replay.first_time_ms),
            "to": to_rfc3339(replay.last_time_ms),
        },
        "chain": {
            "ticks": chain.head.tick,
            "ticksValid": chain.ticks,
            "decisions": chain.head.seq,
            "decisionsValid": chain.decisions,
            "head": chain.head.tick_hash.hex(),
            "anchors": chain.anchors_found,
            "anchorsValid": chain.anchors,
            "configurations": chain.configs_found,
            "configurationsValid": chain.configs,
        },
        "replay": {
            "rules": RULES,
            "ticks": replay.ticks,
            "decisions": replay.decisions,
            "identical": replay.decisions - replay.divergent,
            "divergences": replay.divergent,
            "policies": replay.policies,
            "seconds": replay.seconds,
            "unchecked": replay.unchecked or None,
            "firstDivergence": _divergence_facts(replay.first_divergence),
            "notRedecided": [
                {
                    "rules": rules,
                    "ticks": ticks,
                    "decisions": decisions,
                    "use": replay.versions.get(rules),
                }
                for rules, (ticks, decisions) in sorted(replay.other_rules.items())
            ],
        },
        "findings": [
            {"subject": found.subject, "problem": found.problem, "tick": found.tick}
            for found in report.findings
        ],
        "seconds": report.seconds,
    }


def _divergence_facts(divergence: Divergence | None) -> dict[str, Any] | None:
    if divergence is None:
        return None
    return {
        "tick": divergence.tick,
        "seq": divergence.seq,
        "recorded": divergence.want.decode(errors="replace"),
        "decidedAgain": divergence.got.decode(errors="replace"),
    }
