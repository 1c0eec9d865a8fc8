"""Outputs that appear whole or not at all, and locks that keep two processes out of one folder."""

import errno
import fcntl
import json
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from neuroute.core.errors import NeurouteError, Temporary

CLOCK_S = 30.0  # that clocks may differ by


def check_regular(path: Path) -> None:
    """Raises NeurouteError unless there is a file of bytes: pipes and devices have no end."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise NeurouteError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        raise NeurouteError(f"{path}: cannot be read ({getattr(error, 'strerror', error)})") from None
    if stat.S_ISDIR(mode):
        raise NeurouteError(f"{path}: is a folder; a file is expected")
    if not stat.S_ISREG(mode):
        raise NeurouteError(f"{path}: is a pipe or a device; copy its content into a file, and give that file")


def write_whole(path: Path, write: Callable[[BinaryIO], Any]) -> None:
    """Write aside in the same folder, flush to disk, then rename over `path`.

    Raises NeurouteError when the disk is full or the folder cannot be written; `path` is then what it was before.
    """
    temporary = name_aside(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as file:  # follows no link
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):  # a path that cannot be: what went wrong before is what counts
            temporary.unlink(missing_ok=True)
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, OSError):  # torch's writer raises an error of its own
            cause = cause.__cause__ or cause.__context__
        number, why = (cause.errno, cause.strerror) if isinstance(cause, OSError) else (None, "")
        if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise Temporary(
                f"{path}: disk full; nothing was overwritten, free some space and run the same command"
            ) from None
        if number in (errno.EACCES, errno.EROFS, errno.ENOTDIR):
            raise NeurouteError(f"{path}: cannot write here ({why}); check the folder's rights") from None
        if number in (errno.EISDIR, errno.EEXIST, errno.ENOENT, errno.ENAMETOOLONG):
            raise NeurouteError(f"{path}: cannot write this file ({why}); give another name") from None
        raise


def name_aside(path: Path) -> Path:
    """A temporary name beside `path` that nobody can guess, and so nobody can put a link there."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")


def check_folder(folder: Path) -> None:
    """Raises NeurouteError if nothing can be written there, or if its disk has another clock than this machine.

    Which file is newer than which decides what is made anew.
    """
    probe = name_aside(folder / "probe")
    before = time.time()
    try:
        write_whole(probe, lambda file: file.write(b""))
        mtime = probe.stat().st_mtime
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise NeurouteError(f"{folder}: cannot be written ({error.strerror}); give a folder") from None
    off = min(mtime - before, 0) + max(mtime - time.time(), 0)
    if abs(off) > CLOCK_S:
        raise NeurouteError(
            f"{folder}: the clock of its disk is {off:+.0f} s off this machine's, which reruns depend on; synchronize "
            "both (NTP)"
        )


def write_text(path: Path, text: str) -> None:
    write_whole(path, lambda file: file.write(text.encode(errors="backslashreplace")))


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=1, sort_keys=True) + "\n")


def read_json(path: Path, mend: str, *keys: str) -> dict[str, Any]:
    """Return a mapping with these keys.  Raises NeurouteError with `mend` when the file is missing or holds none."""
    try:
        values = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise NeurouteError(f"{path}: missing; {mend}") from None
    except ValueError as error:  # also of bytes that are no text
        raise NeurouteError(f"{path}: not valid JSON ({error}); delete it and {mend}") from None
    if not isinstance(values, dict) or not values.keys() >= set(keys):
        raise NeurouteError(f"{path}: does not state {', '.join(keys) or 'anything'}; delete it and {mend}")
    return values


def open_lock(path: Path) -> BinaryIO:
    """Open a file to lock, made if there is none.  Raises NeurouteError if it is a link, or cannot be opened."""
    try:
        return open(path, "r+b", opener=lambda name, _: os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666))
    except OSError as error:
        raise NeurouteError(
            f"{path}: is to be locked, and cannot be opened ({error.strerror}); remove it or mend its rights"
        ) from None


def lock(file: BinaryIO, waits: bool = False) -> bool:
    """Lock a file until it is closed; False if another process has it, unless this one `waits`.

    Raises NeurouteError on a disk that has no locks.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        raise NeurouteError(
            f"{file.name}: its disk has no locks ({error.strerror}); use another, or mount it with locks (Lustre: `-o "
            "flock`)"
        ) from None
    return True


@contextmanager
def exclusive(path: Path, what: str) -> Iterator[None]:
    """Hold a lock file while the block runs; raises NeurouteError at once when another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_lock(path) as file:
        if not lock(file):
            raise NeurouteError(
                f"{path.parent}: {what} is already running there in another process; wait for it or stop it"
            )
        yield
