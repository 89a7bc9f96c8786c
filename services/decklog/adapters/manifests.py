"""Kubernetes objects in files: plain YAML or JSON, as people write and `kubectl get` prints them.

A file is a stream of documents, each an object or a List of objects. What cannot be used is
refused as a value, one line each, that says where and what to do; the rest is still read. Only a
file that cannot be read at all is an error.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from decklog.core.errors import BadConfiguration
from decklog.objects.kinds import KIND_BY_NAME, Kind
from decklog.objects.pod import Pod
from decklog.objects.reduce import InvalidObject, reduce_object
from decklog.objects.shape import QUANTITY

Raw = dict[str, Any]
FILE_BYTES_MAX: Final = 512 * 1024**2
"""A List of 100,000 pods, as `kubectl get` prints it, has about 400 MB."""
OBJECT_BYTES_MAX: Final = 3 * 1024**2
"""An API server takes no request above 3 MiB, so no cluster holds a larger object."""
WHAT_LENGTH_MAX: Final = 300
"""Characters that a refusal says of what it found."""

_MARK: Final = re.compile(r"^(?:---|\.\.\.)(?=\s|$)", re.MULTILINE)
_LINE: Final = re.compile(r"[^\n]*\n?")
_NO_CONTENT: Final = re.compile(r"(?:---|\.\.\.|%.*)?\s*(?:#.*)?")
_ALIAS: Final = re.compile(r"(?:^|[\s\[{,:-])\*[A-Za-z0-9_-]")
_IS_LIST: Final = re.compile(r"""^["']?kind["']?:[ \t]*["']?\w*List\b""", re.MULTILINE)
_SPACE: Final = " \t\r\n"
_OBJECT: Final = "an object has apiVersion, kind and metadata"
_HINTS: Final = {
    QUANTITY: "write it like 500m, 2 or 1Gi",
    "a name": "every object needs one; generateName is the API server's to fill in",
    "text": "put it in quotes",
}


class UnreadableManifest(BadConfiguration):
    """The file cannot be read or decoded at all."""

    def __init__(self, file: Path, why: str) -> None:
        self.file = file
        super().__init__(f"cannot read {str(file)!r}: {why}")


class Where(NamedTuple):
    """Where an object was found, for people."""

    file: str
    document: int
    """From 1; documents without content are not counted."""
    line: int
    """Where the document begins."""
    item: int = 0
    """From 1 within a List; 0: the document itself."""

    def __str__(self) -> str:
        item = f", item {self.item}" if self.item else ""
        return f"{self.file}, document {self.document}{item} (line {self.line})"


class Manifest(NamedTuple):
    kind: Kind
    raw: Raw
    where: Where


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Something in a file that cannot be used; it prints as one line."""

    file: str
    document: int
    """0: not in a document, but in the line that `where` names."""
    what: str
    hint: str
    where: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.hint}"


def refused(where: Where, what: str, hint: str) -> Refused:
    """Return the refusal; what a file says of itself is cut to one line of sensible length."""
    shown = " ".join(what.split())
    if len(shown) > WHAT_LENGTH_MAX:
        shown = f"{shown[:WHAT_LENGTH_MAX]}…"
    return Refused(
        file=where.file, document=where.document, what=shown, hint=hint, where=str(where)
    )


def read_manifests(files: Iterable[Path]) -> Iterator[Manifest | Refused]:
    """Read the objects of the files, in order; a name that was given already is refused.

    Raises:
        UnreadableManifest: a file cannot be read or decoded.
    """
    known: dict[tuple[str, str, str], Where] = {}
    for file in files:
        for found in _objects(file):
            yield _once(found, known) if isinstance(found, Manifest) else found


def read_document(file: Path) -> Any:
    """Return what the one document of a file holds; None if the file is empty.

    Raises:
        BadConfiguration: the file cannot be read, or holds no single document.
    """
    found = []
    for where, value, _ in _values(file):
        if isinstance(value, Refused):
            raise BadConfiguration(str(value))
        found.append((where, value))
    if len(found) > 1:
        msg = f"{str(file)!r} holds {len(found)} documents, and one is wanted"
        raise BadConfiguration(msg)
    return found[0][1] if found else None


