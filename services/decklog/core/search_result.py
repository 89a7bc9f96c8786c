"""What filtering the nodes for one pod said."""

from dataclasses import dataclass

import numpy as np

from decklog.core.columns import Rows
from decklog.core.framework.interface import Mask
from decklog.core.framework.status import Status
from decklog.core.node_table import NodeTable
from decklog.core.reasons import Reasons, ReasonTable
from decklog.events.facts import Rejection


@dataclass(slots=True)
class Found:
    """What filtering said. Arrays are by row of the table, and hold until the cache changes."""

    table: NodeTable
    reasons: ReasonTable
    reason: Reasons
    """0: the row passes all filters, was not looked at, or holds no node."""
    feasible: Mask
    feasible_count: int
    evaluated: Rows | None = None
    """Rows that were looked at, in the order of the list; None: all nodes, and nothing more."""
    nominated: int | None = None
    """Row of the nominated node if it was looked at first."""
    nominated_apart: bool = False
    """Whether the search itself did not come to that node: it is the first of those evaluated."""
    is_kept: bool = False
    """Whether `feasible` is what the class's verdicts say, and nothing less."""
    start_index: int = 0
    """Where the next cycle starts in the list of nodes."""
    failure: Status | None = None
    """The failure that a Filter plugin answered instead of a verdict."""

    @property
    def evaluated_count(self) -> int:
        """Feasible nodes and nodes with a status."""
        if self.evaluated is None:
            return self.table.node_count
        return len(self.evaluated)

    @property
    def rejected_rows(self) -> Rows:
        """Rows with a status, in the order of the list."""
        rows = self.table.order() if self.evaluated is None else self.evaluated
        rejected: Rows = rows[self.reason[rows] != 0]
        return rejected

    def rows(self) -> Rows:
        """Return the rows that the pod fits."""
        return self.feasible.nonzero()[0]

    def rejections(self) -> tuple[Rejection, ...]:
        """Group the rejected rows by plugin, code and reasons, with the first node as example."""
        rows = self.table.order() if self.evaluated is None else self.evaluated
        numbers = self.reason[rows]
        counts = np.bincount(numbers).tolist()
        statuses, names = self.reasons.statuses, self.table.names
        found = []
        for number in range(1, len(counts)):
            if counts[number]:
                status = statuses[number]
                example = names[rows[(numbers == number).argmax()]]
                found.append(
                    Rejection(
                        status.plugin,
                        int(status.code),
                        status.all_reasons,
                        counts[number],
                        (example,),
                    )
                )
        positions = self.reasons.position_of  # Numbers differ with history; places do not.
        found.sort(key=lambda group: (positions[group.plugin], group.code, group.reasons))
        return tuple(found)
