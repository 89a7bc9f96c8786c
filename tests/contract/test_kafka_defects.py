"""What kafka-python 3.0 does wrong, and that the Kafka log does not pass it on.

B1 to B9 are defects of the library. Where a test shows the defect itself, its failure is good
news: the library was mended, and the rule that keeps the defect away may go.
"""

import gc
import logging
import os
import resource
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, Final

import kafka.future
import kafka.producer.kafka
import kafka.record.util
import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError, KafkaError
from kafka.producer.record_accumulator import RecordAccumulator
from kafka.producer.sender import Sender
from kafka.producer.transaction_manager import ProducerIdAndEpoch, TransactionManager
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.util import calc_crc32c

from decklog.adapters.log.kafka import connection, reader
from decklog.adapters.log.kafka.cluster import FRAMING_BYTES
from decklog.adapters.log.kafka.connection import Connection
from decklog.adapters.log.kafka.log import KafkaLog
from decklog.core.errors import BadConfiguration, EntryTooLarge, LogUnavailable, PositionLost
from decklog.ports.log import Entry, Log
from tests.contract.logs import (
    APPEND_TIMEOUT,
    FORGOTTEN_SOCKETS,
    SOON,
    KafkaStore,
    admin,
    create_topic,
    delete_topic,
    ids,
    make_entries,
    read_all,
)
from tests.stack.kafka import KafkaBroker

pytestmark = [pytest.mark.kafka, pytest.mark.filterwarnings(FORGOTTEN_SOCKETS)]

PRODUCERS: Final = kafka.producer.kafka
BRIEFLY: Final = timedelta(milliseconds=200)
NOTICED_SECONDS_MAX: Final = 12.0
"""Silence is noticed after 2 s; asking, and connecting anew to ask again, may take 8 s more."""
GROWTH_BYTES_MAX: Final = 60_000_000
DAMAGE: Final = Entry(key="", type="", id="", time="", value=b"")


@pytest.fixture
def store(kafka_broker: KafkaBroker) -> Iterator[KafkaStore]:
    made = KafkaStore(kafka_broker)
    yield made
    made.close()


@pytest.fixture
def log(store: KafkaStore) -> Log:
    return store.open()


def test_b1_a_lost_transaction_is_reported_as_committed() -> None:
    """The reason why the log uses no transactions."""
    partition = TopicPartition("decisions", 0)
    transactions = TransactionManager(
        transactional_id="s", transaction_timeout_ms=1000, api_version=(4, 0)
    )

    def answer(*, no_more_records: bool = False, **fields: object) -> None:
        request = transactions.next_request_handler(no_more_records)
        request.handle_response(SimpleNamespace(**fields))

    transactions.initialize_transactions()
    answer(error_code=0, producer_id=7, producer_epoch=3)
    transactions.begin_transaction()
    transactions.maybe_add_partition_to_transaction(partition)
    answer(no_more_records=True, results_by_topic_v3_and_below=[("decisions", [(0, 0)])])
    committed = transactions.begin_commit()
    transactions.bump_producer_id_and_epoch()  # What the sender does on INVALID_PRODUCER_EPOCH.
    answer(error_code=0, producer_id=7, producer_epoch=5)
    with pytest.raises(KafkaError, match="Invalid transition"):
        transactions.next_request_handler(False)
    assert committed.succeeded


def test_b1_the_log_appends_idempotently_and_without_transactions(store: KafkaStore) -> None:
    with closing(Connection(bootstrap=store.broker.bootstrap).producer()) as producer:
        assert producer.config["enable_idempotence"] is True
        assert producer.config["acks"] == -1
        assert producer.config["transactional_id"] is None


def test_b2_records_that_cannot_be_unpacked_hang_the_consumer(store: KafkaStore, log: Log) -> None:
    """After the exception there is nothing to take, and it never says that it is done."""
    log.append(make_entries(2))
    log.append(make_entries(1))
    data = bytearray(store.segment().read_bytes())
    data[-1] ^= 1
    records = Fetcher.PartitionRecords(0, TopicPartition(store.topic, 0), MemoryRecords(data))
    assert len(records.take(10)) == 2
    with pytest.raises(CorruptRecordError):
        records.take(10)
    assert records.take(10) == []
    assert records


