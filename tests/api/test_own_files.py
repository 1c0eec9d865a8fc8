"""Files as people have them: remarks, other encodings and endings, what lies beside them, tables, VRPLIB's windows.

Right lengths are from all permutations, or by hand.
"""

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import one_line
from untrained import done, refused

import neuroute
from neuroute.api.evaluate import doubts
from neuroute.api.files import load, load_all, read_instances
from neuroute.core.errors import NeurouteError
from neuroute.problems.instances.instance import Instance

TSP = """NAME : t
TYPE : TSP
DIMENSION : 6
EDGE_WEIGHT_TYPE : EUC_2D
NODE_COORD_SECTION
1 0 0
2 30 0
3 30 40
4 0 40
5 15 20
6 50 10
EOF
"""
VRP = """NAME : v
TYPE : CVRP
DIMENSION : 6
EDGE_WEIGHT_TYPE : EUC_2D
CAPACITY : 12
NODE_COORD_SECTION
1 40 40
2 22 22
3 36 26
4 21 45
5 45 35
6 55 20
DEMAND_SECTION
1 0
2 6
3 4
4 5
5 7
6 3
DEPOT_SECTION
1
-1
EOF
"""
ACVRP = """NAME : SIMPLE
TYPE : ACVRP
EDGE_WEIGHT_TYPE : EXPLICIT
EDGE_WEIGHT_FORMAT : FULL_MATRIX
DIMENSION : 4
VEHICLES : 2
CAPACITY : 2
EDGE_WEIGHT_SECTION
0 2 9 4
1 0 5 7
3 8 0 2
6 1 4 0
DEMAND_SECTION
1 1
2 1
3 0
4 1
DEPOT_SECTION
3
EOF
"""
SERVICE = "SERVICE_TIME_SECTION\n1 0\n2 5\n3 5\n4 5\n5 5\n6 5\n"
WINDOWS = VRP.replace("CVRP", "VRPTW").replace(
    "EOF", f"{SERVICE}TIME_WINDOW_SECTION\n1 0 400\n2 0 300\n3 0 300\n4 0 300\n5 0 300\n6 50 90\nEOF"
)
SOLOMON = (
    "r5\n\nVEHICLE\nNUMBER     CAPACITY\n  25 200\n\nCUSTOMER\nCUST NO.  XCOORD.   YCOORD.    DEMAND   READY TIME  "
    "DUE DATE   SERVICE   TIME\n\n0 40 50 0 0 240 0\n1 45 68 10 0 200 10\n2 45 70 30 0 210 10\n3 42 66 10 0 220 10\n"
    "4 42 68 10 0 220 10\n5 42 65 10 0 220 10\n"
)


def read(folder: Path, text: str, name: str = "a.vrp", ignore: Sequence[str] = ()) -> Instance:
    (folder / name).write_text(text)
    return load(folder / name, ignore=ignore)


def shortest(text: str, tmp_path: Path) -> float:
    """The least length of all tours of what is read of a text."""
    (tmp_path / "a.tsp").write_bytes(text.encode("latin1"))
    instance = load(tmp_path / "a.tsp")
    return min(instance.cost(np.array([0, *p])) for p in permutations(range(1, instance.n)))


@pytest.mark.parametrize(
    "text",
    [
        TSP,
        TSP + "\nOptimal tour length 150\n",
        TSP.replace("EOF", "eof\n1 2 3 4 5"),
        TSP.replace("TYPE : TSP", "type : TSP (M.~Hofmeister)"),
        TSP.replace("NAME : t", "# of a script\nNAME : t"),
        TSP.replace("DIMENSION : 6\n", "").replace("EOF", "DIMENSION : 6\nEOF"),
        TSP.replace("NAME : t", "COMMENT : Grötschel, Zürich"),
        TSP.replace("EUC_2D", "euc_2d").replace("_SECTION", "_SECTION:"),
    ],
    ids=["plain", "after EOF", "lower eof", "remark", "comment", "keys below", "Latin-1", "lower case"],
)
def test_what_is_around_an_instance_changes_nothing(tmp_path: Path, text: str) -> None:
    assert shortest(text, tmp_path) == 168


