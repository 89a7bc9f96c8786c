"""Write golden files for events and decisions that have none yet.

    python -m tests.golden.generate_events

A file that exists is never touched: it is what some release wrote, and every later one reads it.
SCHEMAS pins what a program can tell of a version's schema; to add a field, delete its line first.
"""

import dataclasses
import hashlib
import json
import sys
from pathlib import Path
from typing import Any, Final

import msgspec

from decklog.adapters.log.envelope import headers_of
from decklog.events.schemas import structure, value_schemas
from decklog.events.upcasts import split_type
from decklog.ports.entries import decision_entries, event_entry
from decklog.ports.ledger import ZERO_HASH
from decklog.ports.log import Entry
from decklog.ports.sealing import ChainHead, seal
from tests.unit.events import samples

ROOT: Final = Path(__file__).parent / "events"
MANIFEST: Final = ROOT / "SHA256SUMS"
PINS: Final = ROOT / "SCHEMAS"
CLUSTER: Final = "harbour"
NOW_MS: Final = 1_770_091_506_789
HEAD: Final = ChainHead(
    stream=CLUSTER,
    generation=7,
    tick=311,
    tick_hash=ZERO_HASH,
    seq=1041,
    seq_hash=ZERO_HASH,
    config_hash="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    rules=1,
)


def main() -> None:
    golden = {**_events(), **_decisions()}
    for path, record in golden.items():
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n")
            sys.stdout.write(f"{path}\n")
    MANIFEST.write_text("".join(f"{line}\n" for line in manifest()))
    pinned = pins() if PINS.exists() else {}
    pinned = dict(sorted({**structures(), **pinned}.items()))
    PINS.write_text("".join(f"{digest}  {ce_type}\n" for ce_type, digest in pinned.items()))


def manifest() -> list[str]:
    return [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(ROOT).as_posix()}"
        for path in sorted(ROOT.rglob("*.json"))
    ]


def pins() -> dict[str, str]:
    """Return the digests that were written down, by type."""
    lines = [line.split("  ") for line in PINS.read_text().splitlines()]
    return {ce_type: digest for digest, ce_type in lines}


def structures() -> dict[str, str]:
    """Return the digests of today's schemas, by type; their words may change."""
    return {
        ce_type: hashlib.sha256(msgspec.json.encode(structure(schema), order="sorted")).hexdigest()
        for ce_type, schema in value_schemas().items()
    }


def _events() -> dict[Path, dict[str, Any]]:
    golden: dict[Path, dict[str, Any]] = {}
    for fact in samples.events():
        entry = event_entry(fact, cluster=CLUSTER, time_ms=NOW_MS)
        golden[_free(entry, golden)] = _record(entry, fact)
    return golden


def _decisions() -> dict[Path, dict[str, Any]]:
    golden: dict[Path, dict[str, Any]] = {}
    facts = samples.decisions()
    commit, _ = seal(HEAD, cursor=90_211, now_ms=NOW_MS, cycles=9, decisions=facts)
    entries = decision_entries(commit.decisions, prev_hash=HEAD.seq_hash, cluster=CLUSTER)
    for fact, row, entry in zip(facts, commit.decisions, entries, strict=True):
        header = {name: getattr(row, name) for name in ("seq", "tick", "generation", "now_ms")}
        golden[_free(entry, golden)] = {"header": header, **_record(entry, fact)}
    return golden


def _record(entry: Entry, fact: Any) -> dict[str, Any]:
    return {
        "headers": {name: value.decode() for name, value in headers_of(entry)},
        "key": entry.key,
        "value": entry.value.decode(),
        "fact": msgspec.to_builtins(dataclasses.asdict(fact)),
    }


def _free(entry: Entry, taken: dict[Path, dict[str, Any]]) -> Path:
    base, version = split_type(entry.type)
    folder = ROOT / base.removeprefix("dev.decklog.") / f"v{version}"
    return next(path for n in range(1, 100) if (path := folder / f"{n}.json") not in taken)


if __name__ == "__main__":
    main()
