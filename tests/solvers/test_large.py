"""Large instances: LKH in rounds that go on after a kill, Concorde with a limit, HGS where its memory fits."""

import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuroute.core.errors import NeurouteError
from neuroute.core.limited import call
from neuroute.datasets import chunks
from neuroute.problems.tsp import is_permutation, tour_length
from neuroute.solvers import base, concorde, lkh
from neuroute.solvers.lkh import solve_in_rounds, spent_in
from neuroute.solvers.registry import get
from neuroute.specs.objects import Dataset, Labels

COORDS = np.random.default_rng(3).random((150, 2)).astype(np.float32)


def length(tour: np.ndarray) -> float:
    assert is_permutation(tour[None]).all()
    return float(tour_length(COORDS[None], tour[None])[0])


def test_rounds_of_lkh_go_on_after_a_kill_with_the_same_tour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("elkai")
    monkeypatch.setattr(lkh, "NODE_TRIALS", 3 * len(COORDS))
    whole = solve_in_rounds(COORDS, 5, tmp_path / "whole", rounds=2)
    run, calls = lkh.call, []

    def killed(*arguments: object) -> object:
        if len(calls) % 2:  # every other process is killed, once it has done its work
            calls.append(run(*arguments))
            raise KeyboardInterrupt
        calls.append(None)
        return run(*arguments)

    monkeypatch.setattr(lkh, "call", killed)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            solve_in_rounds(COORDS, 5, tmp_path / "killed", rounds=2)
    np.testing.assert_array_equal(solve_in_rounds(COORDS, 5, tmp_path / "killed", rounds=2), whole)
    assert len(calls) == 3 + 2  # those that were killed are repeated, no other
    lengths = [length(np.load(tmp_path / "whole" / f"{number}.npy")) for number in range(3)]
    assert lengths == sorted(lengths, reverse=True)
    assert spent_in(tmp_path / "whole") > 0
    assert length(whole) < 1.02 * length(lkh.solve_by_elkai(COORDS, 0))


def test_time_that_is_over_ends_the_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("elkai")
    with pytest.raises(NeurouteError, match=r"^lkh: no tour of 150 nodes within 1e-06 hours; take a faster machine$"):
        solve_in_rounds(COORDS, 0, tmp_path / "none", seconds=0.0036)
    first = solve_in_rounds(COORDS, 0, tmp_path / "one", rounds=0)
    monkeypatch.setattr(lkh, "call", lambda *_: pytest.fail("begun"))
    np.testing.assert_array_equal(solve_in_rounds(COORDS, 0, tmp_path / "one", rounds=9, seconds=0.001), first)


def test_the_label_store_gives_large_instances_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[int, Path | None]] = []

    def solve(coords: np.ndarray, seed: int, folder: Path | None = None) -> np.ndarray:
        given.append((len(coords), folder))
        if folder:
            folder.mkdir(parents=True)
            (folder / "spent.json").write_text('{"seconds": 100.0}')
        return np.arange(len(coords))

    solver = base.Solver("lkh", False, "", lambda: "1", solve, large=12)
    monkeypatch.setattr(chunks, "_load_solver", lambda _: solver)
    for n in (11, 12):
        labels = Labels(dataset=Dataset(n=n, count=2, first=5), solver="lkh")
        chunks.solve_chunk(labels, chunks.Chunk(0, 5, 7), tmp_path)
    assert given == [(11, None), (11, None), (12, tmp_path / "5"), (12, tmp_path / "6")]
    assert get("lkh").large == get("lkh-long").large == lkh.NODES
    again = Labels(dataset=Dataset(n=12, count=1, first=9), solver="lkh")
    (tmp_path / "9").mkdir()
    (tmp_path / "9" / "spent.json").write_text('{"seconds": 100.0}')
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: None)
    assert chunks.solve_chunk(again, chunks.Chunk(0, 9, 10), tmp_path)[1] > 100  # what it took before counts


@pytest.mark.parametrize(
    ("groups", "limits"),
    [
        ("0::/user.slice/job\n", {"user.slice/memory.max": "8000000\n", "user.slice/job/memory.max": "max\n"}),
        ("2:cpu:/\n1:memory:/job\n0::/\n", {"memory/job/memory.limit_in_bytes": "8000000\n"}),
        ("0::/as/the/host/calls/it\n", {"memory.max": "8000000\n"}),  # in a container
    ],
)
def test_memory_of_a_control_group_counts(
    groups: str, limits: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 1e8 < base.machine_memory() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name, text in {"groups": groups, **limits}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(base, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(base, "LIMITS", tmp_path)
    assert base.machine_memory() == 8e6


def test_a_machine_without_proc_solves(monkeypatch: pytest.MonkeyPatch) -> None:
    """As macOS is one."""
    is_file = Path.is_file
    monkeypatch.setattr(Path, "is_file", lambda path: not str(path).startswith("/proc") and is_file(path))
    base.check_size("lkh", 1000)
    with pytest.raises(NeurouteError, match="nodes need about"):
        base.check_size("lkh", 10**8)


def test_concorde_with_a_limit_is_not_taken_for_optimal(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ml4co_kit")
    limited = get("concorde-6h")
    assert not limited.optimal
    assert length(limited.solve(COORDS, 0)) == length(get("concorde").solve(COORDS, 0))

    def too_long(function: str, seconds: float, *_: object) -> None:
        assert seconds == 12 * 3600
        raise TimeoutError

    monkeypatch.setattr(concorde, "call", too_long)
    with pytest.raises(NeurouteError, match="^concorde: no tour of 150 nodes in twice its 6 hours; take the"):
        limited.solve(COORDS, 0)


def double(number: int) -> int:
    print("noise")
    return 2 * number


def refuse() -> None:
    raise NeurouteError("no such thing")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_call_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    assert call("test_large:double", 60, 21) == 42
    with pytest.raises(NeurouteError, match="^no such thing$"):
        call("test_large:refuse", 60)
    with pytest.raises(NeurouteError, match="^test_large:die died with exit status -9: no memory left"):
        call("test_large:die", 60)
    with pytest.raises(TimeoutError):
        call("time:sleep", 0.5, 600)


AT_WORK = "from neuroute.core.limited import call; call('time:sleep', None, 600)"
IDLE = """
import time, neuroute
neuroute.solve([[0, 0], [0, 1], [1, 1], [1, 0]], "insertion")
time.sleep(600)
"""
IN_LKH = "import numpy; from neuroute.solvers import lkh3; lkh3.solve(numpy.random.rand(4000, 2), 0)"


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
@pytest.mark.parametrize(
    ("program", "library"),
    [(AT_WORK, ""), (IDLE, ""), (IN_LKH, "LKHpy")],
    ids=["at work", "kept for later calls", "in LKH-3's own code"],
)
def test_a_call_ends_with_a_killed_caller(
    program: str, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it runs a library's code, once that is loaded."""
    psutil = pytest.importorskip("psutil")
    if library:
        monkeypatch.setenv("PATH", str(tmp_path))  # a binary would go first
        if find_spec(library) is None:
            pytest.skip(f"no {library}")
    caller = subprocess.Popen([sys.executable, "-c", program])
    children: list[Any] = []
    while not any(not library or library in Path(f"/proc/{child.pid}/maps").read_text() for child in children):
        assert caller.poll() is None
        children = psutil.Process(caller.pid).children()
        time.sleep(0.01)
    caller.kill()
    caller.wait()
    assert not psutil.wait_procs(children, timeout=30)[1]
