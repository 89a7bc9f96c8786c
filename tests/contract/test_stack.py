"""The stack itself: what the other tests take for granted about broker and database."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import psycopg
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from tests.stack import process
from tests.stack.kafka import KafkaBroker
from tests.stack.postgres import PostgresServer

ROOT: Final = Path(__file__).parents[2]
TIMEOUT_MS: Final = 10_000
TIMEOUT_SECONDS: Final = 10.0

# Says which server it started, then waits to be killed.
CHILD: Final = """
import time
from tests.stack.kafka import KafkaBroker
from tests.stack.postgres import PostgresServer
server = {server}().start()
print(server.pid, server.folder, flush=True)
time.sleep(600)
"""


@pytest.mark.kafka
def test_what_a_killed_broker_had_acknowledged_is_there_after_the_restart(
    kafka_broker: KafkaBroker,
) -> None:
    topic = "stack-restart"
    with closing(KafkaAdminClient(bootstrap_servers=kafka_broker.bootstrap)) as admin:
        admin.create_topics({topic: {"num_partitions": 1, "replication_factor": 1}})
    _produce(kafka_broker, topic, b"before")
    pid = kafka_broker.pid
    kafka_broker.kill()
    kafka_broker.restart()
    assert kafka_broker.pid != pid
    _produce(kafka_broker, topic, b"after")
    assert _consume(kafka_broker, topic, count=2) == [b"before", b"after"]


@pytest.mark.postgres
def test_what_a_killed_server_had_committed_is_there_after_the_restart(
    postgres_server: PostgresServer, postgres_dsn: str
) -> None:
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("CREATE TABLE kept (number int)")
        connection.execute("INSERT INTO kept VALUES (1)")
    postgres_server.kill()
    postgres_server.restart()
    with psycopg.connect(postgres_dsn) as connection:
        assert connection.execute("SELECT number FROM kept").fetchall() == [(1,)]


@pytest.mark.postgres
def test_a_database_is_a_copy_of_its_template(postgres_server: PostgresServer) -> None:
    template = postgres_server.create_database("stack_template")
    with psycopg.connect(template) as connection:
        connection.execute("CREATE TABLE copied ()")
    copy = postgres_server.create_database("stack_copy", template="stack_template")
    with psycopg.connect(copy) as connection:
        assert connection.execute("SELECT count(*) FROM copied").fetchall() == [(0,)]
    postgres_server.drop_database("stack_copy")
    postgres_server.drop_database("stack_template")


@pytest.mark.kafka
@pytest.mark.postgres
@pytest.mark.parametrize("server", ["KafkaBroker", "PostgresServer"])
def test_a_killed_test_run_leaves_no_server_behind(
    server: str, kafka_broker: KafkaBroker, postgres_server: PostgresServer
) -> None:
    """The fixtures are only asked for, so that this skips where the servers can't run."""
    assert kafka_broker.pid != postgres_server.pid
    with _child(CHILD.format(server=server)) as (child, server_pid):
        assert process.started_at(server_pid) is not None
        child.send_signal(signal.SIGKILL)
        child.wait()
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while process.started_at(server_pid) is not None:
            assert time.monotonic() < deadline, f"{server} lives on"
            time.sleep(process.POLL_SECONDS)


@contextmanager
def _child(code: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        try:
            pid, folder = child.stdout.readline().split()
            yield child, int(pid)
            process.remove_folder(Path(folder))
        finally:
            child.kill()


def _produce(broker: KafkaBroker, topic: str, value: bytes) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    try:
        producer.send(topic, value=value, partition=0).get(TIMEOUT_SECONDS)
    finally:
        producer.close(timeout=TIMEOUT_SECONDS)


def _consume(broker: KafkaBroker, topic: str, *, count: int) -> list[bytes]:
    partition = TopicPartition(topic, 0)
    values: list[bytes] = []
    deadline = time.monotonic() + TIMEOUT_SECONDS
    with closing(
        KafkaConsumer(
            bootstrap_servers=broker.bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
    ) as consumer:
        consumer.assign([partition])
        while len(values) < count and time.monotonic() < deadline:
            for record in consumer.poll(timeout_ms=TIMEOUT_MS).get(partition, []):
                assert record.value is not None
                values.append(record.value)
    return values
