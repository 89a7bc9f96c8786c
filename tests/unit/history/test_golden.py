"""Do we still decide the same? Recorded histories, decided again from their events.

A golden file is the record of one run: what the scheduler was told, and what it decided. A change
of it is a change of behaviour, which somebody reviews and which raises RULES in the same commit.
`pytest --update-golden` sails the voyage anew and writes it down.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from decklog.history.positions import Latest, resolve
from decklog.history.replay import rebuild
from decklog.history.source import Source
from decklog.history.verify import Verdict, Wanted, verify
from tests.harness import EmbeddedStores, ManualClock
from tests.recording import fill, record
from tests.unit.history.conftest import Store
from tests.voyage import sail

FOLDER: Final = Path(__file__).parents[2] / "golden" / "decisions"
VOYAGE: Final = FOLDER / "voyage.jsonl"
GOLDEN: Final = sorted(FOLDER.glob("*.jsonl"))


@contextmanager
def filled(text: str, folder: Path) -> Iterator[Source]:
    """Put a recorded history into a new store."""
    clock = ManualClock()
    stores = EmbeddedStores(folder, clock)
    ledger, events = stores.ledger(), stores.events()
    try:
        stream = fill(text, ledger, events)
        yield Source(ledger=ledger, events=events, stream=stream, clock=clock)
    finally:
        ledger.close()
        events.close()


@pytest.fixture(scope="module", autouse=True)
def _updated(request: pytest.FixtureRequest, recorded: Path) -> None:
    if request.config.getoption("--update-golden"):
        with Store(recorded).source() as source:
            VOYAGE.write_text(record(source.ledger, source.events, source.stream))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_recorded_decisions_are_decided_again(path: Path, tmp_path: Path) -> None:
    with filled(path.read_text(), tmp_path) as source:
        report = verify(source, Wanted())
    assert report.replay.first_divergence is None
    assert [str(finding) for finding in report.findings] == []
    assert report.verdict is Verdict.VERIFIED
    assert report.replay.decisions == report.chain.head.seq


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_recorded_state_is_as_every_resync_said(path: Path, tmp_path: Path) -> None:
    with filled(path.read_text(), tmp_path) as source:
        found = rebuild(source, resolve(Latest(), source))
    assert found.resyncs_wrong == []
    assert not found.state.open_assumes


def test_the_voyage_holds_every_kind_of_decision_that_is_written_today() -> None:
    ticks = [json.loads(line) for line in VOYAGE.read_text().splitlines() if '"tick"' in line]
    decisions = [json.loads(text) for tick in ticks for text in tick.get("decisions", ())]
    assert {decision[4] for decision in decisions} >= {
        "PodAssumed",
        "PodUnschedulable",
        "PodUnreserved",
        "BindingAdopted",
        "VictimsSelected",
    }
    assert any("same_as" in decision[8] for decision in decisions)


def test_the_same_voyage_is_the_same_history(recorded: Path, tmp_path: Path) -> None:
    sail(tmp_path)
    with Store(recorded).source() as one, Store(tmp_path).source() as other:
        assert record(one.ledger, one.events, one.stream) == record(
            other.ledger, other.events, other.stream
        )


def test_a_recording_that_was_edited_does_not_load(tmp_path: Path) -> None:
    text = VOYAGE.read_text().replace('\\"web-1\\"', '\\"web-9\\"')
    with pytest.raises(AssertionError, match="changed by hand"), filled(text, tmp_path):
        pass
