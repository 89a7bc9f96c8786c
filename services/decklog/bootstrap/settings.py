"""Everything that can be set, once: read at start, then passed on as plain values.

A value comes from the first of: a flag, `DECKLOG_SECTION__KEY`, a file of that name in lower case
under /run/secrets, the file given by `--config`, the default here. The defaults run everything in
one process on an embedded store.
"""

from pathlib import Path
from typing import Annotated, Any, Final, Literal

from annotated_types import Ge, Le
from pydantic import BaseModel, ConfigDict, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

ENV_PREFIX: Final = "DECKLOG_"
DELIMITER: Final = "__"
SECRETS_FOLDER: Final = Path("/run/secrets")
OPERATIONS_PORT: Final = 9400

Port = Annotated[int, Ge(0), Le(65_535)]


class _Section(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True
    )


class LogSettings(_Section):
    format: Literal["auto", "console", "json"] = "auto"
    """How log lines look; auto: for people on a terminal, JSON elsewhere."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least level that is written. At debug, reasons and scores are."""


class KafkaSettings(_Section):
    bootstrap: str = ""
    """Brokers as HOST:PORT, separated by commas. Empty: the embedded store holds the logs."""
    replication: Annotated[int, Ge(1)] = 1
    """Replicas of the topics that `topics apply` creates. 1 is for development only."""
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """How the brokers are spoken to."""
    sasl_mechanism: str = ""
    """PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; needed with SASL_… protocols."""
    sasl_username: str = ""
    """User of the brokers."""
    sasl_password: SecretStr = SecretStr("")
    """Password of that user. Brokers answer a wrong one with silence: it shows as a time-out."""
    ssl_cafile: str = ""
    """File with the certificates by which the brokers are known. Empty: the system's."""


class PgSettings(_Section):
    host: str = ""
    """PostgreSQL's host, or the folder of its socket. Empty: an embedded store holds the ledger."""
    port: Port = 5432
    """PostgreSQL's port."""
    user: str = "decklog_writer"
    """The role: decklog_owner for `migrate`, decklog_reader for reading, else decklog_writer."""
    password: SecretStr = SecretStr("")
    """The role's password."""
    database: str = "decklog"
    """The database that holds the ledger."""
    sslmode: str = ""
    """libpq's sslmode: require, verify-full and so on. Empty: libpq decides."""


class KubeSettings(_Section):
    server: str = ""
    """URL of the API server, such as http://127.0.0.1:8080 for `decklog sim serve`."""


class StoreSettings(_Section):
    folder: Path | None = None
    """Folder of the embedded store, for `run all` and the read commands. The flag is `--data`."""


class OperationsSettings(_Section):
    host: str = "0.0.0.0"
    """Address of the operations port: probes and metrics come from outside a container."""
    port: Port = OPERATIONS_PORT
    """Probes, metrics, version and settings of a service. 0: none."""


class SchedulerSettings(_Section):
    config: Path | None = None
    """A KubeSchedulerConfiguration. None: one profile, `decklog`, that scores every node."""
    seed: int = 0
    """Breaks ties between nodes of equal score. Part of what is recorded with each tick."""


class Settings(BaseSettings):
    """The settings of every command and service."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_nested_delimiter=DELIMITER,
        env_ignore_empty=True,
        nested_model_default_partial_update=True,
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
    )

    cluster: str = "demo"
    """Name of the cluster, and of its stream in the ledger. Part of the topics' names."""
    instance: str = ""
    """Name of this process, among those that run at once. Empty: made from host and process id."""
    log: LogSettings = LogSettings()
    kafka: KafkaSettings = KafkaSettings()
    pg: PgSettings = PgSettings()
    kube: KubeSettings = KubeSettings()
    store: StoreSettings = StoreSettings()
    operations: OperationsSettings = OperationsSettings()
    scheduler: SchedulerSettings = SchedulerSettings()

    @property
    def is_embedded(self) -> bool:
        return not self.kafka.bootstrap and not self.pg.host

    def masked(self) -> dict[str, Any]:
        """Return all values as JSON has them; secrets are stars."""
        return self.model_dump(mode="json")
