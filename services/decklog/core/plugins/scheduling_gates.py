"""Keep a pod out of the queue while it has scheduling gates."""

from dataclasses import dataclass

from decklog.core.framework.interface import Reads
from decklog.core.framework.status import SUCCESS, Status, unresolvable
from decklog.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class SchedulingGates:
    name: str = "SchedulingGates"
    reads: Reads = Reads.STATIC

    def pre_enqueue(self, pod: Pod) -> Status:
        if not pod.scheduling_gates:
            return SUCCESS
        gates = " ".join(pod.scheduling_gates)
        return unresolvable(f"waiting for scheduling gates: [{gates}]")
