"""`neuroute solve`: tours of each PENS variant, and routes and solutions that users bring, which get no longer."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from untrained import coordinates, done, invoke, refused, tsp_text, untrained, vrp_text

from neuroute.decoding.decode import decode
from neuroute.instances.tsplib import read_solution, read_tour, read_tsplib, read_vrplib
from neuroute.networks.weights import load_checkpoint
from neuroute.plan.objects import Decoding, Network
from neuroute.user.solution import Solution
from neuroute.user.solve_file import solve_file

pytestmark = pytest.mark.usefixtures("one_thread")

NODES = 30
POINTS = np.random.default_rng(7).integers(0, 1000, (NODES, 2))
DEMANDS = np.random.default_rng(8).integers(1, 10, NODES)
PRC = Decoding(method="prc", iterations=40, longest=12)


def tsp(points: np.ndarray = POINTS, kind: str = "EUC_2D") -> str:
    return tsp_text(points, kind)


def vrp(kind: str = "EUC_2D") -> str:
    return vrp_text(POINTS, DEMANDS, 40, kind)


def tour(order: list[int]) -> str:
    return f"TYPE : TOUR\nDIMENSION : {NODES}\nTOUR_SECTION\n" + "\n".join(map(str, order)) + "\n-1\nEOF\n"


def sol(routes: list[list[int]]) -> str:
    return "".join(f"Route #{i}: {' '.join(map(str, r))}\n" for i, r in enumerate(routes, 1))


ALONE = [[customer] for customer in range(1, NODES)]  # a vehicle for each


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, paths = tmp_path_factory.mktemp("models"), {}
    for problem, name in (("tsp", "sit:Sit"), ("cvrp", "sit:SitCvrp")):
        arguments = {"depth": 1, "width": 16, "heads": 2, "feed_forward": 32, "train_nodes": 20}
        network = Network(kind=f"neuroute.networks.{name}", arguments=arguments)
        paths[problem] = untrained(folder / f"{problem}.safetensors", network, f"sit/{problem}")
    return paths


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:
    (tmp_path / "mine.tsp").write_text(tsp())
    (tmp_path / "mine.vrp").write_text(vrp())


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A drawing takes longer than the search on so few nodes."""
    monkeypatch.setattr(Solution, "plot", lambda *_: None)


def test_a_tour_that_is_brought_gets_shorter_and_is_kept(tmp_path: Path, models: dict[str, Path]) -> None:
    (tmp_path / "own.tour").write_text(tour([int(i) for i in np.random.default_rng(0).permutation(NODES) + 1]))
    instance = read_tsplib(tmp_path / "mine.tsp")
    before = instance.length(read_tour(tmp_path / "own.tour", instance))
    out, save = tmp_path / "t.svg", tmp_path / "better.tour"
    options = ("--prc", 40, "--longest", 12, "--from", tmp_path / "own.tour", "--out", out, "--save", save)
    text = done("solve", tmp_path / "mine.tsp", "--model", models["tsp"], *options)
    after = instance.length(read_tour(save, instance))
    assert after < 0.9 * before
    assert f"mine: n=30, length {after:,.0f} (EUC_2D), before {before:,.0f}" in text
    assert out.read_text().rstrip().endswith("</svg>")
    options = ("--prc", 5, "--from", save, "--out", out, "--save", save)
    text = done("solve", tmp_path / "mine.tsp", "--model", models["tsp"], *options)
    assert instance.length(read_tour(save, instance)) <= after


def test_routes_that_are_brought_get_shorter_and_are_kept(tmp_path: Path, models: dict[str, Path]) -> None:
    (tmp_path / "own.sol").write_text(sol(ALONE))
    instance = read_vrplib(tmp_path / "mine.vrp")
    before, save = instance.cost(ALONE), tmp_path / "better.sol"
    said = solve_file(
        tmp_path / "mine.vrp",
        models["cvrp"],
        PRC,
        tmp_path / "r.png",
        "cpu",
        start=tmp_path / "own.sol",
        save=save,
    )
    routes, stated = read_solution(save)
    instance.check(routes, "better")
    assert stated == instance.cost(routes) < 0.9 * before
    assert f"mine: n=29, {len(routes)} routes, length {stated:,.0f} (EUC_2D), before {before:,.0f}" in said
    assert (tmp_path / "r.png").stat().st_size > 1000


def test_beams_find_routes(tmp_path: Path, models: dict[str, Path]) -> None:
    how, save = Decoding(method="beam", beam=4), tmp_path / "a.sol"
    solve_file(tmp_path / "mine.vrp", models["cvrp"], how, tmp_path / "x.svg", "cpu", save=save)
    routes, stated = read_solution(save)
    instance = read_vrplib(tmp_path / "mine.vrp")
    instance.check(routes, "a.sol")
    assert stated == instance.cost(routes)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("kind", ["ATT", "GEO", "CEIL_2D", "EUC_2D"])
