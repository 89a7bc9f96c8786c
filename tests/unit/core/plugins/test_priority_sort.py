import pytest

from decklog.core.plugins.priority_sort import PrioritySort
from decklog.core.queued_pod import QueuedPod
from tests.builders import make_pod


def waiting(priority: int, since_ms: int) -> QueuedPod:
    return QueuedPod(make_pod(priority=priority), since_ms)


@pytest.mark.parametrize(
    ("one", "other", "want"),
    [
        pytest.param(waiting(2, 9), waiting(1, 0), True, id="higher priority first"),
        pytest.param(waiting(1, 0), waiting(2, 9), False, id="lower priority later"),
        pytest.param(waiting(1, 0), waiting(1, 1), True, id="of equals the older one"),
        pytest.param(waiting(1, 1), waiting(1, 1), False, id="equal in both"),
    ],
)
def test_less(one: QueuedPod, other: QueuedPod, *, want: bool) -> None:
    assert PrioritySort().less(one, other) is want
