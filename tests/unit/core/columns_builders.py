"""Nodes and pods of a few words, and columns and caches that hold them."""

from collections.abc import Iterable
from typing import Any

from decklog.core.cache import Cache
from decklog.core.node_table import NodeTable
from decklog.objects.node import Node
from decklog.objects.pod import Container, ContainerPort, Pod


def make_node(name: str = "n0", *, cpu: str = "4", pods: int = 110, **fields: Any) -> Node:
    allocatable = {"cpu": cpu, "memory": "32Gi", "pods": str(pods)}
    return Node(**{"uid": f"uid-{name}", "name": name, "allocatable": allocatable} | fields)


def make_pod(
    name: str = "p0",
    *,
    on: str = "",
    cpu: str = "100m",
    memory: str = "500Mi",
    host_port: int = 0,
    image: str = "",
    **fields: Any,
) -> Pod:
    """Return a pod of one container; `on` is the node that it is bound to."""
    ports = (ContainerPort(host_port=host_port),) if host_port else ()
    requests = {"cpu": cpu, "memory": memory}
    container = Container(name="c", image=image, requests=requests, ports=ports)
    known = {"uid": f"uid-{name}", "namespace": "default", "name": name, "node_name": on}
    return Pod(**known | {"containers": (container,)} | fields)


def make_cache(nodes: Iterable[Node] = (), pods: Iterable[Pod] = ()) -> Cache:
    """Return a cache of these nodes and of these pods, each on the node that it names."""
    cache = Cache()
    for node in nodes:
        cache.add_node(node)
    for pod in pods:
        cache.add_pod(pod)
    problem = cache.update_snapshot()
    assert problem is None, problem
    return cache


def make_columns(nodes: Iterable[Node] = (), pods: Iterable[Pod] = ()) -> NodeTable:
    """Return columns whose rows are the nodes in this order, then ghosts that pods name."""
    return make_cache(nodes, pods).columns
