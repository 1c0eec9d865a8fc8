"""Solvers end by the clock and at Ctrl-C, also those that hear neither; what there was is kept, and nothing is left."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from untrained import tsp_text

import neuroute
from neuroute.api.within_time import solve_within
from neuroute.core import limited
from neuroute.core.limited import Process
from neuroute.solvers import concorde, lkh, pyvrp

HANG_S = 180.0  # far more than an answer takes on a busy machine, far less than `deaf` solvers run
# `sitecustomize` is imported by each Python that starts: it changes searches in processes of their own.
SEARCHES = """
import os, sys, time
from types import SimpleNamespace
import numpy as np
from neuroute.core import limited
from neuroute.solvers import concorde, hgs, pyvrp
from neuroute.api import solution

def deaf(text, nodes, seed, seconds=None):
    if nodes > 4:  # what warms up
        open(os.environ["BEGUN"], "w").close()
        time.sleep(600)
    return np.arange(nodes)

def telling(grid, *_):
    if grid.customers > 3:
        time.sleep(0.3)
        limited.say("found", [[*range(1, grid.customers + 1)]])
        open(os.environ["BEGUN"], "w").close()
        time.sleep(600)
    return [[*range(1, grid.customers + 1)]]

def crashing(how, data, *_):
    if len(next(iter(data.values()))) > 4:
        print("something is out of order", file=sys.stderr, flush=True)
        os._exit(3)
    return SimpleNamespace(routes=[[1, 2, 3]])

def noted(self, stops, offer=solution.Best.offer):
    cost = offer(self, stops)
    open(os.environ["BEGUN"], "w").close()
    return cost

concorde.solve_text, pyvrp.search, hgs._search, solution.Best.offer = deaf, telling, crashing, noted
solution.PATIENCE_S = 0.5
for module in (concorde, pyvrp):
    object.__setattr__(module.SOLVER, "version", lambda: "1")
"""
# Compiled code calls Python back, where a Ctrl-C is printed and forgotten.
COMPILERS = """
import os
from numba.core.dispatcher import Dispatcher
from neuroute.core import limited

def noted(self, signature, compile=Dispatcher.compile):
    if limited.folder() is None:
        open(os.environ["BEGUN"] + ".compiled", "w").close()
    return compile(self, signature)

Dispatcher.compile = noted
"""
POINTS = np.random.default_rng(0).random((40, 2))


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give concorde's name to a solver that hears nothing; return the file that it makes when it is at work."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(SEARCHES)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("BEGUN", str(tmp_path / "begun"))
    for module in (concorde, pyvrp):
        monkeypatch.setattr(module, "SOLVER", replace(module.SOLVER, version=lambda: "1"))
    limited.idle.of.clear()
    yield tmp_path / "begun"
    for process in limited.idle.of.pop(os.getpid(), []):
        process.end()


def write(folder: Path) -> Path:
    (folder / "forty.tsp").write_text(tsp_text((POINTS * 1000).round(), "CEIL_2D", "forty"))
    return folder / "forty.tsp"


def test_what_a_solver_has_found_when_the_time_is_up_is_the_answer(begun: Path) -> None:
    seen = list[tuple[float, int]]()
    solution = neuroute.solve(
        POINTS, "pyvrp", seconds=0.3, follow=lambda best: seen.append((best.cost, best.iterations))
    )
    assert (solution.tour, solution.method, solution.fallback) == ([*range(40)], "pyvrp", "")
    assert 0.3 <= solution.seconds < HANG_S
    assert solution.startup_s > 0
    assert solution.wall_s == pytest.approx(solution.startup_s + solution.seconds)
    assert seen[0] == (solution.cost, 1)


@pytest.mark.parametrize(
    ("solver", "why"), [("concorde", "had no solution after"), ("hgs", "exit status 3: something")]
)
def test_what_stands_in_says_why(begun: Path, monkeypatch: pytest.MonkeyPatch, solver: str, why: str) -> None:
    """A crash is no lack of time; and neither is an answer of the solver."""
    monkeypatch.setattr("neuroute.api.solution.PATIENCE_S", 0.2)
    solution = neuroute.solve(POINTS, solver, seconds=0.2)
    assert solution.method in ("savings", "insertion")
    assert why in solution.fallback
    first, line = str(solution).splitlines()
    assert first.startswith(f"WARNING: {solver} ")
    assert "length" in line
    with pytest.raises(neuroute.NeurouteError, match=why):
        solve_within(solver, neuroute.Instance.from_arrays(POINTS), 0.2, stands_in=False)


def test_a_construction_in_place_of_a_solver_is_a_failure_unless_it_is_asked_for(begun: Path) -> None:
    path = write(begun.parent)
    call = (sys.executable, "-m", "neuroute", "solve", str(path), "--solver")
    for options, code in ((("hgs",), 3), (("hgs", "--fallback"), 0), (("hgs,insertion",), 0)):
        done = subprocess.run([*call, *options], cwd=begun.parent, capture_output=True, text=True, timeout=HANG_S)
        assert done.returncode == code, done.stderr
        assert ("WARNING: hgs crashed" in done.stdout) == ("," not in options[0])
        assert ("insertion  " in done.stdout) == ("," in options[0])
        assert "something is out of order" in done.stdout


def test_a_first_solution_is_waited_for(begun: Path) -> None:
    """Of a solver, and of a construction that takes longer than the time."""
    solution = neuroute.solve(POINTS, "pyvrp", seconds=1e-6)
    assert (solution.method, solution.fallback) == ("pyvrp", "")
    assert neuroute.solve(POINTS, "insertion", seconds=1e-6).method == "insertion"


def test_ortools_has_a_tour_whatever_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1,000 nodes within two seconds it said that no routes keep to the constraints."""
    monkeypatch.setattr("neuroute.api.within_time.LATE", (0.0, 0.0))  # else a fast machine is not late
    solution = neuroute.solve(np.random.default_rng(0).random((300, 2)), "ortools", seconds=1e-6)
    assert (len(solution.tour), solution.method, solution.fallback) == (300, "ortools", "")
    assert "more than the 1e-06 asked for" in solution.note


