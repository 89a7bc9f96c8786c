"""Quantities, selectors and what pods ask for: the same answers as kube-scheduler's own code.

The files in the repository are samples of the recorded cases; `--golden DIR` runs all of them.
"""

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from pathlib import Path
from typing import Any, Final

import pytest

from decklog.objects.kinds import KIND_BY_NAME
from decklog.objects.matching import (
    InvalidSelector,
    compile_label_selector,
    compile_node_selector,
    count_untolerated_preferences,
    first_untolerated,
    preferred_score,
    preferred_terms,
    required_node_affinity,
    tolerates,
)
from decklog.objects.node import Node
from decklog.objects.pod import Pod
from decklog.objects.quantity import INT64_MAX, InvalidQuantity, amount, parse
from decklog.objects.reduce import reduce_object
from decklog.objects.requests import (
    Amounts,
    HostPort,
    accounted,
    host_port,
    host_ports,
    incoming,
    is_scalar_resource,
    limits,
    non_zero,
    ports_conflict,
)
from decklog.objects.selector_shapes import (
    LABEL_SELECTOR,
    NODE_SELECTOR,
    PREFERRED_TERM,
    TAINT,
    TOLERATION,
)
from decklog.objects.selectors import Taint
from tests.parity.node_account import NodeAccount

Raw = Mapping[str, Any]
Differences = Iterator[tuple[object, object]]
"""(got, want)"""
SHOWN_MAX: Final = 20
EXACTLY: Final = Context(prec=2_000, Emax=10**9, Emin=-(10**9))


def quantity_parsed(case: Raw) -> Differences:
    try:
        quantity = parse(case["s"])
    except InvalidQuantity as error:
        yield error.reason, case.get("error")
        return
    yield True, case["ok"]
    exact = Decimal(quantity.mantissa).scaleb(quantity.exponent, EXACTLY)
    yield exact, Decimal(case["dec"])
    yield quantity.format, case["format"]
    yield (quantity > parse("0")) - (quantity < parse("0")), case["sign"]
    yield quantity == parse("0"), case["isZero"]
    if case["valueExact"]:
        yield quantity.value(), case["value"]
        yield quantity.text, case["string"]
        yield amount("memory", case["s"]), case["value"]
    if case["milliValueExact"]:
        yield quantity.milli_value(), case["milliValue"]
        yield amount("cpu", case["s"]), case["milliValue"]


def quantities_compared(case: Raw) -> Differences:
    one, other = parse(case["a"]), parse(case["b"])
    yield one.compare(other), case["cmp"]
    yield one == other, case["equal"]
    for got, want in ((one + other, case["sum"]), (one - other, case["difference"])):
        # Beyond int64 upstream's integers mean nothing, and often so below 0.
        if abs(got.value()) < INT64_MAX:
            yield got.text, want["string"]
        if parse("0") <= got and got.value() < INT64_MAX:
            yield got.value(), want["value"]
        if parse("0") <= got and got.milli_value() < INT64_MAX:
            yield got.milli_value(), want["milliValue"]


def label_selector_compiled(case: Raw) -> Differences:
    raw = case.get("selector")
    try:
        selector = compile_label_selector(None if raw is None else LABEL_SELECTOR.read(raw))
    except InvalidSelector as error:
        yield str(error), case["error"]
        return
    yield None, case["error"]
    yield selector.text, case["text"]
    yield selector.everything, case["everything"]
    for one in case["matches"]:
        yield selector.matches(one["labels"]), one["match"]


def node_selector_matched(case: Raw) -> Differences:
    matcher = compile_node_selector(
        NODE_SELECTOR.read({"nodeSelectorTerms": case["nodeSelectorTerms"]})
    )
    yield matcher.error or None, case["error"]
    required = required_node_affinity(_pod({"metadata": {"name": "p"}, "spec": case["pod"]}))
    for index, node in enumerate(case["nodes"]):
        labels, name = node["labels"], node["name"]
        if case["error"] is None:
            yield matcher.matches(labels, name), case["matches"][index]
        for judge, want in ((matcher.judge, case["lazy"]), (required.judge, case["required"])):
            yield judge(labels, name), (want[index]["match"], want[index]["error"] or "")


def preferred_terms_scored(case: Raw) -> Differences:
    try:
        terms = preferred_terms([PREFERRED_TERM.read(raw) for raw in case["terms"]])
    except InvalidSelector as error:
        yield str(error), case["error"]
        return
    yield None, case["error"]
    scores = [preferred_score(terms, node["labels"], node["name"]) for node in case["nodes"]]
    yield scores, case["scores"]


def taint_tolerated(case: Raw) -> Differences:
    toleration, taint = TOLERATION.read(case["toleration"]), TAINT.read(case["taint"])
    yield tolerates(toleration, taint), case["tolerates"]
    yield tolerates(toleration, taint, comparison=True), case["toleratesWithComparison"]


