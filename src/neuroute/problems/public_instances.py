"""The public benchmarks' instances by name: which there are, and which come with the package."""

import csv
from functools import cache
from pathlib import Path

LISTS = Path(__file__).resolve().parents[1] / "datasets"
PACKAGED = LISTS / "instances"  # a folder for each benchmark; its README says where they are from


def list_file(benchmark: str) -> Path:
    """Return the file that lists a benchmark's instances."""
    return LISTS / f"{benchmark}.csv"


@cache
def instance_names(benchmark: str) -> tuple[str, ...]:
    """Return the names of a benchmark's instances."""
    with list_file(benchmark).open(newline="") as file:
        return tuple(row["name"] for row in csv.DictReader(file))


@cache
def packaged_files(benchmark: str) -> dict[str, Path]:
    """Return the files of the instances that come with the package, by name."""
    return {path.stem: path for path in sorted((PACKAGED / benchmark).glob("*"))}
