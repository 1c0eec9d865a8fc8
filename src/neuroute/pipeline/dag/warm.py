"""The process whose copies short jobs on this machine are (`cli/warm.py`): started and ended with a Snakemake."""

import os
import subprocess
import sys
import time
from contextlib import ExitStack

from neuroute.core.job import SOCKET_ENV
from neuroute.core.private import scratch_folder

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def start_warm_process(running: ExitStack) -> None:
    """Start it; it ends with `running`, and with this process, whose end of a pipe it holds.

    Of jobs that go to a cluster those are its copies that are made where they are sent from, tables and figures; the
    others know nothing of it, on whatever node they run.
    """
    if not hasattr(os, "pidfd_open"):
        return
    place = running.enter_context(scratch_folder())
    os.environ[SOCKET_ENV] = f"{place}/socket"
    log = running.enter_context((place / "log").open("w"))
    process = subprocess.Popen(
        [sys.executable, "-m", "neuroute", "warm", os.environ[SOCKET_ENV]],
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=log,
        start_new_session=True,
        env=os.environ | ONE_THREAD,
    )
    assert process.stdin
    running.callback(process.stdin.close)
    while not os.path.exists(os.environ[SOCKET_ENV]) and process.poll() is None:
        time.sleep(0.05)
