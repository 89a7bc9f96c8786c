"""Prefer nodes that have the pod's images already.

An image counts with its size, less so the fewer nodes have it: else a node that pulled a big image
once would draw every pod that wants it.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from decklog.core.columns import NodeColumns
from decklog.core.framework.interface import SCORE_MAX, CycleState, Reads, Scores
from decklog.objects.pod import Pod

MEBIBYTE: Final = 1024 * 1024
SIZE_MIN: Final = 23 * MEBIBYTE
"""Images that together are smaller than this make no difference."""
SIZE_MAX_PER_CONTAINER: Final = 1000 * MEBIBYTE


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageLocality:
    name: str = "ImageLocality"
    reads: Reads = Reads.STATIC

    def score(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> Scores:
        total = np.zeros(len(nodes), dtype=np.int64)
        for image in pod_images(pod):
            found = nodes.image_state(with_tag(image))
            if found is not None:
                size_bytes, node_count = found
                total += (size_bytes * (node_count / nodes.node_count)).astype(np.int64)
        containers = len(pod.init_containers) + len(pod.containers)
        size_max = SIZE_MAX_PER_CONTAINER * containers
        if size_max <= SIZE_MIN:
            return np.zeros(len(nodes), dtype=np.int64)
        total = np.clip(total, SIZE_MIN, size_max)
        return SCORE_MAX * (total - SIZE_MIN) // (size_max - SIZE_MIN)


def pod_images(pod: Pod) -> list[str]:
    """Return the images that the pod needs: of its containers, and those mounted as volumes."""
    images = [container.image for container in (*pod.init_containers, *pod.containers)]
    return images + [volume.image for volume in pod.volumes if volume.image]


def with_tag(image: str) -> str:
    """Return the name as nodes report it: with the tag `latest` if it names none."""
    if image.rfind(":") <= image.rfind("/"):
        return f"{image}:latest"
    return image
