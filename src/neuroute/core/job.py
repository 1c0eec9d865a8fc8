"""A job of the workflow: `python -m neuroute.core.job train scaling/bq` is `neuroute train scaling/bq`.

Where a warm process listens (`pipeline/cli/warm.py`), the job is handed to it, which saves loading all libraries;
otherwise, on a cluster's nodes say, it runs here.  Imports little, as it runs for each job.

`job --read FILES --write FILES --cache FOLDER -- train ...` says where the files are that the command reads and writes:
below the working folder, or copies of a storage's below another one.

`job --attempt N --log FILE -- train ...` is tried once where it fails by itself, and would again: its log is then kept
as a mark, which the next attempt ends by.  What was killed leaves none, nor what ends in status 75: for want of memory,
say.
"""

import json
import os
import runpy
import shutil
import socket
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from neuroute.core.errors import NeurouteError, may_pass

CONFIG_ENV = "NEUROUTE_CONFIG"  # the Snakefile hands its merged config to the jobs it starts
ROOT_ENV, CACHE_ENV = "NEUROUTE_ROOT", "NEUROUTE_CACHE"  # of one job: where its files lie, where its leftovers are kept
FOLDERS = {"work_dir": "work", "results_dir": "results"}  # keys of the config, which all files of jobs lie below
SOCKET_ENV = "NEUROUTE_WARM"  # where the warm process of this machine listens
TEMPORARY = os.EX_TEMPFAIL  # exit status of what another attempt may do
SPENT = "processor time:"  # begins the last line that a copy of the warm process says
FAILED = ".failed"  # ends the name of a mark, which begins as the log's


def hand_over(path: str, arguments: list[str]) -> int | None:
    """Let a warm process run a command with this one's output, folder and environment; its exit status.

    None when nobody listens.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(path)
        except OSError:
            return None
        request = {"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}
        data = json.dumps(request).encode()
        socket.send_fds(connection, [len(data).to_bytes(4)], [1, 2])
        connection.sendall(data)
        status = connection.recv(1)
    if not status:
        print("error: the warm process that ran this job has ended; run the same command again", file=sys.stderr)
    return status[0] if status else TEMPORARY


def run(arguments: list[str]) -> int:
    """Run a command of `neuroute`; its exit status."""
    path = os.environ.get(SOCKET_ENV)
    status = hand_over(path, arguments) if path else None
    if status is not None:
        return status
    sys.argv[1:] = arguments
    try:
        runpy.run_module("neuroute", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception as error:
        traceback.print_exc()
        return TEMPORARY if may_pass(error) else 1
    return 0


def run_once(attempt: int, log: Path, arguments: list[str]) -> int:
    """Run a command whose output goes to `log`, unless an attempt before this one failed by itself; its exit status."""
    mark = log.with_name(log.name + FAILED)
    if attempt == 1:
        mark.unlink(missing_ok=True)
    elif mark.exists():
        print(mark.read_text(errors="replace"), end="")
        return 1
    status = run(arguments)
    if status in (1, 2):
        sys.stdout.flush()
        sys.stderr.flush()
        shutil.copy(log, mark)
    return status


def root_of(files: Sequence[str], folders: Sequence[str]) -> str:
    """Where files lie whose paths Snakemake was given as `<folder>/...`: "" for the working folder.

    Of a storage that is the place of its local copies, whose path may itself have a part of a folder's name.
    Raises NeurouteError where the files have several such places.
    """
    own = [Path(folder).parts for folder in folders]
    found = []  # of each file that is not the user's own, where it may lie
    for parts in (Path(file).parts for file in files):
        starts = [i for i in range(len(parts)) if any(parts[i : i + len(folder)] == folder for folder in own)]
        found += [{parts[:start] for start in starts}] if starts else []
    if not found or any(() in places for places in found):
        return ""
    if not (common := set.intersection(*found)):
        places = ", ".join(sorted({str(Path(*max(places, key=len))) for places in found}))
        raise NeurouteError(f"a job's files are in several storages: {places}; use one")
    return str(Path(*max(common, key=len)))


def main() -> None:
    """Own options, each with the words up to the next one; after `--` the command."""
    options, arguments = {}, sys.argv[1:]
    while arguments and arguments[0].startswith("--"):
        name, *arguments = arguments
        if name == "--":
            break
        stop = next((i for i, word in enumerate(arguments) if word.startswith("--")), len(arguments))
        options[name], arguments = arguments[:stop], arguments[stop:]
    try:
        if "--write" in options:
            inputs = options.get("--read", [])
            for file in inputs:
                if not os.path.exists(file):
                    raise NeurouteError(f"{file}: is to be read, and is not there; start Snakemake again")
            config = json.loads(os.environ.get(CONFIG_ENV, "{}"))
            folders = [os.path.expanduser(config.get(key) or default) for key, default in FOLDERS.items()]
            os.environ[ROOT_ENV], os.environ[CACHE_ENV] = (
                root_of([*inputs, *options["--write"]], folders),
                "".join(options.get("--cache", [])),
            )
    except NeurouteError as error:
        sys.exit(f"error: {error}")
    if "--attempt" in options:
        sys.exit(run_once(int(options["--attempt"][0]), Path(options["--log"][0]), arguments))
    sys.exit(run(arguments))


if __name__ == "__main__":
    main()
