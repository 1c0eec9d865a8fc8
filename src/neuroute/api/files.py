"""Instances of files, in the formats of the field, checked before anything is solved.

* `.npz` with `coords` and, if known, `tour` and `length`; with `demand` and `capacity` it is CVRP (row 0 the depot),
  whose solutions are `node` (customers in visiting order) and `via_depot` (1: reached through the depot);
  `instances.arrays` says what makes it another one of the 16 VRPs; or `locs`, `depot`, `demand` as rl4co writes them;
* `.csv` with a line of names: `x,y`, with vehicles `demand` and `capacity`, of many instances their `instance`;
* `.txt` as LEHD, BQ-NCO and their kin have it, a line for each instance (`instances.lists` says which);
* `.pkl` as Kool et al. (2019) have it: a list of lists of [x, y], or arrays, or for the CVRP of (depot, customers,
  demands, capacity); or as MVMoE has the 16 VRPs; read without executing anything;
* files of TSPLIB, VRPLIB and Solomon, or a folder of them, with `.tour` and `.sol` beside them if known.

Instances are counted from 0 in messages.
"""

import logging
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.datasets.benchmarks import optimum_of
from neuroute.problems.instances.arrays import TOLERANCE
from neuroute.problems.instances.instance import Instance, Instances
from neuroute.problems.instances.lists import read_csv, read_lehd, read_npz, read_pickled
from neuroute.problems.instances.sections import NotRead, read_text
from neuroute.problems.instances.tsplib import parse, read_solution, read_tour
from neuroute.problems.tsp import FEWEST_NODES
from neuroute.problems.vrp import SWITCHES, Variant

log = logging.getLogger(__name__)
FILES = ((".tsp", ".atsp"), (".vrp",), (".txt",))  # of one instance
LIBRARIES = (".tsp", ".atsp", ".vrp", ".sop", ".hcp")  # of TSPLIB and VRPLIB; what is not solved is refused by name
ENDINGS = (".npz", ".csv", ".txt", ".pkl", ".pickle", ".tsp", ".atsp", ".vrp")
HOLDS = {"tsp": "lkh", "cvrp": "hgs", "vrp": "pyvrp"}  # a solver of distances
SIZES = (25, 50, 100, 200, 400, 600, 800, 1000)  # customers of Solomon's and of Gehring and Homberger's instances
IN_PARTS = re.compile(r"(?mi)^\s*(\w+_SECTION|TYPE\s*:|VEHICLE\s*$|CUSTOMER\s*$)")  # of a .txt that has one instance


def load(path: str | Path, index: int | None = None, ignore: Collection[str] = ()) -> Instance:
    """Read one instance.

    Args:
        path: a file of TSPLIB (.tsp, .atsp) or VRPLIB (.vrp), of coordinates or of distances, Solomon's .txt; or a file
            of many, .npz, .csv, .txt or .pkl (see `load_all`).
        index: which instance of a file of many, from 0; may be left out where there is one.
        ignore: keys and sections of the file that are left out, such as PICKUP_SECTION; `Instance.ignored` names them.

    Raises:
        NeurouteError: if the file cannot be read, or has no such instance, or nothing that is to be ignored.
    """
    path = Path(path)
    every = _in_order(path, ignore)
    if index is None and len(every) > 1:
        raise NeurouteError(
            f"{path}: holds {len(every)} instances; `neuroute evaluate --model tsp --data {path}` solves all, "
            "`neuroute.load(path, index)` reads one"
        )
    if index is not None and not (isinstance(index, int | np.integer) and 0 <= index < len(every)):
        raise NeurouteError(f"{path}: no instance {index}; give an index from 0 to {len(every) - 1}")
    return every[index or 0]


def load_all(path: str | Path, ignore: Collection[str] = ()) -> list[Instance]:
    """Read all instances of a file or folder, smallest first.

    Args:
        path: what `load` reads, or a folder of .tsp or .vrp files.  Arrays in an .npz: `coords` (count, n, 2); with
            vehicles (count, 1 + n, 2), `demand` (count, 1 + n) and `capacity` (count,); see `neuroute.api.files`.
        ignore: keys and sections that are left out of files of TSPLIB and VRPLIB.

    Raises:
        NeurouteError: if something cannot be read, with the file, the line or instance, and how to mend it.
    """
    return sorted(_in_order(Path(path), ignore), key=lambda each: each.n)