@pytest.mark.parametrize("encoding", ["latin1", "cp1252", "utf-8", "utf-8-sig", "utf-16"])
def test_encodings_are_read_and_what_is_guessed_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, encoding: str
) -> None:
    (tmp_path / "a.TSP").write_text(TSP.replace("NAME : t", "NAME : Zürich"), encoding=encoding)
    instance = load(tmp_path / "a.TSP")
    assert (instance.name, instance.n) == ("Zürich", 6)
    assert ("a.TSP, line 1: not in UTF-8; read as Latin-1" in caplog.text) == (encoding in ("latin1", "cp1252"))
    (tmp_path / "b.tsp").write_bytes(b"\x89PNG\r\n\x00")
    with one_line("b.tsp, line 2: not a text file"):
        load(tmp_path / "b.tsp")


def test_exact_distances_are_read_in_every_library(tmp_path: Path) -> None:
    head = "NAME: t\nTYPE: TSP\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: EXACT_2D\nNODE_COORD_SECTION\n"
    own = np.array([[0.855, 0.7658], [1.0, 0.4735], [0.1005, 0.556], [0.3, 0.1]])
    points = "".join(f"{i} {x} {y}\n" for i, (x, y) in enumerate(own.tolist(), 1))
    tours = [(0, *p) for p in permutations((1, 2, 3))]
    best = min(sum(np.hypot(*(own[a] - own[b])) for a, b in zip(t, (*t[1:], 0), strict=True)) for t in tours)
    assert shortest(f"{head}{points}EOF\n", tmp_path) == pytest.approx(best, rel=1e-12)
    routes = [[2, 5], [1, 3], [4]]
    exact, rounded = (read(tmp_path, VRP.replace("EUC_2D", kind)) for kind in ("EXACT_2D", "EUC_2D"))
    assert (exact.cost(routes), rounded.cost(routes)) == (pytest.approx(141.75, abs=0.005), 142)


def test_type_is_judged_first_and_by_its_first_word(tmp_path: Path) -> None:
    assert read(tmp_path, VRP.replace("CVRP", "CVRP (symmetric)")).variant == "CVRP"
    instance = read(tmp_path, ACVRP)
    routes = [[[a, b], [c]] for a, b, c in permutations((1, 2, 3))]
    assert (instance.variant, min(map(instance.cost, [*routes, [[1], [2], [3]]]))) == ("ACVRP", 16)
    for ending, text in ((".vrp", TSP), (".tsp", VRP), (".txt", TSP)):  # whatever the file is called
        assert read(tmp_path, text, f"c{ending}").variant == ("TSP" if text == TSP else "CVRP")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsp", "NAME : h\nTYPE : HCP\nDIMENSION : 5\nEDGE_DATA_SECTION\n1 2\n-1\nEOF\n", "TYPE HCP .a Hamiltonian"),
        ("a.hcp", "TYPE : HCP\nDIMENSION : 5\n", "TYPE HCP"),
        ("a.sop", "NAME: s\nTYPE: SOP\nDIMENSION: 5\n", "TYPE SOP .a sequential ordering"),
        ("a.vrp", VRP.replace("CVRP", "PDPTW"), "TYPE PDPTW .pickup and delivery. is not read"),
        ("a.vrp", VRP.replace("CVRP", "MDVRP (two depots)"), "TYPE MDVRP .several depots"),
        ("a.vrp", VRP.replace("CVRP", "EVRP"), "TYPE EVRP is not read; TSP"),
        ("a.txt", "25\t200\t1\n" + "0\t40\t50\t0\t0\t400\t0\t0\t0\n" * 3, "columns of Li and Lim.*PDPTW"),
        ("a.txt", "0.1 0.2\n0.3 0.4\n0.5 0.6\n", "a table of nodes as .csv"),
        ("a.vrp", VRP.replace("EOF", "PICKUP_SECTION\n1 0\nEOF"), "PICKUP_SECTION is not supported for TYPE CVRP"),
        ("a.vrp", VRP.replace("EOF", f"{SERVICE}EOF"), "SERVICE_TIME_SECTION is not supported for TYPE CVRP"),
        ("a.vrp", WINDOWS.replace("EUC_2D", "ATT"), "ATT is not read with TYPE VRPTW"),
        (
            "a.tsp",
            "TYPE: TSP\nDIMENSION: 4\nEDGE_DATA_FORMAT: EDGE_LIST\nEDGE_DATA_SECTION\n1 2\n",
            "EDGE_DATA_FORMAT is not",
        ),
        ("a.vrp", VRP.replace("CAPACITY : 12", "VEHICLE_TYPES : 2"), "VEHICLE_TYPES is not supported"),
        ("a.tsp", "TYPE : OP\nDIMENSION : 3\nCOST_LIMIT : 5\n", "TYPE OP is not read"),
        ("a.tsp.gz", "packed", "a.tsp.gz: unpack it first"),
        ("a.tsp", TSP[TSP.index("NODE_COORD") :], "no EDGE_WEIGHT_TYPE"),
    ],
)
def test_other_problems_are_refused_by_name_and_without_a_guess(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    with pytest.raises(NeurouteError, match=message) as error:
        read(tmp_path, text, name)
    assert "did you mean" not in str(error.value)


def test_slips_of_names_that_are_read_are_guessed(tmp_path: Path) -> None:
    with one_line("did you mean DEMAND_SECTION"):
        read(tmp_path, VRP.replace("DEMAND_SECTION", "DEMANDS_SECTION"))


# -- what lies beside a file ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "known", "message"),
    [
        ("Cost 142", 142, ""),
        ("Cost 141.75", 142, "its cost 141.75 is the length without rounding; gaps are to 142"),
        ("Cost 99", 142, "its cost 99 is not the length of its routes; gaps are to 142"),
        ("Cost x", None, "line 4: expected `Route"),
        ("Route #4: 4", None, "customer 4 is served 2 times"),
    ],
)
def test_a_solution_beside_an_instance_warns_and_never_blocks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, last: str, known: float | None, message: str
) -> None:
    (tmp_path / "plain.sol").write_text(f"Route #1: 2 5\nRoute #2: 1 3\nRoute #3: 4\n{last}\n")
    assert read(tmp_path, VRP, "plain.vrp").best_known == known
    assert message in caplog.text
    assert bool(caplog.text) == bool(message)


