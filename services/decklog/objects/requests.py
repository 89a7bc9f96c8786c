"""What a pod asks for and what else it takes from a node, as kube-scheduler counts it.

There are four sums. `incoming` is what the Fit filter asks for, from the spec alone; `accounted`
is what a node is charged with, which looks at resizes in progress. `scoring` and `non_zero` are
the same two with defaults for containers that ask for nothing; only scores use them. Of the
containers a sum is made like this, for each resource:

    app containers and sidecars together, or the highest point of the start-up if that is more
    (an init container runs beside the sidecars before it); then what the pod asks for as a
    whole takes its place; then the pod's overhead is added.

Sums are exact, and rounded away from zero once, at the end.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from decklog.objects.label_syntax import key_problem
from decklog.objects.pod import Container, ContainerPort, ContainerStatus, Pod
from decklog.objects.quantity import amount, counted, nano

Amounts = dict[str, int]
"""By resource: milli-CPU for cpu, whole units for all others."""
HostPort = tuple[str, str, int]
"""(ip, protocol, port)"""

CPU_DEFAULT: Final = "100m"
"""What a container without a cpu request counts for in scores."""
MEMORY_DEFAULT: Final = "200Mi"
"""Likewise."""
ALWAYS: Final = "Always"
"""Restart policy of a sidecar."""
ANY_IP: Final = "0.0.0.0"
DEFAULT_PROTOCOL: Final = "TCP"
RESOURCES_CACHED: Final = 1 << 12
"""Names of resources whose kind is remembered, under 1 MB; a cluster has a few dozen."""

_NATIVE_DOMAIN: Final = "kubernetes.io/"
_QUOTA_PREFIX: Final = "requests."
_DEFAULTS: Final = {"cpu": nano(CPU_DEFAULT), "memory": nano(MEMORY_DEFAULT)}
_NO_AMOUNTS: Final[Mapping[str, int]] = {}

_Nanos = dict[str, int]
_Asks = Callable[[Container], Mapping[str, int]]


def incoming(pod: Pod) -> Amounts:
    """Return what a pod that is to be placed asks for: by its spec alone."""
    if not pod.init_containers and not pod.overhead and pod.resources is None:
        if len(pod.containers) == 1:
            asked = pod.containers[0].requests
            return {name: amount(name, text) for name, text in asked.items()} if asked else {}
        return _counted(_containers_together(pod, _spec_requests))
    return _counted(_pod_sum(pod, _spec_requests, _spec_level(pod)))


def accounted(pod: Pod) -> Amounts:
    """Return what a node is charged with for the pod."""
    if not pod.container_statuses and pod.status_resources is None:
        return incoming(pod)
    return _counted(_pod_sum(pod, _status_requests(pod), _status_level(pod)))


def non_zero(pod: Pod) -> tuple[int, int]:
    """Return (milli-CPU, bytes of memory) that a node is charged with in scores."""
    asks, level = _status_requests(pod), _status_level(pod)
    defaults: Mapping[str, int] = _DEFAULTS
    if level:
        # With pod-level requests a default is for what nobody asks for, not even the overhead.
        total = _pod_sum(pod, asks, level)
        defaults = {name: value for name, value in _DEFAULTS.items() if name not in total}
    found = _pod_sum(pod, _with_defaults(asks, defaults), level)
    return counted("cpu", found.get("cpu", 0)), counted("memory", found.get("memory", 0))


def scoring(pod: Pod) -> Amounts:
    """Return what NodeResourcesFit scores of an incoming pod: with defaults, by its spec alone.

    Upstream passes no options here, so pod-level requests do not count.
    """
    return _counted(_pod_sum(pod, _with_defaults(_spec_requests, _DEFAULTS), _NO_AMOUNTS))


def limits(pod: Pod) -> Amounts:
    """Return the pod's limits. Overhead is added to those that are not 0."""
    found = _containers_together(pod, lambda container: _nanos(container.limits))
    if pod.resources is not None:
        found.update(_pod_level(pod.resources.limits))
    for name, value in _nanos(pod.overhead).items():
        if found.get(name):
            found[name] += value
    return _counted(found)


@lru_cache(maxsize=RESOURCES_CACHED)
def is_extended_resource(name: str) -> bool:
    """Whether the resource is of a domain of its own, such as `example.com/gpu`."""
    if "/" not in name or _NATIVE_DOMAIN in name or name.startswith(_QUOTA_PREFIX):
        return False
    return not key_problem(_QUOTA_PREFIX + name)


@lru_cache(maxsize=RESOURCES_CACHED)
def is_scalar_resource(name: str) -> bool:
    """Whether nodes count the resource beside cpu, memory and ephemeral-storage."""
    return (
        name.startswith(("hugepages-", "attachable-volumes-"))
        or _NATIVE_DOMAIN in name
        or is_extended_resource(name)
    )


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Return the host ports of containers and sidecars, with the API's defaults filled in."""
    return tuple(
        host_port(port.host_ip, port.protocol, port.host_port) for port in _container_ports(pod)
    )


def host_port(ip: str, protocol: str, port: int) -> HostPort:
    return ip or ANY_IP, protocol or DEFAULT_PROTOCOL, port


