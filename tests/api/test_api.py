"""`import neuroute`: instances and solutions in users' hands, solved and evaluated, and one line for what is wrong."""

import pkgutil
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import one_line

import neuroute
from stand_ins import Ship, checkpoint

BERLIN = Path(neuroute.__file__).parent / "datasets" / "instances" / "tsplib" / "berlin52.tsp"

POINTS = np.random.default_rng(1).random((12, 2))
SQUARE = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])


def test_only_public_names_are_listed() -> None:
    """Each of which is documented."""
    assert all(getattr(neuroute, name).__doc__ for name in neuroute.__all__)
    assert sorted(dir(neuroute)) == sorted(neuroute.__all__)
    assert not {"Any", "TYPE_CHECKING", "importlib"} & set(vars(neuroute))
    with pytest.raises(AttributeError, match="no attribute 'slove'"):
        neuroute.slove  # noqa: B018


# -- instances and solutions ------------------------------------------------------------------------------------------


def test_costs_are_in_the_instances_own_units() -> None:
    square = neuroute.Instance.from_arrays(100 * SQUARE)
    assert (square.problem, square.variant, square.n) == ("tsp", "TSP", 4)
    assert square.cost([0, 1, 2, 3]) == 400
    assert square.cost([0, 2, 1, 3]) == pytest.approx(200 + 200 * 2**0.5)
    routes = neuroute.Instance.from_arrays(SQUARE, demand=np.array([0, 1, 1, 1]), capacity=2)
    assert (routes.problem, routes.variant, routes.n) == ("cvrp", "CVRP", 3)
    assert routes.cost([[1], [2, 3]]) == pytest.approx(2 + 2 + 2**0.5)
    opened = neuroute.Instance.from_arrays(SQUARE, demand=np.array([0, 1, 1, 1]), capacity=2, open=True)
    assert (opened.problem, opened.variant) == ("vrp", "OVRP")
    assert opened.cost([[1], [3, 2]]) == pytest.approx(3)
    for limit in (0.5, np.inf):
        with pytest.raises(neuroute.NeurouteError, match="limit"):
            neuroute.Instance.from_arrays(SQUARE, np.array([0, 1, 1, 1]), 2, limit=limit)


@pytest.mark.parametrize(
    ("arrays", "solution", "says"),
    [
        ({}, [0, 1, 2, 2], "not a tour of its 4 nodes"),
        ({}, [0.0, 1.0, 2.0, 3.0], "a tour of whole numbers"),
        ({"demand": [0, 1, 1, 1], "capacity": 2}, [[1, 2, 3]], "route 1 carries 3, more than the capacity 2"),
        ({"demand": [0, 1, 1, 1], "capacity": 2}, [[1, 2]], "customer 3 is served 0 times"),
        ({"demand": [0, 1, 1, 1], "capacity": 2}, [[0, 1, 2], [3]], "leave the depot out of the routes"),
        ({"demand": [0, 1, 1, 1], "capacity": 2}, [[1.9, 2.2], [3]], "each a list of whole numbers"),
        ({"demand": [0, 1, 1, 1], "capacity": 3, "limit": 3.0}, [[1, 2, 3]], "more than the limit 3"),
        ({"demand": [0, 1, 1, 1], "capacity": 3}, np.array([[1, 2, 3], [0, 1, 0]]), "flags are not 0 and 1, beginning"),
    ],
)
def test_what_is_no_solution_is_said(arrays: dict[str, Any], solution: Any, says: str) -> None:
    instance = neuroute.Instance.from_arrays(SQUARE, **arrays)
    with one_line(says):
        instance.check(solution)
    with pytest.raises(neuroute.NeurouteError, match=says):
        neuroute.Solution(instance, solution)


