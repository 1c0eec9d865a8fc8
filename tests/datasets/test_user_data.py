"""Instances that users bring: every format, every check, and pickles that cannot do harm."""

import io
import os
import pickle
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_cvrp import drive
from refusals import one_line

from neuroute.api.files import read_instances
from neuroute.core.errors import NeurouteError
from neuroute.problems.instances.instance import Instances
from neuroute.problems.tsp import tour_length
from neuroute.problems.vrp import Vrp

RNG = np.random.default_rng(5)
COORDS = RNG.random((3, 6, 2))
TOURS = np.stack([RNG.permutation(6) for _ in range(3)])
LENGTHS = tour_length(COORDS, TOURS)
TSP: dict[str, Any] = {"coords": COORDS, "tour": TOURS, "length": LENGTHS}
CVRP: dict[str, Any] = {
    "coords": COORDS,
    "demand": np.array([[0, 3, 4, 3, 4, 2]] * 3),
    "capacity": np.array([10, 10, 10]),
    "node": np.array([[1, 2, 3, 4, 5]] * 3),
    "via_depot": np.array([[1, 0, 0, 1, 0]] * 3),
}


def npz(path: Path, **arrays: Any) -> Path:
    np.savez(path / "d.npz", **arrays)
    return path / "d.npz"


def refused(path: Path, message: str) -> None:
    with one_line(message, path.name):
        read_instances(path)


def lengths(instances: Instances) -> list[float]:
    return [float(x) for g in instances.groups if g.reference is not None for x in g.reference]


# -- npz ------------------------------------------------------------------------------------------------------


def test_npz_with_tours_lengths_or_neither(tmp_path: Path) -> None:
    both = read_instances(npz(tmp_path, coords=COORDS.astype(np.float32), tour=TOURS.astype(np.uint8), length=LENGTHS))
    assert (both.problem, both.name, both.groups[0].n, both.groups[0].count) == ("tsp", "d", 6, 3)
    assert lengths(both) == pytest.approx(LENGTHS, rel=1e-6)
    assert lengths(read_instances(npz(tmp_path, coords=COORDS, length=LENGTHS))) == pytest.approx(LENGTHS)
    assert read_instances(npz(tmp_path, coords=COORDS)).groups[0].reference is None


@pytest.mark.parametrize(
    ("name", "n", "mean"),
    [
        ("tsp200_128_lehd", 200, 10.70361),
        ("tsp200_128_seed777", 200, 10.69355),
        ("tsp1000_128_seed777", 1000, 23.15606),
    ],
)
def test_public_test_sets_have_their_published_mean_lengths(
    public: Callable[[str], Path], name: str, n: int, mean: float
) -> None:
    path = public(f"testsets/{name}.npz")
    (group,) = read_instances(path).groups
    assert (group.n, group.count) == (n, 128)
    assert group.reference.mean() == pytest.approx(mean, abs=5e-6)
    with np.load(path) as file:  # the stored solutions, measured by ourselves, are their own reference: no gap
        own = tour_length(group.coords, file["tour"])
        assert np.abs(own / file["length"] - 1).max() < 1e-9
    assert 100 * (own.mean() / group.reference.mean() - 1) == 0