def test_an_optimal_tour_beside_an_instance_is_its_reference(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.tsp").write_text(TSP)
    tour = "TYPE : TOUR\nDIMENSION : 6\nTOUR_SECTION\n{}\n-1\nEOF\n"
    (tmp_path / "a.opt.tour").write_text(tour.format("1 5 4 3 6 2"))
    assert load(tmp_path / "a.tsp").best_known == load(tmp_path / "a.tsp").cost(np.array([0, 4, 3, 2, 5, 1]))
    (tmp_path / "a.tour").write_text(tour.format("1 2 3 4 5 7"))
    assert load(tmp_path / "a.tsp").best_known is not None
    assert "a.tour: there is no node 7 in t; left out" in caplog.text


def test_xml100_lies_in_two_folders_and_is_measured_as_one_set(tmp_path: Path) -> None:
    (tmp_path / "instances").mkdir()
    (tmp_path / "solutions").mkdir()
    for number in range(120):
        name = f"XML100_1111_{number:02}"
        (tmp_path / "instances" / f"{name}.vrp").write_text(VRP.replace("NAME : v", f"NAME : {name}"))
        (tmp_path / "solutions" / f"{name}.sol").write_text("Route #1: 2 5\nRoute #2: 1 3\nRoute #3: 4\nCost 142\n")
    (group,) = read_instances(tmp_path / "instances").groups
    assert (group.count, set(group.reference)) == (120, {142})
    assert len({each.name for each in group.members}) == 120
    for path in sorted((tmp_path / "instances").iterdir())[100:]:
        path.unlink()
    assert len(read_instances(tmp_path / "instances").groups) == 100  # each has its row, as benchmarks have


# -- time windows -----------------------------------------------------------------------------------------------------


def test_time_windows_of_vrplib_are_those_of_solomon_s_columns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    of_lkh = WINDOWS.replace("VRPTW", "CVRPTW").replace(SERVICE, "").replace("CAPACITY", "SERVICE_TIME : 5\nCAPACITY")
    rows = "0 40 40 0 0 400 0\n1 22 22 6 0 300 5\n2 36 26 4 0 300 5\n3 21 45 5 0 300 5\n4 45 35 7 0 300 5\n"
    head = SOLOMON[: SOLOMON.index("0 40 50")].replace("200", "12")
    first = read(tmp_path, WINDOWS)
    for other in (read(tmp_path, of_lkh, "b.vrp"), read(tmp_path, f"{head}{rows}5 55 20 3 50 90 5\n", "c.txt")):
        assert (other.variant, other.capacity, other.distances) == ("VRPTW", 12, "EXACT_2D")
        for key in ("coords", "demand", "windows", "service"):
            assert np.array_equal(getattr(first, key), getattr(other, key))
    assert first.cost([[2, 5], [1, 3], [4]]) == pytest.approx(141.75, abs=0.005)
    assert "a.vrp: EUC_2D is taken as EXACT_2D" in caplog.text


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("6 50 90", "6 90 50", "customer 5: its window closes before it opens"),
        ("6 50 90", "5 50 90", "node 5 has window twice"),
        ("6 5\n", "6 -5\n", "customer 5: its service time is not a number from 0 on"),
        ("6 50 90", "6 0 1", "customer 5: no vehicle gets there before its window closes"),
        (SERVICE, "SERVICE_TIME : ten\n", "SERVICE_TIME says ten"),
    ],
)
def test_windows_that_are_none_are_one_line(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in WINDOWS
    with one_line(message, "a.vrp"):
        read(tmp_path, WINDOWS.replace(before, after))


def test_solomon_s_columns_have_any_number_of_customers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert read(tmp_path, SOLOMON, "r5.txt").n == 5
    assert "5 customers, where published files have 25, 50" in caplog.text
    with one_line("its last line does not end"):
        read(tmp_path, SOLOMON.rstrip(), "r5.txt")


def test_a_section_is_left_out_on_request_and_the_result_says_so(tmp_path: Path) -> None:
    text = VRP.replace("EOF", "PICKUP_SECTION\n1 0\nEOF").replace("CVRP", "VRPSPD")
    instance = read(tmp_path, text, ignore=["pickup_section", "TYPE"])
    assert (instance.variant, instance.ignored) == ("CVRP", ("PICKUP_SECTION", "TYPE"))
    with one_line("no VEHICLES that could be ignored"):
        read(tmp_path, text, ignore=["PICKUP_SECTION", "TYPE", "VEHICLES"])
    options = ("--ignore-section", "PICKUP_SECTION", "--ignore-section", "TYPE")
    told = done("solve", tmp_path / "a.vrp", "--solver", "nearest", *options)
    assert "(EUC_2D), without PICKUP_SECTION, TYPE, " in told
    assert "without PICKUP_SECTION, TYPE" in done("evaluate", "--model", "cvrp", "--data", tmp_path / "a.vrp", *options)
    assert "PICKUP_SECTION" in refused("solve", tmp_path / "a.vrp", "--solver", "nearest", "--ignore-section", "TYPE")


# -- tables and arrays ------------------------------------------------------------------------------------------------

POINTS = np.random.default_rng(2).random((2, 5, 2)).round(4)
ROWS = [f"{x},{y}" for x, y in POINTS[0].tolist()]


@pytest.mark.parametrize(
    "text",
    [
        "x,y\n" + "\n".join(ROWS),
        "\ufeffX;Y\r\n" + "\r\n".join(ROWS).replace(",", ";") + "\r\n",
        "name\tx\ty\n" + "\n".join(f"a b\t{row}".replace(",", "\t") for row in ROWS),
        "id, x, y\n\n" + "\n".join(f"{i}, {row}" for i, row in enumerate(ROWS)),
    ],
    ids=["plain", "semicolons, mark", "tabs, names", "blanks"],
)
def test_tables_of_coordinates_are_instances(tmp_path: Path, text: str) -> None:
    np.testing.assert_array_equal(read(tmp_path, text, "a.csv").coords, POINTS[0])


def test_tables_hold_demands_and_several_instances(tmp_path: Path) -> None:
    rows = [f"{i},{x},{y},{3 * (k > 0)},9" for i in range(2) for k, (x, y) in enumerate(POINTS[i].tolist())]
    (tmp_path / "a.csv").write_text("instance,x,y,demand,capacity\n" + "\n".join(rows))
    first, second = load_all(tmp_path / "a.csv")
    assert (first.variant, first.capacity, second.demand.tolist()) == ("CVRP", 9, [0, 3, 3, 3, 3])
    np.testing.assert_array_equal(second.coords, POINTS[1])
    rows = [f"{i},{k * 0.1},{k * k % 7}" for i, n in enumerate((6, 5)) for k in range(n)]
    (tmp_path / "a.csv").write_text("instance,x,y\n" + "\n".join(rows))
    assert [load(tmp_path / "a.csv", index).n for index in (0, 1)] == [6, 5]  # in the order of the file
    assert [(each.n, each.name) for each in load_all(tmp_path / "a.csv")] == [(5, "a_1"), (6, "a_0")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no columns x and y"),
        ("0.1,0.2\n0.3,0.4\n", "column '0.1' is not read"),
        ("lat,lon\n1,2\n", "column 'lat' is not read; give x, y"),
        ("x;y\n1,5;2,5\n", "line 2: expected numbers as in 1.5"),
        ("x,y,demand\n" + "\n".join(f"{row},1" for row in ROWS), "no 'capacity'"),
        ("x,y,demand,capacity\n" + "\n".join(f"{row},0,{i}" for i, row in enumerate(ROWS)), "several capacities"),
    ],
)
def test_tables_that_are_none_are_one_line(tmp_path: Path, text: str, message: str) -> None:
    with one_line(message, "a.csv"):
        read(tmp_path, text, "a.csv")


