"""A cluster and pods of the size and mix of the openb trace, without the trace.

The openb trace (Alibaba, cluster-trace-gpu-v2023) has 1,523 nodes of some twenty shapes and
8,152 pods that ask for 98 % of the GPUs and two thirds of the CPU. The shares below are rounded
from it; names, order and sizes come from the seed. The manifests have the form that
`decklog import openb` gives the trace itself.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Raw = dict[str, Any]

NODE_COUNT: Final = 1_523
POD_COUNT: Final = 8_152
GPU: Final = "openb.io/gpu-milli"
MODEL: Final = "openb.io/gpu-model"
PRIORITY_OF_QOS: Final = {"LS": 1000, "Guaranteed": 1000, "Burstable": 500, "BE": 0}


@dataclass(frozen=True, slots=True)
class NodeShape:
    share: int
    milli_cpu: int
    memory_mib: int
    gpus: int = 0
    model: str = ""


@dataclass(frozen=True, slots=True)
class PodShape:
    share: int
    milli_cpu: int
    memory_mib: int
    gpus: int = 0
    milli_gpu: int = 0


NODE_SHAPES: Final = (
    NodeShape(550, 96_000, 393_216, 8, "G2"),
    NodeShape(385, 104_000, 524_288, 2, "T4"),
    NodeShape(130, 32_000, 262_144),
    NodeShape(130, 16_000, 122_880, 2, "P100"),
    NodeShape(85, 96_000, 524_288),
    NodeShape(65, 64_000, 262_144),
    NodeShape(40, 128_000, 786_432, 8, "G3"),
    NodeShape(30, 32_000, 131_072, 4, "V100M16"),
    NodeShape(25, 104_000, 524_288),
    NodeShape(20, 96_000, 786_432, 8, "V100M32"),
    NodeShape(20, 8_000, 32_768, 1, "V100M16"),
    NodeShape(20, 96_000, 393_216, 4, "T4"),
    NodeShape(10, 32_000, 65_536),
    NodeShape(10, 48_000, 376_832, 4, "V100M32"),
    NodeShape(3, 128_000, 1_048_576, 1, "A10"),
)
POD_SHAPES: Final = (
    PodShape(128, 3_152, 5_600, 1, 810),
    PodShape(58, 3_152, 5_600, 1, 1000),
    PodShape(105, 11_300, 49_152, 1, 1000),
    PodShape(65, 11_400, 48_128, 1, 1000),
    PodShape(95, 12_000, 30_720, 1, 1000),
    PodShape(60, 15_700, 58_368, 1, 1000),
    PodShape(60, 9_800, 41_560, 1, 1000),
    PodShape(35, 18_700, 64_512, 1, 1000),
    PodShape(92, 11_900, 47_104, 1, 470),
    PodShape(31, 11_900, 47_104, 1, 650),
    PodShape(40, 4_000, 22_888, 1, 320),
    PodShape(35, 4_000, 30_517, 1, 230),
    PodShape(38, 6_000, 12_288, 1, 460),
    PodShape(9, 8_000, 30_517, 1, 590),
    PodShape(2, 16_000, 65_536, 2, 1000),
    PodShape(2, 32_000, 131_072, 4, 1000),
    PodShape(5, 64_000, 262_144, 8, 1000),
    PodShape(48, 12_500, 57_344),
    PodShape(35, 32_000, 49_152),
    PodShape(20, 8_000, 30_517),
    PodShape(30, 15_400, 51_200),
)
MODEL_CHOICES: Final = (
    (54, ("T4",)),
    (14, ("G2",)),
    (12, ("P100",)),
    (6, ("V100M16", "V100M32")),
    (5, ("P100", "V100M16", "V100M32")),
    (4, ("G3",)),
    (5, ("A10", "G2", "P100", "T4")),
)
QOS_SHARES: Final = {"LS": 570, "BE": 417, "Burstable": 12, "Guaranteed": 1}
# A quarter of the pods are a little larger or smaller than their shape, so that classes of equal
# pods are some hundreds, as in the trace, and not twenty.
SIZE_FACTORS: Final = (100,) * 6 + (95, 104)


def openb_like(
    *,
    seed: int = 1,
    nodes: int = NODE_COUNT,
    pods: int = POD_COUNT,
    model_percent: int = 33,
    scheduler_name: str = "decklog",
) -> tuple[list[Raw], list[Raw]]:
    """Return nodes and pods; `model_percent` of the GPU pods ask for a GPU model."""
    chance = random.Random(f"{seed}/openb-like")
    shapes = _dealt(NODE_SHAPES, nodes, chance)
    made_nodes = [_node(number, shape) for number, shape in enumerate(shapes)]
    made_pods = [
        _pod(number, shape, _demands(shape, model_percent, chance), scheduler_name)
        for number, shape in enumerate(_pod_shapes(pods, chance))
    ]
    return made_nodes, made_pods


def _dealt(shapes: Sequence[NodeShape], count: int, chance: random.Random) -> list[NodeShape]:
    """Give each shape its exact share, so that every seed makes a cluster of the same capacity."""
    total = sum(shape.share for shape in shapes)
    deck = [shape for shape in shapes for _ in range(shape.share * count // total)]
    deck += chance.choices(shapes, [shape.share for shape in shapes], k=count - len(deck))
    chance.shuffle(deck)
    return deck


def _pod_shapes(count: int, chance: random.Random) -> list[PodShape]:
    shapes = chance.choices(POD_SHAPES, [shape.share for shape in POD_SHAPES], k=count)
    return [_resized(shape, chance.choice(SIZE_FACTORS)) for shape in shapes]


def _resized(shape: PodShape, percent: int) -> PodShape:
    return PodShape(
        shape.share,
        shape.milli_cpu * percent // 100,
        shape.memory_mib * percent // 100,
        shape.gpus,
        shape.milli_gpu,
    )


def _demands(shape: PodShape, model_percent: int, chance: random.Random) -> Mapping[str, Any]:
    """Draw class of service and GPU models; the same number of draws for each pod."""
    qos = chance.choices(list(QOS_SHARES), list(QOS_SHARES.values()))[0]
    models = chance.choices(MODEL_CHOICES, [share for share, _ in MODEL_CHOICES])[0][1]
    asks = chance.randrange(100) < model_percent
    return {"qos": qos, "models": models if asks and shape.gpus else ()}


def _node(number: int, shape: NodeShape) -> Raw:
    name = f"openb-node-{number:04d}"
    resources = {
        "cpu": f"{shape.milli_cpu}m",
        "memory": f"{shape.memory_mib}Mi",
        GPU: str(1000 * shape.gpus),
        "pods": "110",
    }
    labels = {"kubernetes.io/hostname": name}
    if shape.model:
        labels[MODEL] = shape.model
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _pod(number: int, shape: PodShape, demands: Mapping[str, Any], scheduler_name: str) -> Raw:
    requests = {"cpu": f"{shape.milli_cpu}m", "memory": f"{shape.memory_mib}Mi"}
    if shape.gpus:
        requests[GPU] = str(shape.gpus * shape.milli_gpu)
    spec: Raw = {
        "schedulerName": scheduler_name,
        "priority": PRIORITY_OF_QOS[demands["qos"]],
        "containers": [{"name": "main", "image": "openb", "resources": {"requests": requests}}],
    }
    if demands["models"]:
        model = {"key": MODEL, "operator": "In", "values": list(demands["models"])}
        terms = [{"matchExpressions": [model]}]
        required = {"nodeSelectorTerms": terms}
        spec["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
        }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"openb-pod-{number:04d}", "namespace": "default"},
        "spec": spec,
    }