@pytest.mark.parametrize(
    ("arrays", "changes", "message"),
    [
        (TSP, {"coords": COORDS[0]}, r"'tour' has shape \(1, 3, 6\)"),
        (TSP, {"coords": COORDS[:, :3]}, "instance 0: an instance needs at least 4 nodes"),
        (TSP, {"coords": np.where(np.arange(3)[:, None, None] == 1, np.nan, COORDS)}, "instance 1: node 0 has a coord"),
        (TSP, {"tour": np.where(TOURS == 5, 0, TOURS)}, "instance 0: its tour does not visit every node once"),
        (TSP, {"length": LENGTHS * [1, 1, 1.001]}, "instance 2: its stated length differs .* by up to 0.1 %"),
        (CVRP, {"capacity": None}, "no 'capacity' in whole numbers"),
        (CVRP, {"demand": CVRP["demand"] + 0.5}, "no 'demand' in whole numbers"),
        ({}, {"points": COORDS}, "no array 'coords'.*it holds points"),
        (CVRP, {"window": np.zeros((3, 6, 2))}, "array 'window' is not supported"),
        ({}, {"coords": np.array([[1.0], [1.0, 2.0]], dtype=object)}, "not a readable npz"),
        (
            CVRP,
            {"demand": np.array([[0, 3, 4, 3, 4, 11]] * 3)},
            "instance 0: .*a customer demands more than the capacity",
        ),
        (CVRP, {"demand": np.array([[1, 3, 4, 3, 4, 2]] * 3)}, "instance 0: .*the depot .row 0. has a demand"),
        (CVRP, {"via_depot": np.array([[1, 0, 0, 0, 0]] * 3)}, "instance 0: .*or overloads a route"),
        (CVRP, {"node": np.array([[1, 2, 3, 4, 4]] * 3)}, "instance 0: .*does not serve every customer once"),
        (CVRP, {"capacity": np.full(3, 0)}, "'capacity' is not above 0"),
        (CVRP, {"capacity": np.array([10, 10, 1e300])}, "a capacity of .*; give numbers up to 1,000,000,000"),
        (CVRP, {"node": CVRP["node"] + 0.5}, "'node' and 'via_depot' are whole numbers"),
        (CVRP, {"coords": COORDS * [[[1]], [[1e13]], [[1]]]}, "instance 1: coordinates beyond 1e12"),
    ],
)
def test_bad_arrays_are_one_line_with_the_instance(
    tmp_path: Path, arrays: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    """No warning of numpy's either: what a reader sees is one line."""
    path = npz(tmp_path, **{key: value for key, value in (arrays | changes).items() if value is not None})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refused(path, message)


def test_no_file_and_damaged_ones(tmp_path: Path) -> None:
    whole = npz(tmp_path, coords=COORDS).read_bytes()
    (tmp_path / "d.npz").write_bytes(whole[:-100])
    refused(tmp_path / "d.npz", "not a readable npz")
    refused(tmp_path / "absent.npz", "no such file")
    (tmp_path / "d.doc").write_text("")
    refused(tmp_path / "d.doc", "instances are read from .npz")


def test_cvrp_solutions_are_measured_route_by_route(tmp_path: Path) -> None:
    instances = read_instances(npz(tmp_path, **CVRP))
    assert (instances.problem, instances.groups[0].n) == ("cvrp", 5)
    path = np.array([0, 1, 2, 3, 0, 4, 5])  # via the depot between 3 and 4
    assert lengths(instances) == pytest.approx(tour_length(COORDS[:, path], np.arange(7)[None].repeat(3, 0)))


# -- text -----------------------------------------------------------------------------------------------------


def lehd_line(coords: np.ndarray, tour: np.ndarray) -> str:
    numbers = " ".join(repr(float(x)) for x in coords.reshape(-1))
    return f"{numbers} output {' '.join(str(t + 1) for t in [*tour, tour[0]])}"


def test_text_of_several_sizes(tmp_path: Path) -> None:
    lines = [lehd_line(c, t) for c, t in zip(COORDS, TOURS, strict=True)]
    small = lehd_line(COORDS[0, :4], np.array([0, 2, 1, 3]))
    (tmp_path / "t.txt").write_text("\n".join([lines[0], small, *lines[1:], ""]))
    four, six = read_instances(tmp_path / "t.txt").groups
    assert (four.name, four.n, four.count, six.count) == ("t_n4", 4, 1, 3)
    assert six.reference == pytest.approx(LENGTHS)
    assert [g.count for g in read_instances(tmp_path / "t.txt").first(2).groups] == [1, 1]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("output 1", "output 2", "line 2: the tour after 'output' must name 4 nodes and the first one again"),
        ("output 1 3 2", "output 1 3 3", "instance 1: its tour does not visit every node once"),
        ("0.5 ", "0.5 0.5 ", "line 2: 9 numbers before 'output'"),
        ("0.5 ", "half ", "line 2: expected numbers"),
        ("output 1 3 2 4 1", "", "1 of 2 instances have a tour"),
    ],
)
def test_bad_text_is_one_line(tmp_path: Path, before: str, after: str, message: str) -> None:
    good = "0.5 0.0 1.0 0.0 1.0 1.0 0.0 1.0 output 1 3 2 4 1"
    assert before in good
    (tmp_path / "t.txt").write_text(f"{good}\n{good.replace(before, after)}\n")
    refused(tmp_path / "t.txt", message)


