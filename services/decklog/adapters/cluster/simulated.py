"""A Kubernetes API server in memory: what `serve.py` offers over HTTP, and the port in process.

It behaves as kube-apiserver does towards a scheduler: resourceVersions and watches, bindings
with preconditions, status patches, deletes with grace, Events. Nothing in it moves by itself:
`kubelet.py` and `volumes.py` are stepped. The same seed, clock and calls give the same objects,
uids and resourceVersions.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from decklog.adapters.cluster.answers import Denied, reader_error
from decklog.adapters.cluster.api import Api
from decklog.adapters.cluster.faults import Fault, Faults, NoFaults
from decklog.adapters.cluster.requests import ApiRequest, Verb, to_request
from decklog.adapters.cluster.resources import RESOURCES
from decklog.adapters.cluster.store import Limits, Raw, Store, StoreWatch, WatchOptions
from decklog.core.errors import ClusterUnavailable, Refused
from decklog.objects.kinds import Kind
from decklog.ports.clock import Clock
from decklog.ports.cluster import Answer, Call, Listing, RawObject

DEFAULT_LIMITS: Final = Limits()


_Raws = list[Raw]  # `list` means something else inside the class.
_Texts = list[str]


class SimulatedCluster:
    """The store with its rules. It is a `ClusterReader` and a `ClusterWriter`.

    Threads may use it at once. Objects that it gives out are shared: nobody may change them.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        seed: int = 0,
        limits: Limits = DEFAULT_LIMITS,
        faults: Faults | None = None,
    ) -> None:
        self.clock = clock
        self.seed = seed
        self.faults: Faults = faults or NoFaults()
        self.is_ready = True
        """What `/readyz` says."""
        self.calls: Counter[tuple[Verb, str, str]] = Counter()
        """How often each (verb, kind, subresource) was asked for: what permissions are needed."""
        self.store = Store(clock, limits)
        self.api = Api(self.store, clock, seed=seed)

    def handle(self, request: ApiRequest) -> Answer | Fault:
        """Answer a request, or say how the client finds out that it failed."""
        self.calls[request.verb, request.kind, request.subresource] += 1
        fault = self.faults.before(request)
        if fault is not None:
            return fault
        answer = self.api.answer(request)
        return self.faults.after(request, answer) or answer

    def read_fault(self, verb: Verb, kind: str) -> Fault | None:
        """Count a list or a watch; return what its client gets instead, if anything."""
        self.calls[verb, kind, ""] += 1
        return self.faults.before(ApiRequest(verb=verb, kind=kind))

    def perform(self, calls: Sequence[Call]) -> Sequence[Answer]:
        """Perform the calls one after the other."""
        return [_answer(self.handle(to_request(call))) for call in calls]

    def list(self, kind: Kind) -> Listing:
        self._check_reader(Verb.LIST, kind)
        with self.store.lock:
            return Listing(
                resource_version=str(self.store.version),
                objects=[list_item(obj) for obj in self.store.objects(kind.name)],
            )

    def watch(self, kind: Kind, *, resource_version: str) -> StoreWatch:
        self._check_reader(Verb.WATCH, kind)
        try:
            version = int(resource_version or 0)
        except ValueError:
            msg = f"cannot watch {kind.plural} from resourceVersion {resource_version!r}"
            raise ClusterUnavailable(msg) from None
        options = WatchOptions(resource_version=version or None)
        return self.store.watch(kind.name, options)

    def ready(self) -> bool:
        return self.is_ready

    def close(self) -> None:
        """Do nothing: the cluster outlives those who use it."""

    def create(self, kind: str, raw: Mapping[str, Any]) -> RawObject:
        """Create an object.

        Raises:
            Refused: with the server's message.
        """
        return self._request(ApiRequest(verb=Verb.CREATE, kind=kind, body=raw))

    def update(self, kind: str, raw: Mapping[str, Any]) -> RawObject:
        """Replace an object, but for its status where that has a path of its own."""
        metadata = raw["metadata"]
        return self._request(
            ApiRequest(
                verb=Verb.UPDATE,
                kind=kind,
                namespace=_namespace(kind, metadata.get("namespace", "")),
                name=metadata["name"],
                body=raw,
            )
        )

    def delete(
        self, kind: str, name: str, namespace: str = "", *, grace_seconds: int | None = None
    ) -> RawObject:
        """Delete an object; a bound pod stays until its kubelet has ended it."""
        body = {} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        return self._request(
            ApiRequest(
                verb=Verb.DELETE,
                kind=kind,
                namespace=_namespace(kind, namespace),
                name=name,
                body=body,
            )
        )

    def load(self, objects: Iterable[Mapping[str, Any]]) -> _Texts:
        """Create objects of another cluster, with uid, age and status; return what was refused.

        Objects of kinds that the cluster does not serve are refused too.
        """
        refused = []
        for raw in objects:
            kind = raw.get("kind", "")
            try:
                if kind not in RESOURCES:
                    refused.append(f"cannot load an object of kind {kind!r}: it is not served")
                else:
                    self.api.load(kind, raw)
            except Denied as denied:
                refused.append(denied.answer.message)
        return refused

    def overwrite(self, kind: str, raw: Mapping[str, Any]) -> RawObject:
        """Store a state of an object as it is, status and all, as controllers of a cluster do."""
        return self.store.put(kind, {**raw, "metadata": dict(raw["metadata"])})

    def get(self, kind: str, name: str, namespace: str = "") -> RawObject | None:
        return self.store.get(kind, _namespace(kind, namespace), name)

    def raw_objects(self, kind: str) -> _Raws:
        """Return every object of a kind, by namespace and name."""
        return self.store.objects(kind)

    def end_watches(self) -> None:
        """End every watch cleanly, as a server does now and then."""
        self.store.end_watches()

    def restart(self) -> None:
        """Behave as after a restart: watches end, and older resourceVersions give 410."""
        self.store.forget_history()

    def _request(self, request: ApiRequest) -> RawObject:
        answer = self.api.answer(request)
        if not answer.ok:
            raise Refused(answer.message)
        assert answer.body is not None
        return answer.body

    def _check_reader(self, verb: Verb, kind: Kind) -> None:
        fault = self.read_fault(verb, kind.name)
        if fault is not None:
            raise reader_error(kind, fault.answer)


def list_item(obj: Raw) -> Raw:
    """Return the object as a list has it: without kind and apiVersion."""
    return {name: value for name, value in obj.items() if name not in ("kind", "apiVersion")}


def _answer(told: Answer | Fault) -> Answer:
    return told if isinstance(told, Answer) else told.answer


def _namespace(kind: str, given: str) -> str:
    return (given or "default") if RESOURCES[kind].namespaced else ""
