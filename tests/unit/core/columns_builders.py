"""Columns and caches that hold given nodes and pods."""

from collections.abc import Iterable

from decklog.core.cache import Cache
from decklog.core.node_table import NodeTable
from decklog.objects.node import Node
from decklog.objects.pod import Pod


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
