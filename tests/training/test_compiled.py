"""Networks that torch has compiled learn what they do uncompiled."""

import logging
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

import tiny
import tiny_reinforced
from neuroute.specs.objects import Run
from neuroute.training.train import Settings, _trial, can_compile, train
from test_ddp import gradients

pytestmark = pytest.mark.usefixtures("one_thread")

ONE = tiny_reinforced.stage(batches_per_epoch=1)
RUNS: dict[str, tuple[str, Run]] = {
    "pomo": ("store", tiny_reinforced.make_run(ONE)),
    "supervised": ("store", tiny.make_run(batch_size=60, step="decision", validations=1)),
    "icam cvrp": ("cvrp_store", tiny_reinforced.make_run(ONE, kind="icam_cvrp")),
}


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What was compiled for one test, and whether torch can, is of no use to the next."""
    can_compile.cache_clear()
    yield
    can_compile.cache_clear()
    torch.compiler.reset()


def alike(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    fixture, run = RUNS[name]
    store = request.getfixturevalue(fixture)
    wanted, found = (gradients(run, tmp_path / str(way), [store], compiles=way) for way in (False, True))
    scale = max(float(gradient.norm()) for gradient in wanted.values())
    assert scale > 0
    assert found.keys() == wanted.keys()
    for name, gradient in wanted.items():
        assert float((found[name] - gradient).norm()) < 1e-5 * scale


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pomo", "icam cvrp"])
def test_what_is_traced_has_the_same_gradients(
    name: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without code: the graphs of both passes, as torch has traced them, for sizes that may change."""
    traced: list[Any] = []

    def compile_without_code(part: Any, **how: Any) -> Any:
        traced.append(part)
        return compile_(part, **how)

    compile_ = partial(torch.compile, backend="aot_eager")
    monkeypatch.setattr(torch, "compile", compile_without_code)
    alike(name, tmp_path, request)
    names = [part.__name__ for part in traced if part is not _trial]
    assert names == ["encode", "prepare", "decide"]


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("c++") or shutil.which("g++")), reason="no C++ compiler")
def test_compiled_code_has_the_same_gradients(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Of one training: how others are traced is above, and code for a graph is torch's, a minute each."""
    alike("supervised", tmp_path, request)


@pytest.mark.slow
def test_sizes_may_change_and_nothing_is_traced_anew(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Instances of 6 to 9 nodes, in batches of as many as fit: a graph of one size would be taken anew for another."""
    graphs: list[Any] = []

    def note(graph: Any, _inputs: object) -> Any:
        graphs.append(graph)
        return graph

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=note))
    stages = [tiny_reinforced.stage(f"s{n}", batches_per_epoch=1, sizes=(n, n), batch_size=n - 3) for n in (8, 6, 9, 7)]
    how, counts = Settings("cpu", threads=1, compile=True), []
    for number in (2, 4):
        torch.compiler.reset()
        graphs.clear()
        out = tmp_path / str(number)
        run = tiny_reinforced.make_run(*stages[:number])
        train(run, out / "out", out / "state", [store], how, code="c", network_code="n")
        counts.append(len(graphs))
    assert 0 < counts[1] < counts[0] + 3  # each of the three parts would be taken once more for a new size


def test_without_a_compiler_one_line_says_so(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def fails(_part: object, **_how: object) -> Any:
        raise RuntimeError("\nNo working C++ compiler found\nmore")

    monkeypatch.setattr(torch, "compile", fails)
    with caplog.at_level(logging.WARNING):
        assert not can_compile("cpu")
        assert not can_compile("cpu")
    assert [record.getMessage() for record in caplog.records] == [
        "`compile`: torch cannot compile for cpu here (No working C++ compiler found); networks run as they are"
    ]
