"""Whether the ledger still says what was once committed: both chains, from their first row.

Each row's hash covers its payload and the row before, and each tick's payload names the last
decision's hash, so whoever changes, adds or removes a row has to change everything after it, the
head and the anchors. What else the ledger keeps is held against the chains: columns against
payloads, configurations against their hashes, anchors and the head against the rows they name.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from decklog.core.errors import LedgerDamaged
from decklog.history.anchors import Seen, check_anchors, shown
from decklog.history.source import Source
from decklog.ports.ledger import ZERO_HASH, Anchor, DecisionRow, Head, TickRow
from decklog.ports.recorded import TICKS_MAX
from decklog.ports.sealing import check_decision_chain, check_tick_chain, decode_tick

Progress = Callable[[int], None]
"""Told the number of the tick that was checked."""

DECISIONS_MAX: Final = 5_000
"""Decisions a read of the ledger: about 4 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that is not as it was committed."""

    subject: str
    """What is wrong: `tick 17`, `decision 50112`, `configuration 9f3ac1…`, `anchor tick 1000`."""
    problem: str
    tick: int | None = None
    """The tick from which on nothing is proved; None: the chains themselves are whole."""

    def __str__(self) -> str:
        return f"{self.subject}: {self.problem}"


@dataclass(slots=True)
class ChainReport:
    """What walking the chains showed."""

    head: Head
    ticks: int = 0
    """Ticks that are as they were committed, up to the first that is not."""
    decisions: int = 0
    """The same of decisions: some of a tick that is broken may be whole."""
    last_good: TickRow | None = None
    configs: int = 0
    configs_found: int = 0
    anchors: int = 0
    anchors_found: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def break_at(self) -> Finding | None:
        """Return the finding that breaks a chain, if one does."""
        return next((found for found in self.findings if found.tick is not None), None)


def check_chains(source: Source, progress: Progress = lambda _: None) -> ChainReport:
    """Walk the stream's chains as far as they are whole, and check what belongs to them.

    Raises:
        NotFound: nobody ever led the stream.
    """
    head = source.head()
    report = ChainReport(head)
    anchors = source.ledger.anchors(source.stream)
    walk = _Walk(source, Seen({(anchor.chain, anchor.number) for anchor in anchors}))
    try:
        report.findings.extend(_check_rows(source, walk, report, progress))
    except LedgerDamaged as error:
        report.findings.append(_broken("ledger", str(error), report.ticks + 1))
    _check_configs(source, walk, report)
    _check_anchors(anchors, walk.seen, report)
    return report


def _check_rows(
    source: Source, walk: "_Walk", report: ChainReport, progress: Progress
) -> Iterator[Finding]:
    """Yield the first thing that is wrong with ticks, decisions and head."""
    for row in _ticks(source, report.head.tick):
        finding = walk.take(row)
        report.decisions = walk.seq
        if finding is not None:
            yield finding
            return
        report.ticks, report.last_good = row.tick, row
        progress(row.tick)
    yield from _check_head(source, report.head, walk)


@dataclass(slots=True)
class _Walk:
    """How far both chains were walked, and what was seen on the way."""

    source: Source
    seen: Seen
    tick: TickRow | None = None
    tick_hash: bytes = ZERO_HASH
    seq: int = 0
    seq_hash: bytes = ZERO_HASH
    configs: dict[str, int] = field(default_factory=dict)
    """Config hash → the first tick that names it."""
    _decisions: Iterator[DecisionRow] = field(init=False)

    def __post_init__(self) -> None:
        self._decisions = _decisions(self.source)

    def take(self, row: TickRow) -> Finding | None:
        """Check the next tick with its decisions; return the first thing that is wrong."""
        number = 1 if self.tick is None else self.tick.tick + 1
        if row.tick != number:
            return _broken(f"tick {number}", f"it is missing: the next is {row.tick}", number)
        problem = check_tick_chain(self.tick_hash, row) or self._tick_problem(row)
        if problem is not None:
            return _broken(f"tick {number}", problem.removeprefix(f"tick {number}: "), number)
        for seq in range(self.seq + 1, row.seq + 1):
            problem = self._take_decision(seq, row)
            if problem is not None:
                problem = problem.removeprefix(f"decision {seq}: ")
                return _broken(f"decision {seq}", problem, number)
        if decode_tick(row.payload).seq_hash != self.seq_hash.hex():
            return _broken(f"tick {number}", "it names another hash of its last decision", number)
        self._note(row)
        return None

    def _tick_problem(self, row: TickRow) -> str | None:
        stream, before = decode_tick(row.payload).stream, self.tick
        if stream != self.source.stream:
            return f"it belongs to the stream {stream!r}"
        if before is None:
            return None
        for column in ("generation", "cursor", "now_ms", "seq"):
            was, now = getattr(before, column), getattr(row, column)
            if now < was:
                return f"its {column} goes back from {was} to {now}"
        return None

    def _take_decision(self, seq: int, tick: TickRow) -> str | None:
        row = next(self._decisions, None)
        if row is None or row.seq != seq:
            return "it is missing" if row is None else f"it is missing: the next is {row.seq}"
        problem = check_decision_chain(self.seq_hash, row)
        if problem is not None:
            return problem
        for column in ("tick", "generation", "now_ms"):
            said, want = getattr(row, column), getattr(tick, column)
            if said != want:
                return f"its {column} is {said}, and that of its tick {tick.tick} is {want}"
        if row.decided_at is None:
            return "its decided_at is no time"
        self.seq, self.seq_hash = seq, row.hash
        self.seen.decision(seq, row.hash)
        return None

    def _note(self, row: TickRow) -> None:
        self.tick, self.tick_hash = row, row.hash
        self.configs.setdefault(row.config_hash, row.tick)
        self.seen.tick(row)


def _broken(subject: str, problem: str, tick: int) -> Finding:
    return Finding(subject=subject, problem=problem, tick=tick)


def _ticks(source: Source, last: int) -> Iterator[TickRow]:
    """Yield the rows up to number `last`, page by page. They may hold anything."""
    after = 0
    while after < last:
        page = source.ledger.ticks(source.stream, after=after, limit=min(TICKS_MAX, last - after))
        yield from page
        if not page:
            return
        after = page[-1].tick


def _decisions(source: Source) -> Iterator[DecisionRow]:
    after = 0
    while page := source.ledger.decisions(source.stream, after=after, limit=DECISIONS_MAX):
        yield from page
        after = page[-1].seq


def _check_head(source: Source, head: Head, walk: _Walk) -> Iterator[Finding]:
    """Hold the head against the last rows, which were there when it was read."""
    row = walk.tick
    last = row.tick if row else 0
    if head.tick != last:
        problem = f"it is missing: the head is at {head.tick}"
        yield Finding(subject=f"tick {last + 1}", problem=problem, tick=last + 1)
        return
    want = {"tick_hash": walk.tick_hash, "seq": walk.seq, "seq_hash": walk.seq_hash}
    if row:
        want |= {"cursor": row.cursor, "now_ms": row.now_ms}
    for column, value in want.items():
        found = getattr(head, column)
        if found != value:
            problem = f"its {column} is {shown(found)}, and that of the last row {shown(value)}"
            yield Finding(subject="head", problem=problem, tick=last + 1)
            return
    yield from _check_beyond(source, head, walk)


def _check_beyond(source: Source, head: Head, walk: _Walk) -> Iterator[Finding]:
    """Nothing may stand behind the head, but for what was committed while we looked."""
    generation = walk.tick.generation if walk.tick else 0
    if head.generation < generation:
        problem = f"its generation is {head.generation}, and that of the last tick {generation}"
        yield Finding(subject="head", problem=problem, tick=head.tick)
    ticks = source.ledger.ticks(source.stream, after=head.tick, limit=1)
    decisions = source.ledger.decisions(source.stream, after=head.seq, limit=1)
    now = source.head()
    if ticks and now.tick == head.tick:
        problem = f"it stands behind the head, which is at {head.tick}"
        yield Finding(subject=f"tick {ticks[0].tick}", problem=problem, tick=head.tick + 1)
    if decisions and now.seq == head.seq:
        problem = f"it stands behind the head, which is at {head.seq}"
        yield Finding(subject=f"decision {decisions[0].seq}", problem=problem, tick=head.tick + 1)


def _check_configs(source: Source, walk: _Walk, report: ChainReport) -> None:
    """Every configuration is what its hash says, and every tick's is there."""
    stored = dict(source.ledger.configs())
    report.configs_found = len(stored)
    for config_hash, body in stored.items():
        computed = sha256(body).hexdigest()
        if computed == config_hash:
            report.configs += 1
            continue
        problem = f"it is stored under this hash, and its body's is {computed}"
        report.findings.append(Finding(subject=f"configuration {config_hash}", problem=problem))
    for config_hash, tick in walk.configs.items():
        if config_hash not in stored:
            problem = f"it is missing, and tick {tick} was decided under it"
            report.findings.append(Finding(subject=f"configuration {config_hash}", problem=problem))


def _check_anchors(anchors: Sequence[Anchor], seen: Seen, report: ChainReport) -> None:
    report.anchors_found = len(anchors)
    for anchor, problem in check_anchors(anchors, seen, is_whole=report.break_at is None):
        if problem:
            subject = f"anchor {anchor.chain} {anchor.number}"
            report.findings.append(Finding(subject=subject, problem=problem))
        else:
            report.anchors += 1
