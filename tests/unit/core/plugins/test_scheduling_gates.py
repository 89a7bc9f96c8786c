from decklog.core.framework.status import SUCCESS, unresolvable
from decklog.core.plugins.scheduling_gates import SchedulingGates
from tests.builders import make_pod


def test_gates_keep_a_pod_out_in_their_order() -> None:
    pod = make_pod(scheduling_gates=("b.io/quota", "a.io/review"))
    want = unresolvable("waiting for scheduling gates: [b.io/quota a.io/review]")
    assert SchedulingGates().pre_enqueue(pod) == want
    assert SchedulingGates().pre_enqueue(make_pod()) == SUCCESS