def taints_untolerated(case: Raw) -> Differences:
    taints = [TAINT.read(raw) for raw in case["taints"] or ()]
    tolerations = [TOLERATION.read(raw) for raw in case["tolerations"] or ()]
    yield first_untolerated(taints, tolerations), _taint(case["default"])
    yield (
        first_untolerated(taints, tolerations, comparison=True),
        _taint(case["withComparison"]),
    )
    yield count_untolerated_preferences(taints, tolerations), case["preferCount"]


def _taint(raw: Raw | None) -> Taint | None:
    return None if raw is None else TAINT.read(raw)


def pod_counted(case: Raw) -> Differences:
    pod = _pod(case["pod"])
    for count, key in ((accounted, "accounted"), (incoming, "incoming"), (limits, "limits")):
        yield count(pod), {name: amount(name, text) for name, text in case[key].items()}
    yield _resource(accounted(pod)), case["resource"]
    # The Fit filter has no use for "pods" as a resource that is asked for.
    yield _resource(incoming(pod)) | {"allowedPodNumber": 0}, case["incomingResource"]
    yield non_zero(pod), (case["nonZero"]["milliCPU"], case["nonZero"]["memory"])
    yield sorted(host_ports(pod)), sorted(_port(text) for text in case["hostPorts"])


def node_accounted(case: Raw) -> Differences:
    node = reduce_object(KIND_BY_NAME["Node"], case["node"])
    assert isinstance(node, Node)
    allocatable = {name: amount(name, text) for name, text in node.allocatable.items()}
    yield _resource(allocatable), case["allocatable"]
    account = NodeAccount()
    for step in case["steps"]:
        change = account.add if step["op"] == "add" else account.remove
        yield change(_pod(step["pod"])), step.get("error") is None
        got, want = account.state(), step["after"]
        yield _resource(account.requested) | {"allowedPodNumber": 0}, want["requested"]
        for key, value in got.items():
            yield (key, value), (key, want[key])


def ports_used(case: Raw) -> Differences:
    used: set[HostPort] = set()
    for op, ip, protocol, port in case["ops"]:
        if port > 0:
            change = used.add if op == "add" else used.discard
            change(host_port(ip, protocol, port))
    yield sorted("/".join(map(str, one)) for one in used), sorted(case["used"])
    for ip, protocol, port, want in case["conflicts"]:
        yield ports_conflict(host_port(ip, protocol, port), used), want


def _pod(raw: Raw) -> Pod:
    pod = reduce_object(KIND_BY_NAME["Pod"], raw)
    assert isinstance(pod, Pod)
    return pod


def _port(text: str) -> tuple[str, str, int]:
    ip, protocol, port = text.rsplit("/", 2)
    return host_port(ip, protocol, int(port))


def _resource(amounts: Amounts) -> dict[str, object]:
    return {
        "milliCPU": amounts.get("cpu", 0),
        "memory": amounts.get("memory", 0),
        "ephemeralStorage": amounts.get("ephemeral-storage", 0),
        "allowedPodNumber": amounts.get("pods", 0),
        "scalars": {name: value for name, value in amounts.items() if is_scalar_resource(name)},
    }


@dataclass(frozen=True, slots=True)
class Check:
    set_name: str
    kind: str
    """Of case."""
    ask: Callable[[Raw], Differences]
    cases_min: int

    def __str__(self) -> str:
        return f"{self.set_name} {self.kind}"


CHECKS: Final = (
    Check("quantities", "parse", quantity_parsed, 2_000),
    Check("quantities", "pair", quantities_compared, 800),
    Check("selectors", "labelSelector", label_selector_compiled, 500),
    Check("selectors", "nodeSelector", node_selector_matched, 300),
    Check("selectors", "preferred", preferred_terms_scored, 150),
    Check("selectors", "toleratesTaint", taint_tolerated, 250),
    Check("selectors", "untolerated", taints_untolerated, 250),
    Check("pod_requests", "pod", pod_counted, 450),
    Check("pod_requests", "node", node_accounted, 60),
    Check("pod_requests", "ports", ports_used, 120),
)


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_the_answer_is_kube_schedulers(
    check: Check,
    golden_dir: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cases, wrong = 0, []
    for number, case in _cases(golden_dir / "units" / f"{check.set_name}.jsonl.gz"):
        if case["kind"] != check.kind:
            continue
        cases += 1
        found = [f"got {got!r}, want {want!r}" for got, want in check.ask(case) if got != want]
        if found:
            wrong.append(f"{case.get('id', f'line {number}')}: {'; '.join(found)}")
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        with capsys.disabled():
            reporter.write_line(f" {check}: {cases - len(wrong)} of {cases}")
    assert cases >= check.cases_min
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:SHOWN_MAX])


def test_a_wrong_answer_is_found() -> None:
    case = {"s": "1500m", "ok": True, "dec": "1.5", "format": "DecimalSI", "sign": 1}
    case |= {"isZero": False, "valueExact": True, "value": 1, "string": "1500m"}
    differing = [
        (got, want)
        for got, want in quantity_parsed(case | {"milliValueExact": False})
        if got != want
    ]
    assert differing == [(2, 1), (2, 1)]


def _cases(path: Path) -> Iterator[tuple[int, Raw]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            yield number, json.loads(line)