@pytest.mark.parametrize(
    "points",
    [torch.rand(6, 2, requires_grad=True), torch.rand(6, 2).to(torch.bfloat16), torch.rand(6, 2).to_sparse()],
    ids=["gradients", "bfloat16", "sparse"],
)
def test_tensors_that_are_no_arrays_are_one_line(points: torch.Tensor) -> None:
    with one_line("coords: not an array .*detach"):
        neuroute.solve(points, "nearest")
    with one_line("mine: not an array"):
        neuroute.Instance.from_distances(points @ points.T if points.requires_grad else points, name="mine")
    instance = neuroute.generate("tsp", 6)[0]
    assert instance.cost(torch.arange(6)) == instance.cost(list(range(6)))
    with one_line("tsp6.*: not an array"):
        instance.cost(points)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"problem": "xyz"}, "no routing problem 'XYZ'"),
        ({"problem": ["tsp"]}, r"problem: \['tsp'\]; give a name"),
        ({"n": "20"}, "n: '20'; give a whole number"),
        ({"seed": 1.5}, "seed: 1.5; give a whole number"),
        ({"n": 3}, "give n from 4"),
        ({"problem": "cvrp", "capacity": 3}, "capacity"),
        ({"problem": "tsp", "capacity": 30}, "for problems with vehicles"),
    ],
)
def test_what_cannot_be_generated_is_said(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(neuroute.NeurouteError, match=says):
        neuroute.generate(**arguments)


def test_files_of_many_hold_instances_by_index(tmp_path: Path) -> None:
    coords = np.random.default_rng(0).random((3, 6, 2))
    np.savez(tmp_path / "many.npz", coords=coords, tour=np.tile(np.arange(6), (3, 1)))
    assert [len(neuroute.load_all(tmp_path / "many.npz")), neuroute.load(tmp_path / "many.npz", 1).n] == [3, 6]
    instance = neuroute.load(tmp_path / "many.npz", 2)
    assert np.array_equal(instance.coords, coords[2])
    assert instance.gap(np.arange(6)) == pytest.approx(0)
    with pytest.raises(neuroute.NeurouteError, match="holds 3 instances; `neuroute evaluate"):
        neuroute.load(tmp_path / "many.npz")
    with pytest.raises(neuroute.NeurouteError, match="no instance 3; give an index from 0 to 2"):
        neuroute.load(tmp_path / "many.npz", 3)


def test_solutions_are_drawn_and_kept(tmp_path: Path) -> None:
    instance = neuroute.Instance.from_arrays(POINTS, name="dozen")
    solution = neuroute.Solution(instance, np.arange(12))
    solution.plot(tmp_path / "tour.svg")
    solution.save(tmp_path / "dozen.tour")
    assert (tmp_path / "tour.svg").read_text().rstrip().endswith("</svg>")
    assert f"dozen, length {solution.cost:.10g} (EXACT_2D)" in (tmp_path / "dozen.tour").read_text()
    instance.plot(path=tmp_path / "nodes.png")
    assert (tmp_path / "nodes.png").stat().st_size > 1000
    routes = neuroute.generate("ovrp", 10)[0]
    served = neuroute.Solution(routes, [[c] for c in range(1, 11)])
    served.save(tmp_path / "r.sol")
    served.plot(tmp_path / "r.pdf")
    assert f"Cost {served.cost:.10g}" in (tmp_path / "r.sol").read_text()
    assert served.routes == [[c] for c in range(1, 11)]
    for wrong, says in ((lambda: served.save("r.tour"), "ends in .sol"), (lambda: served.tour, "`routes`")):
        with pytest.raises(neuroute.NeurouteError, match=says):
            wrong()
    with pytest.raises(neuroute.NeurouteError, match="must end in .svg, .pdf or .png"):
        solution.plot("tour.txt")


# -- solving and evaluating -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", ["tsp", "cvrp", "ovrptw"])
@pytest.mark.usefixtures("built")
def test_a_shipped_network_solves_what_it_is_for(ship: Ship, problem: str) -> None:
    for each in ("tsp", "cvrp", "vrp"):
        ship(each)
    instance = neuroute.generate(problem, 10)[0]
    solution = neuroute.solve(instance, seconds=1.0)
    model, *firsts = {
        "tsp": ("tsp", "greedy", "savings", "insertion"),
        "cvrp": ("cvrp", "greedy", "savings", "insertion-angle", "savings and local search"),
        "ovrptw": ("vrp", "multistart", "nearest"),
    }[problem]  # whichever is shorter
    assert solution.method in {f"{model}, {first} + search" for first in firsts}
    costs = [cost for _, cost in solution.trace]
    assert costs == sorted(costs, reverse=True)
    assert solution.cost == pytest.approx(costs[-1]) == instance.cost(solution.stops)
    assert neuroute.solve(instance, seconds=0).method == f"{model}, {firsts[0]}"


def test_what_cannot_be_solved_is_one_line(ship: Ship, tmp_path: Path) -> None:
    tsp, cvrp, ovrp = (neuroute.generate(p, 10)[0] for p in ("tsp", "cvrp", "ovrp"))
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (tsp, {}, "no pretrained network for TSP; give a checkpoint"),
        (tsp, {"method": "lhk"}, "no solver 'lhk'; did you mean lkh\\? solvers of the TSP: "),
        (ovrp, {"method": "hgs"}, "hgs does not solve the OVRP; take one of: "),
        (tsp, {"model": "tsp"}, "no network 'tsp'; give a checkpoint .*this copy has no"),
        (tsp, {"model": tmp_path / "none.safetensors"}, "no such checkpoint"),
        (cvrp, {"model": checkpoint(tmp_path / "t.safetensors", "tsp")}, "is a CVRP, but zoo/tsp solves TSP"),
        (tsp, {"seconds": -1}, "no time"),
        (tsp, {"seconds": "5", "method": "insertion"}, "seconds: '5' is no time"),
        (tsp, {"model": 5}, "model: int; give a Model"),
        (tsp, {"seed": -1}, "seed: -1: give a whole number from 0 to"),
        (tsp, {"seed": 2**32, "method": "insertion"}, "seed: 4294967296: give a whole number from 0 to"),
        (tsp, {"threads": 0}, "threads: 0: give a whole number from 1 to"),
        (tsp, {"memory_gb": float("inf")}, "memory_gb: inf: give a number above 0"),
        (tsp, {"method": "insertion", "model": "tsp"}, "of method 'network'; leave them out"),
        (str(tmp_path / "none.tsp"), {}, "none.tsp"),
        ([tsp], {}, "a list of 1 instances; pass one"),
    ]
    for instance, arguments, says in cases:
        with one_line(says):
            neuroute.solve(instance, **arguments)
    ship("tsp", nodes=(4, 9))
    ship("vrp", variants=("CVRP", "VRPTW"))
    assert neuroute.solve(tsp, seconds=0.1).method.startswith("tsp, ")  # of any size
    assert neuroute.solve(tsp, model="tsp", seconds=0).method == "tsp, greedy"
    with pytest.raises(neuroute.NeurouteError, match="no pretrained network for OVRP; there are: tsp, vrp"):
        neuroute.solve(ovrp)
    with pytest.raises(neuroute.NeurouteError, match="is a OVRP, but vrp solves CVRP, VRPTW"):
        neuroute.solve(ovrp, model="vrp")
    assert neuroute.solve(cvrp, seconds=0).method == "vrp, multistart"