def test_nothing_gets_longer_in_the_files_own_distances(tmp_path: Path, models: dict[str, Path], kind: str) -> None:
    points = np.random.default_rng(3).integers(-60, 60, (NODES, 2)) if kind == "GEO" else POINTS % 40
    (tmp_path / "mine.tsp").write_text(tsp(points, kind))
    instance, save = read_tsplib(tmp_path / "mine.tsp"), tmp_path / "own.tour"
    save.write_text(tour(list(range(1, NODES + 1))))
    lengths = [instance.length(read_tour(save, instance))]
    for _ in range(4):
        solve_file(tmp_path / "mine.tsp", models["tsp"], PRC, tmp_path / "t.svg", "cpu", start=save, save=save)
        lengths.append(instance.length(read_tour(save, instance)))
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] < lengths[0]


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("start", ["greedy", "insertion", "insertion-angle", "insertion-published", "nearest"])
def test_every_start_serves_both_problems(tmp_path: Path, models: dict[str, Path], start: str) -> None:
    lengths = {}
    for iterations in (0, 30):
        for ending, problem, kept in ((".tsp", "tsp", "a.tour"), (".vrp", "cvrp", "a.sol")):
            how = Decoding.model_validate({"method": "prc", "iterations": iterations, "start": start})
            said = solve_file(
                tmp_path / f"mine{ending}", models[problem], how, tmp_path / "x.svg", "cpu", save=tmp_path / kept
            )
            assert said.startswith("mine: n=")
        instance, routing = read_tsplib(tmp_path / "mine.tsp"), read_vrplib(tmp_path / "mine.vrp")
        routes, _ = read_solution(tmp_path / "a.sol")
        routing.check(routes, "a.sol")
        lengths[iterations] = (
            instance.length(read_tour(tmp_path / "a.tour", instance), rounded=False),
            routing.length(routes, rounded=False),
        )
    assert all(after <= before for after, before in zip(lengths[30], lengths[0], strict=True))


def test_exact_distances_are_said_with_decimals(tmp_path: Path, models: dict[str, Path]) -> None:
    (tmp_path / "mine.vrp").write_text(vrp(kind="EXACT_2D"))
    said = solve_file(tmp_path / "mine.vrp", models["cvrp"], Decoding(), tmp_path / "x.svg", "cpu")
    number = said.split("length ")[1].split(" ")[0]
    assert len(number.split(".")[1]) == 2


def test_a_best_known_solution_stays_what_it_is_in_the_librarys_distances(
    tmp_path: Path, models: dict[str, Path], public: Callable[[str], Path]
) -> None:
    path = public("benchmarks/cvrplib_x/X-n101-k25.vrp")
    best = path.with_suffix(".sol")
    how = Decoding(method="prc", iterations=10)
    said = solve_file(path, models["cvrp"], how, tmp_path / "x.svg", "cpu", start=best, save=tmp_path / "x.sol")
    assert "length 27,591 (EUC_2D), before 27,591" in said
    assert read_solution(tmp_path / "x.sol")[1] == 27591
    other = path.with_name("X-n106-k14.sol")
    assert "X-n106-k14.sol" in refused(
        "solve", path, "--model", models["cvrp"], "--prc", 1, "--from", other, "--out", tmp_path / "y.svg"
    )
    assert not (tmp_path / "y.svg").exists()


GOOD = list(range(1, NODES + 1))


