"""Facts and their bytes.

An event's body is one JSON object with the fields that differ from their defaults. A decision's
payload is one compact JSON array, and holds every column by which decisions are searched:

    [seq, tick, generation, now_ms, kind, pod_uid, namespace, pod, {the other fields}]

Both are exact: a string is written as it is or refused (an unpaired surrogate has no UTF-8), and
equal facts have equal bytes. What enters the system is checked by `check_event`, every constraint
included; on replay msgspec decodes the same classes and looks at the types only.
"""

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import cache
from typing import Any, Final, NamedTuple, get_args, get_type_hints

import msgspec
from pydantic import ConfigDict, TypeAdapter, ValidationError

from decklog.events.facts import (
    BindFailed,
    BindingAdopted,
    BindSucceeded,
    BindUnknown,
    Decision,
    Event,
    GangCommitted,
    LeaderElected,
    ObjectDeleted,
    ObjectUpserted,
    PodRef,
    PodSkipped,
    PodUnreserved,
    PodUnschedulable,
    ResyncFinished,
    ResyncRequested,
    ResyncStarted,
    Undecodable,
    VictimDeleted,
    VictimRefused,
)
from decklog.events.pruning import Pruner, pruner
from decklog.events.upcasts import UPCASTS, Upcasts, split_type, upcast
from decklog.objects.meta import KubeObject


class Malformed(ValueError):
    """Bytes that are no fact, or a fact that has no bytes."""


class DecisionHeader(NamedTuple):
    """Where a decision stands."""

    seq: int
    tick: int
    generation: int
    now_ms: int


class DecisionColumns(NamedTuple):
    """By what decisions are searched, besides their header."""

    kind: str
    pod_uid: str
    namespace: str
    pod: str
    node: str | None
    reason: str | None
    closes_seq: int | None


def encode_event(fact: Event) -> bytes:
    """Encode an event's body.

    Raises:
        Malformed: a string holds an unpaired surrogate, or a value is not plain data.
    """
    return _encode(_EVENT_PRUNERS[type(fact)](fact), fact)


def decode_event(ce_type: str, key: str, value: bytes, *, upcasts: Upcasts = UPCASTS) -> Event:
    """Decode an event that was once written, of whatever version; never raise.

    Fields that this code does not know are ignored: a later minor version may have added them.
    """
    decoder = _EVENT_DECODERS.get(ce_type)
    try:
        if decoder is not None:
            fact: Event = decoder.decode(value)
            return fact
        return _decode_older(ce_type, value, upcasts)
    except _DECODE_ERRORS as error:
        return Undecodable(key=key, type=ce_type, error=f"{type(error).__name__}: {error}")


def check_event(ce_type: str, value: bytes) -> Event:
    """Decode an event that enters the system, with every constraint checked and no field unknown.

    Raises:
        Malformed: it is not an event of this type.
    """
    if ce_type not in EVENT_TYPES:
        msg = f"cannot take an event of type {ce_type!r}: this release knows no such type"
        raise Malformed(msg)
    try:
        fact: Event = adapter(EVENT_TYPES[ce_type]).validate_json(value)
    except ValidationError as error:
        msg = f"cannot take an event of type {ce_type!r}: {_first_of(error)}"
        raise Malformed(msg) from error
    return fact


def event_key(fact: Event) -> str:
    """Return the key of the event's entry: equal for everything that is told of one subject."""
    return _SUBJECTS[type(fact)](fact)


def event_id(fact: Event, *, time_ms: int = 0) -> str:
    """Return the id of the event's entry: equal when the same is told again.

    Only a `resync.requested` needs its time for that: asking again is asking anew.
    """
    ce_type = type(fact).ce_type
    state = ce_type.split(".")[-2]
    if isinstance(fact, ResyncRequested):
        return f"resync/{fact.kind}/{time_ms}/{state}"
    return f"{_IDS[type(fact)](fact)}/{state}"


