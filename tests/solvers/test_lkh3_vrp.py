"""LKH-3 on four of the 16 problems, through a stand-in for its binary: what it is asked, and what comes of it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import one_line

from neuroute.core.errors import NeurouteError
from neuroute.datasets.labels import make_labels
from neuroute.datasets.problem_spec import SPEC
from neuroute.datasets.stored_labels import load_tours
from neuroute.instances.sections import split
from neuroute.plan.objects import Dataset, Labels
from neuroute.problems.vrp import SWITCHES, Vrp
from neuroute.problems.vrp_checker import fault
from neuroute.solvers.base import tsplib_text
from neuroute.solvers.lkh3 import TYPES
from neuroute.solvers.registry import get

# A vehicle for each customer, or one for all of them; the problem stays where the test finds it.
STAND_IN = """
assert parameters["MAX_TRIALS"] == "10000" and parameters["RUNS"] == "1" and parameters["MTSP_MIN_SIZE"] == "0"
shutil.copy(parameters["PROBLEM_FILE"], os.environ["ASKED"])
fleet = re.search(r"VEHICLES : (\\d+)", text).group(1)
open(os.environ["ASKED"] + ".fleets", "a").write(fleet + " " + parameters["SEED"] + "\\n")
customers, tour = 5, [1]
for number in range(customers):
    tour.append(number + 2)
    if number + 1 < customers and os.environ["FLEET"] == "many":
        tour.append(customers + 2 + number)
"""


@pytest.fixture
def asked(tmp_path: Path, lkh_on_path: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> Path:
    lkh_on_path(STAND_IN)
    monkeypatch.setenv("ASKED", str(tmp_path / "asked.vrp"))
    monkeypatch.setenv("FLEET", "many")
    return tmp_path / "asked.vrp"


def instance(variant: str) -> Vrp:
    rng, switches = np.random.default_rng(5), SWITCHES[variant]
    windows = np.tile(np.array([0.5, 2.25], dtype=np.float32), (1, 6, 1))
    windows[:, 0] = 0, 4
    service = np.array([[0, 0.2, 0.2, 0.2, 0.2, 0.25]], dtype=np.float32)
    return Vrp(
        coords=rng.random((1, 6, 2)).astype(np.float32),
        demand=np.array([[0, 4, 5, 6, 7, -8 if switches.backhaul else 8]]),
        capacity=np.array([10]),
        open=switches.open,
        limit=np.array([3.0]) if switches.limit else None,
        windows=windows if switches.windows else None,
        service=service if switches.windows else None,
    )


@pytest.mark.parametrize("variant", TYPES)
def test_lkh3_is_asked_for_the_problem(variant, asked):
    one = instance(variant)
    solution = get("lkh3").solve_vrp(one, 0)
    assert fault(one, 0, solution) is None
    assert solution.tolist() == [[1, 2, 3, 4, 5], [1, 1, 1, 1, 1]]
    parts = split(asked.read_text(), "asked")
    said, rows = parts.header, {name: [line for _, line in each] for name, each in parts.rows.items()}
    assert said["TYPE"] == {"VRPL": "DCVRP", "VRPTW": "CVRPTW"}.get(variant, variant)
    assert (said["DIMENSION"], said["CAPACITY"], said["VEHICLES"]) == ("6", "10", "5")
    assert said["EDGE_WEIGHT_TYPE"] == "CEIL_2D"  # no leg is taken for shorter than it is
    x, y = map(float, rows["NODE_COORD_SECTION"][1].split()[1:])
    np.testing.assert_allclose([x, y], one.coords[0, 1] * 1e6, rtol=1e-6)
    assert rows["DEMAND_SECTION"] == ["1 0", "2 4", "3 5", "4 6", "5 7", "6 8"]
    # Grid units of 1e-6; limits and closing times have eight tenths of the checker's tolerance of 1e-5.
    assert said.get("DISTANCE") == ("3000008" if variant == "VRPL" else None)
    if variant == "VRPTW":
        assert rows["TIME_WINDOW_SECTION"][1] == "2 500000 2250008"
        assert rows["SERVICE_TIME_SECTION"][5] == "6 250000"
    else:
        assert "TIME_WINDOW_SECTION" not in rows


def test_a_solution_that_breaks_a_constraint_is_one_clear_line(monkeypatch, asked):
    monkeypatch.setenv("FLEET", "one")
    with one_line("lkh3: no routes found that keep to the constraints .*'ortools'"):
        get("lkh3").solve_vrp(instance("OVRP"), 0)
    # With the default fleet, with a vehicle for each customer, and once more with another seed.
    assert (asked.parent / "asked.vrp.fleets").read_text().split("\n") == ["5 1", "5 1", "5 2", ""]
    roomy = replace(instance("OVRP"), capacity=np.array([30]))
    assert get("lkh3").solve_vrp(roomy, 0)[1].tolist() == [1, 0, 0, 0, 0]


# The best tours; while there is a file, the instance of this coordinate has none.
ONE_WITHOUT = """
import itertools, math
lines = text.partition("NODE_COORD_SECTION")[2].strip().splitlines()
points = [tuple(map(float, line.split()[1:])) for line in lines if len(line.split()) == 3]
nodes = len(points)
best = min(
    ((0, *rest) for rest in itertools.permutations(range(1, nodes))),
    key=lambda tour: sum(math.dist(points[a], points[b]) for a, b in zip(tour, (*tour[1:], 0))),
)
tour = [node + 1 for node in best]
open(os.environ["ASKED"], "a").write(str(nodes) + "\\n")
if nodes == 7 and os.path.exists(os.environ["ASKED"] + ".bad") and text.split()[-3] == os.environ["BAD"]:
    tour = [1, 2, 3]
"""


def test_one_bad_answer_costs_one_instance(tmp_path, lkh_on_path, monkeypatch):
    """Of a set of labels: all others are kept, and a second call asks for this one alone."""
    wanted = Labels(dataset=Dataset(n=7, count=5, split="test"), solver="lkh3")
    last = tsplib_text(SPEC.of("tsp").instances(wanted.dataset)[1]).split()[-3]
    lkh_on_path(ONE_WITHOUT)
    asked, bad = tmp_path / "asked", tmp_path / "asked.bad"
    bad.touch()
    monkeypatch.setenv("ASKED", str(asked))
    monkeypatch.setenv("BAD", last)
    with pytest.raises(NeurouteError, match="instance 1 of .*: LKH wrote no tour of the 7 nodes .*; all else is"):
        make_labels(wanted, tmp_path / "store", [], workers=1)
    assert asked.read_text().split().count("7") == 5
    bad.unlink()
    make_labels(wanted, tmp_path / "store", [], workers=1)
    assert asked.read_text().split().count("7") == 6
    assert load_tours(wanted, [tmp_path / "store"]).shape == (5, 7)


@pytest.mark.parametrize("variant", [v for v in SWITCHES if v not in TYPES])
def test_other_problems_are_refused(variant):
    with pytest.raises(NeurouteError, match=f"lkh3 does not solve {variant} here; 'ortools' does"):
        get("lkh3").solve_vrp(instance(variant), 0)
