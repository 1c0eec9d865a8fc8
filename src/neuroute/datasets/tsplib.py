"""TSPLIB files: reading coordinates, distances as TSPLIB defines them, and the networks' view of an instance."""

import logging
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuroute.errors import NeurouteError
from neuroute.problems.tsp import check_coordinates

log = logging.getLogger(__name__)
EDGE_TYPES = ("EUC_2D", "CEIL_2D", "ATT", "GEO")


@dataclass(frozen=True)
class TsplibInstance:
    """A symmetric TSP instance with coordinates (n, 2) float64 in the file's own units."""

    name: str
    edge_type: str
    coords: np.ndarray

    def unit_square(self) -> np.ndarray:
        """Coordinates as the papers feed them: one offset and one scale for both axes, float32."""
        low, high = self.coords.min(), self.coords.max()
        return ((self.coords - low) / (high - low)).astype(np.float32)

    def length(self, tour: np.ndarray, rounded: bool = True) -> float:
        """Length of a closed tour (n,): TSPLIB's integer distances, or (EUC_2D, CEIL_2D) unrounded ones."""
        a, b = self.coords[tour], self.coords[np.roll(tour, -1)]
        return float(distances(a, b, self.edge_type, rounded).sum())


def distances(a: np.ndarray, b: np.ndarray, edge_type: str, rounded: bool = True) -> np.ndarray:
    """Distance between the rows of a and b (k, 2) by TSPLIB's definitions (Reinelt, 1991)."""
    if edge_type == "GEO":
        # TSPLIB's own constants: degrees.minutes, pi with five decimals, an idealised sphere.
        (lat_a, lon_a), (lat_b, lon_b) = (_radians(x).T for x in (a, b))
        q1, q2, q3 = np.cos(lon_a - lon_b), np.cos(lat_a - lat_b), np.cos(lat_a + lat_b)
        arc = np.arccos(0.5 * ((1 + q1) * q2 - (1 - q1) * q3))
        return np.floor(6378.388 * arc + 1.0)
    plain = np.hypot(*(a - b).T)
    if edge_type == "ATT":
        plain = plain / math.sqrt(10.0)
        nearest = np.floor(plain + 0.5)
        return nearest + (nearest < plain) if rounded else plain
    if not rounded:
        return plain
    return np.ceil(plain) if edge_type == "CEIL_2D" else np.floor(plain + 0.5)


def _radians(x: np.ndarray) -> np.ndarray:
    degrees = np.trunc(x)
    return 3.141592 * (degrees + 5.0 * (x - degrees) / 3.0) / 180.0


def read_tsplib(path: Path) -> TsplibInstance:
    """Raises NeurouteError naming the file, the line and the mend for anything that is not a plain instance."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        raise NeurouteError(f"{path}: no such file") from None
    except OSError as error:
        raise NeurouteError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise NeurouteError(f"{path}: not a text file; a TSPLIB .tsp file is expected") from None
    header: dict[str, str] = {}
    rows: dict[int, tuple[float, float]] = {}
    in_coords = False
    for number, raw in enumerate(lines, 1):
        line = raw.strip()
        if not line or line == "EOF":
            continue
        key, colon, value = line.partition(":")
        if line.split()[0].rstrip(":").endswith("_SECTION"):
            in_coords = line.startswith("NODE_COORD_SECTION")
        elif colon and not line[0].isdigit():
            header[key.strip()] = value.strip()
        elif in_coords:
            node, point = _node(line, f"{path}, line {number}")
            if node in rows:
                raise NeurouteError(f"{path}, line {number}: node {node} appears twice; give each node one line")
            rows[node] = point
    edge_type = header.get("EDGE_WEIGHT_TYPE", "missing")
    if edge_type not in EDGE_TYPES:
        raise NeurouteError(f"{path}: EDGE_WEIGHT_TYPE {edge_type} is not read; only {', '.join(EDGE_TYPES)} are")
    if header.get("TYPE", "TSP").split()[:1] != ["TSP"]:
        raise NeurouteError(f"{path}: TYPE {header['TYPE'] or 'nothing'} is not read; only symmetric TSP files are")
    stated = header.get("DIMENSION", "")
    if not stated.isdigit() or int(stated) != len(rows):
        raise NeurouteError(
            f"{path}: DIMENSION says {stated or 'nothing'}, but {len(rows)} nodes have coordinates; "
            "is the file cut short?"
        )
    coords = np.array(list(rows.values()), dtype=np.float64).reshape(-1, 2)
    check_coordinates(coords, str(path))
    if np.abs(coords).max() > 1e12:
        raise NeurouteError(f"{path}: coordinates beyond 1e12 lose their distances in floating point; rescale them")
    _warn_of_coincident(path, list(rows), coords)
    return TsplibInstance(header.get("NAME", path.stem), edge_type, coords)


def _warn_of_coincident(path: Path, names: list[int], coords: np.ndarray) -> None:
    """TSPLIB has instances with nodes on one point, so they are solved, but not without a word."""
    _, first, counts = np.unique(coords, axis=0, return_index=True, return_counts=True)
    if (counts > 1).any():
        one = coords[first[counts > 1][0]]
        same = [names[i] for i in np.flatnonzero((coords == one).all(axis=1))[:2]]
        extra = int((counts - 1).sum())
        log.warning("%s: %d nodes lie on the point of another (first: %d and %d); kept as they are", path, extra, *same)


def _node(line: str, where: str) -> tuple[int, tuple[float, float]]:
    parts = line.split()
    try:
        node, x, y = int(parts[0]), float(parts[1]), float(parts[2])
    except (ValueError, IndexError):
        raise NeurouteError(f"{where}: expected `node x y`, got `{line[:60]}`") from None
    if len(parts) > 3:
        raise NeurouteError(f"{where}: {len(parts) - 1} coordinates; only two-dimensional instances are read")
    if not (math.isfinite(x) and math.isfinite(y)):
        raise NeurouteError(f"{where}: node {node} has a coordinate that is not a number")
    return node, (x, y)