def upserted(held: KubeObject) -> ObjectUpserted:
    """Return the event that says that the object exists as given."""
    cls, name = _UPSERTS[type(held)]
    fact: ObjectUpserted = cls(**{name: held})
    return fact


def object_key(held: KubeObject) -> str:
    return f"{type(held).__name__}/{held.namespace}/{held.name}"


def encode_decision(header: DecisionHeader, fact: Decision) -> bytes:
    """Encode a decision's payload: the bytes that are hashed and stored.

    Raises:
        Malformed: a string holds an unpaired surrogate, or a value is not plain data.
    """
    kind, pod = type(fact).__name__, _pod_of(fact)
    body = _DECISION_PRUNERS[kind](fact)
    return _encode((*header, kind, pod.uid, pod.namespace, pod.name, body), fact)


def decode_decision(payload: bytes) -> tuple[DecisionHeader, Decision]:
    """Decode a decision's payload.

    Raises:
        Malformed: it is none that this release can read.
    """
    try:
        seq, tick, generation, now_ms, kind, uid, namespace, pod, body = _PAYLOAD.decode(payload)
        if uid:
            body["pod"] = {"uid": uid, "namespace": namespace, "name": pod}
        fact: Decision = msgspec.convert(body, DECISION_KINDS[kind])
    except _DECODE_ERRORS as error:
        msg = f"cannot decode a decision: {type(error).__name__}: {error}"
        raise Malformed(msg) from error
    return DecisionHeader(seq, tick, generation, now_ms), fact


def decision_columns(fact: Decision) -> DecisionColumns:
    pod = _pod_of(fact)
    return DecisionColumns(
        kind=type(fact).__name__,
        pod_uid=pod.uid,
        namespace=pod.namespace,
        pod=pod.name,
        node=getattr(fact, "node", None),
        reason=_reason(fact),
        closes_seq=getattr(fact, "closes_seq", None),
    )


@cache
def adapter(cls: type) -> TypeAdapter[Any]:
    """Return the checker of a fact's class; the first call for a class takes milliseconds."""
    _configure(cls)
    return TypeAdapter(cls)


def _configure(hint: Any) -> None:
    """Have Pydantic forbid unknown fields and read the fields' docstrings, at every depth."""
    if is_dataclass(hint):
        hint.__pydantic_config__ = _STRICT  # type: ignore[union-attr]
        for inner in get_type_hints(hint).values():
            _configure(inner)
    for argument in get_args(hint):
        _configure(argument)


def _encode(body: object, fact: Event | Decision) -> bytes:
    try:
        return _ENCODER.encode(body)
    except (ValueError, TypeError) as error:
        msg = f"cannot encode a {type(fact).__name__}: {error}"
        raise Malformed(msg) from error


def _decode_older(ce_type: str, value: bytes, upcasts: Upcasts) -> Event:
    base, version = split_type(ce_type)
    newest = _NEWEST.get(base, 0)
    if not 0 < version < newest:
        msg = f"this release knows no event type {ce_type!r}"
        raise LookupError(msg)
    body = upcast(base, version, _BODY.decode(value), to=newest, upcasts=upcasts)
    fact: Event = msgspec.convert(body, EVENT_TYPES[f"{base}.v{newest}"])
    return fact


def _pod_of(fact: Decision) -> PodRef:
    return _NO_POD if isinstance(fact, GangCommitted) else fact.pod


def _reason(fact: Decision) -> str | None:
    match fact:
        case PodUnschedulable(reason=reason) | PodSkipped(reason=reason):
            return reason
        case PodUnreserved(reason=reason) | BindingAdopted(was=reason):
            return reason
        case _:
            return None


def _version_of(held: KubeObject) -> str:
    return f"{type(held).__name__}/{held.uid}/{held.resource_version}"