# -- pickles --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("form", ["lists", "arrays", "array", "float32", "fortran", "big-endian"])
def test_pickled_coordinates(tmp_path: Path, protocol: int, form: str) -> None:
    value: Any = {
        "lists": COORDS.tolist(),
        "arrays": list(COORDS),
        "array": COORDS,
        "float32": COORDS.astype(np.float32),
        "fortran": np.asfortranarray(COORDS),
        "big-endian": COORDS.astype(">f8"),
    }[form]
    (tmp_path / "p.pkl").write_bytes(pickle.dumps(value, protocol=protocol))
    (group,) = read_instances(tmp_path / "p.pkl").groups
    np.testing.assert_allclose(group.coords, COORDS, rtol=1e-6)


class Harmful:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.file),)


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [[[0.5, x]]], lambda x: np.array([x], dtype=object)])
def test_a_harmful_pickle_is_refused_and_nothing_is_executed(tmp_path: Path, wrap: Any) -> None:
    data = pickle.dumps(wrap(Harmful(tmp_path / "harm")))
    (tmp_path / "p.pkl").write_bytes(data)
    refused(tmp_path / "p.pkl", "holds ('posix.mkdir'|an array of type 'O8')")
    assert not (tmp_path / "harm").exists()
    if isinstance(wrap(0), int):
        pickle.loads(data)  # the test can fail: loaded carelessly, it does harm
        assert (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"cbuiltins\neval\n(S'1'\ntR.", "holds 'builtins.eval'"),
        (b"cnumpy\ndtype\n}S'_function'\nNsb.", "holds a changed function"),
        (b"cnumpy\nload\n.", "holds 'numpy.load'"),
        (b"", "not a readable pickle"),
        (pickle.dumps(COORDS)[:-30], "not a readable pickle"),
        (pickle.dumps({"coords": COORDS}), "holds a dict"),
        (b"]r\xff\xff\xff\x1f.", "holds LONG_BINPUT of 536,870,911"),
        (pickle.dumps([[[10**400, 0.5]] * 5]), r"instance 0: a list of \[x, y\] is expected"),
        (
            pickle.dumps([([0.5, 0.5], COORDS[0].tolist(), [1, 2], 30.0)]),
            "0: .depot, customers, demands, capacity. is expected",
        ),
        (pickle.dumps([COORDS[0], COORDS[1, :3]]), "instance 1: an instance needs at least 4 nodes"),
    ],
)
def test_strange_pickles_are_one_line(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "p.pkl").write_bytes(data)
    refused(tmp_path / "p.pkl", message)


# -- TSPLIB and VRPLIB ----------------------------------------------------------------------------------------


def test_folders_know_the_published_optima(public: Callable[[str], Path], tmp_path: Path) -> None:
    tsplib = public("benchmarks/tsplib")
    for name in ("berlin52", "eil51"):
        (tmp_path / f"{name}.tsp").write_bytes((tsplib / f"{name}.tsp").read_bytes())
    (tmp_path / "x.tsp").write_text((tmp_path / "eil51.tsp").read_text().replace("37 52", "37 53"))
    (tmp_path / "matrix.tsp").write_text(
        "TYPE: TSP\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: EXPLICIT\n"
        "EDGE_WEIGHT_FORMAT: UPPER_ROW\nEDGE_WEIGHT_SECTION\n1 2 3 4 5 6\n"
    )
    groups = {g.name: g for g in read_instances(tmp_path).groups}
    assert set(groups) == {"berlin52", "eil51", "x"}  # the matrix is left out
    assert groups["berlin52"].reference == [7542]
    assert groups["x"].reference is None  # not the published instance
    assert groups["eil51"].inputs().max() == 1
    (tmp_path / "cut.tsp").write_text("\n".join((tmp_path / "eil51.tsp").read_text().split("\n")[:30]))
    with pytest.raises(NeurouteError, match="cut.tsp: DIMENSION says 51"):
        read_instances(tmp_path)