@pytest.mark.parametrize(
    ("damaged", "want"),
    [
        pytest.param([1], ["e0", "e1", 4, "e5", "e6"], id="in the middle"),
        pytest.param([0], [1, "e2", "e3", "e4", "e5", "e6"], id="at the start"),
        pytest.param([3], ["e0", "e1", "e2", "e3", "e4", "e5", 6], id="at the end"),
        pytest.param([0, 2], [1, "e2", "e3", "e4", 5, "e6"], id="around good entries"),
        pytest.param([1, 2], ["e0", "e1", 5, "e6"], id="in two batches at once"),
    ],
)
def test_b2_a_damaged_batch_is_one_entry_that_names_it(
    store: KafkaStore, log: Log, damaged: list[int], want: list[str | int]
) -> None:
    """It stands at its last position, wherever one reads from, and stops nobody."""
    for first, count in [(0, 2), (2, 3), (5, 1), (6, 1)]:
        log.append(make_entries(count, first=first))
    _change_batches(store, damaged, lambda batch: batch.__setitem__(-1, batch[-1] ^ 1))
    found = read_all(log)
    assert [entry.id or position for position, entry in found] == want
    for position, entry in found:
        if not entry.id:
            text = f"the records up to position {position} are damaged and cannot be unpacked"
            assert entry == replace(DAMAGE, value=text.encode())
    for after in (1, 2, 4):
        assert read_all(store.open(), after=after) == [each for each in found if each[0] > after]
    delete_topic(store.broker, store.topic)  # A broker that recovers would cut the log here.


def test_b2_a_header_that_is_not_text_is_damage_too(store: KafkaStore, log: Log) -> None:
    with closing(KafkaProducer(bootstrap_servers=store.broker.bootstrap)) as producer:
        producer.send(store.topic, value=b"1", partition=0, headers=[("zzz", b"")])
    log.append(make_entries(1))

    def garble(batch: bytearray) -> None:
        where = batch.index(b"zzz")
        batch[where : where + 3] = b"\xff\xff\xff"
        checked = memoryview(batch)[DefaultRecordBatch.ATTRIBUTES_OFFSET :]
        struct.pack_into(">I", batch, DefaultRecordBatch.CRC_OFFSET, calc_crc32c(checked))

    _change_batches(store, [0], garble)
    found = read_all(log)
    assert [entry.id for _, entry in found] == ["", "e0"]
    assert b"cannot be unpacked" in found[0][1].value


def test_b3_a_batch_that_expires_while_retried_strands_another() -> None:
    """The other batch is neither sent nor failed. The log has one, and a new producer after it."""
    expiring, stranded = TopicPartition("t", 0), TopicPartition("t", 1)
    sent: list[object] = []
    cluster: Any = SimpleNamespace(
        leader_for_partition=lambda partition: 0,
        leader_epoch_for_partition=lambda partition: 0,
        partitions_for_broker=lambda node: [expiring, stranded],
        request_update=lambda: None,
    )

    def send(node: int, request: object, *, wakeup: bool) -> object:
        sent.append(request)
        return kafka.future.Future()

    network: Any = SimpleNamespace(cluster=cluster, is_ready=lambda node: True, send=send)
    ids_given = TransactionManager(api_version=(4, 0))
    ids_given.set_producer_id_and_epoch(ProducerIdAndEpoch(7, 0))
    waiting: Any = RecordAccumulator(transaction_manager=ids_given, retry_backoff_ms=0)
    sender: Any = Sender(
        network, cluster, waiting, transaction_manager=ids_given, guarantee_message_order=True
    )
    first = waiting.append(expiring, None, b"k", b"v", [])[0]
    sender._send_producer_data()
    batch = sender._in_flight_batches[expiring][0][1]
    waiting.reenqueue(batch)
    sender._maybe_remove_from_inflight_batches(batch)
    waiting.muted.discard(expiring)
    batch.created -= waiting.delivery_timeout_ms / 1000 + 1
    second = waiting.append(stranded, None, b"k", b"v", [])[0]
    sender._send_producer_data()
    assert first.is_done
    assert not second.is_done
    assert not waiting.has_undrained()
    assert waiting.muted == {stranded}
    assert len(sent) == 1