def dump_manifests(objects: Iterable[Mapping[str, Any]], file: Path) -> int:
    """Write a List of the objects, one a line, and return their number.

    It is JSON, which is also YAML, whatever the file is called. The file is there whole or not
    at all.
    """
    count = 0
    part = file.with_name(f"{file.name}.part")
    with part.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write('{"apiVersion": "v1", "kind": "List", "items": [')
        for count, obj in enumerate(objects, start=1):
            stream.write("\n" if count == 1 else ",\n")
            stream.write(json.dumps(obj, ensure_ascii=False))
        stream.write("\n]}\n")
    part.replace(file)
    return count


def _text(file: Path) -> str:
    try:
        size = file.stat().st_size
        if size > FILE_BYTES_MAX:
            why = f"it has {size} bytes, and {FILE_BYTES_MAX} are read: split it"
            raise UnreadableManifest(file, why)
        content = file.read_bytes()
    except OSError as error:
        raise UnreadableManifest(file, error.strerror or str(error)) from error
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UnreadableManifest(file, "it is UTF-16, as PowerShell writes: save it as UTF-8")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        why = f"byte {content[error.start]:#04x} at {error.start} is not UTF-8: save it as UTF-8"
        raise UnreadableManifest(file, why) from error


def _parts(file: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each document with content, from its first line with content on."""
    text = _text(file)
    starts = [0, *(mark.start() for mark in _MARK.finditer(text)), len(text)]
    line = 1
    for start, end in pairwise(starts):
        skipped = 0
        for row in _LINE.finditer(text, start, end):
            if _NO_CONTENT.fullmatch(row[0].rstrip()) is None:
                yield line, text[start + skipped : end]
                break
            skipped += len(row[0])
            line += row[0].count("\n")
        line += text.count("\n", start + skipped, end)


def _values(file: Path) -> Iterator[tuple[Where, Any, bool]]:
    """Yield each document's value, or why it has none; JSON may stand one after another.

    The third says whether an object in it may be too large.
    """
    document = 0
    for line, text in _parts(file):
        where = Where(str(file), document + 1, line)
        try:
            values = _decoded(where, text)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            values = [_unparsable(where, error)]
        large = len(text) > OBJECT_BYTES_MAX or _ALIAS.search(text) is not None
        for value in values:
            document += 1
            yield where._replace(document=document), value, large


def _objects(file: Path) -> Iterator[Manifest | Refused]:
    for where, value, large in _values(file):
        match value:
            case None:
                continue
            case Refused():
                yield value
            case {"kind": str(kind), "items": list() | None} if kind.endswith("List"):
                for number, item in enumerate(value["items"] or (), start=1):
                    inherited = _inherited(value, item)
                    yield _checked(where._replace(item=number), inherited, measure=large)
            case _:
                yield _checked(where, value, measure=large)


def _decoded(where: Where, text: str) -> list[Any]:
    body = text.removeprefix("---").lstrip(_SPACE)
    if body.startswith(("{", "[")):
        try:
            return _json_values(body)
        except json.JSONDecodeError:
            if where.file.endswith(".json"):
                raise
    elif len(text) > OBJECT_BYTES_MAX and not _IS_LIST.search(text):
        return [_too_large(where)]  # Before it is read: the YAML reader needs a second a megabyte.
    return [yaml.load(text, Loader=_Loader)]


def _unparsable(where: Where, error: Exception) -> Refused:
    match error:
        case json.JSONDecodeError():
            line, problem = where.line + error.lineno - 1, f"not JSON, {error.msg}"
        case yaml.MarkedYAMLError() if error.problem_mark is not None:
            line = where.line + error.problem_mark.line
            problem = f"not YAML, {error.problem}"
        case RecursionError():
            line, problem = where.line, "nested too deeply"
        case _:
            line, problem = where.line, str(error).partition("\n")[0]
    return refused(
        where, f"{problem} at line {line}", "correct the syntax; often it is the indentation"
    )


def _json_values(text: str) -> list[Any]:
    found, position = [], 0
    while position < len(text):
        value, position = _JSON.raw_decode(text, position)
        found.append(value)
        while position < len(text) and text[position] in _SPACE:
            position += 1
    return found


def _no_constant(name: str) -> None:
    msg = f"{name} is no number of JSON"
    raise ValueError(msg)


_JSON: Final = json.JSONDecoder(parse_constant=_no_constant)


class _Loader(yaml.CSafeLoader):
    """Reads scalars as kubectl does: `12:30:00` and dates are text, and so is what is binary."""


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag.rpartition(":")[2] not in ("timestamp", "value", "int", "float")
    ]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int",
    re.compile(r"[-+]?(?:0b[01_]+|0[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)$"),
    list("-+0123456789"),
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*)$"),
    list("-+0123456789."),
)


def _as_written(loader: _Loader, node: Any) -> Any:
    return loader.construct_scalar(node)


for _tag in ("timestamp", "binary", "value"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _as_written)


def _inherited(listed: Raw, item: object) -> object:
    """Return the item of, say, a PodList with what the API server writes only on the list."""
    kind = listed["kind"].removesuffix("List")
    if not kind or not isinstance(item, dict) or "kind" in item:
        return item
    return {"apiVersion": listed.get("apiVersion"), "kind": kind, **item}


def _checked(where: Where, value: Any, *, measure: bool) -> Manifest | Refused:
    if measure and _exceeds(value, OBJECT_BYTES_MAX):
        return _too_large(where)
    problem = _form_problem(value)
    if problem is not None:
        return refused(where, *problem)
    kind = KIND_BY_NAME[value["kind"]]
    try:
        reduced = reduce_object(kind, value)
    except InvalidObject as error:
        hint = _HINTS.get(error.want, "see the Kubernetes API reference for this field")
        return refused(where, f"{kind.name}: {error}", hint)
    if isinstance(reduced, Pod) and not reduced.containers:
        return refused(where, f"Pod {reduced.key} has no containers", "a pod needs at least one")
    metadata = {**value["metadata"], "namespace": reduced.namespace}
    if not kind.namespaced:
        del metadata["namespace"]
    return Manifest(kind, {**value, "metadata": metadata}, where)


def _form_problem(value: object) -> tuple[str, str] | None:
    """Say why the value is no object that is read, and what to do."""
    match value:
        case {"kind": str(name), **rest} if name:
            kind = KIND_BY_NAME.get(name)
            if kind is None:
                return f"kind {name} is not read", f"decklog reads {_KINDS}"
            version = rest.get("apiVersion") or "missing"
            if version != kind.api_version:
                return f"apiVersion of {name} is {version}", f"write {kind.api_version}"
            return None
        case dict():
            return "kind is missing", _OBJECT
        case _:
            return "it holds no object", _OBJECT


_KINDS: Final = f"{', '.join(list(KIND_BY_NAME)[:-1])} and {list(KIND_BY_NAME)[-1]}"


def _once(found: Manifest, known: dict[tuple[str, str, str], Where]) -> Manifest | Refused:
    metadata = found.raw["metadata"]
    namespace = metadata.get("namespace", "")
    key = (found.kind.name, namespace, metadata["name"])
    first = known.setdefault(key, found.where)
    if first is found.where:
        return found
    shown = f"{found.kind.name} {namespace}{'/' if namespace else ''}{metadata['name']}"
    return refused(found.where, f"{shown} was given already, by {first}", "rename or remove one")


def _too_large(where: Where) -> Refused:
    return refused(
        where,
        f"an object has more than {OBJECT_BYTES_MAX // 1024**2} MiB",
        "no API server takes one so large; is it a List without `kind: List`?",
    )


def _exceeds(value: object, size_max: int) -> bool:
    """Whether the value would print as more than so many bytes; aliases count each time."""
    left, size = [value], 0
    while left and size <= size_max:
        part = left.pop()
        size += 2
        if isinstance(part, dict):
            for key, inner in part.items():
                size += 2 + len(str(key))
                left.append(inner)
        elif isinstance(part, list):
            size += len(part)
            left.extend(part)
        elif isinstance(part, str):
            size += len(part)
    return size > size_max
