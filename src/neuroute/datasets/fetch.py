"""Download a benchmark from its home, file by file; nothing is kept that is not as it should be.

CVRPLIB has Solomon's files too.
"""

import gzip
import http.client
import io
import logging
import threading
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from neuroute.core.errors import NeurouteError
from neuroute.core.files import read_json, write_text, write_whole
from neuroute.core.progress import Progress
from neuroute.datasets.benchmarks import (
    Library,
    instance_file,
    library,
    packaged_files,
    published_instances,
    survey,
    verify,
    write_manifest,
)

log = logging.getLogger(__name__)
TIMEOUT = 10.0  # seconds without an answer
PATIENCE = 3.0  # seconds that a server has to show that there is a network
GONE = (404, 410)  # the server has no such file; whatever else it says, it cannot be used now
LARGEST = 64 * 2**20  # bytes; far above any file of the library, below what would hurt


@dataclass(frozen=True)
class Fetched:
    """What is still missing, name -> why, and whether that is for want of a network."""

    missing: dict[str, str]
    offline: bool = False


def fetch(benchmark: str, folder: Path, source: str | None = None) -> Fetched:
    """Get what `folder` lacks of a benchmark: what comes with the package from there, the rest from the library's home.

    Files that are there and intact stay; others are replaced, each whole.  Being offline is not an error.
    `source` stands in for the home.  Raises NeurouteError for an unknown benchmark.
    """
    about = library(benchmark)
    source = source or about.home
    missing, packaged = list(survey(folder, benchmark)), packaged_files(benchmark)
    failed: dict[str, str] = {}
    offline = ""
    with Progress(len(missing), about.title) as progress:
        for name in missing:
            url = f"{source}/{about.path(published_instances(benchmark)[name])}"
            try:
                if name in packaged:
                    data = packaged[name].read_bytes()
                elif offline:  # one that does not answer is not asked for the others
                    raise NeurouteError(offline)
                else:
                    data = _download(url)
                    data = _unzip(data) if url.endswith(".gz") else data
                _keep(about, folder, name, data)
            except _NoConnection as error:
                failed[name] = offline = str(error)
            except NeurouteError as error:
                failed[name] = str(error)
            progress.add(1)
    if failed:
        log.warning("%d %s files are missing (%s)", len(failed), about.title, next(iter(failed.values())))
    return Fetched(failed, bool(offline))


def provide(benchmark: str, manifest: Path, folder: Path, own_copy: Path | None) -> None:
    """Write the manifest of the user's own copy (`benchmarks_dir`), or of `folder` after fetching into it.

    A partial copy is used as far as it goes, with a warning for each file that is missing or altered.  Raises
    NeurouteError if it is no folder.
    """
    title, all_of_it = library(benchmark).title, published_instances(benchmark)
    if own_copy is None:
        here = fetch(benchmark, folder)
    else:
        if not own_copy.is_dir():
            raise NeurouteError(f"{own_copy}: no such folder; correct `benchmarks_dir` in config.yaml")
        folder = own_copy
        here = Fetched(survey(folder, benchmark))
        if len(here.missing) == len(all_of_it):
            log.warning("%s: no instance of %s as published; using the packaged instances only", folder, title)
        for why in here.missing.values() if len(here.missing) < len(all_of_it) else ():
            log.warning("%s", why)
    write_manifest(manifest, folder, here.missing, benchmark)
    _mark(manifest, here)
    log.info("%s: %d of %d instances in %s", title, len(all_of_it) - len(here.missing), len(all_of_it), folder)


def fetch_again(manifests: Mapping[str, Path]) -> int:
    """Fetch what was missing for want of a network, where there is one now; returns how many instances came.

    manifests: of benchmarks; one is written again only if some of its instances came.  All servers together have
    `PATIENCE` seconds to show that they are there.
    """
    offline = {benchmark: _offline(path) for benchmark, path in manifests.items() if _offline(path).exists()}
    before = {
        benchmark: read_json(
            manifests[benchmark], f"delete {mark}, and `neuroute fetch {benchmark}`", "folder", "missing"
        )
        for benchmark, mark in offline.items()
    }
    came = 0
    for benchmark in _within_reach({benchmark: next(iter(about["missing"])) for benchmark, about in before.items()}):
        folder = Path(before[benchmark]["folder"])
        here = fetch(benchmark, folder)
        if more := len(before[benchmark]["missing"]) - len(here.missing):
            write_manifest(manifests[benchmark], folder, here.missing, benchmark)
        _mark(manifests[benchmark], here)
        came += more
    return came


def _offline(manifest: Path) -> Path:
    """Return the file beside a manifest that says that a network might help; no job depends on it."""
    return manifest.with_suffix(".offline")


def _mark(manifest: Path, here: Fetched) -> None:
    if here.offline:
        write_text(_offline(manifest), "Tried again by the next run that finds a network.\n")
    else:
        _offline(manifest).unlink(missing_ok=True)


def _within_reach(names: Mapping[str, str]) -> list[str]:
    """Return the benchmarks whose server answers at once, asked for one of its instances each.

    Looking up a server's name has no time limit of its own, hence the threads.
    """
    answers = list[str]()

    def ask(about: Library, name: str) -> None:
        with suppress(_NoConnection):
            with suppress(_NotThere):
                _download(f"{about.home}/{about.path(published_instances(about.name)[name])}", PATIENCE)
            answers.append(about.name)

    threads = [
        threading.Thread(target=ask, args=(library(benchmark), name), daemon=True) for benchmark, name in names.items()
    ]
    for thread in threads:
        thread.start()
    end = time.monotonic() + PATIENCE
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    return list(answers)


def _keep(about: Library, folder: Path, name: str, data: bytes) -> None:
    """Write an instance once its content is known to be right; where one is that was found wrong, in its place."""
    where = f"the downloaded {name}{about.suffix}"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise NeurouteError(f"{where}: not a text file; try later, or set `benchmarks_dir` to a copy") from None
    verify(about.parse(text, where, name), published_instances(about.name)[name], where, about.name)
    write_whole(instance_file(folder, name, about.name), lambda file: file.write(data))


class _NoConnection(NeurouteError):
    """The server was not reached, or serves nothing now."""


class _NotThere(NeurouteError):
    """The server has no such file."""


def _download(url: str, timeout: float = TIMEOUT) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            data: bytes = answer.read(LARGEST + 1)
    except urllib.error.HTTPError as error:
        kind = _NotThere if error.code in GONE else _NoConnection
        raise kind(f"{url}: the server says {error.code} {error.reason}") from None
    except (http.client.HTTPException, ConnectionResetError) as error:
        raise NeurouteError(f"{url}: the download broke off ({type(error).__name__})") from None
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise _NoConnection(f"{url}: no connection ({reason}); set `benchmarks_dir` to a copy, or try later") from None
    if len(data) > LARGEST:
        raise NeurouteError(f"{url}: larger than {LARGEST // 2**20} MiB, so another file; set `benchmarks_dir`")
    return data


def _unzip(data: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return file.read(LARGEST)
    except (OSError, EOFError, zlib.error) as error:
        raise NeurouteError(f"the download is not a whole gzip file ({error}); try again") from None