@pytest.mark.parametrize(
    ("model", "sizes", "decoding"),
    [("tsp", {10: 3, 12: 2}, neuroute.Decoding()), ("vrp", {8: 3}, neuroute.Decoding(starts="all"))],
)
def test_instances_are_evaluated_together(
    ship: Ship, model: str, sizes: dict[int, int], decoding: neuroute.Decoding
) -> None:
    ship(model)
    problem = {"tsp": "tsp", "vrp": "ovrpbltw"}[model]
    instances = [each for n, count in sizes.items() for each in neuroute.generate(problem, n, count)]
    result = neuroute.evaluate(model, instances, decoding, device="cpu")
    alone = [neuroute.solve(each, model=model, decoding=decoding).cost for each in instances]
    np.testing.assert_allclose(result.lengths, alone, rtol=1e-6)
    assert result.gaps == {}
    with pytest.raises(neuroute.NeurouteError, match="CVRP, .* cannot be evaluated together"):
        neuroute.evaluate(model, [*instances, *neuroute.generate("cvrp", 10)])


def test_arrays_and_lists_of_files_are_evaluated_as_they_are_solved(tmp_path: Path) -> None:
    instances = neuroute.generate("tsp", 10, 2)
    lengths = neuroute.evaluate("tsp", instances, device="cpu").lengths
    coords = np.stack([instance.coords for instance in instances])
    assert np.allclose(neuroute.evaluate("tsp", coords, device="cpu").lengths, lengths)
    for number in range(2):
        np.savez(tmp_path / f"{number}.npz", coords=coords[number : number + 1])
    files = [tmp_path / "0.npz", str(tmp_path / "1.npz")]
    assert np.allclose(neuroute.evaluate("tsp", files, device="cpu").lengths, lengths)


# -- what a user sees in a session ------------------------------------------------------------------------------------


def test_what_docstrings_name_can_be_imported() -> None:
    texts = [getattr(neuroute, name).__doc__ or "" for name in neuroute.__all__]
    named = set(re.findall(r"`(neuroute(?:\.\w+)+)`", "\n".join(texts)))
    assert "neuroute.specs.trainings.Supervised" in named
    for dotted in named:
        pkgutil.resolve_name(dotted)


# -- in notebooks -----------------------------------------------------------------------------------------------------


