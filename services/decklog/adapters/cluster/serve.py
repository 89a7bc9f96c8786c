"""A simulated cluster as a Kubernetes API on the network, for other processes and kubectl.

There is no authentication: bind it to loopback. Each connection has a thread; one more steps
the cluster's own parts, such as kubelets and workload.
"""

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, Protocol

from decklog.adapters.cluster.connection import Listener
from decklog.adapters.cluster.simulated import SimulatedCluster

STEP_INTERVAL: Final = timedelta(milliseconds=20)
"""How often the cluster's own parts are stepped: pods run soon after they are bound."""
POLL_SECONDS: Final = 0.05
"""How long the listener takes to see that it should stop."""


class Part(Protocol):
    """Something of the cluster that moves: kubelets, a volume binder, a workload."""

    def step(self) -> bool: ...


class ClusterServer:
    """Serves a cluster until stopped. `with ClusterServer(cluster) as server: server.url`."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        parts: Sequence[Part] = (),
    ) -> None:
        self._parts = parts
        self._listener = Listener((host, port), cluster)
        self._stopping = self._listener.stopping
        self._threads: list[threading.Thread] = []
        self.failed = threading.Event()
        """Set when one of the cluster's parts has raised: nothing moves any more."""

    @property
    def url(self) -> str:
        host, port = self._listener.server_address[:2]
        return f"http://{host!s}:{port}"

    def start(self) -> None:
        self._threads = [
            threading.Thread(
                target=self._listener.serve_forever, args=(POLL_SECONDS,), name="cluster-listener"
            ),
            threading.Thread(target=self._step_parts, name="cluster-parts"),
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Close all connections, end all threads."""
        self._stopping.set()
        if self._threads:
            self._listener.shutdown()
        self._listener.close_connections()
        self._listener.server_close()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> "ClusterServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _step_parts(self) -> None:
        try:
            while not self._stopping.wait(STEP_INTERVAL.total_seconds()):
                for part in self._parts:
                    part.step()
        finally:
            if not self._stopping.is_set():
                self.failed.set()