def _in_order(path: Path, ignore: Collection[str]) -> Sequence[Instance]:
    """The instances of a file, in its order; of a folder smallest first."""
    if path.is_file() and _is_of_one(path):
        return _check_ignored(path, ignore, [_one(path, ignore)])
    return read_instances(path, ignore).members


def read_instances(path: Path, ignore: Collection[str] = ()) -> Instances:
    """Return the instances, in coordinates, of a file or folder.

    Raises NeurouteError, with file and instance, if the format is unknown, coordinates are no instance, a solution is
    none, lengths are not those of the solutions, or nothing of the names to be ignored is there.
    """
    ending = path.suffix.lower()
    if path.is_dir():
        instances = _folder(path, ignore)
    elif ending not in (*ENDINGS, *LIBRARIES):
        packed = "unpack it first; " if ending in (".gz", ".bz2", ".xz", ".zip") else ""
        raise NeurouteError(
            f"{path}: {packed}instances are read from {', '.join(ENDINGS)}, or a folder of .tsp, .vrp or Solomon's "
            ".txt files"
        )
    elif ending == ".npz":
        instances = read_npz(path)
    elif ending == ".csv":
        instances = read_csv(path, read_text(path, "a .csv of coordinates"))
    elif ending in (".pkl", ".pickle"):
        instances = read_pickled(path)
    elif _is_of_one(path):
        instances = Instances(path.stem, (_in_coordinates(_one(path, ignore), path),))
    else:
        instances = read_lehd(path, read_text(path, "a text file of instances"))
    _check_ignored(path, ignore, instances.members)
    return instances


def _is_of_one(path: Path) -> bool:
    ending = path.suffix.lower()
    return ending in LIBRARIES or (ending == ".txt" and bool(IN_PARTS.search(read_text(path, "a text of instances"))))


def _check_ignored(path: Path, ignore: Collection[str], members: Sequence[Instance]) -> Sequence[Instance]:
    there = {name for each in members for name in each.ignored}
    if lacking := [name for name in ignore if name.upper() not in there]:
        raise NeurouteError(f"{path}: no {lacking[0]} that could be ignored; leave it out")
    return members


def _in_coordinates(instance: Instance, path: Path) -> Instance:
    if instance.ways is not None:
        raise NotRead(
            f"{path}: networks need coordinates, and EDGE_WEIGHT_TYPE EXPLICIT has distances; use `neuroute solve` "
            f"with --solver {HOLDS[instance.problem]}"
        )
    return instance


def _folder(path: Path, ignore: Collection[str]) -> Instances:
    """All .tsp files of a folder, else all .vrp, else all .txt; what is not read is left out with a line."""
    there = sorted(path.iterdir())
    kinds = ([file for file in there if file.suffix.lower() in endings] for endings in FILES)
    files = next((matches for matches in kinds if matches), [])
    for file in there:
        if file.suffix.lower() in LIBRARIES and file not in files:
            log.warning("%s: ignored, as the folder has .tsp files (else its .vrp files are read)", file)
    members: list[Instance] = []
    for file in files:
        try:
            members.append(_in_coordinates(_one(file, ignore), file))
        except NotRead as error:  # a damaged file is no reason to measure on fewer
            log.warning("%s; left out", error)
    if not members:
        raise NeurouteError(f"{path}: a folder without .tsp, .vrp or Solomon's .txt files that can be read")
    _check_alike(str(path), members)
    return Instances(path.name, tuple(sorted(members, key=lambda each: (each.n, each.file or each.name))))