def test_an_evaluation_has_gaps_of_instances_in_the_order_given() -> None:
    given = [*neuroute.generate("tsp", 12, 2), *neuroute.generate("tsp", 9, 2), neuroute.load(BERLIN)]
    measured = neuroute.evaluate("tsp", given, "greedy", reference="nearest", device="cpu", threads=1, workers=1)
    frame = measured.to_frame()
    assert frame.instance.tolist() == [each.name for each in given]
    assert frame.n.tolist() == [12, 12, 9, 9, 52]
    assert measured.lengths.tolist() == frame.length.tolist()
    assert np.allclose(frame.gap_pct[:4], 100 * (frame.length / frame.reference - 1)[:4])
    assert frame.time_s.sum() == pytest.approx(measured.seconds)
    assert "<table" in measured._repr_html_()
    assert len(measured.plot().axes[0].lines[0].get_xdata()) == 5
    unknown = neuroute.evaluate("tsp", given[:2], "greedy", device="cpu", threads=1)
    assert unknown.to_frame().gap_pct.isna().all()
    with one_line("has no reference solutions"):
        unknown.plot()


def test_a_solution_says_when_each_customer_is_reached() -> None:
    instance = neuroute.Instance.from_arrays(
        np.array([[0, 0], [3, 4], [3, 0], [0, 3]]), np.array([0, 1, 1, 1]), 9,
        windows=np.array([[0, 100], [7, 20], [0, 50], [0, 50]]), service=np.array([0, 2, 1, 1]),
    )  # fmt: skip
    frame = neuroute.Solution(instance, [[1, 2], [3]]).to_frame()  # type: ignore[arg-type]
    assert frame.route.tolist() == [0, 0, 0, 1, 1]
    assert frame.node.tolist() == [1, 2, 0, 3, 0]
    assert frame.driven.tolist() == [5, 9, 12, 3, 6]
    assert frame.arrival.tolist() == [5, 13, 17, 3, 7]
    assert frame.start.tolist() == [7, 13, 17, 3, 7]  # it waits for the window to open
    assert frame.departure.tolist() == [9, 14, 17, 4, 7]


@pytest.mark.parametrize("closing", [300.0, 1e6, 1e9])
def test_a_depot_that_hardly_closes_leaves_windows_as_they_are(closing: float) -> None:
    """Whose customers are 50 from the depot, each at the other side of it, and served within 5 of the first moment."""
    points = np.array([[50, 50], [100, 50], [0, 50], [50, 100], [50, 0]])
    windows = np.array([[0, closing], *[[50, 55]] * 4])
    instance = neuroute.Instance.from_arrays(
        points, np.array([0, 1, 1, 1, 1]), 10, windows=windows, service=np.zeros(5), name="cross"
    )
    for method in ("pyvrp", "ortools"):
        assert neuroute.solve(instance, method, seconds=0.2).cost == pytest.approx(400)
    with one_line("cross: route 1, customer 2: reached at 150, after its window closes at 55"):
        instance.cost([[1, 2], [3], [4]])


def test_driven_is_in_the_instance_s_distances(tmp_path: Path) -> None:
    rows = "\n".join(f"{i} {1000 * x} {1000 * y}" for i, (x, y) in enumerate(SQUARE.tolist(), 1))
    (tmp_path / "a.tsp").write_text(
        f"TYPE: TSP\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: ATT\nNODE_COORD_SECTION\n{rows}\nEOF\n"
    )
    frame = neuroute.Solution(neuroute.load(tmp_path / "a.tsp"), np.arange(4)).to_frame()
    assert frame.driven.tolist() == pytest.approx([0, *(1000 / 10**0.5 * np.arange(1, 4))])


def test_a_seed_is_of_what_a_decoding_draws_and_may_be_numpy_s() -> None:
    instance = neuroute.load(BERLIN)
    start = np.random.default_rng(0).permutation(52)
    for more in ({"start": start, "decoding": "prc10"}, {"decoding": "rrc10"}):
        costs = [
            neuroute.solve(instance, model="tsp", seed=np.int64(s), device="cpu", **more).cost for s in (0, 1, 2, 0)
        ]
        assert len({*costs}) > 1
        assert costs[0] == costs[3]
    few = [neuroute.generate("tsp", 5, seed=seed)[0].coords for seed in (50, np.int32(50))]
    np.testing.assert_array_equal(*few)


def test_another_default_of_torch_is_one_line() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        with one_line(r"torch's default is float64; networks need torch.set_default_dtype\(torch.float32\)"):
            neuroute.solve(neuroute.generate("tsp", 20)[0], model="tsp", seconds=0)
    finally:
        torch.set_default_dtype(torch.float32)


