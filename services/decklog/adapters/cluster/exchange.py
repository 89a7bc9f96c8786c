"""Between HTTP and the simulated API server: what a request asks for, how an answer looks."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import msgspec

from decklog.adapters.cluster.answers import Denied, bad_request, failure
from decklog.adapters.cluster.faults import BodyForm, Fault
from decklog.adapters.cluster.requests import ApiRequest, Verb
from decklog.adapters.cluster.resources import Resource
from decklog.adapters.cluster.routes import Route
from decklog.adapters.cluster.selection import Selects, number_of, requested_version, selector
from decklog.adapters.cluster.store import WatchOptions
from decklog.adapters.cluster.tables import MEDIA
from decklog.adapters.cluster.wire import HttpRequest, HttpResponse
from decklog.ports.cluster import Answer

WATCH_TIMEOUT: Final = timedelta(minutes=30)
"""When a watch that names no end is ended; kube-apiserver takes 30 to 60 minutes."""
STRATEGIC_MERGE: Final = "application/strategic-merge-patch+json"
JSON_MERGE: Final = "application/merge-patch+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a watch is to tell, and how."""

    resource: Resource
    selects: Selects
    as_table: bool


def asked(route: Route, request: HttpRequest) -> Asked:
    return Asked(
        resource=route.resource,
        selects=_watch_selector(route, request),
        as_table=MEDIA in request.headers.get("accept", ""),
    )


def to_api_request(route: Route, request: HttpRequest) -> ApiRequest:
    merge_lists = _merges_lists(request)
    return ApiRequest(
        verb=_verb(route, request.method),
        kind=route.resource.kind,
        namespace=route.namespace,
        name=route.name,
        subresource=route.subresource,
        body=_body(request),
        merge_lists=merge_lists,
        dry_run=request.query.get("dryRun") == "All",
    )


def _verb(route: Route, method: str) -> Verb:
    verb = _VERBS.get(method)
    # An object is created in its collection, a binding in a pod.
    in_collection = verb is Verb.CREATE and not route.subresource
    if verb is None or in_collection is bool(route.name):
        msg = "the server does not allow this method on the requested resource"
        raise Denied(failure(405, "MethodNotAllowed", msg))
    return verb


_VERBS: Final = {
    "GET": Verb.GET,
    "HEAD": Verb.GET,
    "POST": Verb.CREATE,
    "PUT": Verb.UPDATE,
    "PATCH": Verb.PATCH,
    "DELETE": Verb.DELETE,
}


def _body(request: HttpRequest) -> dict[str, Any]:
    body: Any = {}
    if request.body:
        try:
            body = msgspec.json.decode(request.body)
        except msgspec.DecodeError as error:
            msg = f"cannot decode the request body: {error}"
            raise bad_request(msg) from None
    if not isinstance(body, dict):
        msg = "the request body is not an object"
        raise bad_request(msg)
    if request.method == "DELETE" and "gracePeriodSeconds" in request.query:
        body["gracePeriodSeconds"] = number_of(request.query, "gracePeriodSeconds")
    return body


def _merges_lists(request: HttpRequest) -> bool:
    if request.method != "PATCH":
        return False
    content_type = request.headers.get("content-type", "").partition(";")[0]
    if content_type not in (STRATEGIC_MERGE, JSON_MERGE):
        msg = f"the body of the request was in an unknown format: {content_type}"
        raise Denied(failure(415, "UnsupportedMediaType", msg))
    return content_type == STRATEGIC_MERGE


def encoded(answer: Answer) -> HttpResponse:
    headers = {}
    if answer.retry_after_seconds is not None:
        headers["Retry-After"] = str(int(answer.retry_after_seconds))
    return HttpResponse(code=answer.code, body=msgspec.json.encode(answer.body), headers=headers)


def faulty(fault: Fault) -> HttpResponse:
    told: Any = failure(fault.code, fault.reason, fault.message).body
    forms = {
        BodyForm.STATUS: (msgspec.json.encode(told), "application/json"),
        BodyForm.BARE_STATUS: (
            msgspec.json.encode(
                {key: value for key, value in told.items() if key not in ("kind", "apiVersion")}
            ),
            "text/plain",
        ),
        BodyForm.TEXT: (fault.message.encode(), "text/plain; charset=utf-8"),
        BodyForm.EMPTY: (b"", "text/plain"),
    }
    body, content_type = forms[fault.form]
    headers = {}
    if fault.retry_after_seconds is not None:
        headers["Retry-After"] = str(fault.retry_after_seconds)
    return HttpResponse(code=fault.code, body=body, content_type=content_type, headers=headers)


def _watch_selector(route: Route, request: HttpRequest) -> Selects:
    """Objects that stop matching would have to look deleted; so only what never changes selects."""
    query = request.query
    mutable = [
        term
        for term in query.get("fieldSelector", "").split(",")
        if term and not term.startswith(("metadata.name=", "metadata.namespace="))
    ]
    if mutable or query.get("labelSelector"):
        msg = "the simulated cluster watches by metadata.name and metadata.namespace only"
        raise bad_request(msg)
    return selector(route, query)


def watch_options(request: HttpRequest) -> WatchOptions:
    query = request.query
    version = requested_version(query)
    streaming = query.get("sendInitialEvents") == "true"
    if streaming and query.get("resourceVersionMatch") != "NotOlderThan":
        msg = "resourceVersionMatch: Forbidden: sendInitialEvents requires NotOlderThan"
        raise Denied(failure(422, "Invalid", msg))
    timeout = timedelta(seconds=number_of(query, "timeoutSeconds")) or WATCH_TIMEOUT
    return WatchOptions(
        resource_version=None if streaming or not version else version,
        bookmarks=query.get("allowWatchBookmarks") in ("1", "true"),
        initial_end_bookmark=streaming,
        timeout=timeout,
    )