DEMAND = np.array([[1, 5, 9, 3], [2, 2, 8, 4]])


@pytest.mark.parametrize("shares", [False, True], ids=["numbers", "shares"])
@pytest.mark.parametrize("one", [False, True], ids=["many", "one"])
def test_arrays_as_rl4co_writes_them(tmp_path: Path, shares: bool, one: bool) -> None:
    arrays: dict[str, Any] = {
        "depot": POINTS[:, 0].astype(np.float32),
        "locs": POINTS[:, 1:].astype(np.float32),
        "demand": (DEMAND / 30 if shares else DEMAND).astype(np.float32),
        "capacity": np.full((2, 1) if shares else 2, 30, np.float32),
    }
    arrays = {key: values[0] for key, values in arrays.items()} if one else arrays
    np.savez(tmp_path / "a.npz", **arrays)
    first, *others = load_all(tmp_path / "a.npz")
    assert (first.variant, first.capacity, first.demand.tolist(), len(others)) == ("CVRP", 30, [0, 1, 5, 9, 3], not one)
    np.testing.assert_allclose(first.coords, POINTS[0], rtol=1e-6)
    np.savez(tmp_path / "b.npz", locs=POINTS[0] if one else POINTS)
    assert [each.variant for each in load_all(tmp_path / "b.npz")] == ["TSP"] * (1 if one else 2)
    del arrays["capacity"]
    np.savez(tmp_path / "c.npz", **arrays)
    with one_line("as rl4co does"):
        load_all(tmp_path / "c.npz")