def test_b3_b4_b5_b9_a_dead_broker_costs_little_and_leaves_no_trace(
    store: KafkaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Append, read and close end in bounded time and memory; afterwards the same log works."""
    monkeypatch.setattr(PRODUCERS, "log", logging.getLogger("kafka.producer.kafka"))
    monkeypatch.setattr(connection, "BOOTSTRAP_MS_MAX", 1_000)
    log, closing_log = store.open(), store.open()
    log.append(make_entries(1))
    closing_log.append(make_entries(1, first=1))
    assert len(read_all(log)) == 2
    large = make_entries(1, size=900_000) * 200
    with store.outage():
        before = _memory_bytes()
        for _ in range(2):
            assert _is_noticed_in_time(lambda: log.append(large))
        assert _memory_bytes() - before < GROWTH_BYTES_MAX
        assert _is_noticed_in_time(lambda: log.read(after=1, limit=1, timeout=BRIEFLY))
        with pytest.raises(LogUnavailable):
            closing_log.append(make_entries(1))
        started = time.monotonic()
        closing_log.close()
        assert time.monotonic() - started < NOTICED_SECONDS_MAX
    last = log.append(make_entries(1, first=2))
    assert ids(log.read(after=last - 1, limit=1, timeout=SOON)) == ["e2"]
    gc.collect()
    assert isinstance(vars(PRODUCERS)["log"], logging.Logger)


def test_b5_a_collected_producer_silences_all_others(
    store: KafkaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PRODUCERS, "log", logging.getLogger("kafka.producer.kafka"))
    producer = KafkaProducer(bootstrap_servers=store.broker.bootstrap)
    producer.close()
    del producer
    gc.collect()
    assert not isinstance(vars(PRODUCERS)["log"], logging.Logger)


def test_b6_an_append_is_one_batch(store: KafkaStore, log: Log) -> None:
    """Each batch costs a round trip, whatever the settings say about requests in flight."""
    log.append(make_entries(500, size=1_000))
    assert len(list(_batches(bytearray(store.segment().read_bytes())))) == 1


def test_b7_an_entry_above_the_topics_own_limit_is_refused_before_it_is_sent(
    store: KafkaStore,
) -> None:
    topic = f"{store.topic}.small"
    create_topic(store.broker, topic, **{"max.message.bytes": "50000"})
    log = store.open(topic)
    with pytest.raises(EntryTooLarge) as raised:
        log.append(make_entries(1, size=50_000))
    assert raised.value.size_bytes_max == 50_000 - FRAMING_BYTES
    assert log.append(make_entries(200, size=1_000)) == 199
    assert len(read_all(log)) == 200


def test_b7_a_batch_that_the_broker_refuses_ends_one_producer_and_not_the_log(
    store: KafkaStore, log: Log
) -> None:
    log.append(make_entries(1))
    large = [replace(make_entries(1)[0], value=os.urandom(30_000))]
    limit = ConfigResource(ConfigResourceType.TOPIC, store.topic, {"max.message.bytes": "10000"})
    with admin(store.broker) as client:
        client.alter_configs([limit])
    with pytest.raises(LogUnavailable):
        log.append(large)
    with pytest.raises(EntryTooLarge):
        log.append(large)
    assert log.append(make_entries(1, first=1)) == 1


def test_b8_a_topic_that_was_gone_takes_appends_again(store: KafkaStore, log: Log) -> None:
    log.append(make_entries(3))
    assert len(read_all(log)) == 3
    before = log.identity()
    delete_topic(store.broker, store.topic)
    assert _is_noticed_in_time(lambda: log.append(make_entries(1)))
    create_topic(store.broker, store.topic)
    started = time.monotonic()
    assert log.append(make_entries(1)) == 0
    assert time.monotonic() - started < APPEND_TIMEOUT.total_seconds()
    with pytest.raises(PositionLost):
        _read_until_something_happens(log, after=2)
    assert log.identity() != before


def test_no_entry_of_a_recreated_topic_is_taken_for_one_of_the_old(
    store: KafkaStore, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the new topic is longer than the position, where the library says nothing."""
    monkeypatch.setattr(reader, "CHECK_SECONDS", 0.0)
    log.append(make_entries(3))
    assert len(read_all(log)) == 3
    before = log.identity()
    store.recreate()
    store.open().append(make_entries(5, prefix="new"))
    with pytest.raises(PositionLost) as raised:
        _read_until_something_happens(log, after=2)
    assert raised.value.last == 4
    assert log.identity() != before
    assert ids(read_all(log)) == [f"new{number}" for number in range(5)]


def test_a_consumer_that_has_stopped_is_replaced(
    store: KafkaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library has had several such faults; a paused partition looks the same from outside."""
    monkeypatch.setattr(reader, "CHECK_SECONDS", 0.05)
    log = KafkaLog(store.broker.bootstrap, store.topic)
    store.opened.append(log)
    log.append(make_entries(1))
    assert len(read_all(log)) == 1
    consumer = log._reader._consumer
    assert consumer is not None
    consumer.pause(TopicPartition(store.topic, 0))
    log.append(make_entries(1, first=1))
    assert ids(_read_until_something_happens(log, after=0)) == ["e1"]


def test_slow_checksums_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka.record.util, "crc32c_c", None)
    with pytest.raises(BadConfiguration, match="crc32c"):
        KafkaLog("127.0.0.1:9", "topic")


@pytest.mark.parametrize(
    "security",
    [
        pytest.param({"acks": "0"}, id="not about security"),
        pytest.param({"security_protocol": "TLS"}, id="no such protocol"),
        pytest.param({"security_protocol": "SASL_SSL", "sasl_mechanism": "X"}, id="no mechanism"),
        pytest.param({"security_protocol": "SSL", "ssl_cafile": "/none/ca.pem"}, id="no such file"),
    ],
)
def test_security_settings_that_cannot_be_used_are_no_outage(security: dict[str, str]) -> None:
    """The library would wait for an answer and report that none came."""
    with pytest.raises(BadConfiguration, match="security settings"):
        KafkaLog("127.0.0.1:9", "topic", security=security)


def test_refused_credentials_are_named_among_the_causes(
    store: KafkaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This broker knows no SASL, so the settings do reach the client."""
    monkeypatch.setattr(connection, "BOOTSTRAP_MS_MAX", 500)
    security = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "u",
        "sasl_plain_password": "secret",
    }
    log = KafkaLog(store.broker.bootstrap, store.topic, security=security)
    with closing(log), pytest.raises(LogUnavailable, match="refused credentials") as raised:
        log.bounds()
    assert "secret" not in str(raised.value)


def test_a_topic_that_is_missing_is_named(store: KafkaStore) -> None:
    log = store.open("contract.missing")
    for call in (
        log.bounds,
        log.identity,
        lambda: log.append(make_entries(1)),
        lambda: log.read(after=-1, limit=1, timeout=BRIEFLY),
    ):
        with pytest.raises(LogUnavailable, match=r"contract\.missing"):
            call()


def _change_batches(
    store: KafkaStore, numbers: list[int], change: Callable[[bytearray], object]
) -> None:
    """Change batches in the broker's own file, as a bad disk would."""
    with store.segment().open("r+b") as segment:
        data = bytearray(segment.read())
        for number, (start, end) in enumerate(_batches(data)):
            if number in numbers:
                batch = data[start:end]
                change(batch)
                segment.seek(start)
                segment.write(batch)


def _batches(data: bytearray) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(data):
        (length,) = struct.unpack_from(">i", data, start + MemoryRecords.LENGTH_OFFSET)
        end = start + MemoryRecords.LOG_OVERHEAD + length
        yield start, end
        start = end


def _read_until_something_happens(log: Log, *, after: int) -> list[tuple[int, Entry]]:
    deadline = time.monotonic() + NOTICED_SECONDS_MAX
    while time.monotonic() < deadline:
        if found := log.read(after=after, limit=10, timeout=BRIEFLY):
            return list(found)
    pytest.fail("nothing was read and nothing was said")


def _is_noticed_in_time(call: Callable[[], object]) -> bool:
    started = time.monotonic()
    while time.monotonic() - started < NOTICED_SECONDS_MAX:
        try:
            call()
        except LogUnavailable:
            return time.monotonic() - started < NOTICED_SECONDS_MAX
    return False


def _memory_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
