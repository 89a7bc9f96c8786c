"""Patches by JSON merge and by strategic merge."""

from typing import Any

import pytest

from decklog.adapters.cluster.merge import json_merge, strategic_merge

READY = {"type": "Ready", "status": "True"}
GONE = {"type": "Ready", "$patch": "delete"}


@pytest.mark.parametrize(
    ("target", "patch", "want"),
    [
        pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, id="adds"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}, id="deep"),
        pytest.param({"a": 1, "b": 2}, {"a": None}, {"b": 2}, id="null deletes"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="lists are replaced"),
        pytest.param({"a": 1}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}, id="new object"),
    ],
)
def test_json_merge(target: Any, patch: Any, want: Any) -> None:
    assert json_merge(target, patch) == want


@pytest.mark.parametrize(
    ("target", "patch", "want"),
    [
        pytest.param(
            {"conditions": [READY]},
            {"conditions": [{"type": "Ready", "status": "False"}, {"type": "New"}]},
            {"conditions": [{"type": "Ready", "status": "False"}, {"type": "New"}]},
            id="conditions merge by type",
        ),
        pytest.param(
            {"conditions": [READY, {"type": "Old"}]},
            {"conditions": [GONE]},
            {"conditions": [{"type": "Old"}]},
            id="an element is deleted by a directive",
        ),
        pytest.param(
            {"a": {"b": 1}}, {"a": {"$patch": "replace", "c": 2}}, {"a": {"c": 2}}, id="replace"
        ),
        pytest.param({"taints": [1, 2]}, {"taints": [3]}, {"taints": [3]}, id="other lists"),
        pytest.param({"a": 1}, {"a": None, "$retainKeys": ["b"]}, {}, id="null and retained keys"),
        pytest.param(
            {"finalizers": ["a"]}, {"finalizers": ["a", "b"]}, {"finalizers": ["a", "b"]}, id="set"
        ),
    ],
)
def test_strategic_merge(target: Any, patch: Any, want: Any) -> None:
    assert strategic_merge(target, patch) == want


@pytest.mark.parametrize("merge", [json_merge, strategic_merge])
def test_a_patch_without_effect_gives_the_target_itself(merge: Any) -> None:
    target = {"conditions": [READY], "a": {"b": 1}}
    assert merge(target, {"conditions": [READY], "a": {"b": 1}, "c": None}) is target


@pytest.mark.parametrize("merge", [json_merge, strategic_merge])
def test_a_patch_leaves_the_target_alone(merge: Any) -> None:
    target = {"conditions": [READY], "a": {"b": 1}}
    text = repr(target)
    merge(target, {"conditions": [{"type": "Ready", "status": "False"}], "a": {"b": None}})
    assert repr(target) == text
