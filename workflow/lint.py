"""Snakemake's lint, but for environments of rules: the package is in the one that runs Snakemake."""

import re
import subprocess
import sys

ELSEWHERE = "Specify a conda environment or container for each rule."


def main() -> None:
    """Print what Snakemake says where it finds anything else, or fails."""
    done = subprocess.run([sys.executable, "-m", "snakemake", "--lint"], capture_output=True, text=True)
    said = done.stdout + done.stderr
    lints = re.findall(r"^ {4}\* (.*):$", said, re.MULTILINE)
    if set(lints) - {ELSEWHERE} or (done.returncode and not lints):
        sys.exit(said)


if __name__ == "__main__":
    main()
