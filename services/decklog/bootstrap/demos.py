"""From what a person asked for to the demo that does it."""

from dataclasses import dataclass
from pathlib import Path

from decklog.bootstrap.logging import Audience, configure_logging
from decklog.bootstrap.outcome import Outcome
from decklog.bootstrap.plan import Plan, Spectator
from decklog.bootstrap.settings import LogSettings, Settings
from decklog.bootstrap.sources import load_settings, unknown_variables
from decklog.bootstrap.world import Story
from decklog.core.errors import BadConfiguration


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of `decklog demo`."""

    seed: int
    node_count: int
    pod_count: int | None
    rate: float
    manifests: tuple[Path, ...]
    folder: Path | None
    is_spawned: bool
    verifies: bool
    config: Path | None


def run_request(request: Request, spectator: Spectator) -> Outcome:
    settings = _settings(request)
    configure_logging(settings.log, Audience.COMMAND, cluster=settings.cluster)
    for unknown in unknown_variables():
        spectator.note(str(unknown))
    story = Story(
        seed=request.seed,
        node_count=request.node_count,
        pod_count=request.pod_count,
        rate=request.rate,
    )
    refused = 0
    if request.manifests:
        story, refused = _read(request, spectator)
    plan = Plan(story=story, folder=request.folder, verifies=request.verifies, refused=refused)
    if request.is_spawned:
        from decklog.bootstrap.spawn import run_spawned

        if request.folder is not None:
            msg = "--spawn keeps its history in Kafka and PostgreSQL: leave --data away"
            raise BadConfiguration(msg)
        return run_spawned(plan, settings, spectator)
    from decklog.bootstrap.demo import run_embedded

    return run_embedded(plan, settings, spectator)


def _settings(request: Request) -> Settings:
    """Return the settings, with no operations port and a quiet log unless these are set."""
    settings = load_settings(request.config, {"scheduler": {"seed": request.seed}})
    changes: dict[str, object] = {}
    if "port" not in settings.operations.model_fields_set:
        changes["operations"] = settings.operations.model_copy(update={"port": 0})
    if "level" not in settings.log.model_fields_set:
        changes["log"] = LogSettings(format=settings.log.format, level="warning")
    return settings.model_copy(update=changes)


def _read(request: Request, spectator: Spectator) -> tuple[Story, int]:
    from decklog.bootstrap.inputs import read_input

    read = read_input(request.manifests)
    for line in (*read.refused, *read.notes):
        spectator.note(line)
    story = Story(seed=request.seed, objects=read.objects, rate=request.rate)
    return story, len(read.refused)
