import pytest

from decklog.core.errors import BadConfiguration
from decklog.core.plugins.scoring_strategy import make_curve, make_strategy


def test_the_curve_goes_through_its_points_and_is_constant_outside() -> None:
    curve = make_curve(((20, 10), (60, 2), (80, 5)))
    assert curve[[0, 20, 40, 60, 70, 80, 100]].tolist() == [100, 100, 60, 20, 35, 50, 50]


def test_a_falling_line_is_cut_towards_zero() -> None:
    """-100/3 is -33, not -34: Go's division, where Python's goes down."""
    assert make_curve(((0, 10), (3, 0)))[1] == 67


@pytest.mark.parametrize(
    "strategy",
    [
        pytest.param({"type": "Random"}, id="unknown type"),
        pytest.param({"type": "RequestedToCapacityRatio"}, id="no shape"),
    ],
)
def test_what_is_no_strategy_is_refused(strategy: dict[str, object]) -> None:
    with pytest.raises(BadConfiguration, match="scoringStrategy"):
        make_strategy({"resources": [], **strategy})
