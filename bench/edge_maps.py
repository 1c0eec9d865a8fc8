"""Tree search on maps of edges that were learnt, drawn from distances, or say nothing, in equal search time.

    python bench/edge_maps.py --nodes 50 --count 1000 --seconds 0.005 0.05 --out records.csv Att-GCN=FILE DIFUSCO=FILE

FILE is the model.safetensors of a trained network that makes maps.  Maps take turns on each instance of the test
stream; a search that has ended at one time goes on to the next.  CPU time of one thread; making a map is timed apart.
`docs/generate/edge_maps.py` makes the page's tables of what is kept.
"""

import argparse
import csv
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch

from neuroute.core import device as devices
from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import SPEC
from neuroute.networks.weights import load_checkpoint
from neuroute.solvers.nearest import SOLVER as NEAREST
from neuroute.solvers.registry import get
from neuroute.specs.objects import Dataset
from neuroute_systems.edge_maps.network import EdgeMapNetwork, Map
from neuroute_systems.edge_maps.tree_moves import USED
from neuroute_systems.edge_maps.tree_search import LEAST, LOOK, Search, soft_map

FIELDS = ["nodes", "instance", "map", "optimum", "nearest", "map_seconds", "seconds", "length", "actions"]
Rows = list[dict[str, object]]
MapMaker = Callable[[np.ndarray, int], Map]  # of points (n, 2) float32, and the number of the instance


def flat_map(points: np.ndarray, number: int) -> Map:
    """The candidates of softdist's map, all alike."""
    neighbours, heat = soft_map(points)
    there = heat >= LEAST
    return neighbours, there / there.sum(axis=1, keepdims=True)


def learnt_map(path: Path) -> MapMaker:
    """What a network says.  Raises NeurouteError if it makes no maps."""
    net, _ = load_checkpoint(path)
    if not isinstance(net, EdgeMapNetwork):
        raise NeurouteError(f"{path}: {type(net).__name__} makes no map of edges")
    net.eval()

    def make(points: np.ndarray, number: int) -> Map:
        with torch.inference_mode():
            encoded = [part[0].numpy() for part in net.encode(torch.from_numpy(points[None]), number)]
        return net.edges(points.astype(np.float64), *encoded, search=True)

    return make


def search_on(points: np.ndarray, edges: Map, number: int, budgets: Sequence[float]) -> list[tuple[float, int]]:
    """The best length after each budget, in CPU seconds, and the actions until then."""
    began, after = time.process_time(), list[tuple[float, int]]()
    state = Search(points, *edges, number)
    state.run(0)
    for budget in budgets:
        while time.process_time() - began < budget:
            state.run(LOOK * len(points))
        after.append((length_of(points, state.best), int(state.counts[USED])))
    return after


def length_of(points: np.ndarray, tour: np.ndarray) -> float:
    """By the coordinates alone, of a tour that visits every node once."""
    assert (np.sort(tour) == np.arange(len(points))).all()
    places = points[tour].astype(np.float64)
    return float(np.linalg.norm(places - np.roll(places, -1, axis=0), axis=1).sum())


def measure(nodes: int, count: int, budgets: Sequence[float], maps: dict[str, MapMaker]) -> Iterator[Rows]:
    """The rows of an instance, one for each map and budget; then those of the next."""
    instances = SPEC.of("tsp").instances(Dataset(split="test", n=nodes, count=count))
    concorde = get("concorde")
    for make in maps.values():  # what is compiled or loaded at first is no part of any time
        search_on(instances[0], make(instances[0], 0), 0, [0.0])
    for number, points in enumerate(instances):
        about = {"nodes": nodes, "instance": number, "optimum": length_of(points, concorde.solve(points, number))}
        about["nearest"] = length_of(points, NEAREST.solve(points, number))
        rows: Rows = []
        for name, make in maps.items():
            began = time.process_time()
            edges = make(points, number)
            spent = time.process_time() - began
            found = search_on(points.astype(np.float64), edges, number, budgets)
            for seconds, (length, actions) in zip(budgets, found, strict=True):
                each = {"map": name, "map_seconds": spent, "seconds": seconds, "length": length, "actions": actions}
                rows.append({k: round(v, 7) if isinstance(v, float) else v for k, v in (about | each).items()})
        yield rows


def main() -> None:
    """Write the rows as they come, with device, commit and date: a killed call leaves whole instances."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("maps", nargs="*", metavar="NAME=FILE")
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, nargs="+", default=[0.005, 0.05])
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    learnt = {name: learnt_map(Path(file)) for name, _, file in (each.partition("=") for each in asked.maps)}
    maps = learnt | {"softdist": lambda points, number: soft_map(points), "no map": flat_map}
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True)
    about = {"device": devices.name(torch.device("cpu")), "commit": commit.stdout.strip()}
    about["date"] = datetime.now(UTC).date().isoformat()
    with asked.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*FIELDS, *about])
        writer.writeheader()
        for rows in measure(asked.nodes, asked.count, sorted(asked.seconds), maps):
            writer.writerows(row | about for row in rows)
            file.flush()


if __name__ == "__main__":
    main()
