"""Outputs that appear whole or not at all and prove themselves, locks, and folders of this user alone."""

import errno
import fcntl
import hashlib
import json
import logging
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from neuroute.core.errors import NeurouteError, Temporary

log = logging.getLogger(__name__)
PICTURES = (".svg", ".pdf", ".png")
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


def read_bytes(path: Path) -> bytes:
    """Return the content of a file.  Raises NeurouteError if there is none that can be read to its end."""
    check_regular(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise NeurouteError(f"{path}: cannot be read ({error.strerror})") from None


def sha256(path: Path) -> str:
    """Return the digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def settled_sha256(path: Path) -> str:
    """Return what `sha256` does, computed once as long as the file is not written again."""
    return _settled_sha256(path, path.stat().st_mtime_ns)


@cache
def _settled_sha256(path: Path, _changed: int) -> str:
    return sha256(path)


def check_writable(option: str, path: Path, levels: int = 1) -> None:
    """Raises NeurouteError if no file can be written at `path`, or more than so many `levels` of folders are missing.

    Leaves nothing; writing the file makes the folders.
    """
    try:
        if path.is_dir():
            raise NeurouteError(f"{option} {path}: is a folder; give the name of a file")
        missing = [folder for folder in path.parents if not folder.exists()]
        there = path.parents[len(missing)]
        if not there.is_dir():
            raise NeurouteError(f"{option} {path}: {path.parent} cannot be a folder; choose another place")
        if len(missing) > levels:
            raise NeurouteError(f"{option} {path}: there is no folder {missing[-1]}; make it, or choose another place")
        if missing:
            log.info("%s %s: makes the folder %s", option, path, path.parent)
        probe = name_aside(there / path.name)
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise NeurouteError(f"{option} {path}: cannot be written ({error.strerror}); choose another place") from None


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


BUSY = 1.5  # processes that want to run, for each core


def state(table: Path, weights_sha256: str, **made_from: Any) -> None:
    """Write beside a table and its .npz how many rows the one has, the sha256 of both and of the weights that were
    measured, further facts of what they were made from, and how busy the machine is.
    """
    digests = {f"{kind}_sha256": sha256(table.with_suffix(f".{kind}")) for kind in ("csv", "npz")}
    machine = {"cores": os.cpu_count() or 1, "load": round(os.getloadavg()[0], 2)}  # the last minute's
    weights = {"weights_sha256": weights_sha256}
    write_json(
        table.with_suffix(".json"), {"rows": _rows(table), **digests, **weights, **made_from, "machine": machine}
    )


def busy(tables: Iterable[Path]) -> str:
    """Say with which load the machine was too busy for times to count; nothing where it was not, or nothing is known.

    Raises NeurouteError if a .json beside a table cannot be read, or states no cores and load.
    """
    worst, text = BUSY, ""
    for path in (table.with_suffix(".json") for table in tables):
        if not path.exists():
            continue
        statement = read_json(path, "evaluate again")
        try:
            machine = statement.get("machine", {"cores": 1, "load": 0.0})  # earlier versions stated none
            load, cores = float(machine["load"]), int(machine["cores"])
            each_core = load / cores
        except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError):
            raise NeurouteError(f"{path}: does not state the machine's cores and load; evaluate again") from None
        if each_core > worst:
            worst, text = each_core, f"load {load:.1f} on {cores} cores"
    return text


def check_stated(path: Path, mend: str) -> None:
    """Raises NeurouteError, with `mend`, if a .csv or .npz is not what the .json beside it states, where there is one.

    Earlier versions wrote none.
    """
    beside = path.with_suffix(".json")
    if not path.exists() or not beside.exists():
        return
    kind = path.suffix[1:]
    statement = read_json(beside, mend, f"{kind}_sha256", "rows")
    if sha256(path) != statement[f"{kind}_sha256"]:
        rows = f" ({_rows(path)} rows of {statement['rows']})" if kind == "csv" else ""
        raise NeurouteError(f"{path}: was cut or edited since it was measured{rows}; {mend}")


def is_of_other_weights(table: Path, summary: Path, mend: str) -> bool:
    """Whether a table's .json states other weights than a run's summary, where both are there and state some.

    Raises NeurouteError, with `mend`, if one cannot be read.
    """
    files = (table.with_suffix(".json"), summary)
    return len({read_json(file, mend).get("weights_sha256") for file in files if file.exists()} - {None}) > 1


def _rows(table: Path) -> int:
    return max(table.read_bytes().count(b"\n") - 1, 0)


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
