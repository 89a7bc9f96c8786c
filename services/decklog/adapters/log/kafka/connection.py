"""How to reach Kafka, and the settings of the clients that we make.

kafka-python 3.0.12 takes `allow_auto_create_topics` and does not heed it: a broker that creates
topics by itself brings back one that was deleted. Readers notice, because its id is new.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError, KafkaTimeoutError
from kafka.record import util as checksums

from decklog.core.errors import BadConfiguration, LogUnavailable

BOOTSTRAP_MS_MAX: Final = 5_000
REQUEST_MS_MAX: Final = 10_000
ANSWER_MS_MAX: Final = 3_000
"""For questions that read nothing: a broker that takes longer counts as down."""
RECONNECT_MS_MAX: Final = 1_000
"""kafka-python's 30 s would add up to 13 s to a broker's restart."""
CLOSE_SECONDS_MAX: Final = 5
"""Closing without a limit hangs when the topic is gone."""
REQUEST_BYTES_MAX: Final = 1_048_576
BATCH_BYTES: Final = 900_000
"""A partition has one batch in flight, so its rate is this divided by the round trip."""
LINGER_MS: Final = 100
"""Never waited for: the writer flushes. It only has to outlast filling one batch."""
FETCH_BYTES: Final = 8_000_000
"""50 MB costs 150 MB of memory more, and reads no faster."""
FETCH_WAIT_MS: Final = 200
"""A long poll: it delays nothing, and bounds a missed wake-up."""
RECORDS_MAX: Final = 5_000
RETRY_MS: Final = 20
"""How soon a consumer looks again whether it knows the leader. 100 ms delays each new one."""

_SECURITY: Final = ("security_protocol", "sasl_", "ssl_")
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER")
_FILES: Final = ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_crlfile")

ERRORS: Final = (KafkaError, OSError)
"""What the clients raise when the world fails; OSError comes from TLS and name resolution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A cluster's address, and kafka-python's own settings for TLS and SASL."""

    bootstrap: str
    security: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if checksums.crc32c_c is None:  # type: ignore[attr-defined]
            msg = "cannot use Kafka without the package crc32c: checksums would cost 3 to 7 times"
            raise BadConfiguration(msg)
        for fault in _faults(self.security):
            msg = f"cannot use the security settings of Kafka: {fault}"
            raise BadConfiguration(msg)

    def admin(self) -> KafkaAdminClient:
        with self._bootstrapping():
            return KafkaAdminClient(
                bootstrap_servers=self.bootstrap,
                bootstrap_timeout_ms=BOOTSTRAP_MS_MAX,
                request_timeout_ms=ANSWER_MS_MAX,
                reconnect_backoff_max_ms=RECONNECT_MS_MAX,
                **self.security,
            )

    def producer(self) -> KafkaProducer:
        with self._bootstrapping():
            return _Producer(
                bootstrap_servers=self.bootstrap,
                bootstrap_timeout_ms=BOOTSTRAP_MS_MAX,
                request_timeout_ms=REQUEST_MS_MAX,
                reconnect_backoff_max_ms=RECONNECT_MS_MAX,
                max_block_ms=BOOTSTRAP_MS_MAX,
                enable_idempotence=True,
                acks="all",
                linger_ms=LINGER_MS,
                batch_size=BATCH_BYTES,
                max_request_size=REQUEST_BYTES_MAX,
                compression_type="lz4",
                allow_auto_create_topics=False,
                metrics_enabled=False,
                **self.security,
            )

    def consumer(self, *, fetch_bytes: int = FETCH_BYTES) -> KafkaConsumer:
        """Return a consumer without a group and without deserializers.

        One that raises inside `poll()` makes the next `poll()` spin for ever.
        """
        with self._bootstrapping():
            return KafkaConsumer(
                bootstrap_servers=self.bootstrap,
                bootstrap_timeout_ms=BOOTSTRAP_MS_MAX,
                request_timeout_ms=REQUEST_MS_MAX,
                reconnect_backoff_max_ms=RECONNECT_MS_MAX,
                group_id=None,
                enable_auto_commit=False,
                auto_offset_reset="none",  # type: ignore[arg-type]  # It raises, as it should.
                max_poll_records=RECORDS_MAX,
                retry_backoff_ms=RETRY_MS,
                fetch_min_bytes=1,
                fetch_max_wait_ms=FETCH_WAIT_MS,
                fetch_max_bytes=fetch_bytes,
                max_partition_fetch_bytes=fetch_bytes,
                check_crcs=True,
                allow_auto_create_topics=False,
                metrics_enabled=False,
                **self.security,
            )

    @contextmanager
    def _bootstrapping(self) -> Iterator[None]:
        """Name every possible cause: kafka-python reports wrong credentials as a timeout."""
        try:
            yield
        except KafkaTimeoutError as error:
            msg = (
                f"cannot reach Kafka at {self.bootstrap!r}: no answer within {BOOTSTRAP_MS_MAX} ms"
                " (broker down, wrong address, or refused credentials)"
            )
            raise LogUnavailable(msg) from error
        except ERRORS as error:
            msg = f"cannot reach Kafka at {self.bootstrap!r}: {type(error).__name__}: {error}"
            raise LogUnavailable(msg) from error


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise LogUnavailable for what a client raises; `what` could not be done."""
    try:
        yield
    except ERRORS as error:
        msg = f"cannot {what}: {type(error).__name__}: {error}"
        raise LogUnavailable(msg) from error


def _faults(security: Mapping[str, Any]) -> Iterator[str]:
    """Yield what kafka-python would report as a broker that does not answer."""
    for name in security:
        if not name.startswith(_SECURITY):
            yield f"{name!r} is none"
    protocol = security.get("security_protocol", "PLAINTEXT")
    if protocol not in _PROTOCOLS:
        yield f"security_protocol is {protocol!r}, and not one of {', '.join(_PROTOCOLS)}"
    mechanism = security.get("sasl_mechanism")
    if protocol.startswith("SASL_") and mechanism not in _MECHANISMS:
        yield f"sasl_mechanism is {mechanism!r}, and not one of {', '.join(_MECHANISMS)}"
    for name in _FILES:
        if name in security and not Path(security[name]).is_file():
            yield f"{name} is {security[name]!r}, which is no file"


class _Producer(KafkaProducer):
    def __del__(self) -> None:
        """Do nothing: the library's closes again and silences the logger of all producers."""
