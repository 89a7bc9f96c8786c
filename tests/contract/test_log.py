"""The promises of the log port, for every adapter; what only one of them can do comes last."""

import itertools
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import KafkaProducer

from decklog.adapters.log import embedded
from decklog.adapters.log.embedded import EmbeddedLog, StoreLock
from decklog.adapters.log.envelope import ENTRY_BYTES_MAX, entry_of, headers_of, size_of
from decklog.core.errors import (
    BadConfiguration,
    EntryTooLarge,
    LogUnavailable,
    PositionLost,
    Refused,
)
from decklog.ports.log import Entry, Log
from tests.contract.logs import (
    FORGOTTEN_SOCKETS,
    NOW,
    READ_LIMIT,
    SOON,
    EmbeddedStore,
    KafkaStore,
    Store,
    ids,
    make_entries,
    read_all,
    take,
    writing_process,
)

pytestmark = pytest.mark.filterwarnings(FORGOTTEN_SOCKETS)

SHORT: Final = timedelta(milliseconds=300)
WRITERS: Final = 2
APPENDS: Final = 30
ODD: Final = [
    "",
    " ",
    "a/b/c",
    "ключ-鍵-🔑",
    "line\nbreak\ttab",
    "nul\0inside",
    "'; DROP TABLE",
    "%s",
]


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = (
        EmbeddedStore(tmp_path / "store")
        if request.param == "embedded"
        else KafkaStore(request.getfixturevalue("kafka_broker"))
    )
    yield made
    made.close()


@pytest.fixture
def log(store: Store) -> Log:
    return store.open()


@pytest.fixture
def embedded_store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    made = EmbeddedStore(tmp_path / "store")
    yield made
    made.close()


@pytest.fixture
def kafka_store(request: pytest.FixtureRequest) -> Iterator[KafkaStore]:
    made = KafkaStore(request.getfixturevalue("kafka_broker"))
    yield made
    made.close()


def test_an_empty_log_holds_nothing(log: Log) -> None:
    assert log.bounds() == (0, -1)
    assert list(log.read(after=-1, limit=10, timeout=NOW)) == []


def test_positions_start_at_0_and_append_returns_the_last(log: Log) -> None:
    assert log.append(make_entries(1)) == 0
    assert log.append(make_entries(3)) == 3
    assert log.append([]) == 3
    assert log.bounds() == (0, 3)


def test_entries_come_back_as_they_were(log: Log) -> None:
    want = [Entry(odd, odd, odd, odd, bytes(range(256)) + odd.encode(), odd) for odd in ODD]
    log.append([*want, Entry("key", "type", "id", "time", b"", "source")])
    got = read_all(log)
    assert [entry for _, entry in got[:-1]] == want
    assert got[-1][1].value == b""


def test_an_append_keeps_its_order(log: Log) -> None:
    """Also where it is larger than what is sent or committed at once."""
    want = make_entries(3_000, size=1_000)
    log.append(want)
    assert [entry for _, entry in read_all(log)] == want


def test_a_read_from_an_old_position_returns_the_same_entries(store: Store, log: Log) -> None:
    log.append(make_entries(50))
    want = read_all(log)
    log.append(make_entries(50, first=50))
    assert read_all(log)[:50] == want
    assert read_all(log, limit=7)[:50] == want
    assert read_all(store.open())[:50] == want
    assert read_all(log, after=want[19][0])[:30] == want[20:]


def test_reader_never_sees_a_gap(store: Store, log: Log) -> None:
    """Two writers, one reader: position n is never visible before n - 1."""

    def write(name: str) -> None:
        writer = store.open()
        for first in range(0, APPENDS * 3, 3):
            writer.append(make_entries(3, first=first, prefix=name))

    seen: list[tuple[int, Entry]] = []
    with ThreadPoolExecutor(WRITERS) as pool:
        writing = [pool.submit(write, name) for name in "ab"]
        while len(seen) < WRITERS * APPENDS * 3:
            after = seen[-1][0] if seen else -1
            page = log.read(after=after, limit=READ_LIMIT, timeout=SOON)
            assert page, "the writers have stopped"
            seen += page
        for each in writing:
            each.result()
    assert [position for position, _ in seen] == list(range(len(seen)))
    for name in "ab":
        written = [entry.id for _, entry in seen if entry.id.startswith(name)]
        assert written == [f"{name}{number}" for number in range(APPENDS * 3)]


def test_what_append_returned_survives_the_death_of_the_writer(store: Store, log: Log) -> None:
    with writing_process(store) as told:
        known = take(told, 20)[-1]
    found = read_all(log)
    assert known <= found[-1][0]
    assert ids(found) == [f"e{number}" for number in range(len(found))]
    assert log.append(make_entries(1)) == found[-1][0] + 1


def test_a_reader_follows_another_process(store: Store, log: Log) -> None:
    with writing_process(store) as told:
        page = log.read(after=-1, limit=1, timeout=SOON)
        assert ids(page) == ["e0"]
        assert log.read(after=take(told, 5)[-1], limit=1, timeout=SOON)