def test_vrplib_with_the_solution_beside_it(public: Callable[[str], Path], tmp_path: Path) -> None:
    source = public("benchmarks/cvrplib_x/X-n101-k25.vrp")
    (tmp_path / source.name).write_bytes(source.read_bytes())
    assert read_instances(tmp_path / source.name).groups[0].reference == [27591]  # CVRPLIB's own, by its content
    (tmp_path / source.name).write_text(source.read_text().replace("146\t180", "146\t181"))
    assert read_instances(tmp_path / source.name).groups[0].reference is None  # another one
    (tmp_path / source.name).write_bytes(source.read_bytes())
    solution = source.with_suffix(".sol")
    (tmp_path / solution.name).write_bytes(solution.read_bytes())
    instances = read_instances(tmp_path)
    assert (instances.problem, instances.groups[0].n) == ("cvrp", 100)
    assert instances.groups[0].reference == [27591]
    (tmp_path / solution.name).write_text(solution.read_text().replace("27591", "27000"))
    assert read_instances(tmp_path).groups[0].reference == [27591]  # of the content, whatever is beside it
    (tmp_path / source.name).write_text(source.read_text().replace("COMMENT", "COMMENT : mine\nCOMMENT", 1))
    assert read_instances(tmp_path).groups[0].reference == [27591]


def test_coordinates_that_fill_the_unit_square_stay_and_others_are_scaled_by_one_factor(tmp_path: Path) -> None:
    inside = read_instances(npz(tmp_path, coords=COORDS)).groups[0]
    np.testing.assert_array_equal(inside.inputs(), COORDS.astype(np.float32))
    outside = read_instances(npz(tmp_path, coords=COORDS * [100, 1])).groups[0].inputs()
    assert (outside.min((1, 2)) == 0).all()
    assert (outside.max((1, 2)) == 1).all()
    assert np.ptp(outside[..., 1], axis=1).max() < 0.02  # the aspect ratio is kept
    mixed = read_instances(npz(tmp_path, coords=COORDS * np.array([1, 100, 1])[:, None, None])).groups[0]
    np.testing.assert_array_equal(mixed.inputs()[::2], COORDS[::2].astype(np.float32))
    np.testing.assert_array_equal(mixed.slice(1, 2).inputs(), mixed.inputs()[1:2])
    small = read_instances(npz(tmp_path, coords=COORDS / 1000 + 0.4)).groups[0].inputs()
    assert (np.ptp(small, axis=(1, 2)) == 1).all()
    on_a_map = npz(tmp_path, coords=5000 * COORDS + [495_000, 5_400_000])
    assert (np.ptp(read_instances(on_a_map).groups[0].inputs(), axis=1).max(-1) == 1).all()


@pytest.mark.parametrize(
    ("name", "customers", "mean"), [("cvrp200_128", 200, 20.17264), ("cvrp1000_128", 1000, 37.09048)]
)
def test_public_cvrp_sets_are_feasible_and_as_long_as_published(
    public: Callable[[str], Path], name: str, customers: int, mean: float
) -> None:
    path = public(f"testsets/{name}.npz")
    group = read_instances(path).groups[0]  # refuses solutions that are infeasible or of another length
    assert (group.count, group.n) == (128, customers)
    assert group.reference.mean() == pytest.approx(mean, abs=5e-6)
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files}
    instances = Vrp(arrays["coords"].astype(float), arrays["demand"].astype(int), arrays["capacity"].astype(int))
    for i in range(0, 128, 16):  # once more, customer by customer
        solution = [arrays["node"][i].tolist(), arrays["via_depot"][i].astype(int).tolist()]
        assert drive(instances, i, solution) == pytest.approx(group.reference[i])


# -- what a file claims, and what is no file ----------------------------------------------------------------------


