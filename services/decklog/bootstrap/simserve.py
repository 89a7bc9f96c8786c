"""`decklog sim serve`: the simulated cluster as a Kubernetes API, until somebody asks to stop."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import structlog

from decklog.adapters.clock import SystemClock
from decklog.adapters.cluster.serve import ClusterServer
from decklog.bootstrap.exit_codes import BUG, OK
from decklog.bootstrap.logging import Audience, configure_logging
from decklog.bootstrap.metrics import Metrics
from decklog.bootstrap.operations import Health
from decklog.bootstrap.serving import operations
from decklog.bootstrap.settings import Settings
from decklog.bootstrap.sources import unknown_variables
from decklog.bootstrap.stopping import Stop
from decklog.bootstrap.world import Story, World, make_world
from decklog.core.errors import BadConfiguration
from decklog.runner import Loop, Paced

LOOK_SECONDS: Final = 0.5
"""How late it is seen that the cluster's own parts have failed."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    host: str
    port: int


def serve_cluster(
    settings: Settings,
    story: Story,
    where: Listening,
    *,
    manifests: Sequence[Path],
    announce: Callable[[str], None],
) -> int:
    """Serve until asked to stop; `announce` is told the address."""
    clock = SystemClock()
    stop = Stop(clock)
    stop.on_signals()
    configure_logging(settings.log, Audience.COMMAND, service="cluster")
    for unknown in unknown_variables():
        _log.warning("Found a variable that is not a setting", error=str(unknown))
    if manifests:
        from decklog.bootstrap.inputs import read_input

        read = read_input(manifests)
        for line in read.refused:
            _log.warning("Refused a document", error=line)
        story = replace(story, objects=read.objects)
    world = make_world(story, clock)
    health = Health(clock, stop)
    with ExitStack() as stack:
        stack.enter_context(operations(settings, health, Metrics()))
        server = stack.enter_context(_listening(world, where))
        health.loop = Loop([Paced(_Served(server))], clock)
        announce(server.url)
        while not stop.wait(LOOK_SECONDS):
            if server.failed.is_set():
                _log.error("Could not go on, a part of the cluster failed")
                return BUG
    return OK


@dataclass(frozen=True, slots=True)
class _Served:
    """The server, as the probes see it: it has threads of its own, and no loop."""

    server: ClusterServer
    name: str = "cluster"

    def step(self) -> bool:
        return False

    def readiness(self) -> Mapping[str, str]:
        return {"parts": "one has failed" if self.server.failed.is_set() else ""}

    def stop(self) -> None:
        """Do nothing: whoever opened the server closes it."""


@contextmanager
def _listening(world: World, where: Listening) -> Iterator[ClusterServer]:
    try:
        server = ClusterServer(world.cluster, where.host, where.port, parts=world.parts)
    except OSError as error:
        msg = f"cannot listen on {where.host}:{where.port}: {error.strerror}; choose another port"
        raise BadConfiguration(msg) from error
    with server:
        yield server
