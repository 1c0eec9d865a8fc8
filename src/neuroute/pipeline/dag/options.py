"""What ends Snakemake before it runs jobs, in a line: options of another one, as in its profile, and Ctrl-C."""

import re
import sys
from argparse import ArgumentParser
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import NoReturn


def refuse(parser: ArgumentParser, message: str) -> NoReturn:
    """End in a line, not in a hundred of usage: what a profile of another Snakemake holds, and where."""
    words = sys.argv[1:]
    keys = [option[2:] for option in re.findall(r"--[\w-]+", message) if option not in words]
    places = [value for option, value in pairwise(words) if option in ("--profile", "--workflow-profile")]
    files = (file for place in [*places, "profiles/default"] for file in Path(place).glob("*.yaml"))
    said = {key: file for file in files for key in keys if re.search(f"^{key}:", file.read_text(), re.MULTILINE)}
    where = "".join(f"{file}: {key}: " for key, file in [*said.items()][:1])
    needed = "pip install 'neuroute[slurm]'" if "'slurm'" in message else "snakemake --help lists what this one knows"
    parser.exit(2, f"error: {where}{message}; {needed}\n")


def say_in_one_line(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Say of a Ctrl-C that it was one; all else is Python's to show."""
    if issubclass(kind, KeyboardInterrupt):
        print("interrupted: no job was running; run the same command again", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)
