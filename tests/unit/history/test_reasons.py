"""The closed table of reason classes."""

import pytest

from decklog.core.framework.defaults import DEFAULT_PLUGINS
from decklog.core.framework.status import Code
from decklog.history.reasons import _BY_REASON, PRECEDENCE, ReasonClass, pod_class, reason_class

UNSCHEDULABLE = Code.UNSCHEDULABLE
UNRESOLVABLE = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
REJECTING = {"preEnqueue", "preFilter", "filter"}


@pytest.mark.parametrize(
    ("plugin", "code", "reasons", "want"),
    [
        pytest.param(
            "NodeResourcesFit", UNSCHEDULABLE, ("Insufficient cpu",), "capacity", id="no room now"
        ),
        pytest.param(
            "NodeResourcesFit",
            UNRESOLVABLE,
            ("Insufficient cpu",),
            "structural",
            id="more than the node has",
        ),
        pytest.param(
            "TaintToleration",
            UNRESOLVABLE,
            ("node(s) had untolerated taint(s)",),
            "policy",
            id="tainted",
        ),
        pytest.param(
            "NodeAffinity",
            UNRESOLVABLE,
            ("node(s) didn't match Pod's node affinity/selector",),
            "structural",
            id="another label",
        ),
        pytest.param(
            "NodeAffinity",
            UNRESOLVABLE,
            ("node(s) didn't match scheduler-enforced node affinity",),
            "policy",
            id="a rule of the scheduler's",
        ),
        pytest.param(
            "VolumeBinding",
            UNRESOLVABLE,
            (
                "node(s) didn't find available persistent volumes to bind",
                "node(s) didn't match PersistentVolume's node affinity",
            ),
            "structural",
            id="of several the hardest",
        ),
        pytest.param("RackLimit", UNSCHEDULABLE, ("full",), "policy", id="a plugin of others"),
        pytest.param("RackLimit", UNRESOLVABLE, ("full",), "structural", id="unresolvable"),
        pytest.param("RackLimit", Code.ERROR, ("no answer",), "transient", id="error"),
        pytest.param("RackLimit", Code.PENDING, (), "transient", id="pending"),
        pytest.param("NodePorts", UNSCHEDULABLE, (), "capacity", id="without a reason"),
    ],
)
def test_reason_class(plugin: str, code: int, reasons: tuple[str, ...], want: str) -> None:
    assert reason_class(plugin, code, reasons) is ReasonClass(want)


def test_every_default_plugin_that_rejects_is_in_the_table() -> None:
    rejecting = {plugin.name for plugin in DEFAULT_PLUGINS if REJECTING & set(plugin.points)}
    assert rejecting <= set(_BY_REASON)


def test_every_entry_has_an_answer_for_every_reason() -> None:
    assert all(entries[-1][0] == "" for entries in _BY_REASON.values())


def test_waiting_is_the_best_hope_and_policy_the_last_reason() -> None:
    assert set(PRECEDENCE) == set(ReasonClass)
    assert pod_class([ReasonClass.POLICY, ReasonClass.STRUCTURAL]) is ReasonClass.STRUCTURAL
    assert pod_class([ReasonClass.STRUCTURAL, ReasonClass.CAPACITY]) is ReasonClass.CAPACITY
    assert pod_class([]) is None
