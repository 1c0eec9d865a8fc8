"""Outputs appear whole or not at all."""

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import pytest
from refusals import one_line

from neuroute.core import files
from neuroute.core.files import check_folder, check_writable, exclusive, scratch_folder, write_text, write_whole


def test_a_failing_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    write_text(path, "old")

    def fail(file: BinaryIO) -> None:
        file.write(b"half")
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        write_whole(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
@pytest.mark.parametrize("where", ["as it is written", "in a library", "as it is synchronized"])
def test_a_full_disk_a_quota_and_a_limit_are_one_line(
    where: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch's writer meets an OSError and raises a RuntimeError of its own."""
    path = tmp_path / "x.pt"
    write_text(path, "old")

    def full(_: object) -> None:
        raise OSError(number, os.strerror(number))

    def write(file: BinaryIO) -> None:
        file.write(b"half")
        if where == "as it is written":
            full(file)
        if where == "in a library":
            try:
                full(file)
            except OSError:
                raise RuntimeError("enforce fail at inline_container.cc") from None

    if where == "as it is synchronized":
        monkeypatch.setattr(os, "fsync", full)
    with one_line(r"x\.pt: disk full; nothing was overwritten, free some space"):
        write_whole(path, write)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_planted_link_is_never_written_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither under the name that one can work out, nor under one that was guessed."""
    path, precious = tmp_path / "x.txt", tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / f".x.txt.{os.getpid()}.tmp").symlink_to(precious)
    write_text(path, "new")
    assert (path.read_text(), path.is_symlink(), precious.read_text()) == ("new", False, "mine")
    monkeypatch.setattr(files, "name_aside", lambda path: path.with_name(".guessed"))
    (tmp_path / ".guessed").symlink_to(precious)
    with one_line(r"x\.txt: cannot write this file"):
        write_text(path, "newer")
    assert (path.read_text(), path.is_symlink(), precious.read_text()) == ("new", False, "mine")


def test_an_output_that_is_looked_at_first_makes_no_file_elsewhere(tmp_path: Path) -> None:
    (tmp_path / f".x.csv.{os.getpid()}.tmp").symlink_to(tmp_path / "elsewhere")
    check_writable("--out", tmp_path / "x.csv")
    check_folder(tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def test_lock_is_exclusive_and_released(tmp_path: Path) -> None:
    lock = tmp_path / "d" / "lock"
    refused = one_line("training is already running")
    with exclusive(lock, "training"), refused, exclusive(lock, "training"):
        pass
    with exclusive(lock, "training"):
        pass


def test_a_disk_without_locks_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", fail)
    with one_line(r"/lock: its disk has no locks \(Function not"), exclusive(tmp_path / "lock", "training"):
        pass
    with scratch_folder() as folder:
        assert folder.is_dir()


LEFT = """
import time
from neuroute.core.files import scratch_folder
from neuroute.core.limited import Process
process = Process()
with scratch_folder():
    print("ready", flush=True)
    time.sleep(600)
"""


def test_folders_of_killed_processes_go_with_the_next_start(tmp_path: Path) -> None:
    """And those of processes that live stay, as does what has another origin."""
    place = tmp_path / "tmp"
    kept = [place / "neuroute-results" / ".lock", place / "neuroute-gpus-0" / "GPU.0", place / "other" / "x"]
    for file in kept:
        file.parent.mkdir(parents=True)
        file.touch()
    (place / "neuroute-link").symlink_to(tmp_path)
    environment = os.environ | {"TMPDIR": str(place)}

    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen([sys.executable, "-c", LEFT], env=environment, stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "ready\n"
        return process

    before = set(place.iterdir())
    with start() as killed:
        left = set(place.iterdir()) - before
        assert len(left) == 2
        killed.kill()
    with start() as alive:
        mine = set(place.iterdir()) - before
        assert len(mine) == 2
        assert not mine & left
        with start() as another:
            assert mine < set(place.iterdir())
            another.kill()
        alive.kill()
    assert before < set(place.iterdir())
    assert all(file.exists() for file in kept)


def test_a_folder_on_a_read_only_disk_is_refused_before_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, *_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    check_folder(tmp_path / "new")
    assert not list((tmp_path / "new").iterdir())
    monkeypatch.setattr(Path, "open", refuse)
    with one_line(r"cannot write here \(Read-only file system\); check the folder's rights"):
        check_folder(tmp_path)


@pytest.mark.parametrize(("off", "said"), [(-90.0, r"-9\d"), (90.0, r"\+9\d")])
def test_a_disk_with_another_clock_is_refused_before_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, off: float, said: str
) -> None:
    now = files.time.time
    monkeypatch.setattr(files.time, "time", lambda: now() - off)
    with one_line(rf"the clock of its disk is {said} s off this machine's"):
        check_folder(tmp_path)