def test_a_read_at_the_end_waits_as_long_as_it_was_told(log: Log) -> None:
    log.append(make_entries(1))
    assert log.read(after=-1, limit=1, timeout=SOON)
    started = time.monotonic()
    assert not log.read(after=0, limit=1, timeout=SHORT)
    waited = timedelta(seconds=time.monotonic() - started)
    assert SHORT * 0.9 <= waited <= SHORT + timedelta(seconds=1)


def test_a_waiting_read_is_woken_by_an_append(store: Store, log: Log) -> None:
    """By one to the same object, and by one to another."""
    log.append(make_entries(1))
    for after, writer in enumerate([log, store.open()]):
        appending = threading.Timer(0.1, writer.append, [make_entries(1)])
        appending.start()
        started = time.monotonic()
        assert log.read(after=after, limit=1, timeout=SOON)
        assert time.monotonic() - started < SOON.total_seconds() / 2
        appending.join()


def test_retention_moves_the_first_position(store: Store, log: Log) -> None:
    log.append(make_entries(10))
    store.forget_before(4)
    assert log.bounds() == (4, 9)
    assert ids(read_all(log, after=3)) == [f"e{number}" for number in range(4, 10)]


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(-1, id="the start is gone"),
        pytest.param(2, id="the next one is gone"),
        pytest.param(10, id="the log ends before it"),
        pytest.param(10_000, id="the log ends long before it"),
    ],
)
def test_a_lost_position_is_said_and_not_skipped(store: Store, log: Log, after: int) -> None:
    log.append(make_entries(10))
    store.forget_before(4)
    for _ in range(2):
        with pytest.raises(PositionLost) as raised:
            log.read(after=after, limit=1, timeout=SOON)
        assert (raised.value.after, raised.value.first, raised.value.last) == (after, 4, 9)
    assert ids(log.read(after=8, limit=1, timeout=SOON)) == ["e9"]


def test_identity_is_the_logs_own(store: Store, log: Log) -> None:
    assert log.identity() == store.open().identity()
    assert log.identity() != store.open_another().identity()
    log.append(make_entries(1))
    before = log.identity()
    store.recreate()
    again = store.open()
    assert again.identity() != before
    assert again.bounds() == (0, -1)


def test_logs_of_one_store_have_their_own_positions(store: Store, log: Log) -> None:
    another = store.open_another()
    log.append(make_entries(3, prefix="a"))
    assert another.append(make_entries(1, prefix="b")) == 0
    assert ids(read_all(another)) == ["b0"]


def test_the_largest_entry_fits(log: Log) -> None:
    want = _entry_of_size(ENTRY_BYTES_MAX)
    log.append([want])
    assert read_all(log)[0][1] == want


def test_an_entry_that_is_too_large_keeps_out_the_whole_append(log: Log) -> None:
    large = _entry_of_size(ENTRY_BYTES_MAX + 1)
    with pytest.raises(EntryTooLarge) as raised:
        log.append([*make_entries(1), large, *make_entries(1)])
    assert raised.value.key == large.key
    assert (raised.value.size_bytes, raised.value.size_bytes_max) == (
        ENTRY_BYTES_MAX + 1,
        ENTRY_BYTES_MAX,
    )
    assert log.bounds() == (0, -1)
    assert log.append(make_entries(1)) == 0


