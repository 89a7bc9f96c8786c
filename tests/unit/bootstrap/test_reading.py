"""Which history a question is about: a folder, what the settings name, or the running demo."""

import os
from pathlib import Path

import pytest

from decklog.adapters.clock import SystemClock
from decklog.bootstrap.noted import Note, noted, read_note
from decklog.bootstrap.reading import open_source
from decklog.bootstrap.storage import embedded_storage
from decklog.core.errors import BadConfiguration
from decklog.history.source import NotFound


@pytest.fixture(autouse=True)
def _own_runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The note of somebody's demo must not answer for a test."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store that somebody has led."""
    return _store(tmp_path / "store", "harbour")


def _store(folder: Path, *streams: str) -> Path:
    clock = SystemClock()
    for stream in streams:
        with embedded_storage(folder, stream, clock, is_kept=False) as storage:
            assert storage.ledger is not None
            assert storage.ledger.take_over(stream, holder="test") is not None
    return folder


def test_the_folder_that_is_given(folder: Path) -> None:
    with open_source(folder) as source:
        assert source.stream == "harbour"
        assert source.head().generation == 1


def test_the_folder_of_the_settings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECKLOG_STORE__FOLDER", str(folder))
    with open_source() as source:
        assert source.stream == "harbour"


def test_the_folder_of_the_running_demo(folder: Path) -> None:
    with noted(Note(pid=os.getpid(), cluster="harbour", folder=folder)), open_source() as source:
        assert source.stream == "harbour"


def test_a_store_can_be_read_while_it_is_written(folder: Path) -> None:
    with (
        embedded_storage(folder, "harbour", SystemClock(), is_kept=False),
        open_source(folder) as source,
    ):
        assert source.events.bounds() == (0, -1)


def test_nothing_is_meant() -> None:
    with pytest.raises(BadConfiguration, match="which history"), open_source():
        pass


def test_a_folder_without_a_store(tmp_path: Path) -> None:
    none = tmp_path / "none"
    with pytest.raises(NotFound, match=r"there is no history in '.*none'"), open_source(none):
        pass
    assert not none.exists()


def test_a_store_that_nobody_has_led(tmp_path: Path) -> None:
    new = tmp_path / "new"
    with embedded_storage(new, "harbour", SystemClock(), is_kept=False):
        pass
    with pytest.raises(NotFound, match="nobody has led a stream there"), open_source(new):
        pass


def test_of_several_clusters_one_has_to_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _store(tmp_path / "two", "harbour", "strait")
    with pytest.raises(BadConfiguration, match="harbour, strait"), open_source(folder):
        pass
    with open_source(folder, stream="strait") as source:
        assert source.stream == "strait"
    monkeypatch.setenv("DECKLOG_CLUSTER", "harbour")
    with open_source(folder) as source:
        assert source.stream == "harbour"


def test_a_store_s_only_cluster_is_meant_whatever_it_is_called(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DECKLOG_CLUSTER", "strait")
    with open_source(folder) as source:
        assert source.stream == "harbour"


def test_a_note_is_gone_when_its_demo_is(folder: Path) -> None:
    with noted(Note(pid=os.getpid(), cluster="harbour", folder=folder)):
        assert read_note() == Note(pid=os.getpid(), cluster="harbour", folder=folder)
    assert read_note() is None


def test_the_note_of_a_demo_that_was_killed_counts_for_nothing(folder: Path) -> None:
    dead = os.spawnlp(os.P_NOWAIT, "true", "true")
    os.waitpid(dead, 0)
    with noted(Note(pid=dead, cluster="harbour", folder=folder)):
        assert read_note() is None
