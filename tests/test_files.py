"""Outputs appear whole or not at all."""

import errno
import os
from pathlib import Path

import pytest

from neuroute.core.errors import NeurouteError
from neuroute.core.files import exclusive, read_json, write_json, write_text, write_whole


def test_a_failing_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    write_text(path, "old")

    def fail(file: object) -> None:
        file.write(b"half")  # type: ignore[attr-defined]
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        write_whole(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_disk_full_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.txt"
    write_text(path, "old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NeurouteError, match=r"x\.txt: disk full; nothing was overwritten"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["folder", "file/below", "n" * 300, "/proc/nothing/here"])
def test_a_path_that_cannot_be_written_is_one_clear_line(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("old")
    with pytest.raises(NeurouteError, match=r"cannot write .*; (give another name|check the folder's rights)") as error:
        write_text(tmp_path / name, "new")
    assert "\n" not in str(error.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]


def test_json_round_trip_and_damage(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": [1, 2.5]})
    assert read_json(tmp_path / "a.json", "make it") == {"b": [1, 2.5]}
    (tmp_path / "a.json").write_text('{"b": [1,')
    with pytest.raises(NeurouteError, match="delete it and make it"):
        read_json(tmp_path / "a.json", "make it")
    with pytest.raises(NeurouteError, match="missing; make it"):
        read_json(tmp_path / "b.json", "make it")


def test_lock_is_exclusive_and_released(tmp_path: Path) -> None:
    lock = tmp_path / "d" / "lock"
    refused = pytest.raises(NeurouteError, match="training is already running")
    with exclusive(lock, "training"), refused, exclusive(lock, "training"):
        pass
    with exclusive(lock, "training"):
        pass
