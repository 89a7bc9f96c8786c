"""What a list or a watch asks for in its query: some objects, a page, a resourceVersion."""

import itertools
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from decklog.adapters.cluster.answers import Denied, bad_request, failure, internal_error
from decklog.adapters.cluster.routes import Route
from decklog.adapters.cluster.simulated import list_item
from decklog.adapters.cluster.store import Store

Raw = dict[str, Any]
Selects = Callable[[Mapping[str, Any]], bool]

PAGED_LISTS_MAX: Final = 16
"""Lists that are being read in pages; an older one gets 410, as after a compaction."""
POD_FIELDS: Final = (
    "spec.nodeName",
    "spec.schedulerName",
    "spec.restartPolicy",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
)


@dataclass(frozen=True, slots=True)
class _Page:
    version: int
    objects: list[Raw]


class Pages:
    """The rest of lists of which a page was given: it stays as the first page was."""

    def __init__(self) -> None:
        self._rest: OrderedDict[str, _Page] = OrderedDict()
        self._numbers = itertools.count(1)

    def keep(self, page: _Page) -> str:
        token = f"page-{next(self._numbers)}"
        self._rest[token] = page
        if len(self._rest) > PAGED_LISTS_MAX:
            self._rest.popitem(last=False)
        return token

    def take(self, token: str) -> _Page:
        page = self._rest.get(token)  # It may be asked for again, so it stays.
        if page is None:
            msg = "The provided continue parameter is too old to display a consistent list result."
            raise Denied(failure(410, "Expired", msg))
        return page


def list_body(store: Store, pages: Pages, route: Route, query: Mapping[str, str]) -> Raw:
    """Return the list that is asked for; call with the store's lock held.

    Raises:
        Denied: with the server's answer.
    """
    if query.get("continue"):
        page = pages.take(query["continue"])
    else:
        _check_version(store, query)
        selects = selector(route, query)
        found = [obj for obj in store.objects(route.resource.kind) if selects(obj)]
        page = _Page(store.version, found)
    limit = number_of(query, "limit")
    metadata: Raw = {"resourceVersion": str(page.version)}
    objects = page.objects
    if limit and len(objects) > limit:
        metadata["continue"] = pages.keep(_Page(page.version, objects[limit:]))
        metadata["remainingItemCount"] = len(objects) - limit
        objects = objects[:limit]
    return {
        "kind": f"{route.resource.kind}List",
        "apiVersion": route.resource.api_version,
        "metadata": metadata,
        "items": [list_item(obj) for obj in objects],
    }


def selector(route: Route, query: Mapping[str, str]) -> Selects:
    """Say which objects the route and the selectors of the query mean.

    Raises:
        Denied: a field that can't be selected by.
    """
    tests: list[Selects] = []
    if route.namespace:
        tests.append(lambda obj: obj["metadata"].get("namespace") == route.namespace)
    for term in _terms(query.get("fieldSelector", "")):
        tests.append(_field_test(route, term))
    for term in _terms(query.get("labelSelector", "")):
        tests.append(_label_test(term))
    return lambda obj: all(test(obj) for test in tests)


def requested_version(query: Mapping[str, str]) -> int:
    """Return the resourceVersion asked for; 0 for none.

    Raises:
        Denied: it is no number.
    """
    text = query.get("resourceVersion") or "0"
    if not text.isdigit():
        msg = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        raise internal_error(msg)
    return int(text)


def number_of(query: Mapping[str, str], name: str) -> int:
    """Return a number of the query; 0 if it is not there.

    Raises:
        Denied: it is no number.
    """
    text = query.get(name) or "0"
    if not text.isdigit():
        msg = f'cannot decode the query: {name}: "{text}" is not a number'
        raise bad_request(msg)
    return int(text)


def too_large_version(wanted: int, current: int) -> Denied:
    details: Raw = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    msg = f"Timeout: Too large resource version: {wanted}, current: {current}"
    return Denied(failure(504, "Timeout", msg, details=details, retry_after_seconds=1))


def _check_version(store: Store, query: Mapping[str, str]) -> None:
    match = query.get("resourceVersionMatch", "")
    wanted = requested_version(query)
    if match and (not query.get("resourceVersion") or (match == "Exact" and not wanted)):
        msg = 'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden'
        raise Denied(failure(422, "Invalid", msg))
    if wanted > store.version:
        raise too_large_version(wanted, store.version)
    if match == "Exact" and wanted != store.version:
        msg = "The resourceVersion for the provided list is too old."
        raise Denied(failure(410, "Expired", msg))


def _terms(text: str) -> list[str]:
    return [term.strip() for term in text.split(",") if term.strip()]


def _field_test(route: Route, term: str) -> Selects:
    path, want, negated = _parse_term(term)
    known = ("metadata.name", "metadata.namespace")
    if path not in (known + POD_FIELDS if route.resource.kind == "Pod" else known):
        msg = f"field label not supported: {path}"
        raise bad_request(msg)
    parts = path.split(".")

    def test(obj: Mapping[str, Any]) -> bool:
        value: Any = obj
        for part in parts:
            value = value.get(part, {})
        return bool((value or "") == want) is not negated

    return test


def _label_test(term: str) -> Selects:
    if "=" not in term:
        if " " in term:
            msg = f"the simulated cluster does not read the label selector {term!r}"
            raise bad_request(msg)
        key, exists = term.removeprefix("!"), not term.startswith("!")
        return lambda obj: (key in (obj["metadata"].get("labels") or {})) is exists
    key, want, negated = _parse_term(term)
    return lambda obj: ((obj["metadata"].get("labels") or {}).get(key) == want) is not negated


def _parse_term(term: str) -> tuple[str, str, bool]:
    """Split `a=b`, `a==b` or `a!=b` into name, value and whether it is negated."""
    if "!=" in term:
        name, _, value = term.partition("!=")
        return name, value, True
    name, _, value = term.partition("=")
    return name, value.removeprefix("="), False
