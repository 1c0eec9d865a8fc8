"""Ctrl-C while Snakemake plans, which it leaves to Python; once jobs run, it ends them and says so itself."""

import sys
from types import TracebackType


def say_in_one_line(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Say of a Ctrl-C that it was one; all else is Python's to show."""
    if issubclass(kind, KeyboardInterrupt):
        print("interrupted: no job was running; run the same command again", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)