def test_one_instance_of_arrays_is_solved(tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", coords=POINTS[0])
    assert "one: n=5" in done("solve", tmp_path / "one.npz", "--solver", "nearest")
    np.savez(tmp_path / "two.npz", coords=POINTS)
    assert "holds 2 instances" in refused("solve", tmp_path / "two.npz", "--solver", "nearest")


# -- references -------------------------------------------------------------------------------------------------------

COORDS = np.random.default_rng(4).random((3, 20, 2))


def test_references_that_cannot_be_right_are_said(tmp_path: Path) -> None:
    np.savez(tmp_path / "sorted.npz", coords=COORDS, tour=np.tile(np.arange(20), (3, 1)))
    told = str(neuroute.evaluate("tsp", tmp_path / "sorted.npz"))
    assert "gaps to the data's own solutions\nWARNING the network is " in told
    assert "WARNING nearest neighbour is shorter than it on 3 of the first 3 instances" in told


def test_lengths_that_are_too_short_are_of_other_instances(tmp_path: Path) -> None:
    lengths = [neuroute.solve(neuroute.Instance.from_arrays(each), "nearest").cost for each in COORDS]
    for factor, told in ((1.0, False), (0.1, True)):
        np.savez(tmp_path / "a.npz", coords=COORDS, length=np.array(lengths) * [1, factor, 1])
        lines = " ".join(doubts(read_instances(tmp_path / "a.npz"), 1.0))
        assert ("1 reference is impossibly short (first: a_1" in lines) == told