@pytest.mark.parametrize(
    ("problem", "text", "message"),
    [
        ("tsp", tour([*GOOD[:-1], 1]), "node 1 is visited 2 times; once is meant"),
        ("tsp", tour(GOOD[:-1]), "node 30 is visited 0 times"),
        ("tsp", tour([*GOOD[:-1], 31]), "line 33: there is no node 31 in mine"),
        ("tsp", tour([*GOOD[:-1], 0]), "line 33: there is no node 0 in mine"),
        ("tsp", tour(GOOD).replace("DIMENSION : 30", "DIMENSION : 52"), "DIMENSION says 52, but mine has 30 nodes"),
        ("tsp", tour(GOOD).replace("7\n", "seven\n", 1), "there is no node seven"),
        ("tsp", tour(GOOD).replace("7\n", "2" * 5000 + "\n", 1), "line 10: there is no node 222"),
        ("tsp", "rubbish", "`rubbish` is in no section"),
        ("tsp", tsp(), "no TOUR_SECTION"),
        ("cvrp", sol([*ALONE, [3]]), "customer 3 is served 2 times; once is meant"),
        ("cvrp", sol(ALONE[:-1]), "customer 29 is served 0 times"),
        ("cvrp", sol([*ALONE[:-1], [30]]), "no customer 30 among 1..29"),
        ("cvrp", sol([list(range(1, NODES))]), "more than the capacity 40"),
        ("cvrp", sol(ALONE) + "Cost 27591\n", "states a cost of 27591, but these routes cost"),
        ("cvrp", "rubbish", "no line `Route #k"),
    ],
)
def test_what_is_no_solution_is_one_line(
    tmp_path: Path, models: dict[str, Path], problem: str, text: str, message: str
) -> None:
    instance, ending = ("mine.tsp", "tour") if problem == "tsp" else ("mine.vrp", "sol")
    bad, save, drawing = tmp_path / f"bad.{ending}", tmp_path / f"kept.{ending}", tmp_path / "t.svg"
    bad.write_text(text)
    options = ("--model", models[problem], "--prc", 5, "--from", bad, "--out", drawing, "--save", save)
    assert message in refused("solve", tmp_path / instance, *options)
    assert bad.read_text() == text
    assert not save.exists()
    assert not drawing.exists()


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("CAPACITY: 40", "CAPACITY: 0", "CAPACITY says 0; give a whole number above 0"),
        ("CAPACITY: 40", "CAPACITY: -40", "CAPACITY says -40"),
        ("CAPACITY: 40", "CAPACITY: 2", "more than the capacity 2"),
        ("DEPOT_SECTION\n1\n-1\n", "", "DEPOT_SECTION names no node"),
        ("DEPOT_SECTION\n1\n", "DEPOT_SECTION\n99\n", "DEPOT_SECTION names 99"),
        (coordinates(POINTS), coordinates(np.full_like(POINTS, 3)), "all nodes lie on one point"),
    ],
)
def test_instances_that_are_none_are_one_line(
    tmp_path: Path, models: dict[str, Path], before: str, after: str, message: str
) -> None:
    assert before in vrp()
    (tmp_path / "bad.vrp").write_text(vrp().replace(before, after))
    assert message in refused("solve", tmp_path / "bad.vrp", "--model", models["cvrp"], "--out", tmp_path / "t.svg")
    if "coord" in before.lower():
        (tmp_path / "bad.tsp").write_text(tsp(np.full_like(POINTS, 3)))
        code, said = invoke("solve", tmp_path / "bad.tsp", "--model", models["tsp"], "--out", tmp_path / "t.svg")
        assert (code, message in said) == (2, True)
    assert not (tmp_path / "t.svg").exists()


def test_options_that_do_not_go_together_are_one_line(tmp_path: Path, models: dict[str, Path]) -> None:
    own, routes = tmp_path / "own.tour", tmp_path / "own.sol"
    own.write_text(tour(GOOD))
    routes.write_text(sol(ALONE))
    tsp_file, vrp_file, of_tsp = tmp_path / "mine.tsp", tmp_path / "mine.vrp", ("--model", models["tsp"])
    of_cvrp = ("--model", models["cvrp"])
    cases: list[tuple[tuple[object, ...], str]] = [
        ((tsp_file, *of_cvrp), "mine: is a TSP, but sit/cvrp solves CVRP; take a network for TSP"),
        ((vrp_file, *of_tsp), "mine: is a CVRP, but sit/tsp solves TSP; take a network for CVRP"),
        ((tsp_file, *of_tsp, "--prc", 5, "--longest", 3), "--longest 3: a sub-path has at least 4 stops"),
        ((tsp_file, *of_tsp, "--prc", 5, "--longest", 31), "mine: --longest 31 is more than its 30 stops"),
        ((vrp_file, *of_cvrp, "--prc", 5, "--longest", 30), "mine: --longest 30 is more than its 29 stops"),
        ((tsp_file, *of_tsp, "--longest", 9), "--start and --longest are for --prc"),
        ((tsp_file, *of_tsp, "--start", "nearest"), "--start and --longest are for --prc"),
        ((tsp_file, *of_tsp, "--prc", 5, "--start", "farthest"), "--start farthest: unknown; take greedy, insertion"),
        ((tsp_file, *of_tsp, "--prc", 5, "--rrc", 5), "exclude each other"),
        ((tsp_file, *of_tsp, "--prc", 5, "--beam", 2), "exclude each other"),
        ((tsp_file, *of_tsp, "--rrc", 5, "--from", own), "--from: the solution of a file is improved by --prc"),
        ((tsp_file, *of_tsp, "--rrc", 5, "--seconds", 1), "--seconds: --decoding to --revise say how long it takes"),
        ((tsp_file, *of_tsp, "--prc", 5, "--from", own, "--start", "nearest"), "without --start"),
        ((tsp_file, *of_tsp, "--prc", 5, "--from", routes), "--from"),
        ((vrp_file, *of_cvrp, "--prc", 5, "--from", own), "is a file that ends in .sol"),
        ((vrp_file, *of_cvrp, "--save", tmp_path / "s.tour"), "--save"),
        ((vrp_file, *of_cvrp, "--rescale", 2), "leave it out for the CVRP"),
        ((own, *of_tsp), "a TSPLIB file (.tsp, .atsp) or a VRPLIB file (.vrp) is expected"),
    ]
    for arguments, message in cases:
        assert message in refused("solve", *arguments, "--out", tmp_path / "t.svg")
    assert "must end in" in refused("solve", tsp_file, *of_tsp, "--out", tmp_path / "tour.txt")
    assert not (tmp_path / "t.svg").exists()
    assert not (tmp_path / "s.tour").exists()