def ports_conflict(want: HostPort, used: Iterable[HostPort]) -> bool:
    """Whether a host port cannot be had beside those in use; both with defaults filled in."""
    ip, protocol, port = want
    if port <= 0:
        return False
    return any(
        port == other_port
        and protocol == other_protocol
        and (ip == other_ip or ANY_IP in (ip, other_ip))
        for other_ip, other_protocol, other_port in used
    )


def pvc_keys(pod: Pod) -> tuple[str, ...]:
    """Return `namespace/claim` of every volume that names a claim; ephemeral ones do not."""
    if not pod.volumes:
        return ()
    return tuple(
        f"{pod.namespace}/{volume.claim_name}"
        for volume in pod.volumes
        if volume.claim_name is not None
    )


def has_affinity(pod: Pod) -> bool:
    """Whether the pod has any stanza about other pods, even an empty one."""
    affinity = pod.affinity
    return affinity is not None and (affinity.pod is not None or affinity.pod_anti is not None)


def has_required_anti_affinity(pod: Pod) -> bool:
    anti = None if pod.affinity is None else pod.affinity.pod_anti
    return anti is not None and bool(anti.required)


def required_features(pod: Pod) -> frozenset[str]:
    """Return the features that a node must declare for the pod to run there."""
    found = set()
    if any(one.restarts_all_containers for one in (*pod.containers, *pod.init_containers)):
        found.add("RestartAllContainersOnContainerExits")
    if pod.host_network and pod.host_users is False:
        found.add("UserNamespacesHostNetworkSupport")
    return frozenset(found)


def _container_ports(pod: Pod) -> Iterator[ContainerPort]:
    for container in pod.containers:
        yield from container.ports
    for container in pod.init_containers:
        if container.restart_policy == ALWAYS:
            yield from container.ports


def _pod_sum(pod: Pod, asks: _Asks, level: Mapping[str, int]) -> _Nanos:
    """Sum the containers, put in what the pod asks for as a whole, and add the overhead."""
    found = _containers_together(pod, asks)
    found.update(level)
    _add(found, _nanos(pod.overhead))
    return found


def _containers_together(pod: Pod, asks: _Asks) -> _Nanos:
    total: _Nanos = {}
    for container in pod.containers:
        _add(total, asks(container))
    sidecars: _Nanos = {}
    highest: _Nanos = {}
    for container in pod.init_containers:
        asked = asks(container)
        if container.restart_policy == ALWAYS:
            _add(total, asked)
            _add(sidecars, asked)
            _raise(highest, sidecars)
        else:
            running = dict(asked)
            _add(running, sidecars)
            _raise(highest, running)
    _raise(total, highest)
    return total


def _spec_requests(container: Container) -> Mapping[str, int]:
    return _nanos(container.requests)


def _status_requests(pod: Pod) -> _Asks:
    """Return how containers count while they may be resized; init containers never are."""
    statuses = {status.name: status for status in pod.container_statuses if status.has_resources}
    if not statuses:
        return _spec_requests
    infeasible = _resize_is_infeasible(pod)
    resizable = {*map(id, pod.containers)}
    resizable.update(id(one) for one in pod.init_containers if one.restart_policy == ALWAYS)

    def asks(container: Container) -> Mapping[str, int]:
        status = statuses.get(container.name) if id(container) in resizable else None
        if status is None:
            return _spec_requests(container)
        found = _nanos_of_status(status)
        if not infeasible:
            _raise(found, _spec_requests(container))
        return found

    return asks


def _nanos_of_status(status: ContainerStatus) -> _Nanos:
    found = dict(_nanos(status.requests))
    _raise(found, _nanos(status.allocated))
    return found


def _resize_is_infeasible(pod: Pod) -> bool:
    for condition in pod.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _with_defaults(asks: _Asks, defaults: Mapping[str, int]) -> _Asks:
    """Return `asks` with what a container counts for that names no request; 0 is a request."""
    if not defaults:
        return asks
    return lambda container: {**defaults, **asks(container)}


def _spec_level(pod: Pod) -> Mapping[str, int]:
    return _NO_AMOUNTS if pod.resources is None else _pod_level(pod.resources.requests)


def _status_level(pod: Pod) -> Mapping[str, int]:
    """Return what the pod asks for as a whole while that may be resized."""
    spec = _spec_level(pod)
    if not spec or pod.status_resources is None:
        return spec
    found = dict(_nanos(pod.status_resources.requests))
    _raise(found, _nanos(pod.status_allocated))
    if _resize_is_infeasible(pod):
        return {name: found.get(name, 0) for name in spec}
    return {name: max(value, found.get(name, value)) for name, value in spec.items()}


def _pod_level(texts: Mapping[str, str]) -> _Nanos:
    """Return what can be asked for or limited for a pod as a whole."""
    return {
        name: nano(text)
        for name, text in texts.items()
        if name in ("cpu", "memory") or name.startswith("hugepages-")
    }


def _nanos(texts: Mapping[str, str] | None) -> Mapping[str, int]:
    return {name: nano(text) for name, text in texts.items()} if texts else _NO_AMOUNTS


def _counted(nanos: Mapping[str, int]) -> Amounts:
    return {name: counted(name, value) for name, value in nanos.items()}


def _add(total: _Nanos, more: Mapping[str, int]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _raise(highest: _Nanos, other: Mapping[str, int]) -> None:
    """Raise each resource to what the other has of it; one that is missing is less than any."""
    for name, value in other.items():
        if name not in highest or highest[name] < value:
            highest[name] = value
