"""Do we decide as kube-scheduler v1.36 did? Scenarios that need what is not there are counted."""

from pathlib import Path
from typing import Final

from tests.parity.runner import Report, run_theme

WHOLE: Final = frozenset(
    {
        "gates-profiles",
        "images",
        "node-affinity",
        "nominated",
        "pod-affinity",
        "ports",
        "preemption",
        "preemption-pick",
        "resources",
        "sampling",
        "scoring",
        "spread",
        "taints",
        "wide",
    }
)
"""Themes that need nothing that is missing: every scenario is run."""
SHOWN_MAX: Final = 10


def test_decisions(theme_path: Path, reports: list[Report]) -> None:
    report = run_theme(theme_path)
    reports.append(report)
    assert not report.failures, "\n".join([str(report), *report.failures[:SHOWN_MAX]])
    if report.theme in WHOLE:
        assert not report.not_run_count, str(report)
