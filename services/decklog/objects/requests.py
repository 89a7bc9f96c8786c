"""What a pod asks for, as kube-scheduler v1.36 counts it.

`incoming` is what the Fit filter asks for, `accounted` what a node is charged with (it looks at
resizes in progress), `non_zero` and `scoring` are the two with defaults for containers that ask
for nothing, which only scores use. All return integers: milli-CPU, bytes, units. They are summed
exactly, in nano-units, and rounded away from zero once, at the end.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from decklog.objects.pod import Container, ContainerPort, Pod
from decklog.objects.quantity import parsed

Amounts = dict[str, int]
INT64_MAX: Final = 2**63 - 1
NANO: Final = 10**9
CPU_DEFAULT: Final = 100
"""Milli-CPU that a container without a cpu request counts for in scores."""
MEMORY_DEFAULT: Final = 200 * 1024 * 1024
"""Bytes, likewise."""
_CPU_DEFAULT_NANO: Final = CPU_DEFAULT * NANO // 1000
_MEMORY_DEFAULT_NANO: Final = MEMORY_DEFAULT * NANO
_NATIVE: Final = "kubernetes.io/"
_POD_LEVEL: Final = ("cpu", "memory")
_HUGE_PAGES: Final = "hugepages-"
ALWAYS: Final = "Always"

ContainerRequests = Callable[[Container, bool], Mapping[str, int]]
"""(container, whether its status counts) → what it asks for."""


def is_extended_resource(name: str) -> bool:
    return "/" in name and _NATIVE not in name and not name.startswith("requests.")


def is_scalar_resource(name: str) -> bool:
    """Whether nodes and pods count the resource beside cpu, memory and ephemeral storage."""
    return (
        is_extended_resource(name)
        or name.startswith((_HUGE_PAGES, "attachable-volumes-"))
        or (_NATIVE in name)
    )


def incoming(pod: Pod) -> Amounts:
    """Return what a pod that is to be placed asks for: by its spec alone."""
    return _counted(_with_pod_level(pod, _aggregate(pod, _spec_requests), status=False))


def accounted(pod: Pod) -> Amounts:
    """Return what a node is charged with for the pod."""
    if not pod.container_statuses and pod.status_resources is None:
        return incoming(pod)
    return _counted(_with_pod_level(pod, _aggregate(pod, _status_requests(pod)), status=True))


def limits(pod: Pod) -> Amounts:
    """Return the pod's limits, counted like its requests."""
    found = _aggregate(pod, lambda container, _: _amounts(container.limits))
    if pod.resources is not None:
        for name, text in pod.resources.limits.items():
            if _is_pod_level(name):
                found[name] = _nano(text)
    for name, text in pod.overhead.items():
        if name in found:
            found[name] += _nano(text)
    return _counted(found)


def non_zero(pod: Pod) -> tuple[int, int]:
    """Return (milli-CPU, bytes) that a node is charged with in scores."""
    pod_level = pod.resources is not None and any(map(_is_pod_level, pod.resources.requests))
    total = accounted(pod) if pod_level else {}
    use = _spec_requests if not pod.container_statuses else _status_requests(pod)
    defaults = {
        name: value
        for name, value in (("cpu", _CPU_DEFAULT_NANO), ("memory", _MEMORY_DEFAULT_NANO))
        if name not in total
    }
    asks = _aggregate(pod, _defaulted(use, defaults))
    counted = _counted(_with_pod_level(pod, asks, status=True))
    return counted.get("cpu", 0), counted.get("memory", 0)


def scoring(pod: Pod) -> Amounts:
    """Return what NodeResourcesFit scores of an incoming pod: defaulted, without its pod level."""
    defaults = {"cpu": _CPU_DEFAULT_NANO, "memory": _MEMORY_DEFAULT_NANO}
    return _counted(_with_overhead(pod, _aggregate(pod, _defaulted(_spec_requests, defaults))))


def host_ports(pod: Pod) -> tuple[tuple[str, str, int], ...]:
    """Return (ip, protocol, port) of every host port, with the API's defaults filled in."""
    return tuple(
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port) for port in _ports(pod)
    )


def ports_conflict(want: tuple[str, str, int], used: Iterable[tuple[str, str, int]]) -> bool:
    """Say whether a host port cannot be had beside those in use."""
    ip, protocol, port = want
    if port <= 0:
        return False
    everywhere = "0.0.0.0"
    return any(
        protocol == other_protocol
        and port == other_port
        and (everywhere in (ip, other_ip) or ip == other_ip)
        for other_ip, other_protocol, other_port in used
    )


def pvc_keys(pod: Pod) -> tuple[str, ...]:
    """Return `namespace/claim` of every claim the pod names; ephemeral volumes are not counted."""
    return tuple(
        f"{pod.namespace}/{volume.claim_name}"
        for volume in pod.volumes
        if volume.claim_name is not None and not volume.ephemeral
    )


