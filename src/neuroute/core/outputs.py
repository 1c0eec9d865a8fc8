"""Whether results can be written where the user wants them, checked before anything is computed."""

import logging
from pathlib import Path

from neuroute.core.arrays import read_arrays
from neuroute.core.errors import NeurouteError
from neuroute.core.files import name_aside

log = logging.getLogger(__name__)
PICTURES = (".svg", ".pdf", ".png")


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


def check_records(option: str, path: Path) -> None:
    """Raises NeurouteError if records cannot be written: `path` (.csv), and the lengths beside it (.npz).

    An .npz of that name which holds anything but lengths, such as the user's instances, is not overwritten.
    """
    twin = path.with_suffix(".npz")
    for each in (path, twin):
        check_writable(option, each)
    if twin.exists() and not _holds_lengths(twin):
        raise NeurouteError(
            f"{option} {path}: lengths would be written to {twin}, which is another file; choose another name"
        )


def _holds_lengths(path: Path) -> bool:
    """Whether all arrays of an .npz are called "<test>|<decoding>", as `write_records` calls them here."""
    try:
        return all("|" in key for key in read_arrays(path))
    except NeurouteError:
        return False
