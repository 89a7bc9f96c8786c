import pytest

from decklog.core.framework.diagnosis import (
    as_format,
    event_note,
    failure_message,
    fit_error,
    go_duration,
    rejecting_plugins,
    truncate_note,
)
from decklog.core.framework.status import Code, Status, unschedulable
from decklog.events.facts import PodRef, PodUnschedulable, Rejection

REF = PodRef(uid="u", namespace="default", name="pod")
CPU, TAINT = "Insufficient cpu", "node(s) had untolerated taint(s)"


@pytest.mark.parametrize(
    ("counts", "texts", "want"),
    [
        pytest.param(
            {TAINT: 2, CPU: 10},
            {},
            f"0/12 nodes are available: 10 {CPU}, 2 {TAINT}.",
            id="parts are sorted as text",
        ),
        pytest.param({}, {}, "0/12 nodes are available:", id="no reason at all"),
        pytest.param({CPU: 0}, {}, "0/12 nodes are available:", id="a reason of no node"),
        pytest.param(
            {CPU: 2},
            {"pre_filter": "a claim is missing"},
            "0/12 nodes are available: a claim is missing.",
            id="PreFilter's message hides the nodes'",
        ),
        pytest.param(
            {CPU: 2},
            {"post_filter": "preemption: no."},
            f"0/12 nodes are available: 2 {CPU}. preemption: no.",
            id="PostFilter's message comes after a blank, without a dot",
        ),
    ],
)
def test_fit_error(counts: dict[str, int], texts: dict[str, str], want: str) -> None:
    assert fit_error(12, counts, **texts) == want


def test_a_message_is_written_from_the_decision() -> None:
    fact = PodUnschedulable(
        pod=REF,
        node_count=9,
        rejected=(
            Rejection("NodeResourcesFit", 2, (CPU, "Insufficient memory"), 3),
            Rejection("NodeResourcesFit", 3, (CPU,), 2),
            Rejection("TaintToleration", 3, (TAINT,), 1),
        ),
        absent=("node(s) didn't satisfy plugin(s) [NodeAffinity]",),
        absent_count=3,
        post_filter_message="preemption: none",
    )
    assert failure_message(fact) == (
        f"0/9 nodes are available: 1 {TAINT}, 3 Insufficient memory, "
        "3 node(s) didn't satisfy plugin(s) [NodeAffinity], "
        f"5 {CPU}. preemption: none"
    )


def test_an_error_is_told_as_it_is() -> None:
    fact = PodUnschedulable(pod=REF, reason="SchedulerError", node_count=9, error="it broke")
    assert failure_message(fact) == "it broke"


def test_only_rejections_of_named_plugins_are_blamed() -> None:
    statuses = [
        Status(Code.UNSCHEDULABLE, plugin="B"),
        Status(Code.PENDING, plugin="A"),
        Status(Code.ERROR, plugin="C"),
        unschedulable("nobody's"),
    ]
    assert rejecting_plugins(statuses) == (("A", "B"), ("A",))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("x" * 1024, "x" * 1024, id="just fits"),
        pytest.param("x" * 1025, "x" * 1020 + " ...", id="a byte too long"),
        pytest.param("é" * 600, "é" * 510 + " ...", id="counted in bytes"),
        pytest.param("x" + "é" * 600, "x" + "é" * 509 + " ...", id="half a character is dropped"),
    ],
)
def test_a_note_is_cut(text: str, want: str) -> None:
    assert truncate_note(text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("nothing special", "nothing special"),
        ("disk is 100% full", "disk is 100%!f(MISSING)ull"),
        ("50%", "50%!(NOVERB)"),
        ("50%%", "50%"),
        ("%s and %-08.3f", "%!s(MISSING) and %!f(MISSING)"),
        ("%é", "%!é(MISSING)"),
        ("%[1]d", "%!d(BADINDEX)"),
        ("%*d", "%!(BADWIDTH)%!d(MISSING)"),
        ("%.*d", "%!(BADPREC)%!d(MISSING)"),
        ("50%.", "50%!.(MISSING)"),
        ("%.5", "%!(NOVERB)"),
    ],
)
def test_a_note_is_used_as_a_format(text: str, want: str) -> None:
    assert as_format(text) == want


def test_an_event_takes_what_becomes_of_its_note() -> None:
    note = event_note("%x" * 512)
    assert len(note.encode()) <= 1024
    assert note.startswith("%!x(MISSING)%!x(MISSING)")


@pytest.mark.parametrize(
    ("duration_ms", "want"),
    [
        (0, "0s"),
        (500, "500ms"),
        (1_500, "1.5s"),
        (10_000, "10s"),
        (60_000, "1m0s"),
        (300_000, "5m0s"),
        (3_661_050, "1h1m1.05s"),
    ],
)
def test_a_duration_is_written_as_go_writes_it(duration_ms: int, want: str) -> None:
    assert go_duration(duration_ms) == want
