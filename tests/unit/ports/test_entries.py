"""Facts become entries and come back; what was tampered with is refused."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final
from uuid import UUID

import pytest

from decklog.events.examples import DECISIONS
from decklog.events.facts import (
    BindFailed,
    BindSucceeded,
    PodSkipped,
    Record,
    ResyncRequested,
    Undecodable,
)
from decklog.ports.entries import (
    BadRecord,
    decision_entries,
    decode_decision_entry,
    event_entry,
    read_records,
    to_rfc3339,
)
from decklog.ports.ledger import ZERO_HASH, DecisionRow
from decklog.ports.log import Entry
from decklog.ports.sealing import ChainHead, chained, seal

NOW_MS: Final = 1_770_091_506_789
BOUND: Final = BindSucceeded(seq=4, pod_uid="u1", node="n1")
HEAD: Final = ChainHead(
    stream="eu1",
    generation=7,
    tick=3,
    tick_hash=ZERO_HASH,
    seq=41,
    seq_hash=bytes(range(32)),
    config_hash="c" * 64,
    rules=1,
)


def rows() -> Sequence[DecisionRow]:
    commit, _ = seal(HEAD, cursor=9, now_ms=NOW_MS, cycles=1, decisions=DECISIONS)
    return commit.decisions


def entries(cluster: str = "eu1") -> list[Entry]:
    return decision_entries(rows(), prev_hash=HEAD.seq_hash, cluster=cluster)


class ListLog:
    """A log that holds what it was given, from position 5 on."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries

    def append(self, entries: Sequence[Entry]) -> int:
        raise NotImplementedError

    def read(self, *, after: int, limit: int, timeout: timedelta) -> Sequence[tuple[int, Entry]]:
        assert timeout == timedelta(seconds=1)
        numbered = enumerate(self.entries, start=5)
        return [(position, entry) for position, entry in numbered if position > after][:limit]

    def bounds(self) -> tuple[int, int]:
        raise NotImplementedError

    def identity(self) -> str:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


def test_an_event_becomes_a_cloudevent() -> None:
    assert event_entry(BOUND, cluster="eu1", time_ms=NOW_MS) == Entry(
        key="bind/u1",
        type="dev.decklog.bind.succeeded.v1",
        id="bind/4/succeeded",
        time="2026-02-03T04:05:06.789Z",
        value=b'{"seq":4,"pod_uid":"u1","node":"n1"}',
        source="decklog/eu1",
    )


def test_asking_for_a_resync_again_is_another_event() -> None:
    asked = ResyncRequested(kind="Pod", reason="r")
    ids = {event_entry(asked, cluster="eu1", time_ms=time_ms).id for time_ms in (1, 2)}
    assert len(ids) == 2


def test_an_event_that_has_no_bytes_is_refused() -> None:
    odd = BindFailed(seq=4, pod_uid="u1", reason="\ud800")
    with pytest.raises(BadRecord, match=r"^cannot write 'bind/u1' to the log: cannot encode"):
        event_entry(odd, cluster="eu1", time_ms=NOW_MS)


@pytest.mark.parametrize(
    ("time_ms", "want"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1, "1970-01-01T00:00:00.001Z"),
        (NOW_MS, "2026-02-03T04:05:06.789Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_time_is_written_in_utc_to_the_millisecond(time_ms: int, want: str) -> None:
    assert to_rfc3339(time_ms) == want


def test_records_keep_the_place_of_what_cannot_be_decoded() -> None:
    good = event_entry(BOUND, cluster="eu1", time_ms=NOW_MS)
    bad = replace(good, value=b"?")
    log = ListLog([good, bad, good, good])
    got = read_records(log, after=4, limit=3, timeout=timedelta(seconds=1))
    assert [entry for _, entry in got] == [good, bad, good]
    assert [record.position for record, _ in got] == [5, 6, 7]
    assert got[0][0] == Record(5, BOUND)
    assert isinstance(got[1][0].fact, Undecodable)
    assert got[1][0].fact.key == "bind/u1"


def test_a_decision_comes_back_as_the_ledger_holds_it() -> None:
    assert [decode_decision_entry(entry) for entry in entries()] == rows()


def test_a_decisions_entry_is_named_by_cluster_generation_and_seq() -> None:
    first = entries()[0]
    assert (first.key, first.type) == (rows()[0].pod_uid, "dev.decklog.pod.assumed.v1")
    assert (first.time, first.source) == ("2026-02-03T04:05:06.789Z", "decklog/eu1")
    assert UUID(first.id).version == 5
    assert entries()[0].id == first.id
    assert len({entry.id for entry in entries() + entries("eu2")}) == 2 * len(DECISIONS)


@pytest.mark.parametrize("at", range(0, 250, 7))
def test_one_changed_byte_is_noticed(at: int) -> None:
    entry = entries()[3]
    assert isinstance(DECISIONS[3], PodSkipped)
    value = bytearray(entry.value)
    value[at % len(value)] ^= 1
    with pytest.raises(BadRecord):
        decode_decision_entry(replace(entry, value=bytes(value)))


@pytest.mark.parametrize(
    ("value", "what"),
    [
        pytest.param(b"", "it has not the form of one", id="empty"),
        pytest.param(b"{}", "it has not the form of one", id="another object"),
        pytest.param(
            b'{"prev_hash":"%b","hash":"%b","payload":[]}' % (b"AA" * 32, b"00" * 32),
            "it has not the form of one",
            id="upper case",
        ),
        pytest.param(
            b'{"prev_hash":"%b","hash":"%b","payload":[]}' % (b"00" * 32, b"00" * 32),
            "its hash is not that of its payload",
            id="forged",
        ),
    ],
)
def test_what_is_no_decision_is_refused(value: bytes, what: str) -> None:
    with pytest.raises(BadRecord, match=f"^cannot take decision entry 'x': {what}$"):
        decode_decision_entry(replace(entries()[0], id="x", value=value))


def test_a_decision_of_a_later_release_is_refused() -> None:
    payload = b'[1,2,3,4,"PodLaunched","u","n","p",{}]'
    hash_ = chained(ZERO_HASH, payload)
    row = replace(rows()[0], payload=payload, hash=hash_)
    [entry] = decision_entries([row], prev_hash=ZERO_HASH, cluster="eu1")
    with pytest.raises(BadRecord, match=r"cannot decode a decision: KeyError: 'PodLaunched'$"):
        decode_decision_entry(entry)
