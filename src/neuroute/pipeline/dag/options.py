"""Options that this Snakemake does not know, as in a profile of another one."""

import re
import sys
from argparse import ArgumentParser
from itertools import pairwise
from pathlib import Path
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