def _first_of(error: ValidationError) -> str:
    """Return one line on the first thing that is wrong, without the value: it may be private."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(step) for step in first["loc"])
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{place or 'the body'}: {first['msg']}{more}"


def _object_field(cls: type) -> tuple[str, type]:
    [(name, held)] = ((k, v) for k, v in get_type_hints(cls).items() if k != "ce_type")
    return name, held


_STRICT: Final = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)
_DECODE_ERRORS: Final = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError)
"""What undecodable bytes raise in msgspec (a ValueError), in its converter, and in an upcast."""

EVENT_TYPES: Final[Mapping[str, Any]] = {
    cls.ce_type: cls for cls in get_args(Event) if cls is not Undecodable
}
"""`ce_type` → class, of every event that this release writes."""
DECISION_KINDS: Final[Mapping[str, Any]] = {cls.__name__: cls for cls in get_args(Decision)}
"""Kind, as in the ledger → class."""
_NEWEST: Final = dict(split_type(ce_type) for ce_type in EVENT_TYPES)

_ENCODER: Final = msgspec.json.Encoder()
_SORTED_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_BODY: Final = msgspec.json.Decoder(dict[str, Any])
_PAYLOAD: Final = msgspec.json.Decoder(
    tuple[int, int, int, int, str, str, str, str, dict[str, Any]]
)
_EVENT_DECODERS: Final = {
    ce_type: msgspec.json.Decoder(cls) for ce_type, cls in EVENT_TYPES.items()
}
_EVENT_PRUNERS: Final[Mapping[type, Pruner]] = {cls: pruner(cls) for cls in EVENT_TYPES.values()}
_DECISION_PRUNERS: Final[Mapping[str, Pruner]] = {
    kind: pruner(cls, without=frozenset({"pod"})) for kind, cls in DECISION_KINDS.items()
}
_NO_POD: Final = PodRef(uid="", namespace="", name="")

_UPSERT_FIELDS: Final = {cls: _object_field(cls) for cls in get_args(ObjectUpserted)}
_SUBJECTS: Final[Mapping[type, Callable[[Any], str]]] = {
    **dict.fromkeys(_UPSERT_FIELDS, lambda fact: object_key(fact.object)),
    ObjectDeleted: lambda fact: f"{fact.kind}/{fact.namespace}/{fact.name}",
    BindSucceeded: lambda fact: f"bind/{fact.pod_uid}",
    BindFailed: lambda fact: f"bind/{fact.pod_uid}",
    BindUnknown: lambda fact: f"bind/{fact.pod_uid}",
    VictimDeleted: lambda fact: f"victim/{fact.pod_uid}",
    VictimRefused: lambda fact: f"victim/{fact.pod_uid}",
    ResyncRequested: lambda fact: f"resync/{fact.kind}",
    ResyncStarted: lambda fact: f"resync/{fact.kind}",
    ResyncFinished: lambda fact: f"resync/{fact.kind}",
    LeaderElected: lambda _: "leader",
}
_IDS: Final[Mapping[type, Callable[[Any], str]]] = {
    **dict.fromkeys(_UPSERT_FIELDS, lambda fact: _version_of(fact.object)),
    ObjectDeleted: lambda fact: f"{fact.kind}/{fact.uid}/{fact.resource_version}",
    BindSucceeded: lambda fact: f"bind/{fact.seq}",
    BindFailed: lambda fact: f"bind/{fact.seq}",
    BindUnknown: lambda fact: f"bind/{fact.seq}",
    VictimDeleted: lambda fact: f"victim/{fact.seq}/{fact.pod_uid}",
    VictimRefused: lambda fact: f"victim/{fact.seq}/{fact.pod_uid}",
    ResyncStarted: lambda fact: f"resync/{fact.kind}/{fact.resource_version}",
    ResyncFinished: lambda fact: f"resync/{fact.kind}/{fact.resource_version}",
    LeaderElected: lambda fact: f"leader/{fact.generation}",
}
_UPSERTS: Final[Mapping[type, tuple[Any, str]]] = {
    held: (cls, name) for cls, (name, held) in _UPSERT_FIELDS.items()
}
_OBJECT_PRUNERS: Final[Mapping[type, Pruner]] = {
    held: pruner(held, without=frozenset({"resource_version"}))
    for _, held in _UPSERT_FIELDS.values()
}