def test_threads_solve_side_by_side_and_after_one_another() -> None:
    costs = list[float]()

    def solve() -> None:
        costs.append(neuroute.solve(POINTS, "insertion").cost)

    for count in (1, 2):
        threads = [Thread(target=solve, daemon=True) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG_S)
    assert costs == 3 * [neuroute.solve(POINTS, "insertion").cost]


@pytest.mark.parametrize("kind", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "solver", ["concorde", pytest.param("pyvrp", marks=pytest.mark.slow), "concorde,insertion", "network"]
)
def test_an_interrupted_call_keeps_the_best_so_far(begun: Path, solver: str, kind: signal.Signals) -> None:
    folder = begun.parent
    by = ("--model", "tsp") if solver == "network" else ("--solver", solver)
    options = (*by, "--seconds", "500", "--save", "forty.tour")
    call = subprocess.Popen(
        [sys.executable, "-m", "neuroute", "solve", str(write(folder)), *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored where tests run in the background
    )
    began = time.monotonic()
    while not begun.exists():
        assert call.poll() is None
        assert time.monotonic() - began < HANG_S
        time.sleep(0.05)
    os.killpg(call.pid, kind)
    said = call.communicate(timeout=HANG_S)[0]
    assert call.returncode == 130, said
    has_one = solver in ("pyvrp", "network")
    assert ("interrupted after" if has_one else "there is no solution yet") in said
    if has_one:
        tour = (folder / "forty.tour").read_text()
        assert sum(1 for line in tour.splitlines() if line.isdigit()) == 40
    assert not list((folder / "tmp").glob("neuroute*"))


@pytest.mark.slow
@pytest.mark.parametrize("options", [("--solver", "concorde"), ("--solver", "savings"), ("--model", "tsp")])
def test_nothing_is_compiled_where_ctrl_c_is_heard(begun: Path, options: tuple[str, ...]) -> None:
    with (begun.parent / "site" / "sitecustomize.py").open("a") as site:
        site.write(COMPILERS)
    call = (sys.executable, "-m", "neuroute", "solve", str(write(begun.parent)), *options, "--seconds", "1.5")
    said = subprocess.run(call, cwd=begun.parent, capture_output=True, text=True, timeout=HANG_S)
    assert said.returncode in (0, 3), said.stderr
    assert not begun.with_name("begun.compiled").exists()


def test_what_a_killed_search_of_lkh_left_is_read_only_if_it_is_whole(tmp_path: Path) -> None:
    best = tmp_path / lkh.BEST
    assert lkh.read_tour(best) is None
    for text, tour in (("2\n1\n3\n-1\n", [2, 1, 3]), ("2\n1\n", None), ("2\n1\n3\n", None)):
        best.write_text(f"DIMENSION : 3\nTOUR_SECTION\n{text}")
        assert lkh.read_tour(best) == tour


def test_a_process_answers_again_after_it_was_killed() -> None:
    with Process() as process:
        first = process.call("os:getpid", HANG_S)
        assert process.call("os:getpid", HANG_S) == first != os.getpid()
        with pytest.raises(TimeoutError):
            process.call("time:sleep", 0.2, 600)
        assert process.call("os:getpid", HANG_S) != first
        assert len(process.call("operator:mul", HANG_S, b"long", 10**6)) == 4 * 10**6  # more than a pipe holds
        folder = process.folder
    assert not folder.exists()
