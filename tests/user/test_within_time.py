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
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from untrained import tsp_text

import neuroute
from neuroute.problems.vrp import from_routes
from neuroute.solvers import concorde, lkh, pyvrp
from neuroute.solvers.limited import Process
from neuroute.user import within_time

HANG_S = 60.0  # far more than an answer takes on a busy machine, far less than `deaf` solvers run
# `sitecustomize` is imported by each Python that starts: it changes searches in processes of their own.
SEARCHES = """
import os, signal, time
import numpy as np
from neuroute.solvers import concorde, limited, pyvrp

def deaf(text, nodes, seed, seconds=None, length=0.0):
    if nodes > 4:  # what warms up
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open(os.environ["BEGUN"], "w").close()
        time.sleep(600)
    return np.arange(nodes)

def hearing(grid, *_):
    if grid.customers > 3:
        open(os.environ["BEGUN"], "w").close()
    while grid.customers > 3 and not limited.is_asked_to_end():
        time.sleep(0.01)
    return [[*range(1, grid.customers + 1)]]

concorde.solve_text, pyvrp.search = deaf, hearing
for module in (concorde, pyvrp):
    object.__setattr__(module.SOLVER, "version", lambda: "1")
"""
# Compiled code calls Python back, where a Ctrl-C is printed and forgotten.
COMPILERS = """
import os
from numba.core.dispatcher import Dispatcher
from neuroute.solvers import limited

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
    within_time._searches.of.clear()
    yield tmp_path / "begun"
    within_time._searches.of[os.getpid()].end()
    within_time._searches.of.clear()


def write(folder: Path) -> Path:
    (folder / "forty.tsp").write_text(tsp_text((POINTS * 1000).round(), "CEIL_2D", "forty"))
    return folder / "forty.tsp"


def test_a_solver_that_hears_nothing_is_ended_and_a_construction_stands_in(
    begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()
    solution = neuroute.solve(POINTS, "concorde", seconds=0.5)
    assert time.monotonic() - began < HANG_S
    assert solution.method in ("savings for concorde", "insertion for concorde", "sweep for concorde")
    assert ", as concorde had found nothing in " in str(solution)
    monkeypatch.setattr(within_time, "GRACE_S", HANG_S)
    neuroute.solve(POINTS[:4], "pyvrp")  # loads it: that is of the time, too
    assert neuroute.solve(POINTS, "pyvrp", seconds=0.5).tour == [*range(40)]  # which answers when it is asked


def test_a_construction_that_is_asked_for_is_given_though_it_loads_for_longer_than_the_time(
    begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(within_time, "LATEST", (0.1, HANG_S))
    assert neuroute.solve(POINTS, "insertion", seconds=0.001).method == "insertion"


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
@pytest.mark.parametrize("solver", ["concorde", pytest.param("pyvrp", marks=pytest.mark.slow), "concorde,insertion"])
def test_an_interrupted_call_keeps_the_best_so_far(begun: Path, solver: str, kind: signal.Signals) -> None:
    folder = begun.parent
    options = ("--solver", solver, "--seconds", "500", "--save", "forty.tour")
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
    assert "interrupted after" in said
    instance = neuroute.load(folder / "forty.tsp")
    tour = (folder / "forty.tour").read_text()
    assert f"{sum(1 for line in tour.splitlines() if line.isdigit())}" == f"{instance.n}"
    assert not list((folder / "tmp").glob("neuroute*"))


@pytest.mark.parametrize("options", [("--solver", "concorde"), ("--solver", "savings"), ("--model", "tsp")])
def test_nothing_is_compiled_where_ctrl_c_is_heard(begun: Path, options: tuple[str, ...]) -> None:
    with (begun.parent / "site" / "sitecustomize.py").open("a") as site:
        site.write(COMPILERS)
    call = (sys.executable, "-m", "neuroute", "solve", str(write(begun.parent)), *options, "--seconds", "1.5")
    said = subprocess.run(call, cwd=begun.parent, capture_output=True, text=True, timeout=HANG_S)
    assert said.returncode == 0, said.stderr
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


class Slow(Process):
    """A process on a busy machine: it has a construction when it is looked at for the fifth time, and never answers."""

    looks = 0

    def begin(self, function: str, *arguments: Any) -> None:
        self.routes = from_routes([[1, 2], [3]])

    def wait(self, seconds: float | None) -> bool:
        self.looks += 1
        if self.looks == 5:
            np.save(self.folder / f"savings{within_time.BUILT}", self.routes)
        return False

    def answer(self, *_: Any, **more: Any) -> Any:
        raise TimeoutError


def test_a_construction_of_routes_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with Slow() as process:
        monkeypatch.setitem(within_time._searches.of, os.getpid(), process)
        instance = neuroute.Instance.from_arrays(POINTS[:4], np.array([0, 1, 1, 1]), 2)
        answer = within_time.Construction(instance, HANG_S, 0).answer(HANG_S)
    assert answer.method == "savings"
    assert process.looks == 5


def test_what_is_waited_for_in_vain_leaves_the_network_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    class Busy(Slow):
        def wait(self, seconds: float | None) -> bool:
            now[0] += seconds or 0.0
            return False

    monkeypatch.setattr(within_time, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    instance = neuroute.generate("cvrp", 12)[0]
    with Busy() as process:
        monkeypatch.setitem(within_time._searches.of, os.getpid(), process)
        answer = within_time.Construction(instance, 10.0, 0).answer(10.0)
    assert answer.method == "sweep"
    assert now[0] < 9.1