def _one(path: Path, ignore: Collection[str]) -> Instance:
    """Return the instance of a file of one, with the best cost known, or the cost of the solution beside it.

    Coordinates that were multiplied to be written (`export`) are divided again, and their distances not rounded.
    """
    text = read_text(path, "a file of TSPLIB, VRPLIB or Solomon's")
    instance = parse(text, str(path), path.stem, ignore)
    _warn_of_coincident(instance, str(path))
    if instance.vehicles is not None and instance.vehicles < instance.n:
        what = "%s: its number of vehicles (%d) is ignored; routes are as many as they need be"
        log.warning(what, path, instance.vehicles)
    if instance.vehicles is not None and instance.n not in SIZES and " customers\n" not in text:
        what = "%s: %d customers, where published files have %s; go on if it is not cut short"
        log.warning(what, path, instance.n, ", ".join(map(str, SIZES)))
    match = re.search(r"^COMMENT : coordinates times (10*|0\.0*1|1e[+-][0-9]{2})$", text, re.MULTILINE)
    scale = float(match[1]) or None if match else None
    if scale is not None and instance.distances == "EUC_2D":
        instance = _with_solution(instance, path)
        plain = replace(
            instance, points=instance.coords / scale, distances="EXACT_2D", library="", name=path.stem, numbers=None
        )
        return plain if plain.solution is None else replace(plain, best_known=plain.length(plain.solution))
    best = optimum_of(instance, instance.library) if instance.library else None
    if best is not None:
        return replace(instance, file=path.stem, best_known=best)
    if instance.library == "solomon":
        return _with_solution(replace(instance, library=""), path)
    return _with_solution(replace(instance, file=path.stem), path)


def _warn_of_coincident(instance: Instance, where: str) -> None:
    """Warn of nodes of a TSP on one point, which TSPLIB's own instances have."""
    if instance.points is None or instance.problem != "tsp":
        return
    coords, numbers = instance.coords, instance.numbers
    _, first, counts = np.unique(coords, axis=0, return_index=True, return_counts=True)
    if (counts > 1).any():
        one = coords[first[counts > 1][0]]
        same = np.flatnonzero((coords == one).all(axis=1))[:2]
        same = same + 1 if numbers is None else numbers[same]
        what = "%s: %d nodes have the coordinates of another node (first: the file's nodes %d and %d)"
        log.warning(what, where, int((counts - 1).sum()), *same)


def _with_solution(instance: Instance, path: Path) -> Instance:
    """Return the instance with the first good solution of the files beside it, and its length.

    They may lie in a folder `solutions` next to the file's, as those of XML100 do.  A file that cannot be followed is
    left out with a line: the instance is whole without it.
    """
    endings = (".tour", ".opt.tour") if instance.problem == "tsp" else (".sol", ".opt.sol")
    places = (path.parent, path.parent.parent / "solutions")
    names = [f"{path.stem}{each}" for ending in endings for each in (ending, ending.upper())]
    candidates = (folder / name for folder in places for name in names)
    for beside in filter(Path.is_file, candidates):
        try:
            cost = None
            if instance.problem == "tsp":
                stops = read_tour(beside, instance)
            else:
                routes, cost = read_solution(beside)
                stops = instance.stops_of(routes)
            length, plain = (instance.length(stops, rounded) for rounded in (True, False))
        except NeurouteError as error:
            why = str(error).removeprefix(f"{instance.name}: ")
            log.warning("%s%s; left out", "" if why.startswith(str(beside)) else f"{beside}: ", why)
            continue
        if cost is not None and abs(cost / length - 1) > TOLERANCE:
            same = abs(cost / plain - 1) <= TOLERANCE
            what = "the length without rounding" if same else "not the length of its routes"
            log.warning("%s: its cost %g is %s; gaps are to %g, its length in %s", beside, cost, what, length,
                        instance.distances)  # fmt: skip
        return replace(instance, solution=stops, best_known=length)
    return instance


def _check_alike(name: str, instances: Sequence[Instance]) -> None:
    """Raises NeurouteError unless all are of one problem."""
    if len(kinds := sorted({each.variant for each in instances})) != 1:
        raise NeurouteError(f"{name}: {', '.join(kinds) or 'none'} cannot be evaluated together; split them by problem")


