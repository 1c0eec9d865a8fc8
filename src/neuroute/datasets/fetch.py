"""Download TSPLIB from its home: file by file, else the one archive; nothing is kept that is not what it should be."""

import gzip
import http.client
import io
import logging
import tarfile
import urllib.error
import urllib.request
import zlib
from pathlib import Path

from neuroute.datasets.benchmarks import instance_folder, known, survey, verify, write_manifest
from neuroute.datasets.progress import Progress
from neuroute.datasets.tsplib import parse_tsplib
from neuroute.errors import NeurouteError
from neuroute.files import write_whole

log = logging.getLogger(__name__)
SOURCE = "http://comopt.ifi.uni-heidelberg.de/software/TSPLIB95/tsp"
ARCHIVE = "ALL_tsp.tar.gz"
TIMEOUT = 20.0  # seconds without an answer
LARGEST = 64 * 2**20  # bytes; far above any file of the library, below what would hurt


def fetch_tsplib(folder: Path, source: str = SOURCE) -> dict[str, str]:
    """Get what `folder` lacks of TSPLIB; returns what is still missing afterwards: name -> why.

    Files that are there and intact stay; others are replaced, each whole.  Being offline is not an error.
    """
    wanted = list(survey(folder))
    failed: dict[str, str] = {}
    with Progress(len(wanted), "TSPLIB", show=True) as progress:
        for name in wanted:
            try:
                _keep(folder, name, _unzip(_download(f"{source}/{name}.tsp.gz")))
            except _NoConnection as error:  # nor will the others get one
                failed = dict.fromkeys(wanted[wanted.index(name) :], str(error))
                break
            except NeurouteError as error:
                failed[name] = str(error)
            progress.add(1)
    if failed:
        log.warning("%d of %d files failed (%s); trying %s", len(failed), len(wanted), _first(failed), ARCHIVE)
        failed = _from_archive(folder, source, failed)
    if failed:
        log.warning("%d TSPLIB files are missing (%s)", len(failed), _first(failed))
    return failed


def provide_tsplib(manifest: Path, folder: Path, own_copy: Path | None) -> None:
    """Write the manifest of the user's own copy (`benchmarks_dir`), or of `folder` after fetching into it.

    A partial copy is used as far as it goes, with a warning for each file that is missing or altered.
    """
    if own_copy is None:
        missing = fetch_tsplib(folder)
    else:
        folder = instance_folder(own_copy)
        missing = survey(folder)
        if len(missing) == len(known()):
            log.warning("%s: none of TSPLIB's instances, or none as published; nothing is measured on them", folder)
        for why in missing.values() if len(missing) < len(known()) else ():
            log.warning("%s", why)
    write_manifest(manifest, folder, missing)
    log.info("TSPLIB: %d of %d instances in %s", len(known()) - len(missing), len(known()), folder)


def _from_archive(folder: Path, source: str, wanted: dict[str, str]) -> dict[str, str]:
    """Take `wanted` out of the one archive; returns what is still missing, with the reason it had before or a new one.

    Members are read in memory: nothing of the archive decides where a file is written.
    """
    failed = dict(wanted)
    try:
        data = _download(f"{source}/{ARCHIVE}")
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive:
                name = Path(member.name).name.removesuffix(".gz").removesuffix(".tsp")
                content = archive.extractfile(member) if name in failed and member.size <= LARGEST else None
                if content is None:
                    continue
                raw = content.read()
                try:
                    _keep(folder, name, _unzip(raw) if member.name.endswith(".gz") else raw)
                    del failed[name]
                except NeurouteError as error:
                    failed[name] = str(error)
    except NeurouteError as error:
        log.warning("%s", error)
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        log.warning("%s/%s: not a readable archive (%s)", source, ARCHIVE, error)
    return failed


def _keep(folder: Path, name: str, data: bytes) -> None:
    """Write an instance once its content is known to be right."""
    where = f"the downloaded {name}.tsp"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise NeurouteError(f"{where}: not a text file") from None
    verify(parse_tsplib(text, where, name), known()[name], where)
    write_whole(folder / f"{name}.tsp", lambda file: file.write(data))


class _NoConnection(NeurouteError):
    """The server was not reached at all."""


def _download(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
            data: bytes = answer.read(LARGEST + 1)
    except urllib.error.HTTPError as error:
        raise NeurouteError(f"{url}: the server says {error.code} {error.reason}") from None
    except (http.client.HTTPException, ConnectionResetError) as error:
        raise NeurouteError(f"{url}: the download broke off ({type(error).__name__})") from None
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise _NoConnection(f"{url}: no connection ({reason}); set `benchmarks_dir` to a copy, or try later") from None
    if len(data) > LARGEST:
        raise NeurouteError(f"{url}: larger than {LARGEST // 2**20} MiB, so not the file that is meant")
    return data


def _unzip(data: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return file.read(LARGEST)
    except (OSError, EOFError, zlib.error) as error:
        raise NeurouteError(f"the download is not a whole gzip file ({error})") from None


def _first(failed: dict[str, str]) -> str:
    return next(iter(failed.values()))
