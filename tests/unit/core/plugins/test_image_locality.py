from typing import Any

import pytest

from decklog.core.plugins.image_locality import ImageLocality, with_tag
from decklog.objects.node import ContainerImage, Node
from decklog.objects.pod import Pod, Volume
from tests.builders import make_container, make_node, make_pod
from tests.unit.core.plugins.judging import scored

MIB = 1024 * 1024


def having(name: str, **images: int) -> Node:
    """Return a node with images of so many MiB."""
    found = [ContainerImage(names=(f"{i}:1",), size_bytes=s * MIB) for i, s in images.items()]
    return make_node(name, images=tuple(found))


def running(*images: str, **fields: Any) -> Pod:
    containers = tuple(make_container(f"c{i}", image=image) for i, image in enumerate(images))
    return make_pod(containers=containers, **fields)


@pytest.mark.parametrize(
    ("nodes", "want"),
    [
        pytest.param([having("a", x=250), having("b")], [5, 0], id="one image on one of two"),
        pytest.param([having("a", x=40), having("b")], [0, 0], id="a small image"),
        pytest.param([having("a", x=40, y=300), having("b")], [7, 0], id="two images"),
        pytest.param([having("a", x=2000), having("b"), having("c")], [32, 0, 0], id="on a third"),
        pytest.param([having("a", x=2000), having("b")], [49, 0], id="a big image"),
        pytest.param([having("a", x=4000), having("b", x=4000)], [100, 100], id="more than counts"),
        pytest.param([having("a", z=500), having("b")], [0, 0], id="an image that nobody wants"),
    ],
)
def test_score(nodes: list[Node], want: list[int]) -> None:
    assert scored(ImageLocality(), running("x:1", "y:1"), nodes) == want


def test_init_containers_and_image_volumes_count_too() -> None:
    nodes = [having("a", x=500, v=500), having("b", x=500, v=500)]
    by_volume = running("other:1", volumes=(Volume(name="v", image="v:1"),))
    assert scored(ImageLocality(), by_volume, nodes) == [48, 48]
    by_init = running("x:1", init_containers=(make_container("init", image="x:1"),))
    assert scored(ImageLocality(), by_init, nodes) == [49, 49]


@pytest.mark.parametrize(
    ("image", "want"),
    [
        ("nginx", "nginx:latest"),
        ("nginx:1.27", "nginx:1.27"),
        ("localhost:5000/app", "localhost:5000/app:latest"),
        ("localhost:5000/app:2", "localhost:5000/app:2"),
        ("app@sha256:abc", "app@sha256:abc"),
    ],
)
def test_an_image_without_a_tag_is_the_latest(image: str, want: str) -> None:
    assert with_tag(image) == want


def test_a_pod_without_containers_scores_nothing() -> None:
    pod = make_pod(containers=(), volumes=(Volume(name="v", image="v:1"),))
    assert scored(ImageLocality(), pod, [having("a", v=500)]) == [0]
