"""Other people's clusters: manifests made ready for the simulated one."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from decklog.adapters.log.envelope import ENTRY_BYTES_MAX, size_of
from decklog.adapters.manifests import (
    Manifest,
    Refused,
    dump_manifests,
    read_manifests,
    refused,
)
from decklog.core.errors import BadConfiguration
from decklog.core.framework.config import DEFAULT_PROFILE
from decklog.events.codec import upserted
from decklog.objects.reduce import reduce_object
from decklog.ports.entries import event_entry

DEFAULT_SCHEDULER: Final = "default-scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """What the files hold: objects to use, and a line for each thing that is not."""

    objects: Sequence[Mapping[str, Any]]
    refused: Sequence[str]
    notes: Sequence[str]
    """What is odd and was used all the same."""


def read_input(files: Iterable[Path]) -> Input:
    """Read the files; pods of `default-scheduler` become pods of ours.

    Raises BadConfiguration for a file that cannot be read or decoded at all.
    """
    found = list(read_manifests(files))
    nodes = {
        each.raw["metadata"]["name"]
        for each in found
        if isinstance(each, Manifest) and each.kind.name == "Node"
    }
    objects, lines = [], []
    for each in found:
        problem = each if isinstance(each, Refused) else _problem(each, nodes)
        if problem is not None:
            lines.append(str(problem))
        elif isinstance(each, Manifest):
            objects.append(_ours(each.raw) if each.kind.name == "Pod" else each.raw)
    notes = [] if nodes else ["the input has no nodes: every pod will be unschedulable"]
    return Input(objects=objects, refused=lines, notes=notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What an import wrote."""

    nodes: int
    pods: int
    refused: Sequence[str]


def import_openb(nodes: Path, pods: Path, out: Path) -> Written:
    """Turn the trace into one file of manifests."""
    from decklog.adapters import openb

    objects, lines = [], []
    for each in openb.import_openb(nodes, pods):
        if isinstance(each, Refused):
            lines.append(str(each))
        else:
            objects.append(each)
    try:
        dump_manifests(objects, out)
    except OSError as error:
        msg = f"cannot write {str(out)!r}: {error.strerror}"
        raise BadConfiguration(msg) from error
    counts = Counter(each["kind"] for each in objects)
    return Written(nodes=counts["Node"], pods=counts["Pod"], refused=lines)


def _problem(manifest: Manifest, nodes: set[str]) -> Refused | None:
    """Say what keeps an object that is well formed from being used here."""
    metadata = manifest.raw["metadata"]
    if manifest.kind.name == "Pod":
        node = manifest.raw["spec"].get("nodeName")
        if node and node not in nodes:
            name = f"{metadata['namespace']}/{metadata['name']}"
            return refused(
                manifest.where,
                f"Pod {name} is bound to node {node!r}, which is not in the input",
                "add the node, or get nodes and pods with one command",
            )
    size = _entry_bytes(manifest)
    if size <= ENTRY_BYTES_MAX:
        return None
    return refused(
        manifest.where,
        f"{manifest.kind.name} {metadata['name']} takes {size} bytes as an event",
        f"a log takes {ENTRY_BYTES_MAX}: leave away what scheduling does not read",
    )


def _entry_bytes(manifest: Manifest) -> int:
    """Return how large the object's event is, or 0 where it is small beyond doubt."""
    if len(msgspec.json.encode(manifest.raw)) < ENTRY_BYTES_MAX // 2:
        return 0
    fact = upserted(reduce_object(manifest.kind, manifest.raw))
    return size_of(event_entry(fact, cluster="input", time_ms=0))


def _ours(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """Have our profile schedule what the cluster's default scheduler would have scheduled."""
    spec = pod["spec"]
    if spec.get("schedulerName") not in (None, "", DEFAULT_SCHEDULER):
        return pod
    return {**pod, "spec": {**spec, "schedulerName": DEFAULT_PROFILE}}