def gather(
    source: Instances | Instance | str | Path | np.ndarray | Sequence[Instance | str | Path], name: str = "instances"
) -> Instances:
    """Return instances of one problem, as they are evaluated.

    Raises NeurouteError if there are none, they are of several problems, or have no coordinates.
    """
    if isinstance(source, Instances):
        return source
    if isinstance(source, str | Path):
        return read_instances(Path(source))
    every = [as_instance(each) for each in ([source] if isinstance(source, Instance) else source)]
    _check_alike(name, every)
    for each in every:
        _ = each.coords  # which are asked for of an instance in distances
    return Instances(name, tuple(every))


def as_instance(source: Instance | str | Path | np.ndarray) -> Instance:
    """Return an instance as it is, of a file, or of coordinates (n, 2).

    Raises NeurouteError for a list of instances, and what is none.
    """
    if isinstance(source, Instance):
        return source
    if isinstance(source, list) and source and isinstance(source[0], Instance):
        raise NeurouteError(f"a list of {len(source)} instances; pass one, as one is solved at a time")
    return load(source) if isinstance(source, str | Path) else Instance.from_arrays(source)


if TYPE_CHECKING:
    from neuroute.specs.data import Distribution

APART = 100_000_000  # instances between two seeds
MOST_SEEDS = 400_000  # shards of a stream are numbered by 32 bits


def generate(
    problem: str = "tsp",
    n: int = 50,
    count: int = 1,
    *,
    seed: int = 0,
    first: int = 0,
    distribution: "Distribution | str" = "uniform",
    capacity: int | None = None,
) -> list[Instance]:
    """Make random instances in the unit square, as the papers draw them.

    Instances of a kind and seed are numbered, and each is a function of its number: two calls agree on those that they
    share.  Those of seed 0 are the papers' test instances.

    Args:
        problem: `tsp`, `cvrp`, or one of the 16 vehicle routing problems, such as `ovrptw`.
        n: nodes; with vehicles, customers.
        count: how many instances.
        seed: other seeds give other instances, from 0 to 400,000.
        first: the number of the first one, from 0; `first=100` leaves out the first hundred of the seed.
        distribution: of the TSP: `uniform`, `cluster`, `explosion` or `implosion`; others are uniform.
        capacity: of vehicles, at least 9 (demands are 1 to 9); None: the papers' for this n.

    Raises:
        NeurouteError: if there is no such problem or distribution, or a number is too small.
    """
    from neuroute.core.yaml_files import validate
    from neuroute.datasets.problem_spec import SPEC
    from neuroute.specs.data import Dataset

    if not isinstance(problem, str):
        raise NeurouteError(f"problem: {problem!r}; give a name, such as tsp")
    for key, value in {"n": n, "count": count, "seed": seed, "first": first}.items():
        if not isinstance(value, int | np.integer):
            raise NeurouteError(f"{key}: {value!r}; give a whole number")
    n, count, seed, first = int(n), int(count), int(seed), int(first)
    name = problem.lower()
    if name != "tsp" and get_close_matches(name.upper(), ("TSP", *SWITCHES), n=1, cutoff=0.5) == ["TSP"]:
        raise NeurouteError(f"no routing problem '{problem}'; is tsp meant?")
    variant = None if name in ("tsp", "cvrp") else str(Variant(problem.upper()))
    if n < FEWEST_NODES or count < 1 or first < 0:
        raise NeurouteError(
            f"n {n}, count {count}, first {first}: give n from {FEWEST_NODES}, count from 1, first from 0"
        )
    if not 0 <= seed <= MOST_SEEDS or first + count > APART:
        raise NeurouteError(f"seed {seed}: give a seed from 0 to {MOST_SEEDS:,}, each of {APART:,} instances")
    fields = {"problem": name if variant is None else "vrp", "variant": variant, "n": n, "count": count}
    fields |= {"first": seed * APART + first, "distribution": distribution, "capacity": capacity}
    dataset = validate(Dataset, fields, "generate", see="neuroute.generate")
    instances = Instances.of_batch("", SPEC.of(dataset.problem).instances(dataset), dataset.problem)
    stem = f"{name}{n}" + (f"_s{seed}" if seed else "")
    return [replace(each, name=f"{stem}_{first + i}") for i, each in enumerate(instances.members)]
