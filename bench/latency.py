"""From a pod's creation until its binding is seen: `python -m bench.latency [--rate 50]`.

Every service is a process over a Kafka and a PostgreSQL on the same cores. The clock starts before
the request that creates the pod and stops when a watch of the API server shows its node.
"""

import argparse
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from bench.servers import servers
from decklog.adapters.cluster.http import HttpCluster
from decklog.objects.kinds import KIND_BY_NAME
from tests.system.processes import SERVICES, Processes, make_processes

POD: Final = KIND_BY_NAME["Pod"]
NODES: Final = 500
WARM_PODS: Final = 50
SECONDS: Final = 20
END_SECONDS: Final = 30


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.latency", description=__doc__)
    parser.add_argument("--rate", type=int, default=50, help="pods a second")
    parser.add_argument("-o", "--output", choices=["json"], default="json")
    given = parser.parse_args(arguments)
    print(json.dumps(measure(given.rate), indent=2))


def measure(rate: int) -> dict[str, float]:
    with (
        tempfile.TemporaryDirectory(prefix="decklog-bench-") as folder,
        servers() as apart,
        make_processes(
            Path(folder),
            bootstrap=apart.broker.bootstrap,
            dsn=apart.dsn,
            stream="bench",
            sim=("--nodes", str(NODES), "--pods", "0"),
        ) as processes,
    ):
        for name in SERVICES:
            processes.start(name)
        processes.wait_ready(*SERVICES)
        _create(processes, "warm", WARM_PODS, rate)
        return _create(processes, "timed", rate * SECONDS, rate)


def _create(processes: Processes, name: str, pods: int, rate: int) -> dict[str, float]:
    """Create pods at a steady rate and return how long they took to be bound."""
    created: dict[str, float] = {}
    bound: dict[str, float] = {}
    with closing(HttpCluster(processes.api)) as cluster:
        watch = cluster.watch(POD, resource_version=cluster.list(POD).resource_version)

        def follow() -> None:
            end = time.monotonic() + pods / rate + END_SECONDS
            while len(bound) < pods and time.monotonic() < end:
                for event in watch.poll(limit=1_000, timeout=timedelta(seconds=1)):
                    pod = event.object["metadata"]["name"]
                    if pod in created and event.object["spec"].get("nodeName"):
                        bound.setdefault(pod, time.perf_counter())

        following = threading.Thread(target=follow)
        following.start()
        start = time.perf_counter()
        for number in range(pods):
            time.sleep(max(0.0, start + number / rate - time.perf_counter()))
            pod = f"{name}-{number}"
            created[pod] = time.perf_counter()
            processes.create("pods", _pod(pod), "default")
        following.join()
    seconds = [bound[pod] - created[pod] for pod in created if pod in bound]
    cuts = statistics.quantiles(seconds, n=100)
    return {
        "pods": pods,
        "bound": len(seconds),
        "pods_per_second": rate,
        "p50_ms": round(cuts[49] * 1e3, 1),
        "p90_ms": round(cuts[89] * 1e3, 1),
        "p99_ms": round(cuts[98] * 1e3, 1),
        "max_ms": round(max(seconds) * 1e3, 1),
    }


def _pod(name: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": "10m", "memory": "16Mi"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulerName": "decklog",
            "containers": [{"name": "c", "image": "i", "resources": resources}],
        },
    }


if __name__ == "__main__":
    main()