def test_tours_use_the_files_own_numbers(tmp_path: Path) -> None:
    text = tsp(POINTS[:5]).replace("\n1 ", "\n10 ").replace("\n2 ", "\n0 ")
    (tmp_path / "odd.tsp").write_text(text)
    instance = read_tsplib(tmp_path / "odd.tsp")
    (tmp_path / "odd.tour").write_text("TYPE : TOUR\nTOUR_SECTION\n0 5 10\n4 3 -1\n")
    assert read_tour(tmp_path / "odd.tour", instance).tolist() == [1, 4, 0, 3, 2]


# -- each PENS variant ----------------------------------------------------------------------------------------------

KIND = "neuroute.networks.pens:Pens"
VARIANTS = [("alibi", "gaussian"), ("rope", "gaussian"), ("both", "zero"), ("coordinates", "gaussian")]
LINE = re.compile(
    r"^(\S+): n=(\d+), length ([\d,]+) \((\w+)\)(?:, gap [\d.]+ %)?, [\d.]+ s, pens/\w+, [\w, -]+; tour in (.+)$"
)


def checkpoint(folder: Path, positions: str = "both", initial: str = "gaussian", code: str | None = None) -> Path:
    arguments = {"depth": 2, "width": 16, "heads": 2, "feed_forward": 32, "train_nodes": 20}
    network = Network(kind=KIND, arguments={**arguments, "positions": positions, "initial": initial})
    return untrained(folder / "model.safetensors", network, f"pens/{positions}", code)


def dozen(folder: Path, x5: float = 500.0) -> Path:
    """A file of twelve nodes; x5: the first coordinate of node 5."""
    points = np.random.default_rng(5).integers(0, 1000, (12, 2)).astype(float)
    points[4, 0] = x5
    (folder / "dozen.tsp").write_text(tsp_text(points, name="dozen"))
    return folder / "dozen.tsp"


@pytest.mark.parametrize(("positions", "initial"), VARIANTS)
@pytest.mark.parametrize("how", [Decoding(), Decoding(method="beam", beam=3), Decoding(method="rrc", iterations=5)])
@pytest.mark.parametrize("name", ["dozen", "berlin52"])
def test_each_variant_solves_a_file(
    tmp_path: Path, public: Callable[[str], Path], name: str, how: Decoding, positions: str, initial: str
) -> None:
    path = dozen(tmp_path) if name == "dozen" else public("benchmarks/tsplib/berlin52.tsp")
    model, drawing = checkpoint(tmp_path, positions, initial), tmp_path / "tour.svg"
    said = LINE.match(solve_file(path, model, how, drawing, "cpu"))
    assert said
    net, _ = load_checkpoint(model)
    instance = read_tsplib(path)
    tour = decode("tsp", net, instance.inputs(), how)[0].numpy()
    nodes = len(instance.coords)
    assert sorted(tour) == list(range(nodes))
    assert said.groups() == (name, str(nodes), f"{instance.length(tour):,.0f}", "EUC_2D", str(drawing))
    assert drawing.read_text().rstrip().endswith("</svg>")
    if name == "berlin52":
        assert instance.length(tour) >= 7542  # the published optimum


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_the_command_line_prints_a_length_and_draws_the_tour(tmp_path: Path, ending: str) -> None:
    drawing = tmp_path / f"tour.{ending}"
    text = done("solve", dozen(tmp_path), "--model", checkpoint(tmp_path), "--beam", 2, "--out", drawing)
    assert "dozen: n=12, length" in text
    assert drawing.stat().st_size > 1000


def test_bad_files_and_checkpoints_of_other_code_are_one_line(tmp_path: Path) -> None:
    model = checkpoint(tmp_path)
    said = refused("solve", dozen(tmp_path, x5=np.nan), "--model", model)
    assert "node 5 has a coordinate that is not a number" in said
    assert invoke("solve", dozen(tmp_path), "--model", tmp_path / "none", "--beam", 0)[0] == 2
    said = refused("solve", dozen(tmp_path), "--model", checkpoint(tmp_path, code="other"))
    assert "another version of the network's code" in said
