"""The label store when a call is stopped or killed, when a disk is full, and when several processes make the same."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from neuroute.core import files
from neuroute.core.errors import NeurouteError
from neuroute.datasets import chunks, labels
from neuroute.datasets.labels import make_labels
from neuroute.datasets.store import load_tours
from neuroute.solvers.base import Solver
from neuroute.solvers.registry import get
from tours import wanted

# Solves in the background, for the tests that kill or race.
PROGRAM = """
import json, logging, sys
from pathlib import Path
from neuroute.datasets import labels
from neuroute.datasets.labels import make_labels
from neuroute.specs.objects import Dataset, Labels
if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    labels.KEEP_EVERY_S = 0.0
    store, solver, n, count, workers = sys.argv[1:]
    wanted = Labels(dataset=Dataset(n=int(n), count=int(count)), solver=solver)
    print(json.dumps(make_labels(wanted, Path(store), [], int(workers))))
"""


def background(tmp_path: Path, *arguments: object) -> subprocess.Popen:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    return subprocess.Popen(
        [sys.executable, str(program), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_chunks(store: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while len(list(store.glob(".partial/*/[0-9]*.npz"))) < count:
        assert time.monotonic() < deadline, "nothing was solved"
        time.sleep(0.005)


def interrupt(monkeypatch: pytest.MonkeyPatch, before: int | None = None) -> list:
    """Raise as Ctrl-C does before the chunk of this number is solved.  Return a list that gets what is asked for."""
    solve_chunk, asked = chunks.solve_chunk, []

    def solve(*arguments):
        asked.append(arguments)
        if len(asked) == before:
            raise KeyboardInterrupt
        return solve_chunk(*arguments)

    monkeypatch.setattr(chunks, "solve_chunk", solve)
    return asked


@pytest.mark.slow
def test_a_killed_call_goes_on_and_ends_with_the_same_bytes(tmp_path, monkeypatch):
    pytest.importorskip("elkai")
    n, count, name = 50, 140, wanted(1, 50, "lkh").shard_file(0)  # seven chunks of a tenth of a second or two
    make_labels(wanted(count, n, "lkh"), tmp_path / "whole", [], workers=1)
    store = tmp_path / "killed"
    process = background(tmp_path, store, "lkh", n, count, 2)
    wait_for_chunks(store, 2)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    kept = len(list(store.glob(".partial/*/[0-9]*.npz")))
    assert kept >= 2
    assert not (store / name).exists()
    solved = interrupt(monkeypatch)
    make_labels(wanted(count, n, "lkh"), store, [], workers=1)
    assert len(solved) == len(chunks.chunks(0, 0, count, n)) - kept
    assert (store / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.slow
def test_workers_end_with_a_killed_parent(tmp_path):
    pytest.importorskip("elkai")
    process = background(tmp_path, tmp_path / "store", "lkh", 60, 3000, 2)
    wait_for_chunks(tmp_path / "store", 1)
    psutil = pytest.importorskip("psutil")
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate()
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive


def test_chunks_come_to_the_disk_as_few_pages(tmp_path, monkeypatch):
    """A thousand chunks of a shard are not a thousand files."""
    block, written = wanted(120, n=400), []
    make_labels(block, tmp_path / "whole", [], workers=1)
    write = labels.write_whole
    monkeypatch.setattr(labels, "write_whole", lambda path, *a: written.append(path.name) or write(path, *a))
    asked = interrupt(monkeypatch, before=50)
    with pytest.raises(KeyboardInterrupt):
        make_labels(block, tmp_path / "store", [], workers=1)
    assert written == ["00000_00002.npz"]
    make_labels(block, tmp_path / "store", [], workers=1)
    assert len(asked) == 60 + 1  # the one of the interrupt twice
    name = block.shard_file(0)
    assert (tmp_path / "store" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.slow
def test_two_processes_at_once_share_the_work(tmp_path):
    pytest.importorskip("elkai")
    pair = [background(tmp_path, tmp_path / "store", "lkh", 50, 100, 1) for _ in range(2)]
    outputs = [process.communicate(timeout=60) for process in pair]
    manifests = [json.loads(out) for out, _ in outputs]
    assert sorted(m["solved"] for m in manifests) == [0, 100]
    assert manifests[0]["shards"] == manifests[1]["shards"]
    assert sum("another process is making this shard" in err for _, err in outputs) == 1


@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_a_stopped_call_solves_only_what_is_left(tmp_path, monkeypatch, problem):
    monkeypatch.setattr(labels, "chunks", lambda shard, a, b, *_: chunks.chunks(shard, a, b, 100))  # of 10
    block = wanted(25, problem=problem)
    make_labels(block, tmp_path / "whole", [], workers=1)
    asked = interrupt(monkeypatch, before=2)
    with pytest.raises(KeyboardInterrupt):
        make_labels(block, tmp_path / "stopped", [], workers=1)
    make_labels(block, tmp_path / "stopped", [], workers=1)
    assert len(asked) == len(chunks.chunks(0, 0, 25, 100)) + 1 == 3 + 1
    name = block.shard_file(0)
    assert (tmp_path / "stopped" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_leftovers_of_a_killed_call_are_of_no_harm(tmp_path):
    name = Path(wanted(1).shard_file(0))
    partial = tmp_path / ".partial" / name.stem
    partial.mkdir(parents=True)
    (partial / "00000_00005.npz").write_bytes(b"half")
    np.savez(partial / "00000_00001.npz", mark=np.array("x"))
    content = bytearray((partial / "00000_00001.npz").read_bytes())
    content[content.index(b"PK\x01\x02") + 10] ^= 1  # a bit of how it is packed
    (partial / "00000_00001.npz").write_bytes(content)
    (tmp_path / f".{name}.123.tmp").write_bytes(b"half")
    assert make_labels(wanted(5), tmp_path, [], workers=1)["solved"] == 5
    assert not list(tmp_path.glob(".*.tmp"))
    assert not partial.exists()


def test_a_full_disk_leaves_no_half_file_and_no_loss(tmp_path, monkeypatch):
    make_labels(wanted(5), tmp_path, [], workers=1)
    before = (tmp_path / wanted(1).shard_file(0)).read_bytes()
    real = os.fsync

    def full(fd: int) -> None:
        if "npy" in os.readlink(f"/proc/self/fd/{fd}"):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(fd)

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(NeurouteError, match="disk full"):
        make_labels(wanted(150), tmp_path, [], workers=1)
    assert (tmp_path / wanted(1).shard_file(0)).read_bytes() == before
    assert not list(tmp_path.glob(".*.tmp"))
    monkeypatch.undo()
    assert make_labels(wanted(150), tmp_path, [], workers=1)["mean_length"] > 0


@pytest.mark.parametrize("had", [0, 20])
def test_a_kill_between_a_shard_and_its_sidecar_loses_no_facts(tmp_path, monkeypatch, had):
    whole = make_labels(wanted(50), tmp_path / "whole", [], workers=1)
    store, name = tmp_path / "store", wanted(1).shard_file(0)
    if had:
        make_labels(wanted(had), store, [], workers=1)
    replace, left = os.replace, [0]

    def killed(source: object, target: Path) -> None:
        if target.stem == Path(name).stem:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
        replace(source, target)

    monkeypatch.setattr(files.os, "replace", killed)
    for files_left in (0, 1):  # before the first file, and before the second
        left[0] = files_left
        with pytest.raises(KeyboardInterrupt):
            make_labels(wanted(50), store, [], workers=1)
    monkeypatch.undo()
    again = make_labels(wanted(50), store, [], workers=1)
    for key in whole.keys() - {"seconds", "solved", "cached"}:
        assert again[key] == whole[key]
    assert again["seconds"] > 0
    found, facts = (
        json.loads((folder / name).with_suffix(".json").read_text()) for folder in (store, tmp_path / "whole")
    )
    assert {**found, "seconds": 0} == {**facts, "seconds": 0}


@pytest.mark.slow
def test_a_worker_that_dies_is_reported_and_finished_chunks_are_kept(tmp_path):
    pytest.importorskip("elkai")
    psutil = pytest.importorskip("psutil")
    store = tmp_path / "store"
    process = background(tmp_path, store, "lkh", 60, 3000, 2)
    wait_for_chunks(store, 1)
    workers = [p for p in psutil.Process(process.pid).children() if "spawn_main" in " ".join(p.cmdline())]
    workers[0].kill()
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "a lkh worker died" in err
    assert "shard 0" in err
    assert list(store.glob(".partial/*/[0-9]*.npz"))


@pytest.mark.parametrize(("solver", "tried", "left"), [("insertion", 35, 10), ("lkh3", 40, 1)])
def test_one_bad_answer_costs_its_chunk_and_no_other(tmp_path, monkeypatch, solver, tried, left):
    """Of the third chunk five instances are not tried any more; LKH-3, which may fail, has one for each instance."""
    wanted_labels, real = wanted(40, n=100, solver=solver), get("insertion")
    calls: list[int] = []

    def sometimes(coords, seed):
        calls.append(1)
        if len(calls) == 25:
            raise NeurouteError("no tour")
        return real.solve(coords, seed)

    failing = Solver(solver, False, "", real.version, sometimes)
    monkeypatch.setattr(chunks, "_load_solver", lambda name: failing)
    monkeypatch.setattr(labels, "get", lambda name: failing)
    with pytest.raises(NeurouteError, match=f"instance 24 of {wanted_labels.id}: no tour; all else is solved and kept"):
        make_labels(wanted_labels, tmp_path, [], workers=1)
    assert len(calls) == tried
    make_labels(wanted_labels, tmp_path, [], workers=1)
    assert len(calls) == tried + left
    assert len(load_tours(wanted_labels, [tmp_path])) == 40


def test_ctrl_c_ends_what_workers_are_at() -> None:
    """An instance may take hours; and what a worker starts hears a Ctrl-C itself."""
    hears = "import signal; signal.getsignal(signal.SIGINT) is signal.default_int_handler or 1 / 0"

    def interrupted() -> None:
        with chunks.solver_pool(2) as pool:
            assert pool is not None
            pool.submit(subprocess.run, [sys.executable, "-c", hears], check=True).result()
            pool.submit(time.sleep, 600)
            raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert time.monotonic() - began < 300