def test_an_append_may_be_repeated_after_an_outage(
    store: Store, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: no entry is lost and none overtakes another. Method: append again what failed."""
    monkeypatch.setattr(embedded, "BUSY_SECONDS_MAX", 0.1)
    log = store.open()
    log.append(make_entries(2))
    with store.outage(), pytest.raises(LogUnavailable):
        log.append(make_entries(2, first=2))
    log.append(make_entries(2, first=2))
    log.append(make_entries(1, first=4))
    found = ids(read_all(store.open()))
    assert list(dict.fromkeys(found)) == ["e0", "e1", "e2", "e3", "e4"]
    assert found[-3:] == ["e2", "e3", "e4"]


def test_one_thread_may_read_while_another_appends(log: Log) -> None:
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(log.read, after=-1, limit=1, timeout=SOON)
        log.append(make_entries(1))
        assert ids(reading.result()) == ["e0"]


def test_a_closed_log_is_unavailable(log: Log) -> None:
    log.append(make_entries(1))
    log.close()
    log.close()
    with pytest.raises(LogUnavailable):
        log.append(make_entries(1))
    with pytest.raises(LogUnavailable):
        log.read(after=-1, limit=1, timeout=NOW)
    with pytest.raises(LogUnavailable):
        log.bounds()


@given(st.builds(Entry, *[st.text()] * 4, st.binary(), st.text()))
def test_an_entry_survives_its_envelope_and_is_never_larger_than_it_says(entry: Entry) -> None:
    headers = headers_of(entry)
    assert entry_of(entry.key.encode(), entry.value, headers) == entry
    parts = [entry.key.encode(), entry.value, *(part for _, part in headers)]
    names = sum(len(name) for name, _ in headers)
    assert size_of(entry) >= names + sum(len(part) + 10 for part in parts)


def test_embedded_readers_of_other_processes_need_no_lock(embedded_store: EmbeddedStore) -> None:
    log = embedded_store.open()
    with StoreLock(embedded_store.folder), embedded_store.outage():
        pass
    log.append(make_entries(2))
    reader = embedded_store.open(read_only=True)
    assert ids(read_all(reader)) == ["e0", "e1"]
    assert reader.identity() == log.identity()
    with pytest.raises(Refused, match="reading only"):
        reader.append(make_entries(1))
    log.close()
    assert ids(read_all(reader)) == ["e0", "e1"]


def test_embedded_reading_makes_no_store(tmp_path: Path) -> None:
    with pytest.raises(BadConfiguration, match="no embedded store"):
        EmbeddedLog(tmp_path / "none", "events", read_only=True)
    EmbeddedLog(tmp_path, "events").close()
    with pytest.raises(BadConfiguration, match="has none"):
        EmbeddedLog(tmp_path, "decisions", read_only=True)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("name", ["", "Events", 'a"b', "a b", "_a"])
def test_embedded_logs_have_plain_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadConfiguration, match="cannot name a log"):
        EmbeddedLog(tmp_path, name)


def test_embedded_store_has_one_writer(embedded_store: EmbeddedStore) -> None:
    taken = pytest.raises(Refused, match=r"in use by another writer, pid \d+$")
    with StoreLock(embedded_store.folder), taken:
        StoreLock(embedded_store.folder)
    with closing(StoreLock(embedded_store.folder)) as lock:
        lock.close()
        StoreLock(embedded_store.folder).close()


@pytest.mark.kafka
def test_kafka_keeps_what_it_acknowledged_when_the_broker_is_killed(
    kafka_store: KafkaStore,
) -> None:
    """The same log object goes on: a restart shorter than its patience goes unnoticed."""
    log = kafka_store.open(append_timeout=timedelta(seconds=30))
    log.append(make_entries(5))
    assert len(read_all(log)) == 5
    kafka_store.broker.kill()
    with ThreadPoolExecutor(1) as pool:
        appending = pool.submit(log.append, make_entries(5, first=5))
        kafka_store.broker.restart()
        assert appending.result() == 9
    assert ids(read_all(log)) == [f"e{number}" for number in range(10)]


@pytest.mark.kafka
def test_kafka_positions_may_have_gaps(kafka_store: KafkaStore) -> None:
    """A transaction's markers take positions that hold no entry."""
    log = kafka_store.open()
    producer = KafkaProducer(
        bootstrap_servers=kafka_store.broker.bootstrap, transactional_id=kafka_store.topic
    )
    with closing(producer):
        producer.init_transactions()
        for value in (b"one", b"two"):
            producer.begin_transaction()
            producer.send(kafka_store.topic, value=value, partition=0)
            producer.commit_transaction()
    log.append(make_entries(1))
    found = _read_count(log, 3)
    assert [position for position, _ in found] == [0, 2, 4]
    assert [entry.value for _, entry in found][:2] == [b"one", b"two"]
    for after, want in [(0, 2), (1, 2), (2, 4), (3, 4)]:
        assert log.read(after=after, limit=1, timeout=SOON)[0][0] == want


@pytest.mark.kafka
def test_kafka_records_of_others_are_entries_with_what_they_have(kafka_store: KafkaStore) -> None:
    log = kafka_store.open()
    with closing(KafkaProducer(bootstrap_servers=kafka_store.broker.bootstrap)) as producer:
        producer.send(kafka_store.topic, value=b"not json", partition=0)
        producer.send(kafka_store.topic, key=b"tombstone", partition=0)
        odd = [("ce_type", b"\xff"), ("ce_id", b"7"), ("else", b"")]
        producer.send(kafka_store.topic, key=b"\xfe", value=b"", partition=0, headers=odd)
    bare = Entry(key="", type="", id="", time="", value=b"")
    assert [entry for _, entry in _read_count(log, 3)] == [
        replace(bare, value=b"not json"),
        replace(bare, key="tombstone"),
        replace(bare, key="�", type="�", id="7"),
    ]


def _read_count(log: Log, count: int) -> list[tuple[int, Entry]]:
    found: list[tuple[int, Entry]] = []
    for _ in itertools.repeat(None, count):
        after = found[-1][0] if found else -1
        found += log.read(after=after, limit=count - len(found), timeout=SOON)
        if len(found) == count:
            break
    return found


def _entry_of_size(size_bytes: int) -> Entry:
    empty = make_entries(1)[0]
    return replace(empty, value=b"x" * (size_bytes - size_of(replace(empty, value=b""))))
