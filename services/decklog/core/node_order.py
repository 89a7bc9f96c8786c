"""The order in which the scheduler lists nodes: one of each zone in turn (upstream's nodeTree).

Zones stand in the order in which they were first seen, nodes in the order in which their zone got
them. A zone that lost its last node is forgotten, and comes last when it returns.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from decklog.objects.node import Node

REGION: Final = "topology.kubernetes.io/region"
ZONE: Final = "topology.kubernetes.io/zone"
REGION_BETA: Final = "failure-domain.beta.kubernetes.io/region"
ZONE_BETA: Final = "failure-domain.beta.kubernetes.io/zone"


@dataclass(slots=True)
class NodeOrder:
    _zones: dict[str, list[str]] = field(default_factory=dict)
    """Zone key → names of its nodes."""
    count: int = 0

    def add(self, node: Node) -> None:
        names = self._zones.setdefault(zone_key(node.labels), [])
        if node.name not in names:
            names.append(node.name)
            self.count += 1

    def update(self, old: Node | None, new: Node) -> None:
        """Move the node if its zone changed: to the end of the new one."""
        old_zone = zone_key(old.labels) if old is not None else ""
        if old_zone == zone_key(new.labels):
            return
        if old is not None:
            self.remove(old)
        self.add(new)

    def remove(self, node: Node) -> bool:
        """Remove the node from its zone; False if it was not there."""
        zone = zone_key(node.labels)
        names = self._zones.get(zone, [])
        if node.name not in names:
            return False
        names.remove(node.name)
        if not names:
            del self._zones[zone]
        self.count -= 1
        return True

    def names(self) -> list[str]:
        """Return all names: the first of each zone, then the second of each zone, and so on."""
        turns: list[list[str]] = []
        for names in self._zones.values():
            for turn, name in enumerate(names):
                if turn == len(turns):
                    turns.append([])
                turns[turn].append(name)
        return [name for turn in turns for name in turn]


def zone_key(labels: Mapping[str, str]) -> str:
    """Return what tells zones apart; the beta labels win over the newer ones, as upstream."""
    zone = labels.get(ZONE_BETA, labels.get(ZONE, ""))
    region = labels.get(REGION_BETA, labels.get(REGION, ""))
    if not region and not zone:
        return ""
    return f"{region}:\x00:{zone}"
