"""Which nodes have which container images, and how big these are (kube-scheduler's imageStates).

The size of an image is the one that the first node reported, until no node has it any more. The
number of nodes that have it is read when a node is copied into the snapshot, so a history of the
number is kept for each image: a row that was copied at version v sees the last number up to v.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from decklog.objects.node import Node

HISTORY_MAX: Final = 1_024
"""Changes kept for an image beyond twice its nodes; then those that no row sees are dropped."""

Int64s = npt.NDArray[np.int64]


@dataclass(slots=True)
class Image:
    size_bytes: int
    rows: dict[int, None] = field(default_factory=dict)
    versions: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    """Number of nodes from the version of the same index on."""


@dataclass(slots=True)
class ImageStates:
    version: int = 0
    """Raised by every change to any image's nodes."""
    seen: Int64s = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """By row: the version when the row was last copied into the snapshot."""
    _images: dict[str, Image] = field(default_factory=dict)

    def grow(self, capacity: int) -> None:
        grown = np.zeros(capacity, dtype=np.int64)
        grown[: len(self.seen)] = self.seen
        self.seen = grown

    def add(self, names: dict[str, int], row: int) -> None:
        """The row's node has these images."""
        if not names:
            return
        self.version += 1
        for name, size_bytes in names.items():
            image = self._images.get(name)
            if image is None:
                image = self._images[name] = Image(size_bytes)
            image.rows[row] = None
            self._record(image)

    def remove(self, names: dict[str, int], row: int) -> None:
        """The row's node no longer has these images, or is gone."""
        if not names:
            return
        self.version += 1
        for name in names:
            image = self._images[name]
            del image.rows[row]
            if image.rows:
                self._record(image)
            else:
                del self._images[name]

    def copy(self, row: int) -> bool:
        """The row is copied into the snapshot; say whether it may see other numbers now."""
        if self.seen[row] == self.version:
            return False
        self.seen[row] = self.version
        return True

    def states(self, name: str, row_count: int) -> tuple[Int64s, Int64s] | None:
        """Return (size, number of nodes) of the image by row, 0 where the row lacks it."""
        image = self._images.get(name)
        if image is None:
            return None
        rows = np.fromiter(image.rows, dtype=np.intp, count=len(image.rows))
        index = np.searchsorted(image.versions, self.seen[rows], side="right") - 1
        sizes, counts = np.zeros(row_count, np.int64), np.zeros(row_count, np.int64)
        sizes[rows] = image.size_bytes
        counts[rows] = np.asarray(image.counts, dtype=np.int64)[np.maximum(index, 0)]
        return sizes, counts

    def _record(self, image: Image) -> None:
        image.versions.append(self.version)
        image.counts.append(len(image.rows))
        if len(image.versions) > HISTORY_MAX + 2 * len(image.rows):
            self._drop_unseen(image)

    def _drop_unseen(self, image: Image) -> None:
        used = {bisect_right(image.versions, int(self.seen[row])) - 1 for row in image.rows}
        keep = sorted({max(index, 0) for index in used} | {len(image.versions) - 1})
        image.versions = [image.versions[index] for index in keep]
        image.counts = [image.counts[index] for index in keep]


def image_sizes(node: Node) -> dict[str, int]:
    """Return every name of the node's images with its size; the first image of a name counts."""
    sizes: dict[str, int] = {}
    for image in node.images:
        for name in image.names:
            sizes.setdefault(name, image.size_bytes)
    return sizes
