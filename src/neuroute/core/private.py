"""Folders of this user alone: what is kept between runs, and what is thrown away after one."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from neuroute.core.errors import NeurouteError
from neuroute.core.files import lock, open_lock

LOCK = ".neuroute-scratch"  # held while a process uses its scratch folder


def is_private(about: os.stat_result) -> bool:
    """Whether a file or folder is this user's, and nobody else may write into it."""
    return about.st_uid == os.geteuid() and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def private_folder(path: Path) -> Path:
    """Return a folder that only this user can write into, made if there is none.

    Raises NeurouteError if it is another user's, or a link of another's, if others may write into it, or if there can
    be none.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_mine = path.lstat().st_uid == os.geteuid() and is_private(path.stat())
    except OSError as error:
        raise NeurouteError(f"{path}: cannot be a folder ({error.strerror}); remove it or mend its rights") from None
    if not is_mine:
        raise NeurouteError(f"{path}: others may write there; remove it, or make it yours alone: chmod 700 {path}")
    return path


def cache_folder() -> Path:
    """Return the folder of what is kept for all runs of this user.  Raises NeurouteError as `private_folder`."""
    try:
        place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        raise NeurouteError("this user has no home folder; set XDG_CACHE_HOME") from None
    return private_folder(place / "neuroute")


@contextmanager
def scratch_folder(what: str = "") -> Iterator[Path]:
    """Make a temporary folder, removed when the block ends.

    What is left by a process that was killed is removed when a later process needs such a folder.
    """
    _sweep(tempfile.gettempdir())
    with tempfile.TemporaryDirectory(prefix=f"neuroute-{what}", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with open_lock(folder / "lock") as file:
            with suppress(OSError, NeurouteError):  # a disk without locks: nothing is swept there
                lock(file)
                os.replace(folder / "lock", folder / LOCK)  # seen by others only now that it is held
            yield folder


@cache
def _sweep(place: str) -> None:
    """Remove this user's scratch folders whose lock nobody holds: their process, wherever it ran, is gone."""
    for folder in Path(place).glob("neuroute-*"):
        with suppress(OSError, NeurouteError):
            if folder.lstat().st_uid == os.geteuid():
                with open(os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW), "r+b") as file:
                    if lock(file):
                        shutil.rmtree(folder, ignore_errors=True)
