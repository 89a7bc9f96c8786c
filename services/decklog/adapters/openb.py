"""The openb trace (Alibaba, cluster-trace-gpu-v2023) as Kubernetes objects.

GPUs become one counted resource in thousandths, which ignores the borders between devices on
purpose. Times of the trace are seconds from its start, and are kept as annotations.
"""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from decklog.adapters.manifests import Refused, UnreadableManifest

Raw = dict[str, Any]
GPU: Final = "openb.io/gpu-milli"
GPU_MODEL: Final = "openb.io/gpu-model"
CREATED: Final = "openb.io/creation-time"
DELETED: Final = "openb.io/deletion-time"
SCHEDULER_NAME: Final = "decklog"
"""Of the built-in profile, so that the pods need no configuration."""
POD_PRIORITIES: Final = {"LS": 1000, "Guaranteed": 1000, "Burstable": 500, "BE": 0}
NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS: Final = (
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "qos",
    "creation_time",
    "deletion_time",
)


def import_openb(
    nodes_csv: Path, pods_csv: Path, *, scheduler_name: str = SCHEDULER_NAME
) -> Iterator[Raw | Refused]:
    """Yield the trace's nodes, then its pods; a row that cannot be used is refused.

    Raises:
        UnreadableManifest: a file cannot be read, or has other columns.
    """
    yield from _objects(nodes_csv, NODE_COLUMNS, _node)
    yield from _objects(pods_csv, POD_COLUMNS, lambda row: _pod(row, scheduler_name))


def _objects(
    file: Path, columns: Sequence[str], make: Callable[["_Row"], Raw]
) -> Iterator[Raw | Refused]:
    known: dict[str, int] = {}
    for line, cells in _rows(file, columns):
        try:
            made = make(_Row(cells))
            _check_name(made["metadata"]["name"], line, known)
        except _BadRow as error:
            where = f"{file}, line {line}"
            yield Refused(file=str(file), document=0, what=error.what, hint=error.hint, where=where)
        else:
            yield made


def _check_name(name: str, line: int, known: dict[str, int]) -> None:
    first = known.setdefault(name, line)
    if first != line:
        raise _BadRow(what=f"{name} was given already, in line {first}", hint="remove one")


def _rows(file: Path, columns: Sequence[str]) -> Iterator[tuple[int, Mapping[str, str | None]]]:
    """Yield (line, cells by column)."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            missing = [name for name in columns if name not in (reader.fieldnames or ())]
            if missing:
                why = f"its first line lacks {', '.join(missing)}; is it the right file?"
                raise UnreadableManifest(file, why)
            for row in reader:
                yield reader.line_num, row
    except OSError as error:
        raise UnreadableManifest(file, error.strerror or str(error)) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise UnreadableManifest(file, f"it is not CSV in UTF-8: {error}") from error


class _BadRow(ValueError):
    def __init__(self, *, what: str, hint: str) -> None:
        self.what = what
        self.hint = hint
        super().__init__(what)


class _Row:
    """The cells of a row, read and checked one by one."""

    def __init__(self, cells: Mapping[str, str | None]) -> None:
        self._cells = cells

    def text(self, column: str) -> str:
        value = self._cells[column]
        if value is None:
            raise _BadRow(what=f"{column} is missing", hint="a row has a cell for each column")
        return value.strip()

    def name(self, column: str) -> str:
        value = self.text(column)
        if not value:
            raise _BadRow(what=f"{column} is empty", hint="every row needs a name")
        return value

    def number(self, column: str) -> int:
        value = self.text(column)
        if not value.isascii() or not value.isdigit() or len(value) > 15:
            hint = "write a whole number that is not negative"
            raise _BadRow(what=f"{column} is {value[:40]!r}", hint=hint)
        return int(value)


def _node(row: _Row) -> Raw:
    name = row.name("sn")
    resources = {
        "cpu": f"{row.number('cpu_milli')}m",
        "memory": f"{row.number('memory_mib')}Mi",
        GPU: str(1000 * row.number("gpu")),
        "pods": "110",
    }
    labels = {"kubernetes.io/hostname": name}
    if model := row.text("model"):
        labels[GPU_MODEL] = model
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _pod(row: _Row, scheduler_name: str) -> Raw:
    name, qos = row.name("name"), row.text("qos")
    if qos not in POD_PRIORITIES:
        raise _BadRow(what=f"qos is {qos[:40]!r}", hint=f"write one of {', '.join(POD_PRIORITIES)}")
    requests = {
        "cpu": f"{row.number('cpu_milli')}m",
        "memory": f"{row.number('memory_mib')}Mi",
    }
    if gpus := row.number("num_gpu"):
        requests[GPU] = str(gpus * row.number("gpu_milli"))
    spec: Raw = {
        "schedulerName": scheduler_name,
        "priority": POD_PRIORITIES[qos],
        "containers": [{"name": "main", "image": "openb", "resources": {"requests": requests}}],
    }
    if models := [one for one in row.text("gpu_spec").split("|") if one]:
        spec["affinity"] = _node_of_model(models)
    times = {CREATED: row.number("creation_time"), DELETED: row.number("deletion_time")}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "annotations": {key: str(seconds) for key, seconds in times.items()},
        },
        "spec": spec,
    }


def _node_of_model(models: list[str]) -> Raw:
    wanted = {"key": GPU_MODEL, "operator": "In", "values": models}
    required = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
