import pytest

from decklog.core.plugins.by_value import FEW_ROWS, counted, labelled, masked
from tests.builders import make_node, make_taint
from tests.unit.core.columns_builders import make_columns


@pytest.mark.parametrize("node_count", [3, FEW_ROWS + 1], ids=["few rows", "many rows"])
def test_each_value_is_judged_once(node_count: int) -> None:
    nodes = [
        make_node(f"n{i}", labels={"odd": str(i % 2)}, taints=(make_taint(),) * (i % 2))
        for i in range(node_count)
    ]
    columns = make_columns(nodes)
    asked: list[object] = []

    def is_odd(value: str | None) -> bool:
        asked.append(value)
        return value == "1"

    want = [i % 2 for i in range(node_count)]
    assert labelled(columns, "odd", is_odd).astype(int).tolist()[:node_count] == want
    assert len(asked) == len(set(asked)) <= 3  # Rows without a node have no label.
    taints, sets = columns.taint_set_id, columns.taint_sets
    assert counted(taints, sets, len).tolist()[:node_count] == want
    assert masked(taints, sets, bool).astype(int).tolist()[:node_count] == want
