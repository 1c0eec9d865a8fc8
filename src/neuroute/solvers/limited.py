"""A function called in a process of its own, which is killed when its time is over, or when the caller ends."""

import ctypes
import os
import pickle
import signal
import subprocess
import sys
from typing import Any

from neuroute.core.dotted import resolve
from neuroute.core.errors import NeurouteError

PR_SET_PDEATHSIG = 1


def call(function: str, seconds: float | None, *arguments: Any) -> Any:
    """Return what `function` ("package.module:name") returns of these arguments.

    Raises TimeoutError after so many seconds, and NeurouteError if the process dies (out of memory, say) or the
    function raises one.
    """
    command = [sys.executable, "-m", __name__, function, str(os.getpid())]
    try:
        process = subprocess.run(command, input=pickle.dumps(arguments), capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    if process.returncode:
        last = process.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no memory left?"]
        raise NeurouteError(f"{function} died with exit status {process.returncode}: {last[0]}")
    result, error = pickle.loads(process.stdout)
    if error is not None:
        raise NeurouteError(error)
    return result


def main() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(sys.argv[2]):  # it had ended before
            return
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what solvers print is no answer
    function, arguments = resolve(sys.argv[1]), pickle.load(sys.stdin.buffer)
    outcome: tuple[Any, str | None]
    try:
        outcome = function(*arguments), None
    except NeurouteError as error:
        outcome = None, str(error)
    pickle.dump(outcome, answer)
    answer.close()


if __name__ == "__main__":
    main()
