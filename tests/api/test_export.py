"""Exported instances are read back with the same solutions, lengths and gaps; what a format cannot hold is refused."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from commands import done, refused
from refusals import one_line

import neuroute
from neuroute.api.evaluate import evaluate
from neuroute.api.files import read_instances
from neuroute.api.model import load_model
from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import SPEC
from neuroute.datasets.streams import dataset_coordinates
from neuroute.problems.instances.export import export
from neuroute.problems.instances.instance import Instances
from neuroute.problems.vrp import SWITCHES, Vrp, from_routes, to_routes
from neuroute.solvers.insertion import solve, solve_cvrp
from neuroute.solvers.nearest import vrp_solutions
from neuroute.specs.objects import Dataset, Decoding
from stand_ins import checkpoint

N, COUNT = 12, 3


def tsp(scale: float = 1.0, n: int = N) -> Instances:
    coords = dataset_coordinates(Dataset(n=n, count=COUNT)).astype(np.float64) * scale
    tours = np.stack([solve(points, 0) for points in coords])
    spec = SPEC.of("tsp")
    arrays = {"points": coords, "best_known": spec.lengths(coords, tours), "solution": tours}
    return Instances.of_arrays("set", arrays)


def cvrp() -> Instances:
    spec = SPEC.of("cvrp")
    made = spec.instances(Dataset(problem="cvrp", n=N, count=COUNT))
    rows = [solve_cvrp(made.coords[i], made.demand[i], int(made.capacity[i]), 0) for i in range(COUNT)]
    solutions = np.stack([from_routes(routes) for routes in rows])
    coords = made.coords.astype(np.float64)
    lengths = spec.lengths(Vrp(coords, made.demand, made.capacity), solutions)
    return Instances.of_batch("set", made, "cvrp").with_solutions(solutions, list(lengths))


def vrp(variant: str) -> Instances:
    spec = SPEC.of("vrp")
    made = spec.instances(Dataset(problem="vrp", variant=variant, n=N, count=COUNT, capacity=14))
    solutions = vrp_solutions(made)
    return Instances.of_batch("set", made, "vrp").with_solutions(solutions, list(spec.lengths(made, solutions)))


def gaps(instances: Instances, model: Path) -> dict[str, float]:
    return evaluate(load_model(model, "cpu"), instances, Decoding()).gaps


PLACES = {"npz": "set.npz", "lehd": "set.txt", "tsplib": "set", "vrplib": "set", "solomon": "set"}


@pytest.mark.parametrize(
    ("made", "form", "tolerance"),
    [
        (tsp(), "npz", 0),
        (tsp(), "lehd", 0),
        (tsp(), "tsplib", N * 1.5e-6),
        (cvrp(), "npz", 0),
        (cvrp(), "lehd", 0),
        (cvrp(), "vrplib", 2 * N * 1.5e-6),
        (vrp("VRPTW"), "solomon", 0),
    ],
    ids=lambda value: value.problem if isinstance(value, Instances) else str(value),
)
def test_read_back_with_the_same_gap(made: Instances, form: str, tolerance: float, tmp_path: Path) -> None:
    line = export(made, tmp_path / PLACES[form], form)
    assert "3 with a solution" in line
    back = read_instances(tmp_path / PLACES[form])
    (own,), (group,) = made.groups, back.groups
    assert back.problem == made.problem
    assert np.abs(group.coords - own.coords).max() <= (0.5e-6 if tolerance else 0)
    assert own.reference is not None
    assert group.reference == pytest.approx(own.reference, abs=max(tolerance, 1e-12))
    assert group.solutions is not None
    assert (group.solutions == own.solutions).all()
    model = checkpoint(tmp_path / "model.safetensors", made.problem)
    before, after = gaps(made, model), gaps(back, model)
    assert before["gap_pct"] > 0
    assert after == pytest.approx(before, abs=0.01 if tolerance else 1e-9)


@pytest.mark.parametrize("variant", SWITCHES)
def test_variants_keep_their_constraints(variant: str, tmp_path: Path) -> None:
    made = vrp(variant)
    export(made, tmp_path / "set.npz")
    (own,), (group,) = made.groups, read_instances(tmp_path / "set.npz").groups
    assert group.vrp.variant == own.vrp.variant == variant
    assert group.reference == pytest.approx(own.reference, rel=1e-9)
    for key in ("limit", "windows", "service"):
        assert np.array_equal(getattr(group.vrp, key), getattr(own.vrp, key))


def test_files_of_tsplib_are_whole_numbers_that_its_rules_measure(tmp_path: Path) -> None:
    export(tsp(), tmp_path / "set", "tsplib")
    text = (tmp_path / "set" / "set_00000.tsp").read_text()
    assert "COMMENT : coordinates times 1e+06" in text
    assert all(word.isdigit() for word in text.split("NODE_COORD_SECTION\n")[1].split("EOF")[0].split())
    assert (tmp_path / "set" / "set_00000.tour").is_file()


@pytest.mark.parametrize("scale", [10.0, 5e5])
@pytest.mark.parametrize("digits", [0, 3])
def test_distances_that_are_not_rounded_stay_so(scale: float, digits: int, tmp_path: Path) -> None:
    made = [neuroute.Instance.from_arrays(points.round(digits)) for points in tsp(scale).coords]
    solved = Instances("set", tuple(made)).with_solutions([solve(each.coords, 0) for each in made])
    export(solved, tmp_path / "set", "tsplib")
    back = read_instances(tmp_path / "set")
    assert {each.distances for each in back.members} == {"EXACT_2D"}
    assert back.reference == pytest.approx(solved.reference, rel=N * 1.5e-6)


@pytest.mark.parametrize("kind", ["EUC_2D", "CEIL_2D", "EXACT_2D"])
def test_a_file_of_a_library_keeps_its_distances(kind: str, tmp_path: Path) -> None:
    points = "".join(f"{i} {x} {y}\n" for i, (x, y) in enumerate(((0, 0.5), (10, 3.25), (4, 7), (1, 12.75)), 1))
    text = f"NAME : a\nTYPE : TSP\nDIMENSION : 4\nEDGE_WEIGHT_TYPE : {kind}\nNODE_COORD_SECTION\n{points}EOF\n"
    (tmp_path / "a.tsp").write_text(text)
    own = neuroute.load(tmp_path / "a.tsp")
    done("export", tmp_path / "a.tsp", "--to", tmp_path / "set", "--format", "tsplib")
    back = neuroute.load(tmp_path / "set" / "a.tsp")
    assert (back.distances, back.coords.tolist()) == (kind, own.coords.tolist())
    assert back.length(np.arange(4)) == pytest.approx(own.length(np.arange(4)))


@pytest.mark.parametrize("name", ["b.npz", "b.txt"])
def test_arrays_have_the_length_of_a_library_s_solution_without_rounding(name: str, tmp_path: Path) -> None:
    text = "NAME : a\nTYPE : TSP\nDIMENSION : 4\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n{}EOF\n"
    (tmp_path / "a.tsp").write_text(text.format("1 0 0\n2 5 2\n3 6 6\n4 1 7\n"))
    (tmp_path / "a.tour").write_text("TYPE : TOUR\nTOUR_SECTION\n1 2 3 4 -1\nEOF\n")
    assert neuroute.load(tmp_path / "a.tsp").best_known == 21
    done("export", tmp_path / "a.tsp", "--to", tmp_path / name)
    exact = math.hypot(5, 2) + math.hypot(1, 4) + math.hypot(5, 1) + math.hypot(1, 7)
    assert neuroute.load(tmp_path / name).best_known == pytest.approx(exact)


def test_what_a_format_cannot_hold_is_refused_before_writing(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    for made, place, form, says in (
        (vrp("VRPTW"), "set", "vrplib", "cannot hold VRPTW; give one of npz, solomon"),
        (vrp("OVRPTW"), "set", "solomon", "cannot hold OVRPTW; give one of npz"),
        (cvrp(), "set", "tsplib", "--format tsplib: cannot hold CVRP; give one of npz, lehd, vrplib"),
        (tsp(), "set.xyz", None, "--format is missing: give one of npz"),
        (tsp(), "set", "csv", "--format csv: give one of npz"),
        (tsp(), "full", "tsplib", "exists; name a new folder"),
    ):
        with pytest.raises(NeurouteError, match=says):
            export(made, tmp_path / place, form)
    assert [path.name for path in tmp_path.iterdir()] == ["full"]


# -- text of LEHD's kind, and Solomon's -------------------------------------------------------------------------------

LINE = "depot,0.5,0.5,customer,0.1,0.1,0.9,0.1,0.5,0.9,capacity,5,demand,0,2,3,4,cost,{cost},node_flag,1,2,3,1,0,1"
ROUND = [(0.5, 0.5), (0.1, 0.1), (0.9, 0.1), (0.5, 0.5), (0.5, 0.9), (0.5, 0.5)]
COST = sum(map(math.dist, ROUND, ROUND[1:]))


def test_a_line_of_lehd_s_cvrp_is_read_as_its_reader_reads_it(tmp_path: Path) -> None:
    path, line = tmp_path / "a.txt", LINE.format(cost=COST)
    path.write_text(f"{line}\n{line.replace('demand,0,', 'demand,')}\n")  # the depot's 0 may be left out
    (group,) = read_instances(path).groups
    assert group.coords[1].tolist() == [[0.5, 0.5], [0.1, 0.1], [0.9, 0.1], [0.5, 0.9]]
    assert group.inputs().demand.tolist() == [[0, 2, 3, 4]] * 2
    assert group.inputs().capacity.tolist() == [5, 5]
    assert to_routes(group.solutions[0]) == [[1, 2], [3]]
    assert group.reference == pytest.approx([COST] * 2)
    path.write_text(line.partition(",cost")[0])
    assert read_instances(path).groups[0].reference is None


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("demand,0,2,3,4", "demand,2,3", "line 1: 'demand' has 2 numbers; 4 belong there"),
        ("0.1,0.1", "0.1,x", "line 1: something in depot, .* is not a number"),
        ("1,0,1", "1,0,0", "overloads a route"),
        ("1,2,3,1", "1,2,2,1", "does not serve every customer once"),
        ("cost,", "cost,9", "its stated length differs"),
    ],
)
def test_a_damaged_line_of_lehd_s_cvrp_is_one_line(before: str, after: str, says: str, tmp_path: Path) -> None:
    path, line = tmp_path / "a.txt", LINE.format(cost=COST)
    assert before in line
    path.write_text(line.replace(before, after))
    with one_line(says):
        read_instances(path)


def test_a_file_in_solomon_s_form_says_its_size_and_keeps_its_constraints(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = vrp("VRPTW")
    export(made, tmp_path / "set", "solomon")
    file = tmp_path / "set" / "set_00001.txt"
    text = file.read_text()
    assert text.startswith(f"set_00001 of {N} customers\n\nVEHICLE\n")
    back, own = neuroute.load(file).vrp, made.groups[0].vrp
    assert own is not None
    for key in ("coords", "demand", "capacity", "windows", "service"):
        assert np.array_equal(getattr(back, key)[0], getattr(own, key)[1])
    file.write_text("".join(text.splitlines(keepends=True)[:-1]))
    with pytest.raises(NeurouteError, match=f"{N - 1} customers, not {N} as stated; is the file cut short"):
        neuroute.load(file)
    file.write_text(text)
    solution = file.with_suffix(".sol")
    solution.write_text(solution.read_text().replace("Route #1: ", "Route #1: 1 2 "))
    assert neuroute.load(file).solution is None
    assert re.search(r"set_00001.sol: customer \d is served 2 times; .*left out", caplog.text)
    solution.write_text("Route #1: " + " ".join(map(str, range(1, N + 1))))
    assert neuroute.load(file).best_known is None
    assert re.search("set_00001.sol: .*customer.*left out", caplog.text)


@pytest.mark.parametrize(
    ("problem", "name", "options"),
    [
        ("cvrp", "x.txt", ("--capacity", 20)),
        ("cvrp", "x", ("--format", "vrplib")),
        ("vrptw", "x", ("--format", "solomon")),
    ],
)
def test_generated_instances_are_written_and_read_back(
    tmp_path: Path, problem: str, name: str, options: tuple[object, ...]
) -> None:
    done("generate", problem, "--n", 12, "--count", 3, "--seed", 5, "--out", tmp_path / name, *options)
    settings = {str(key).removeprefix("--"): value for key, value in zip(options[::2], options[1::2], strict=True)}
    settings.pop("format", None)
    drawn = neuroute.generate(problem, 12, 3, seed=5, **settings)  # type: ignore[arg-type]
    stored = neuroute.load_all(tmp_path / name)
    assert len(stored) == 3
    for ours, theirs in zip(drawn, sorted(stored, key=lambda each: each.name), strict=True):
        assert theirs.n == 12
        scale = np.abs(theirs.coords).max() / np.abs(ours.coords).max()  # libraries have times a power of ten
        np.testing.assert_allclose(theirs.coords / scale, ours.coords, atol=1e-5)


def test_messages_name_the_argument_and_the_part_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "empty.tsp").touch()
    (tmp_path / "empty.vrp").touch()
    for command, says in (
        (("export", "nofile", "--to", tmp_path / "a.npz"), "error: DATA nofile: no such file"),
        (("export", tmp_path / "empty.tsp", "--to", tmp_path / "a.npz"), "no EDGE_WEIGHT_TYPE; one of"),
        (("export", tmp_path / "empty.vrp", "--to", tmp_path / "a.npz"), "no EDGE_WEIGHT_TYPE; one of"),
        (("export", tmp_path / "empty.vrp", "--to", tmp_path / "empty.vrp"), "empty.vrp: is the input file"),
    ):
        assert says in refused(*command)
