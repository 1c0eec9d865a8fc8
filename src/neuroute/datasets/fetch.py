"""Download a benchmark from its home: file by file, else the one archive; nothing is kept that is not as it should be.

Single files come from TSPLIB and CVRPLIB, which has Solomon's too; TSPLIB has an archive as well.
"""

import gzip
import http.client
import io
import logging
import tarfile
import urllib.error
import urllib.request
import zlib
from pathlib import Path

from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_whole
from neuroute.datasets.benchmarks import (
    Library,
    check_folder,
    instance_file,
    library,
    published_instances,
    survey,
    verify,
    write_manifest,
)
from neuroute.datasets.progress import Progress

log = logging.getLogger(__name__)
TIMEOUT = 20.0  # seconds without an answer
LARGEST = 64 * 2**20  # bytes; far above any file of the library, below what would hurt


def fetch(benchmark: str, folder: Path, source: str | None = None) -> dict[str, str]:
    """Get what `folder` lacks of a benchmark; returns what is still missing afterwards: name -> why.

    Files that are there and intact stay; others are replaced, each whole.  Being offline is not an error.
    `source` stands in for the library's home.  Raises NeurouteError for an unknown benchmark.
    """
    about = library(benchmark)
    source = source or about.home
    missing = list(survey(folder, benchmark))
    failed: dict[str, str] = {}
    with Progress(len(missing), about.title, show=True) as progress:
        for name in missing:
            url = f"{source}/{about.path(published_instances(benchmark)[name])}"
            try:
                data = _download(url)
                _keep(about, folder, name, _unzip(data) if url.endswith(".gz") else data)
            except _NoConnection as error:  # nor will the others get one
                failed |= dict.fromkeys(missing[missing.index(name) :], str(error))
                break
            except NeurouteError as error:
                failed[name] = str(error)
            progress.add(1)
    if failed and about.archive:
        log.warning("%d of %d files failed (%s); trying %s", len(failed), len(missing), _first(failed), about.archive)
        failed = _from_archive(about, folder, f"{source}/{about.archive}", failed)
    if failed:
        log.warning("%d %s files are missing (%s)", len(failed), about.title, _first(failed))
    return failed


def provide(benchmark: str, manifest: Path, folder: Path, own_copy: Path | None) -> None:
    """Write the manifest of the user's own copy (`benchmarks_dir`), or of `folder` after fetching into it.

    A partial copy is used as far as it goes, with a warning for each file that is missing or altered.
    """
    title, all_of_it = library(benchmark).title, published_instances(benchmark)
    if own_copy is None:
        missing = fetch(benchmark, folder)
    else:
        check_folder(own_copy)
        folder = own_copy
        missing = survey(folder, benchmark)
        if len(missing) == len(all_of_it):
            log.warning("%s: no instance of %s, or none as published; nothing is measured on them", folder, title)
        for why in missing.values() if len(missing) < len(all_of_it) else ():
            log.warning("%s", why)
    write_manifest(manifest, folder, missing, benchmark)
    log.info("%s: %d of %d instances in %s", title, len(all_of_it) - len(missing), len(all_of_it), folder)


def _from_archive(about: Library, folder: Path, url: str, missing: dict[str, str]) -> dict[str, str]:
    """Take `wanted` out of the one archive; returns what is still missing, with the reason it had before or a new one.

    Members are read in memory: nothing of the archive decides where a file is written.
    """
    failed = dict(missing)
    try:
        data = _download(url)
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive:
                name = Path(member.name).name.removesuffix(".gz").removesuffix(about.suffix)
                content = archive.extractfile(member) if name in failed and member.size <= LARGEST else None
                if content is None:
                    continue
                raw = content.read()
                try:
                    _keep(about, folder, name, _unzip(raw) if member.name.endswith(".gz") else raw)
                    del failed[name]
                except NeurouteError as error:
                    failed[name] = str(error)
    except NeurouteError as error:
        log.warning("%s", error)
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        log.warning("%s: not a readable archive (%s)", url, error)
    return failed


def _keep(about: Library, folder: Path, name: str, data: bytes) -> None:
    """Write an instance once its content is known to be right; where one is that was found wrong, in its place."""
    where = f"the downloaded {name}{about.suffix}"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise NeurouteError(f"{where}: not a text file") from None
    verify(about.parse(text, where, name), published_instances(about.name)[name], where, about.name)
    write_whole(instance_file(folder, name, about.name), lambda file: file.write(data))


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
