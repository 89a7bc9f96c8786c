"""One Kafka broker in KRaft mode: its jars, its settings, its life."""

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from tests.stack import process
from tests.stack.process import LOOPBACK, Missing, StackError

VERSION: Final = "4.4.0"
JAVA_MINIMUM: Final = 17
HOME: Final = Path(__file__).parents[2] / ".cache" / "kafka" / VERSION
LIBS: Final = HOME / "libs"
COMPLETE: Final = LIBS / ".complete"
FORMATTED: Final = HOME / "formatted"
CLASS_ARCHIVE: Final = HOME / "kafka.jsa"

# Fixed, because a random one begins with "-" once in 64 and is then taken for an option.
CLUSTER_ID: Final = "4L6g3nShT-eMCtK--X86sw"

START_SECONDS_MAX: Final = 60.0  # 2 to 6 s are usual, also on a loaded machine.
STOP_SECONDS_MAX: Final = 30.0  # 0.5 s is usual; writing the class archive takes 5 to 10 s.

# C1 alone nearly halves the start, and costs peak rate, which no test measures.
QUICK_START: Final = ("-Xmx256m", "-XX:TieredStopAtLevel=1")
# A detached broker may carry load, so the optimising compiler stays on.
LONG_LIFE: Final = ("-Xmx512m",)
JVM: Final = (
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)

PROPERTIES: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller_port}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=PLAINTEXT://{host}:{port}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
# After a kill the controller keeps the old registration for the session, 9 s by default: a
# restart would take 12 s and more.
broker.session.timeout.ms=1000
broker.heartbeat.interval.ms=200
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
auto.create.topics.enable=false
log.cleaner.dedupe.buffer.size=4194304
"""


class KafkaBroker:
    """A broker with one node, in a temporary folder, on ports that it keeps over restarts."""

    def __init__(self, *, detached: bool = False, jvm: Sequence[str] = ()) -> None:
        self._java = _java()
        self._detached = detached
        self._jvm_extra = jvm
        self._process: subprocess.Popen[bytes] | None = None
        self.port, self._controller_port = process.free_ports(2)
        self.folder = Path(tempfile.mkdtemp(prefix="decklog-kafka-"))
        self.log = self.folder / "server.log"

    @property
    def bootstrap(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def pid(self) -> int:
        if self._process is None:
            msg = "the Kafka broker is not running"
            raise StackError(msg)
        return self._process.pid

    def start(self) -> Self:
        """Start the broker and wait until it would create a topic."""
        if not (self.folder / "data").exists():
            self._lay_out()
        self._process = process.spawn(
            [*self._java, *self._jvm(), "kafka.Kafka", str(self._properties)],
            log=self.log,
            detached=self._detached,
        )
        try:
            process.wait_until(
                self._is_ready, what="Kafka", process=self._process, seconds=START_SECONDS_MAX
            )
        except StackError as error:
            self.kill()
            msg = f"{error}; its log ends:\n{process.tail(self.log)}"
            raise StackError(msg) from error
        return self

    def stop(self) -> None:
        """Shut the broker down; what was acknowledged stays."""
        if self._process is not None:
            process.stop(self._process, by=signal.SIGTERM, seconds=STOP_SECONDS_MAX)
            self._process = None

    def kill(self) -> None:
        """Kill the broker with SIGKILL, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        """Start the broker again over the same data: after `kill()`, or after stopping it here."""
        self.stop()
        self.start()

    def remove(self) -> None:
        """Stop the broker and delete its data."""
        self.stop()
        process.remove_folder(self.folder)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except StackError:
            self.remove()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    def _lay_out(self) -> None:
        self._properties.write_text(
            PROPERTIES.format(
                host=LOOPBACK,
                port=self.port,
                controller_port=self._controller_port,
                data=self.folder / "data",
            )
        )
        if not FORMATTED.exists():
            self._format()
        shutil.copytree(FORMATTED, self.folder / "data")

    def _format(self) -> None:
        """Format storage once and keep it: it depends on version, node and cluster id only."""
        arguments = ["format", "-t", CLUSTER_ID, "-c", str(self._properties)]
        done = subprocess.run(
            [*self._java, *JVM, *QUICK_START, "kafka.tools.StorageTool", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            msg = f"could not format Kafka's storage: {done.stdout}{done.stderr}"
            raise StackError(msg)
        _move_into_place(self.folder / "data", FORMATTED)

    def _jvm(self) -> Sequence[str]:
        if self._detached:
            return (*JVM, *LONG_LIFE, *self._jvm_extra)
        if CLASS_ARCHIVE.exists():
            return (*JVM, *QUICK_START, f"-XX:SharedArchiveFile={CLASS_ARCHIVE}", *self._jvm_extra)
        return (*JVM, *QUICK_START, *self._jvm_extra)

    def _is_ready(self) -> bool:
        """Whether the broker is registered and unfenced; before that it refuses topics."""
        if not process.answers(self.port):
            return False
        try:
            admin = KafkaAdminClient(bootstrap_servers=self.bootstrap, bootstrap_timeout_ms=1000)
        except KafkaError:
            return False
        try:
            return bool(admin.describe_cluster()["brokers"])
        except KafkaError:
            return False
        finally:
            admin.close()


def archive_classes() -> None:
    """Keep the JVM's parsed classes of one run: every later start takes half the time."""
    if CLASS_ARCHIVE.exists():
        return
    with tempfile.TemporaryDirectory(dir=HOME) as folder:
        written = Path(folder) / CLASS_ARCHIVE.name
        with KafkaBroker(jvm=(f"-XX:ArchiveClassesAtExit={written}",)) as broker:
            broker.stop()
        written.rename(CLASS_ARCHIVE)


def _java() -> list[str]:
    """Return the start of the broker's command line, if this machine can run one."""
    java = shutil.which("java")
    if java is None:
        msg = f"no java: install Java {JAVA_MINIMUM} or newer to run a Kafka broker"
        raise Missing(msg)
    if not COMPLETE.exists():
        msg = "no Kafka jars: run `make setup`, which fetches them with Maven"
        raise Missing(msg)
    return [java, "-cp", ":".join(str(jar) for jar in sorted(LIBS.glob("*.jar")))]


def _move_into_place(made: Path, final: Path) -> None:
    """Rename, unless another process was quicker: both made the same."""
    try:
        made.rename(final)
    except OSError:
        if not final.exists():
            shutil.copytree(made, final)
        shutil.rmtree(made, ignore_errors=True)
