"""Public benchmark instances: which there are, what they hold, and which of them lie in a folder.

`tsplib.csv` lists TSPLIB's symmetric instances with Euclidean coordinates: nodes, edge type, the published optimum
(TSPLIB's own list of best solutions) and a digest of the content, so that a file is what it says it is.
"""

import csv
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from neuroute.datasets.sections import read_text
from neuroute.datasets.tsplib import TsplibInstance, parse_tsplib
from neuroute.errors import NeurouteError
from neuroute.files import read_json, write_json

BENCHMARKS = ("tsplib",)
TSPLIB = Path(__file__).with_name("tsplib.csv")


@dataclass(frozen=True)
class Known:
    """A published instance: `optimum` is in the library's integer distances."""

    name: str
    nodes: int
    edge_type: str
    optimum: int
    sha256: str  # of the content, not of the file


@cache
def known() -> dict[str, Known]:
    """TSPLIB's instances by name, smallest first."""
    with TSPLIB.open(newline="") as file:
        rows = [
            Known(r["name"], int(r["nodes"]), r["edge_type"], int(r["optimum"]), r["sha256"])
            for r in csv.DictReader(file)
        ]
    return {k.name: k for k in sorted(rows, key=lambda k: (k.nodes, k.name))}


def studied(max_nodes: int = 5000) -> list[Known]:
    """The instances of scaling's Table 6 below `max_nodes` nodes: EUC_2D, 70 below 5,000.

    linhp318 is lin318 with an edge that must be in the tour, hence another optimum: not counted.
    """
    return [k for k in known().values() if k.edge_type == "EUC_2D" and k.nodes < max_nodes and k.name != "linhp318"]


def content_sha256(instance: TsplibInstance) -> str:
    """Of edge type and coordinates as parsed: line endings, headers and spellings of a number do not matter."""
    coords = np.ascontiguousarray(instance.coords, dtype="<f8") + 0.0  # -0.0 is 0.0
    return hashlib.sha256(f"{instance.edge_type}\n".encode() + coords.tobytes()).hexdigest()


def verify(instance: TsplibInstance, expected: Known, where: str) -> None:
    """Raises NeurouteError when this is not the published instance."""
    if content_sha256(instance) != expected.sha256:
        n = len(instance.coords)
        raise NeurouteError(
            f"{where}: not TSPLIB's {expected.name} ({expected.nodes} nodes, {expected.edge_type}): "
            f"{n} nodes, {instance.edge_type}, other content; `neuroute fetch tsplib` gets the original"
        )


def instance_folder(folder: Path) -> Path:
    """Where the .tsp files are: `folder` itself, or its folder `tsplib`.  Raises NeurouteError when it is no folder."""
    if not folder.is_dir():
        raise NeurouteError(f"{folder}: no such folder; correct `benchmarks_dir` in config.yaml")
    return folder / "tsplib" if (folder / "tsplib").is_dir() else folder


def read_known(folder: Path, name: str) -> TsplibInstance:
    """A published instance of a folder.  Raises NeurouteError when it is missing, altered or unreadable."""
    path = folder / f"{name}.tsp"
    if not path.is_file():
        raise NeurouteError(f"{path}: no such file; `neuroute fetch tsplib` gets it")
    instance = parse_tsplib(read_text(path, "a TSPLIB .tsp file"), str(path), name)
    verify(instance, known()[name], str(path))
    return instance


def survey(folder: Path) -> dict[str, str]:
    """What of TSPLIB a folder lacks: name -> why."""
    missing = {}
    for name in known():
        try:
            read_known(folder, name)
        except NeurouteError as error:
            missing[name] = str(error)
    return missing


def write_manifest(path: Path, folder: Path, missing: dict[str, str]) -> None:
    """Say where the benchmark is and what of it is there, for the jobs that measure on it."""
    available = [name for name in known() if name not in missing]
    write_json(path, {"benchmark": "tsplib", "folder": str(folder), "available": available, "missing": missing})


def read_manifest(path: Path) -> tuple[Path, list[str]]:
    """(folder, names of the instances that are there)."""
    manifest = read_json(path, "make it with `neuroute fetch tsplib`")
    return Path(manifest["folder"]), [str(name) for name in manifest["available"] if name in known()]
