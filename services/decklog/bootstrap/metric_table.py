"""Every metric with its words, read from services that were made for nothing else."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from decklog.adapters.clock import SystemClock
from decklog.adapters.cluster.simulated import SimulatedCluster
from decklog.bootstrap.metrics import Metrics
from decklog.bootstrap.services import NAMES, Parts, make_service
from decklog.bootstrap.storage import embedded_storage
from decklog.core.framework.resolve import default_config
from decklog.runner import Paced


def described(folder: Path) -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    """Yield name, type, labels and description of each metric of ours."""
    clock = SystemClock()
    cluster = SimulatedCluster(clock)
    with embedded_storage(folder, "metrics", clock, is_kept=False) as storage:
        parts = Parts(
            cluster="metrics",
            instance="metrics",
            config=default_config(),
            storage=storage,
            clock=clock,
            reader=cluster,
            writer=cluster,
            patience=timedelta(0),
        )
        metrics = Metrics([Paced(make_service(name, parts)) for name in NAMES], storage.events)
        for family in metrics.registry.collect():
            name = family.name + ("_total" if family.type == "counter" else "")
            labels = tuple(family.samples[0].labels) if family.samples else ()
            yield name, family.type, labels, family.documentation