def test_files_of_two_problems_in_a_folder_are_not_measured_as_one(tmp_path: Path) -> None:
    windows = "TIME_WINDOW_SECTION\n" + "".join(f"{i} 0 9999\n" for i in range(1, 5))
    for name, kind, more in (("a", "CVRP", ""), ("b", "VRPTW", windows)):
        rows = "\n".join(f"{i} {100 * x} {100 * y}" for i, (x, y) in enumerate(SQUARE.tolist(), 1))
        (tmp_path / f"{name}.vrp").write_text(
            f"TYPE: {kind}\nDIMENSION: 4\nCAPACITY: 3\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n{rows}\n"
            f"DEMAND_SECTION\n1 0\n2 1\n3 1\n4 1\n{more}DEPOT_SECTION\n1\n-1\nEOF\n"
        )
    kinds = sorted({neuroute.load(tmp_path / f"{name}.vrp").variant for name in "ab"})
    assert len(kinds) == 2
    with one_line(f"{', '.join(kinds)} cannot be evaluated together; split them by problem"):
        neuroute.evaluate("cvrp", tmp_path)


def test_tours_cards_and_methods_are_shown() -> None:
    tour = neuroute.solve(BERLIN, "nearest")
    frame = tour.to_frame()
    assert frame.node.tolist() == tour.tour
    assert list(frame) == ["node", "driven"]
    assert "berlin52" in tour._repr_html_()
    (card,) = [card for card in neuroute.models() if card.name == "tsp"]
    assert card.to_frame()["set"].tolist() == [gap.set for gap in card.gaps]
    assert card.gap is not None
    assert f"{card.gap.gap:.2f} %" in repr(card)
    assert "<table" in card._repr_html_()
    assert {"hgs-long", "ortools-x10"}.isdisjoint(neuroute.methods("tsp"))


def test_a_typo_of_tsp_is_one() -> None:
    with pytest.raises(neuroute.NeurouteError, match="no routing problem 'tps'; is tsp meant"):
        neuroute.generate("tps")
    with pytest.raises(neuroute.NeurouteError, match="no routing problem 'tps'; did you mean tsp"):
        neuroute.methods("tps")


def test_seeds_give_other_instances_and_first_goes_on_in_one() -> None:
    for problem in ("tsp", "cvrp", "ovrptw", "VRPB"):
        of_seed = [neuroute.generate(problem, 20, 2, seed=seed) for seed in (0, 1, 400_000)]
        every = [each for several in of_seed for each in several]
        assert len({each.coords.tobytes() for each in every}) == 6
        assert {(each.variant, each.n) for each in every} == {(problem.upper(), 20)}
        (second,) = neuroute.generate(problem, 20, first=1, seed=1)
        assert (second.coords == of_seed[1][1].coords).all()
        assert second.name == of_seed[1][1].name == f"{problem.lower()}20_s1_1"
    for seed in (-1, 400_001):
        with pytest.raises(neuroute.NeurouteError, match=f"seed {seed}: .* from 0 to 400,000"):
            neuroute.generate(seed=seed)


def test_what_is_shown_of_objects_is_one_short_line(ship: Ship) -> None:
    ship("tsp")
    instances = neuroute.generate("tsp", 30, 2)
    evaluation = neuroute.evaluate("tsp", instances, reference="nearest", workers=1)
    solution = neuroute.solve(instances[0], "nearest")
    for each in (instances[0], neuroute.load_model("tsp"), evaluation, solution, neuroute.models()[0]):
        assert "\n" not in repr(each)
        assert len(repr(each)) < 160
    assert {"network", "insertion", "nearest"} <= set(neuroute.methods("tsp"))
    assert repr(instances[0]) == "<Instance tsp30_0: TSP, n=30, EXACT_2D>"
    assert "greedy, gap " in repr(evaluation)


def test_a_drawing_takes_any_name_and_any_number_of_routes() -> None:
    """A line a route took half a minute of 3,000."""
    stops = 3000
    coords, demand = np.random.default_rng(0).random((stops + 1, 2)), np.append(0, np.ones(stops, dtype=int))
    instance = neuroute.Instance.from_arrays(coords, demand, 1, name=r"a$b_{c$ \frac{$")
    drawing = instance.plot([[customer] for customer in range(1, stops + 1)])
    drawing.draw_without_rendering()
    assert len(drawing.findobj()) < 1000


def test_demands_below_0_are_backhauls() -> None:
    assert neuroute.Instance.from_arrays(SQUARE, np.array([0, 3, -2, 4]), 6).variant == "VRPB"
