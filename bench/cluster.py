"""What the simulated cluster costs, in process and over HTTP: `python -m bench.cluster`.

In process: the CPU that 8,152 pods take through create, watch, bind and kubelet. Over HTTP: how
many binds a second eight connections get from a server in another process, on the same cores.
"""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from bench.workloads.openb_like import openb_like
from decklog.adapters.clock import SystemClock
from decklog.adapters.cluster.http import HttpCluster
from decklog.adapters.cluster.kubelet import Kubelet
from decklog.adapters.cluster.serve import ClusterServer
from decklog.adapters.cluster.simulated import SimulatedCluster
from decklog.objects.kinds import KIND_BY_NAME
from decklog.ports.cluster import BindPod, RawObject, Watch

POD = KIND_BY_NAME["Pod"]
NODE = "openb-node-0001"
BATCH = 200


def main(arguments: Sequence[str]) -> None:
    if arguments == ["serve"]:
        _serve()
        return
    print(json.dumps(measure(), indent=2))


def measure() -> dict[str, dict[str, float]]:
    return {"in_process": _in_process(), "http": _over_http()}


def _in_process() -> dict[str, float]:
    nodes, pods = openb_like()
    cpu = time.process_time()
    cluster = SimulatedCluster(SystemClock())
    kubelet = Kubelet(cluster)
    for node in nodes:
        cluster.create("Node", node)
    watch = cluster.watch(POD, resource_version=cluster.list(POD).resource_version)
    for pod in pods:
        cluster.create("Pod", pod)
    added = _drain(watch, len(pods), [])
    for start in range(0, len(added), BATCH):
        cluster.perform([_binding(pod) for pod in added[start : start + BATCH]])
    kubelet.step()
    _drain(watch, 2 * len(pods), [])
    return {"pods": len(pods), "cpu_seconds": round(time.process_time() - cpu, 3)}


def _over_http() -> dict[str, float]:
    with subprocess.Popen(
        [sys.executable, "-m", "bench.cluster", "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        cluster = HttpCluster(server.stdout.readline().strip())
        start = time.perf_counter()
        listing = cluster.list(POD)
        listed = time.perf_counter() - start
        watch = cluster.watch(POD, resource_version=listing.resource_version)
        measured = _bind_all(cluster, listing.objects)
        start = time.perf_counter()
        _drain(watch, 2 * len(listing.objects), [])
        measured |= {
            "list_seconds": round(listed, 3),
            "watch_behind_seconds": round(time.perf_counter() - start, 3),
        }
        cluster.close()
        server.stdin.close()
    return measured


def _bind_all(cluster: HttpCluster, pods: Sequence[RawObject]) -> dict[str, float]:
    start, cpu = time.perf_counter(), time.process_time()
    bound = 0
    for first in range(0, len(pods), BATCH):
        answers = cluster.perform([_binding(pod) for pod in pods[first : first + BATCH]])
        bound += sum(answer.code == 201 for answer in answers)
    wall = time.perf_counter() - start
    return {
        "bound": bound,
        "binds_per_second": round(bound / wall),
        "client_cpu_ms_per_bind": round((time.process_time() - cpu) * 1000 / bound, 3),
    }


def _binding(pod: RawObject) -> BindPod:
    metadata = pod["metadata"]
    return BindPod(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        node=NODE,
        annotations={"decklog.dev/decision": "1.00000000"},
    )


def _drain(watch: Watch, count: int, got: list[Any]) -> list[Any]:
    while len(got) < count:
        got += [event.object for event in watch.poll(limit=5_000, timeout=timedelta(seconds=1))]
    return got


def _serve() -> None:
    cluster = SimulatedCluster(SystemClock())
    nodes, pods = openb_like()
    cluster.load([*nodes, *pods])
    with ClusterServer(cluster, parts=[Kubelet(cluster)]) as server:
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1:])
