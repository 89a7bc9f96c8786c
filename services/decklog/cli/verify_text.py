"""A verification as people read it."""

from collections.abc import Iterator
from typing import Final

from decklog.core.rules import RULES
from decklog.history.verify import Verdict, VerifyReport
from decklog.ports.entries import to_rfc3339

LABEL: Final = 11
PAYLOAD_MAX: Final = 400
"""Characters of a payload; the whole is in the JSON."""


def report_text(report: VerifyReport, code: int) -> str:
    """Return the report; its last line ends in the exit code."""
    lines = [
        *_part("Requested", _requested(report)),
        *_part("Found", _found(report)),
        *_part("Chain", _chain(report)),
        *_part("Replay", _replay(report)),
    ]
    return "\n".join([*lines, _sum(report, code)])


def _part(label: str, lines: Iterator[str]) -> Iterator[str]:
    for index, line in enumerate(lines):
        yield f"{label if index == 0 else '':<{LABEL}}{line}"


def _requested(report: VerifyReport) -> Iterator[str]:
    after, until = report.wanted.after, report.wanted.until
    if after is None and until is None:
        yield "everything"
    else:
        yield f"{after or 'the beginning'} .. {until or 'the end'}"


def _found(report: VerifyReport) -> Iterator[str]:
    replay = report.replay
    if replay.first_position is None:
        yield "no events"
        return
    times = f"{to_rfc3339(replay.first_time_ms)} .. {to_rfc3339(replay.last_time_ms)}"
    gaps = f"{replay.empty_positions:,} hold no event" if replay.empty_positions else "no gaps"
    yield f"positions {replay.first_position} .. {replay.last_position} ({times}), {gaps}"


def _chain(report: VerifyReport) -> Iterator[str]:
    chain = report.chain
    head = chain.head.tick_hash.hex()
    yield (
        f"{chain.ticks:,}/{chain.head.tick:,} ticks, "
        f"{chain.decisions:,}/{chain.head.seq:,} decisions valid   head {head[:6]}…{head[-2:]}   "
        f"anchors {chain.anchors:,}/{chain.anchors_found:,} match   "
        f"configurations {chain.configs:,}/{chain.configs_found:,} match"
    )
    for finding in chain.findings:
        yield f"BROKEN at {finding}"
    if chain.break_at is None:
        return
    left = max(0, chain.head.seq - chain.decisions)
    good = chain.last_good
    when = f" ({to_rfc3339(good.now_ms)})" if good else ""
    yield (
        f"last good tick {chain.ticks}{when}, decision {chain.decisions}; "
        f"{left:,} later decisions are unverifiable"
    )


def _replay(report: VerifyReport) -> Iterator[str]:
    replay = report.replay
    identical = replay.decisions - replay.divergent
    policies = f" (policies {', '.join(replay.policies)})" if replay.policies else ""
    yield (
        f"{identical:,}/{replay.decisions:,} decisions of rules {RULES} identical{policies}   "
        f"{replay.seconds:.1f} s"
    )
    if replay.finding is not None:
        yield f"IMPOSSIBLE at {replay.finding}"
    first = replay.first_divergence
    if first is not None:
        yield f"DIFFERENT from decision {first.seq} of tick {first.tick} on"
        yield f"  recorded       {_payload(first.want)}"
        yield f"  decided again  {_payload(first.got)}"
    for rules, (_, decisions) in sorted(replay.other_rules.items()):
        release = replay.versions.get(rules)
        use = f"use decklog {release}" if release else "use the decklog that decided them"
        yield f"{decisions:,} decisions of rules {rules} not re-decided: {use}"
    if replay.unchecked:
        yield f"ended early: {replay.unchecked}"


def _payload(payload: bytes) -> str:
    text = payload.decode(errors="replace")
    return text if len(text) <= PAYLOAD_MAX else f"{text[:PAYLOAD_MAX]}…" if text else "nothing"


def _sum(report: VerifyReport, code: int) -> str:
    text = _SUMS[report.verdict]
    total = report.chain.head.tick
    if report.verdict is Verdict.VERIFIED and report.other_ticks:
        text = (
            f"Verified, but for {report.other_ticks:,} of {total:,} ticks that were not "
            "re-decided (--strict: exit 6)"
        )
    elif report.verdict is Verdict.VERIFIED:
        text = "Verified."
    return f"{text:<78} exit {code}"


_SUMS: Final = {
    Verdict.VERIFIED: "Verified.",
    Verdict.VIOLATED: "Violated: this is not the history that was committed.",
    Verdict.UNAVAILABLE: "Could not be verified: what is needed does not answer.",
    Verdict.REFUSED: "Could not be verified whole.",
}
