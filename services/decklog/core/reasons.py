"""Numbers for what a node is rejected with: plugin, code and reasons, interned per profile."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from decklog.core.framework.interface import FilterPlugin, ReasonCodes
from decklog.core.framework.status import SUCCESS, Status

Reasons = npt.NDArray[np.int32]
"""A number per row: an index into `ReasonTable.statuses`; 0 is no rejection."""


@dataclass(slots=True)
class ReasonTable:
    plugins: Sequence[FilterPlugin]
    """In filter order: of two plugins that reject a node, the first one's reason counts."""
    statuses: list[Status] = field(default_factory=lambda: [SUCCESS])
    """By number; each names its plugin."""
    codes: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros(1, dtype=np.uint8))
    positions: npt.NDArray[np.int16] = field(init=False)
    """By number: the plugin's place; a row without rejection comes after all."""
    position_of: dict[str, int] = field(init=False)
    """Plugin name → its place."""
    has_failures: bool = False
    """Whether any status is known that fails the cycle instead of rejecting the node."""
    _numbers: list[Reasons] = field(init=False)
    """By plugin: its codes' numbers."""
    _known: dict[tuple[int, Status], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.position_of = {plugin.name: place for place, plugin in enumerate(self.plugins)}
        self.positions = np.array([len(self.plugins)], dtype=np.int16)
        self._numbers = [np.zeros(1, dtype=np.int32) for _ in self.plugins]

    def numbers(self, position: int, codes: ReasonCodes) -> Reasons:
        """Return the numbers of the codes that the plugin at this place answered."""
        numbers = self._numbers[position]
        if len(numbers) < len(self.plugins[position].statuses):
            numbers = self._extend(position)
        return numbers[codes]

    def number(self, position: int, code: int) -> int:
        numbers = self._numbers[position]
        if len(numbers) <= code:
            numbers = self._extend(position)
        return int(numbers[code])

    def _extend(self, position: int) -> Reasons:
        plugin = self.plugins[position]
        numbers = self._numbers[position].tolist()
        for status in plugin.statuses[len(numbers) :]:
            numbers.append(self._intern(position, replace(status, plugin=plugin.name)))
        self._numbers[position] = np.array(numbers, dtype=np.int32)
        return self._numbers[position]

    def _intern(self, position: int, status: Status) -> int:
        if status.is_success:
            return 0
        number = self._known.get((position, status))
        if number is None:
            number = self._known[position, status] = len(self.statuses)
            self.statuses.append(status)
            self.codes = np.append(self.codes, np.uint8(status.code))
            self.positions = np.append(self.positions, np.int16(position))
            self.has_failures |= not status.is_rejected
        return number
