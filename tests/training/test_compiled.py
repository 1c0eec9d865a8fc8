"""Networks that torch has compiled learn what they do uncompiled."""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_pre_hook

import tiny
import tiny_reinforced
from neuroute.decoding import compiled as compiling
from neuroute.plan.objects import Run
from neuroute.training.train import Settings, train

pytestmark = pytest.mark.usefixtures("one_thread")

ONE = tiny_reinforced.stage(batches_per_epoch=1)
RUNS: dict[str, tuple[str, Run]] = {
    "pomo": ("store", tiny_reinforced.make_run(ONE)),
    "supervised": ("store", tiny.make_run(batch_size=60, step="decision", validations=1)),
    "icam cvrp": ("cvrp_store", tiny_reinforced.make_run(ONE, kind="icam_cvrp")),
}
CODE = [
    pytest.mark.slow,
    pytest.mark.skipif(not (shutil.which("c++") or shutil.which("g++")), reason="no C++ compiler"),
]


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What was compiled for one test is of no use to the next."""
    yield
    torch.compiler.reset()


def gradients(run: Run, folder: Path, store: Path, *, compiled: bool) -> list[Tensor]:
    """What the first update of a whole training is made of."""
    found: list[Tensor] = []

    def note(optimizer: torch.optim.Optimizer, _args: object, _kwargs: object) -> None:
        if not found:
            found.extend(
                torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in optimizer.param_groups[0]["params"]
            )

    hook = register_optimizer_step_pre_hook(note)
    try:
        how = Settings("cpu", threads=1, compile=compiled)
        train(run, folder / "out", folder / "state", [store], how, code="c", network_code="n")
    finally:
        hook.remove()
    return found


def alike(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    fixture, run = RUNS[name]
    store = request.getfixturevalue(fixture)
    wanted, found = (gradients(run, tmp_path / str(way), store, compiled=way) for way in (False, True))
    scale = max(float(gradient.norm()) for gradient in wanted)
    assert scale > 0
    for a, b in zip(found, wanted, strict=True):
        assert float((a - b).norm()) < 1e-5 * scale


@pytest.mark.slow
def test_what_is_traced_has_the_same_gradients(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without code: the graphs of both passes, as torch has traced them, for sizes that may change."""
    traced: list[Any] = []

    def compile_without_code(part: Any, **how: Any) -> Any:
        traced.append(part)
        return compile_(part, **how)

    compile_ = partial(torch.compile, backend="aot_eager")
    monkeypatch.setattr(torch, "compile", compile_without_code)
    alike("pomo", tmp_path, request)
    names = [part.__name__ for part in traced if part is not compiling._trial]
    assert names == ["encode", "prepare", "decide", "decide_best", "path_rows", "decide_path"]


@pytest.mark.parametrize("name", [pytest.param(name, marks=CODE) for name in RUNS])
def test_compiled_code_has_the_same_gradients(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    alike(name, tmp_path, request)
