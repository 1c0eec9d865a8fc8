"""`neuroute evaluate --data` and `neuroute solve` on the 16 VRPs: right numbers, and one line for what does not fit."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from refusals import one_line
from untrained import done, refused, tsp_text, untrained, vrp_text

import neuroute
from neuroute.api import evaluate as user
from neuroute.api.files import load, read_instances
from neuroute.api.model import load_model
from neuroute.datasets.benchmarks import PACKAGED
from neuroute.datasets.problem_spec import SPEC
from neuroute.datasets.streams import vrp_dataset
from neuroute.decoding.decode import decode
from neuroute.problems.instances.distances import in_unit_square
from neuroute.problems.vrp import SWITCHES, Vrp, lengths
from neuroute.solvers.nearest import vrp_solutions
from neuroute.specs.objects import Dataset, Decoding, Labels, Network

N, COUNT = 8, 3
ARGUMENTS: dict[str, Any] = {"depth": 1, "width": 16, "heads": 2, "feed_forward": 16, "hierarchy": "step"}
NETWORK = Network(kind="neuroute.networks.mvmoe:MvMoe", arguments=ARGUMENTS)
MULTI = Decoding(starts="all")
SOLOMON = "T1\nVEHICLE\nNUMBER CAPACITY\n 25 200\nCUSTOMER\nCUST NO. X Y\n"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return untrained(tmp_path / "model.safetensors", NETWORK, "mvmoe/x")


def instances(variant: str) -> Vrp:
    return vrp_dataset(Dataset(problem="vrp", variant=variant, n=N, count=COUNT, capacity=14))


def arrays(variant: str, /, **changes: Any) -> dict[str, Any]:
    """As in an npz: with solutions of the nearest-neighbour rule."""
    batch = instances(variant)
    solutions = vrp_solutions(batch)
    every = {"limit": batch.limit, "windows": batch.windows, "service": batch.service}
    found = {"coords": batch.coords, "demand": batch.demand, "capacity": batch.capacity, "open": batch.open}
    found |= {"node": solutions[:, 0], "via_depot": solutions[:, 1]}
    found |= {key: value for key, value in every.items() if value is not None}
    return {key: value for key, value in (found | changes).items() if value is not None}


def npz(folder: Path, given: dict[str, Any]) -> Path:
    np.savez(folder / "mine.npz", **given)
    return folder / "mine.npz"


def solomon(folder: Path, changes: dict[str, str] | None = None) -> Path:
    """A file of customers on a line, each of whom a vehicle reaches in time."""
    rows = [f"{i} {i} {2 * i % 7} 10 0 {90 + i} 3" for i in range(1, 26)]
    text = SOLOMON + "\n".join(["0 0 0 0 0 120 0", *rows]) + "\n"
    for old, new in (changes or {}).items():
        assert old in text
        text = text.replace(old, new)
    (folder / "t1.txt").write_text(text)
    return folder / "t1.txt"


# -- npz ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("variant", "told"), [*((variant, {}) for variant in SWITCHES), ("CVRP", {"open": None})])
def test_numbers_are_those_of_the_decoded_routes(
    variant: str, told: dict[str, None], tmp_path: Path, model: Path
) -> None:
    """Also of instances of the CVRP that do not say whether routes are open."""
    given, batch, out = arrays(variant, **told), instances(variant), tmp_path / "records.csv"
    data = npz(tmp_path, given)
    (group,) = read_instances(data).groups
    assert read_instances(data).problem == ("cvrp" if told else "vrp")
    assert (group.n, group.count) == (N, COUNT)
    assert told or group.vrp.variant == variant
    how = ("--starts", "all")
    text = done("evaluate", "--model", model, "--data", data, "--out", out, *how)
    own = lengths(batch, decode("vrp", load_model(model, "cpu").net, batch, MULTI).numpy())
    reference = lengths(batch, np.stack([given["node"], given["via_depot"]], axis=1))
    values = pd.read_csv(out).set_index("metric").value
    assert values["length"] == pytest.approx(own.mean())
    assert values["gap_mean_of_ratios_pct"] == pytest.approx(100 * np.mean(own / reference - 1))
    with np.load(out.with_suffix(".npz")) as file:
        np.testing.assert_allclose(file["mine|multistart"], own)
    assert f"mine: {COUNT} {'' if told else variant + ' '}instances, n = {N}" in text


def test_times_and_limits_scale_with_the_coordinates(tmp_path: Path) -> None:
    small = instances("OVRPBLTW")
    assert in_unit_square(small, np.float32).coords.tobytes() == small.coords.tobytes()
    stretch = np.array([10.0, 250.0, 0.01])
    nodes = stretch[:, None, None]
    large = replace(
        small,
        coords=small.coords * nodes + [[[-3]], [[0]], [[0.2]]],
        limit=small.limit * stretch,
        windows=small.windows * nodes,
        service=small.service * stretch[:, None],
    )
    seen = in_unit_square(large, np.float32)
    solutions = vrp_solutions(small)
    factor = lengths(seen, solutions) / lengths(small, solutions)
    assert seen.coords.min() >= 0
    assert seen.coords.max() <= 1
    assert (seen.windows[:, 0, 1] <= 3.0 + 1e-6).all()
    np.testing.assert_allclose(seen.limit, small.limit * factor, rtol=1e-5)
    np.testing.assert_allclose(seen.windows, small.windows * factor[:, None, None], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(seen.service, small.service * factor[:, None], rtol=1e-4)
    np.testing.assert_allclose(lengths(large, solutions), lengths(small, solutions) * stretch, rtol=1e-5)


def changed(variant: str, key: str, place: tuple[Any, ...], value: float) -> dict[str, Any]:
    given = arrays(variant)
    array = np.array(given[key], dtype=float)
    array[place] = value
    return given | {key: array}


BAD: list[tuple[dict[str, Any], str]] = [
    (arrays("OVRPTW", variant="OVRPWT"), "no routing problem 'OVRPWT'; is OVRPTW or"),
    (arrays("VRPL", variant="VRPTW"), "says VRPTW, but its arrays are those of VRPL; see 'limit'"),
    (arrays("VRPTW", service=None), "time windows and service times belong together"),
    (arrays("VRPL", length=np.ones(5)), "'length' has shape"),
    (changed("VRPTW", "windows", (1, 4, 1), 0.0), "instance 1, customer 4: "),
    (changed("VRPTW", "service", (2, 3), -1.0), "instance 2, customer 3: its service time is not a number from 0 on"),
    (changed("VRPL", "limit", (0,), 0.1), "the way there and back alone is longer than the limit"),
    (changed("VRPB", "demand", (1, 2), -15), "instance 1, customer 2: its goods to be picked up are more than"),
    (changed("OVRP", "node", (1, 0), 0), "instance 1: its solution"),
]


@pytest.mark.parametrize(("given", "message"), BAD)
def test_bad_instances_are_one_line(given: dict[str, Any], message: str, tmp_path: Path, model: Path) -> None:
    out = tmp_path / "records.csv"
    said = refused("evaluate", "--model", model, "--data", npz(tmp_path, given), "--out", out)
    assert "mine.npz" in said
    assert message in said
    assert not out.exists()


@pytest.mark.parametrize(("problem", "variant"), [("cvrp", None), ("vrp", "OVRPBL")])
def test_labelled_sets_of_the_plan_are_read(problem: Any, variant: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = Dataset(problem=problem, variant=variant, n=N, count=COUNT, capacity=20)
    labels, spec = Labels(dataset=dataset, solver="ortools"), SPEC.of(problem)
    batch = spec.instances(dataset)
    monkeypatch.setattr(user, "load_tours", lambda *_: vrp_solutions(batch))
    found = user.find_instances(dataset.id, None, {labels.id: labels}, [], "--data")
    (group,) = found.groups
    assert (found.problem, group.count, group.n) == (problem, COUNT, N)
    assert [each.capacity for each in group.members] == [20] * COUNT
    assert problem == "cvrp" or group.vrp.variant == variant
    np.testing.assert_allclose(group.reference, spec.lengths(batch, vrp_solutions(batch)), rtol=1e-12)
    np.testing.assert_array_equal(group.slice(1, 3).inputs().coords, batch.coords[1:3])


# -- Solomon's files, and VRPLIB's ------------------------------------------------------------------------------------


def test_a_file_of_solomon_s_is_solved_drawn_and_kept(tmp_path: Path, model: Path) -> None:
    path, drawing, kept = solomon(tmp_path), tmp_path / "t.svg", tmp_path / "t.sol"
    how = ("--starts", "all", "--augment")
    said = done("solve", path, "--model", model, "--out", drawing, "--save", kept, *how)
    one = load(path)
    decoding = Decoding(starts="all", augment=True)
    solution = decode("vrp", load_model(model, "cpu").net, one.inputs(), decoding)
    length = lengths(one.vrp, solution.numpy())[0]
    assert f"T1: n=25, {int(solution[0, 1].sum())} routes, length {length:,.2f} (EXACT_2D)" in said
    assert float(kept.read_text().split()[-1]) == pytest.approx(length)
    assert drawing.read_text().rstrip().endswith("</svg>")
    text = done("evaluate", "--model", model, "--data", path, *how)
    assert f"length  {length:.5f}" in text
    assert "t1: 1 VRPTW instance, n = 25" in text


@pytest.mark.parametrize("reference", [None, "ortools-short"])
def test_gaps_of_solomon_s_are_in_its_rounded_distances(model: Path, reference: str | None) -> None:
    one, how = load(PACKAGED / "solomon" / "R101.txt"), Decoding(starts="all")
    solution = neuroute.solve(one, model=model, decoding=how)
    found = neuroute.evaluate(model, [one], how, reference=reference, workers=1)
    base = 1637.7 if reference is None else one.length(found.instances.members[0].solution)
    assert found.gaps["gap_rounded_pct"] == pytest.approx(100 * (one.length(solution) / base - 1))
    assert found.to_frame().gap_pct.tolist() == pytest.approx([found.gaps["gap_rounded_pct"]])
    assert found.gaps["gap_pct"] == pytest.approx(100 * (solution.cost / base - 1))


def test_solving_refuses_what_does_not_go_together(tmp_path: Path, model: Path) -> None:
    path, drawing = solomon(tmp_path), tmp_path / "t.svg"
    (tmp_path / "s.sol").write_text("Route #1: 1 2\n")
    (tmp_path / "s.tsp").write_text(tsp_text([(0, 0), (5, 1), (9, 9), (1, 8)]))
    cases: list[tuple[tuple[object, ...], str]] = [
        ((path, "--beam", 2), "beam search and re-construction are for the TSP and the CVRP"),
        ((path, "--starts", 26), "--starts 26 is more than its 25 stops"),
        ((path, "--save", tmp_path / "s.tour"), "is a file that ends in .sol"),
        ((path, "--rescale", 2), "leave it out for the VRP"),
        ((tmp_path / "s.tsp",), "is a TSP, but mvmoe/x solves VRP"),
    ]
    for arguments, message in cases:
        assert message in refused("solve", *arguments, "--model", model, "--out", drawing)
    assert not drawing.exists()


def test_a_vrplib_file_is_solved_as_one_of_the_sixteen(tmp_path: Path, model: Path) -> None:
    rng = np.random.default_rng(0)
    points, demands = rng.integers(0, 100, (N + 1, 2)), [0, *rng.integers(1, 9, N)]
    (tmp_path / "c.vrp").write_text(vrp_text(points, demands, 20, name="c"))
    said = done("solve", tmp_path / "c.vrp", "--model", model, "--seconds", 0, "--out", tmp_path / "c.svg")
    assert f"c: n={N}, " in said
    own = ("--prc", 2, "--from", tmp_path / "c.sol")
    (tmp_path / "c.sol").write_text("".join(f"Route #{i}: {i}\n" for i in range(1, N + 1)))
    assert "builds solutions and improves none" in refused("solve", tmp_path / "c.vrp", "--model", model, *own)


# -- in units of the user's own: what networks could not complete or add up is one line that names whom ---------------

CUSTOMERS = 6


def corner(size: float, middle: float = 0.0) -> np.ndarray:
    """An instance (1, 7, 2) in a square of this size around a point of the diagonal, its depot in a corner."""
    inner = np.random.default_rng(0).uniform(0.2, 1.0, (1, CUSTOMERS, 2))
    return np.concatenate([np.zeros((1, 1, 2)), inner], axis=1) * size + (middle - size / 2)


def way_out(points: np.ndarray) -> np.ndarray:
    """From the depot: (1, 7)."""
    found: np.ndarray = np.sqrt(((points - points[:, :1]) ** 2).sum(-1))
    return found


def units(folder: Path, **given: Any) -> Path:
    demand = np.concatenate([[[0]], np.ones((1, CUSTOMERS), dtype=int)], axis=1)
    return npz(folder, {"demand": demand, "capacity": np.array([3]), **given})


@pytest.mark.parametrize("size", [1e-2, 1e-6])
def test_what_small_units_hide_from_the_tolerance_is_found(size: float, tmp_path: Path) -> None:
    """1e-5 of these units is much of the unit square: no network could serve the farthest customer."""
    points = corner(size)
    farthest = int(way_out(points).argmax())
    limit = 2 * way_out(points).max() - min(8e-6, size / 10)
    why = rf"as networks take it \(in the unit square, float32\), instance 0, customer {farthest}: the way there"
    with one_line(f"{tmp_path}/mine.npz", why):
        read_instances(units(tmp_path, coords=points, limit=np.array(limit)))
    fair = units(tmp_path, coords=points, limit=np.array(2 * way_out(points).max()))
    (group,) = read_instances(fair).groups
    assert group.inputs().limit[0] == pytest.approx(2 * way_out(group.inputs().coords.astype(float)).max(), rel=1e-5)


def test_late_times_that_float32_rounds_are_found(tmp_path: Path) -> None:
    """Every customer is served at the last moment from which there is a way home, a millionth of which gets lost."""
    points, closing, service = corner(0.9, 0.5), 100_000.03, 10.0
    windows, times = np.zeros((1, CUSTOMERS + 1, 2)), np.full((1, CUSTOMERS + 1), service)
    windows[..., 1], times[0, 0] = closing, 0
    windows[0, 1:, 0] = closing - service - way_out(points)[0, 1:]
    with one_line(f"{tmp_path}/mine.npz", "as networks take it.* customer"):
        read_instances(units(tmp_path, coords=points, windows=windows, service=times))
    windows[0, 1:, 0] -= 1.0
    assert len(read_instances(units(tmp_path, coords=points, windows=windows, service=times)).groups) == 1
