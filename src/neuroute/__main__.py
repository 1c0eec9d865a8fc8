"""The command `neuroute`; `python -m neuroute` where none is on the PATH, and in jobs of the workflow."""

import atexit
import gc
import os
import signal
from typing import NoReturn


def main() -> None:
    """Run the command line.  Ctrl-C is the command's to answer; before it, it ends in a line, and after it, at once."""
    hears = callable(signal.getsignal(signal.SIGINT))  # not where a shell has it ignored
    if hears:
        signal.signal(signal.SIGINT, _end)
    from neuroute.pipeline.cli import app

    atexit.register(gc.freeze)  # else Python looks once more through all that torch has loaded
    try:
        app(prog_name="neuroute")
    finally:
        if hears:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def _end(*_: object) -> NoReturn:
    os.write(2, b"interrupted: run the same command again\n")
    os._exit(130)


if __name__ == "__main__":
    main()