def test_lists_that_name_each_other_are_no_instances(tmp_path: Path) -> None:
    nested: list[Any] = [0.5, 0.5]
    for _ in range(40):  # 2^40 values in a few bytes
        nested = [nested, nested]
    (tmp_path / "p.pkl").write_bytes(pickle.dumps(nested))
    refused(tmp_path / "p.pkl", "more than 10,000,000 values")
    shared = COORDS[0].tolist()
    (tmp_path / "p.pkl").write_bytes(pickle.dumps([shared] * 1000))
    assert read_instances(tmp_path / "p.pkl").groups[0].count == 1000


def test_an_npz_of_zeros_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    claim = io.BytesIO()
    np.lib.format.write_array_header_1_0(claim, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6, 2)})
    with zipfile.ZipFile(tmp_path / "d.npz", "w") as file:
        file.writestr("coords.npy", claim.getvalue())
    refused(tmp_path / "d.npz", r"16,000,000,000,000 bytes once unpacked")


TEXT = "NAME : x\n{comment}TYPE : TSP\nDIMENSION : 4\nEDGE_WEIGHT_TYPE : {kind}\nNODE_COORD_SECTION\n{rows}EOF\n"
ROWS = "1 0 0\n2 30 40\n3 0 70\n4 60 0\n"


@pytest.mark.parametrize("factor", ["0", "---", "1.2.3", "7", "nan", "1e+999"])
def test_a_comment_scales_only_in_the_words_of_export(tmp_path: Path, factor: str) -> None:
    path = tmp_path / "t.tsp"
    path.write_text(TEXT.format(comment=f"COMMENT : coordinates times {factor}\n", kind="EUC_2D", rows=ROWS))
    assert read_instances(path).groups[0].coords.max() == 70
    path.write_text(TEXT.format(comment="COMMENT : coordinates times 10\n", kind="GEO", rows=ROWS))
    assert read_instances(path).groups[0].coords.max() == 70
    path.write_text(TEXT.format(comment="COMMENT : coordinates times 10\n", kind="EUC_2D", rows=ROWS))
    assert read_instances(path).groups[0].coords.max() == 7


@pytest.mark.parametrize(
    "rows", [ROWS + "FIXED_EDGES_SECTION\n1 3\n-1\n", ROWS + "DIMENSION : 5\n", ROWS.replace("30", "3_0")]
)
def test_what_a_file_says_is_followed_or_refused(tmp_path: Path, rows: str) -> None:
    """The rest is asked of the reader (`test_vrplib`)."""
    (tmp_path / "t.tsp").write_text(TEXT.format(comment="", kind="EUC_2D", rows=rows))
    refused(
        tmp_path / "t.tsp", "FIXED_EDGES_SECTION is not supported|DIMENSION says 5, and 4 above|expected `node x y`"
    )


@pytest.mark.parametrize("place", [6, 8])  # of the version, and of the flags
def test_zip_files_of_another_kind_are_one_line(tmp_path: Path, place: int) -> None:
    path = npz(tmp_path, coords=COORDS)
    data = bytearray(path.read_bytes())
    for start, shift in ((data.find(b"PK\x03\x04"), -2), (data.find(b"PK\x01\x02"), 0)):
        data[start + place + shift] = 0xFF
    path.write_bytes(data)
    refused(path, "not a readable npz")


def test_numbers_of_lists_are_plain_and_of_64_bits(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    points = " ".join(map(str, COORDS[0].ravel()))
    path.write_text(f"{points} output 1 2 3 4 5 99999999999999999999 1\n")
    refused(path, "line 1: expected numbers")
    path.write_text(f"1_0 {points} 0.5 output 1 2 3 4 5 6 7 1\n")
    refused(path, "line 1: expected numbers")


@pytest.mark.parametrize("ending", [".tsp", ".vrp", ".txt", ".npz", ".pkl"])
def test_a_pipe_is_refused(tmp_path: Path, ending: str) -> None:
    os.mkfifo(path := tmp_path / f"f{ending}")
    refused(path, "is a pipe or a device")


def test_messages_are_short_and_free_of_control_characters() -> None:
    text = str(NeurouteError("a\x1b[31m\x07\u202e" + "9" * 100_000 + "; mend it"))
    assert len(text) < 2100
    assert text.isprintable()
    assert text.endswith("mend it")
