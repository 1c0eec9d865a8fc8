"""`neuroute solve`: files as decoding solves them, solutions that users bring, which get no longer, and refusals."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from untrained import done, refused, tsp_text, untrained, vrp_text

from neuroute.api.files import load
from neuroute.api.solve import solve_file
from neuroute.core.digest import locate
from neuroute.decoding.decode import decode
from neuroute.networks.weights import load_checkpoint, save_checkpoint
from neuroute.problems.instances.instance import Instance
from neuroute.problems.instances.tsplib import read_solution, read_tour
from neuroute.problems.vrp import from_routes
from neuroute.specs.objects import Decoding, Network

NODES = 30
POINTS = np.random.default_rng(7).integers(0, 1000, (NODES, 2))
DEMANDS = np.random.default_rng(8).integers(1, 10, NODES)
COORDS = np.random.default_rng(3).random((5, 9, 2))
PRC = Decoding(method="prc", iterations=10, longest=12)


def tsp(points: np.ndarray = POINTS, kind: str = "EUC_2D") -> str:
    return tsp_text(points, kind)


def vrp() -> str:
    return vrp_text(POINTS, DEMANDS, 40)


def tour(order: list[int]) -> str:
    return f"TYPE : TOUR\nDIMENSION : {NODES}\nTOUR_SECTION\n" + "\n".join(map(str, order)) + "\n-1\nEOF\n"


def sol(routes: list[list[int]]) -> str:
    return "".join(f"Route #{i}: {' '.join(map(str, r))}\n" for i, r in enumerate(routes, 1))


ALONE = [[customer] for customer in range(1, NODES)]  # a vehicle for each


SHAPE: dict[str, Any] = {"depth": 1, "width": 16, "feed_forward": 32, "train_nodes": 20}
HEADS = {"heads": 2}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "tsp": ("sit:Sit", HEADS),
    "cvrp": ("sit:SitCvrp", HEADS),
    "pens": ("pens:Pens", HEADS),
    "icam": ("icam:Icam", {}),
    "icam_cvrp": ("icam:IcamCvrp", {}),
    "pomo_cvrp": ("pomo:PomoCvrp", HEADS),
    "invit": ("invit:Invit", HEADS | {"views": [6, 9], "actions": 4}),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, paths = tmp_path_factory.mktemp("models"), {}
    for name, (kind, more) in KINDS.items():
        network = Network(kind=locate(f"neuroute.networks.{kind}"), arguments=SHAPE | more)
        paths[name] = untrained(folder / f"{name}.safetensors", network, f"sit/{name}")
    return paths


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of any checkout."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.tsp").write_text(tsp())
    (tmp_path / "mine.vrp").write_text(vrp())


# -- files ----------------------------------------------------------------------------------------------------------

OPTIONS: list[tuple[tuple[str, ...], Decoding]] = [
    (("--starts", "1"), Decoding()),
    (("--starts", "4"), Decoding(starts=4)),
    (("--starts", "all"), Decoding(starts="all")),
    (("--augment",), Decoding(starts="all", augment=True)),
    (("--starts", "all", "--augment"), Decoding(starts="all", augment=True)),
    (("--images", "3"), Decoding(starts="all", images=3)),
    (("--starts", "1", "--images", "3"), Decoding(images=3)),
]
SEARCHES: list[tuple[tuple[str, ...], Decoding]] = [
    (("--decoding", "greedy"), Decoding()),
    (("--beam", "3"), Decoding(method="beam", beam=3)),
    (("--rrc", "5"), Decoding(method="rrc", iterations=5)),
]


@pytest.mark.parametrize(
    ("name", "options", "decoding"),
    [
        *((name, *each) for name in ("icam", "icam_cvrp") for each in OPTIONS),
        *((name, *each) for name in ("pens", "cvrp") for each in SEARCHES),
        ("pens", ("--rescale", "2"), Decoding(rescale=2.0)),
    ],
)
def test_files_are_solved_as_decoding_does(
    tmp_path: Path, models: dict[str, Path], name: str, options: tuple[str, ...], decoding: Decoding
) -> None:
    net, _ = load_checkpoint(models[name])
    ending, save = (".vrp", "m.sol") if net.problem == "cvrp" else (".tsp", "m.tour")
    text = done("solve", f"mine{ending}", "--model", models[name], "--save", save, *options)
    if net.problem == "cvrp":
        routing = load(tmp_path / "mine.vrp")
        routes, length = read_solution(tmp_path / save)
        routing.check(routes, save)
        found, wanted = from_routes(routes), decode("cvrp", net, routing.inputs(), decoding)[0].numpy()
        assert length == routing.cost(routes)
    else:
        instance = load(tmp_path / "mine.tsp")
        found, wanted = read_tour(tmp_path / save, instance), decode("tsp", net, instance.inputs(), decoding)[0].numpy()
        length = instance.length(found)
    np.testing.assert_array_equal(found, wanted)
    assert text.startswith("mine: n=")
    assert f"length {length:,.0f} (EUC_2D)" in text


# -- solutions of the user's ------------------------------------------------------------------------------------------


def length_of(instance: Instance, path: Path) -> float:
    """Of a file's solution, in the instance's own distances, as it states itself."""
    if path.suffix == ".tour":
        return instance.length(read_tour(path, instance))
    routes, stated = read_solution(path)
    instance.check(routes, path.name)
    assert stated in (None, instance.cost(routes))
    return instance.cost(routes)


@pytest.mark.parametrize(
    ("model", "ending", "drawing"), [("tsp", ".tour", "t.svg"), ("icam", ".tour", "t.svg"), ("cvrp", ".sol", "r.png")]
)
def test_a_solution_that_is_brought_gets_shorter_and_is_kept(
    tmp_path: Path, models: dict[str, Path], model: str, ending: str, drawing: str
) -> None:
    own, save, out = (tmp_path / name for name in (f"own{ending}", f"better{ending}", drawing))
    own.write_text(sol(ALONE) if model == "cvrp" else tour((np.random.default_rng(0).permutation(NODES) + 1).tolist()))
    file = tmp_path / ("mine.vrp" if model == "cvrp" else "mine.tsp")
    instance = load(file)
    before, options = length_of(instance, own), ("--model", models[model], "--out", out, "--save", save)
    text = done("solve", file, *options, "--prc", 40, "--longest", 12, "--from", own)
    after = length_of(instance, save)
    assert after < 0.9 * before
    size = f"n=29, {len(read_solution(save)[0])} routes" if model == "cvrp" else "n=30"
    assert f"mine: {size}, length {after:,.0f} (EUC_2D), before {before:,.0f}" in text
    assert f"{'routes' if model == 'cvrp' else 'tour'} in {out}" in text
    assert out.stat().st_size > 1000
    done("solve", file, *options, "--prc", 5, "--from", save)
    assert length_of(instance, save) <= after


@pytest.mark.parametrize("kind", ["ATT", "GEO", "CEIL_2D", "EUC_2D"])
def test_nothing_gets_longer_in_the_files_own_distances(tmp_path: Path, models: dict[str, Path], kind: str) -> None:
    points = np.random.default_rng(3).integers(-60, 60, (NODES, 2)) if kind == "GEO" else POINTS % 40
    (tmp_path / "mine.tsp").write_text(tsp(points, kind))
    instance, save = load(tmp_path / "mine.tsp"), tmp_path / "own.tour"
    save.write_text(tour(list(range(1, NODES + 1))))
    lengths = [length_of(instance, save)]
    for _ in range(4):
        solve_file(tmp_path / "mine.tsp", models["tsp"], PRC, None, "cpu", start=save, save=save)
        lengths.append(length_of(instance, save))
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] < lengths[0]


def test_a_best_known_solution_stays_what_it_is_in_the_librarys_distances(
    tmp_path: Path, models: dict[str, Path], public: Callable[[str], Path]
) -> None:
    path = public("benchmarks/cvrplib_x/X-n101-k25.vrp")
    best = path.with_suffix(".sol")
    how = Decoding(method="prc", iterations=10)
    said, _ = solve_file(path, models["cvrp"], how, None, "cpu", start=best, save=tmp_path / "x.sol")
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
        ("tsp", tour([*GOOD[:-1], 31]), "there is no node 31 in mine"),
        ("tsp", tour(GOOD).replace("DIMENSION : 30", "DIMENSION : 52"), "DIMENSION says 52, but mine has 30 nodes"),
        ("tsp", tour(GOOD).replace("7\n", "seven\n", 1), "line 10: expected `numbers` in plain digits, got `seven`"),
        ("cvrp", sol([*ALONE, [3]]), "customer 3 is served 2 times; once is meant"),
        ("cvrp", sol([*ALONE[:-1], [30]]), "no customer 30 among 1..29"),
        ("cvrp", sol([list(range(1, NODES))]), "more than the capacity 40"),
        ("cvrp", sol(ALONE) + "Cost 27591\n", "states a cost of 27591, but its routes cost"),
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


def test_options_that_do_not_go_together_are_one_line(tmp_path: Path, models: dict[str, Path]) -> None:
    own, routes = tmp_path / "own.tour", tmp_path / "own.sol"
    own.write_text(tour(GOOD))
    routes.write_text(sol(ALONE))
    tsp_file, vrp_file, of_tsp = tmp_path / "mine.tsp", tmp_path / "mine.vrp", ("--model", models["tsp"])
    of_cvrp, many = ("--model", models["cvrp"]), ("--model", models["icam"])
    many_routes = ("--model", models["pomo_cvrp"])
    cases: list[tuple[tuple[object, ...], str]] = [
        ((tsp_file, *of_cvrp), "mine: is a TSP, but sit/cvrp solves CVRP; take a network for TSP"),
        ((vrp_file, *of_tsp), "mine: is a CVRP, but sit/tsp solves TSP; take a network for CVRP"),
        ((tsp_file, *of_tsp, "--start", "nearest"), "--start and --longest are for --prc"),
        ((tsp_file, *of_tsp, "--prc", 5, "--rrc", 5), "exclude each other"),
        ((tsp_file, *of_tsp, "--rrc", 5, "--from", own), "--from: the solution of a file is improved by --prc"),
        ((tsp_file, *of_tsp, "--rrc", 5, "--seconds", 1), "--seconds: limits a search"),
        ((tsp_file, *of_tsp, "--seconds", "inf"), "seconds: inf is no time"),
        ((tsp_file, "--solver", ","), "--solver: names none"),
        ((vrp_file, *of_cvrp, "--prc", 5, "--from", own), "is a file that ends in .sol"),
        ((vrp_file, *of_cvrp, "--save", tmp_path / "s.tour"), "--save"),
        ((vrp_file, *of_cvrp, "--rescale", 2), "leave it out for the CVRP"),
        *(((tsp_file, *of_tsp, "--rescale", x), "stretched by a number above 0") for x in (0, -1, "nan")),
        ((tsp_file, *of_tsp, "--starts", "all"), "Sit builds one solution of an instance"),
        ((tsp_file, *many, "--starts", NODES + 1), "mine: --starts 31 is more than its 30 stops"),
        (
            (tsp_file, *many, "--starts", "all", "--prc", 3),
            "starts: re-construction in parallel begins with one solution",
        ),
        ((tsp_file, *many, "--images", 2, "--rrc", 3), "augment and images are for method 'greedy', not 'rrc'"),
        ((tsp_file, *many, "--images", 2, "--augment"), "augment has eight images of its own; leave `images` out"),
        ((tsp_file, *many, "--rescale", 2), "leave `rescale` and `esf` out"),
        ((vrp_file, *many_routes, "--rrc", 3), "PomoCvrp: re-construction and beam search"),
        ((own, *of_tsp), "instances are read from .npz, .csv, .txt"),
    ]
    for arguments, message in cases:
        assert message in refused("solve", *arguments, "--out", tmp_path / "t.svg")
    assert "must end in" in refused("solve", tsp_file, *of_tsp, "--out", tmp_path / "tour.txt")
    assert not (tmp_path / "t.svg").exists()
    assert not (tmp_path / "s.tour").exists()
    for options in (("--starts", "all"), ("--augment",), ("--images", 2)):
        assert "either an evaluation of the plan" in refused("evaluate", "scaling/x", *options)


def test_tours_use_the_files_own_numbers(tmp_path: Path) -> None:
    text = tsp(POINTS[:5]).replace("\n1 ", "\n10 ").replace("\n2 ", "\n0 ")
    (tmp_path / "odd.tsp").write_text(text)
    instance = load(tmp_path / "odd.tsp")
    (tmp_path / "odd.tour").write_text("TYPE : TOUR\nTOUR_SECTION\n0 5 10\n4 3 -1\n")
    assert read_tour(tmp_path / "odd.tour", instance).tolist() == [1, 4, 0, 3, 2]


@pytest.mark.parametrize("name", ["icam", "icam_cvrp", "pomo_cvrp"])
def test_a_diverged_model_is_refused_where_decoding_would_never_end(
    tmp_path: Path, models: dict[str, Path], name: str
) -> None:
    """The last tensor of its checkpoint holds a NaN."""
    loads = {"demand": np.tile(np.append(0, DEMANDS[:8]), (5, 1)), "capacity": np.full(5, 20)}
    np.savez(tmp_path / "mine.npz", coords=COORDS, **(loads if "cvrp" in name else {}))
    model = tmp_path / "diverged.safetensors"
    net, about = load_checkpoint(models[name])
    with torch.no_grad():
        list(net.parameters())[-1].view(-1)[0] = torch.nan
    save_checkpoint(model, net, about)
    said = refused("evaluate", "--model", model, "--data", "mine.npz", "--starts", "all", "--out", "found.csv")
    assert said.startswith(f"error: {model}: weights of sit/{name} are not finite")
    assert "learning rate" in said
    assert not (tmp_path / "found.csv").exists()