def has_affinity(pod: Pod) -> bool:
    """Whether the pod has any stanza about other pods, even an empty one."""
    affinity = pod.affinity
    return affinity is not None and (affinity.pod is not None or affinity.pod_anti is not None)


def has_required_anti_affinity(pod: Pod) -> bool:
    affinity = pod.affinity
    return (
        affinity is not None and affinity.pod_anti is not None and bool(affinity.pod_anti.required)
    )


def required_features(pod: Pod) -> frozenset[str]:
    """Return the features that the node must declare for the pod to run."""
    found = set()
    if any(container.restarts_all_containers for container in _all(pod)):
        found.add("RestartAllContainersOnContainerExits")
    if pod.host_network and pod.host_users is False:
        found.add("UserNamespacesHostNetworkSupport")
    return frozenset(found)


def _all(pod: Pod) -> Iterator[Container]:
    yield from pod.containers
    yield from pod.init_containers


def _ports(pod: Pod) -> Iterator[ContainerPort]:
    for container in pod.containers:
        yield from (port for port in container.ports if port.host_port > 0)
    for container in pod.init_containers:
        if container.restart_policy == ALWAYS:
            yield from (port for port in container.ports if port.host_port > 0)


def _amounts(texts: Mapping[str, str] | None) -> dict[str, int]:
    """Return amounts in nano-units."""
    return {name: _nano(text) for name, text in texts.items()} if texts else {}


def _counted(nano: Mapping[str, int]) -> Amounts:
    """Return amounts as scheduling counts them, held at the largest that fits."""
    found = {}
    for name, amount in nano.items():
        unit = NANO // 1000 if name == "cpu" else NANO
        counted = -(-amount // unit)
        found[name] = max(-INT64_MAX, min(INT64_MAX, counted))
    return found


def _spec_requests(container: Container, _status: bool) -> Mapping[str, int]:
    return _amounts(container.requests)


def _status_requests(pod: Pod) -> ContainerRequests:
    """Return how containers count while a resize may be in progress."""
    statuses = {status.name: status for status in pod.container_statuses if status.has_resources}
    infeasible = _resize_is_infeasible(pod)

    def count(container: Container, use_status: bool) -> Mapping[str, int]:
        status = statuses.get(container.name) if use_status else None
        if status is None:
            return _amounts(container.requests)
        counted = _larger(_amounts(status.requests), _amounts(status.allocated))
        return counted if infeasible else _larger(_amounts(container.requests), counted)

    return count


def _resize_is_infeasible(pod: Pod) -> bool:
    for condition in pod.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _defaulted(use: ContainerRequests, defaults: Mapping[str, int]) -> ContainerRequests:
    def count(container: Container, use_status: bool) -> Mapping[str, int]:
        return {**defaults, **use(container, use_status)}

    return count


def _aggregate(pod: Pod, use: ContainerRequests) -> Amounts:
    """Sum the containers, and let init containers that run before or beside them raise the sum."""
    total: Amounts = {}
    for container in pod.containers:
        _add_all(total, use(container, True))
    if not pod.init_containers:
        return total
    sidecars: Amounts = {}
    highest: Amounts = {}
    for container in pod.init_containers:
        if container.restart_policy == ALWAYS:
            asks = use(container, True)
            _add_all(total, asks)
            _add_all(sidecars, asks)
            highest = _larger(highest, sidecars)
        else:
            running = dict(use(container, False))
            _add_all(running, sidecars)
            highest = _larger(highest, running)
    return _larger(total, highest)


def _with_pod_level(pod: Pod, found: Amounts, *, status: bool) -> Amounts:
    if pod.resources is not None:
        for name, text in pod.resources.requests.items():
            if _is_pod_level(name):
                found[name] = _pod_level(pod, name, _nano(text), status=status)
    return _with_overhead(pod, found)


def _pod_level(pod: Pod, name: str, spec: int, *, status: bool) -> int:
    if not status or pod.status_resources is None:
        return spec
    reported = [_nano(text) for text in _texts(pod.status_resources.requests, name)]
    allocated = [_nano(text) for text in _texts(pod.status_allocated or {}, name)]
    counted = max(reported + allocated, default=0)
    return counted if _resize_is_infeasible(pod) else max(spec, counted)


def _texts(of: Mapping[str, str], name: str) -> list[str]:
    return [of[name]] if name in of else []


def _is_pod_level(name: str) -> bool:
    return name in _POD_LEVEL or name.startswith(_HUGE_PAGES)


def _with_overhead(pod: Pod, found: Amounts) -> Amounts:
    for name, text in pod.overhead.items():
        found[name] = found.get(name, 0) + _nano(text)
    return found


def _add_all(total: Amounts, asks: Mapping[str, int]) -> None:
    for name, value in asks.items():
        total[name] = total.get(name, 0) + value


def _larger(one: Mapping[str, int], other: Mapping[str, int]) -> Amounts:
    found = dict(one)
    for name, value in other.items():
        if name not in found or found[name] < value:
            found[name] = value
    return found


def _nano(text: str) -> int:
    return parsed(text)._scaled(-9)
