"""Networks in a user's own module: planned, trained, evaluated and tabled; clear lines for what does not fit."""

import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from commands import done
from refusals import one_line

from neuroute.core.errors import NeurouteError
from neuroute.evaluation.flops import counts
from neuroute.networks.weights import build, load_checkpoint, parameters
from neuroute.pipeline.plan.build import Plan, build_plan
from neuroute.pipeline.plan.config import load_config
from neuroute.pipeline.plan.overview import describe
from neuroute.training.network_checks import check_run

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
RUN = "scaling/base_6x128"
SHAPE = {"depth": 2, "width": 24, "heads": 3}

CONFIG = """
scale: {scale}
papers: [scaling]
device: cpu
benchmarks_dir: benchmarks
runs:
  {run}:
    network: {network}
    arguments: {arguments}
"""

PAGE = (ROOT / "docs" / "tutorial" / "add_a_network.md").read_text()
VARIANT, TINY = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with modules of the user's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("swiglu", "own_tiny"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "workflow").symlink_to(ROOT / "workflow")
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "swiglu.py").write_text((EXAMPLES / "swiglu.py").read_text())
    (tmp_path / "own_tiny.py").write_text(TINY)
    return tmp_path


def planned(folder: Path, network: str, arguments: object, run: str = RUN) -> Plan:
    scale = ROOT / "tests" / "data" / "micro.yaml"
    file = folder / "config.yaml"
    file.write_text(CONFIG.format(scale=scale, run=run, network=network, arguments=arguments))
    return build_plan(load_config(file))


PLAN = """
from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import load_config
plan = build_plan(load_config())
"""


def told(folder: Path, script: str) -> list[str]:
    """Words of another process, in which files are read anew and the plan of the folder is `plan`."""
    return subprocess.check_output([sys.executable, "-c", PLAN + script], text=True, cwd=folder).split()


# -- the worked example -----------------------------------------------------------------------------------------------


def test_a_variant_is_counted_as_it_is(folder: Path) -> None:
    network = planned(folder, "swiglu:SwigluDecoderOnly", SHAPE).runs[RUN].network
    count, net = counts(network), build(network)
    depth, w, heads = SHAPE.values()
    hidden = 8 * w // 3
    ffn = 2 * hidden * (w + 1) + w * (hidden + 1)
    assert count.parameters == parameters(net) == depth * (5 * w * w + 2 * w + ffn + 2) + 2 * w * w + 6 * w + 1
    for k in (5, 101):
        products = 10 * w * w * k + 4 * w * k * k + 6 * w * hidden * k
        outside = 4 * w * w + 4 * w * k + 2 * w * (k - 2)
        assert count.decision(k) == depth * (products + heads * k * k + hidden * k) + outside


def test_the_tutorial_shows_the_code_that_is_tested() -> None:
    swiglu = (EXAMPLES / "swiglu.py").read_text()
    without_docstring = re.sub(r'    """.*?"""\n\n', "", swiglu[swiglu.index("from typing") :], flags=re.DOTALL)
    assert without_docstring == VARIANT


def test_attention_and_ffn_are_overridden_one_by_one(folder: Path) -> None:
    net = build(planned(folder, "swiglu:SwigluDecoderOnly", SHAPE).runs[RUN].network)
    layer, x = net.get_submodule("layers.0"), torch.rand(2, 7, 24)
    with torch.no_grad():
        layer.alpha1.fill_(0.5)
        layer.alpha2.fill_(0.25)
        h = layer.attention(x, 1.0)
        gate, value = layer.up(h).chunk(2, dim=-1)
        expected = h + 0.25 * layer.down(torch.sigmoid(gate) * gate * value)
        torch.testing.assert_close(layer(x), expected)


def test_the_plan_says_what_it_costs_and_imports_nothing(folder: Path) -> None:
    text = describe(planned(folder, "swiglu:SwigluDecoderOnly", SHAPE), RUN)
    assert any(RUN in line and "e+" in line for line in text.splitlines())
    assert told(folder, "import sys; print(*(m for m in ('torch', 'swiglu') if m in sys.modules))") == []


def test_an_edit_of_the_users_module_reruns_its_run_alone(folder: Path) -> None:
    codes = "print(*map(plan.train_code, list(plan.runs)[:2]))"
    planned(folder, "swiglu:SwigluDecoderOnly", SHAPE)
    before = told(folder, codes)
    source = (folder / "swiglu.py").read_text()
    (folder / "swiglu.py").write_text(source.replace("8 * width // 3", "9 * width // 3"))
    after = told(folder, codes)
    assert (before[0] != after[0], before[1] == after[1]) == (True, True)


# -- from labels to records -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    ("run", "network", "arguments"),
    [(RUN, "swiglu:SwigluDecoderOnly", SHAPE), ("scaling/bq", "own_tiny:Tiny", {"hidden": 12})],
)
def test_it_is_trained_evaluated_and_loaded_again(folder: Path, run: str, network: str, arguments: object) -> None:
    plan = planned(folder, network, arguments, run)
    evaluations = [e for e in plan.evaluations if plan.evaluations[e].run == run]
    label_jobs = dict.fromkeys(b for e in evaluations for b in plan.label_jobs_of_evaluation(e))
    for job in dict.fromkeys([*plan.label_jobs_of_run(run), *label_jobs]):
        done("label", job, "--workers", "1")
    done("train", run)
    for evaluation in evaluations:
        for benchmark in plan.benchmarks_of_evaluation(evaluation):
            done("fetch", benchmark)
        done("evaluate", evaluation)
    records = pd.concat(pd.read_csv(plan.evaluation_file(e)) for e in evaluations)
    assert {"gap_pct", "gflops_paper", "parameters"} <= set(records.metric)
    assert (records[records.metric == "gflops_paper"].value > 0).all()
    checkpoint = plan.checkpoint(run)
    with pytest.raises(NeurouteError, match="code is missing or changed"):
        load_checkpoint(checkpoint)  # which would import what a file names
    net, about = load_checkpoint(checkpoint, expected=plan.runs[run].network)
    assert about["network"]["kind"] == network
    assert parameters(net) == counts(plan.runs[run].network).parameters
    np.savez("mine.npz", coords=np.random.default_rng(0).random((3, 10, 2)))
    done("evaluate", "--model", str(checkpoint), "--data", "mine.npz")


# -- what does not fit ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (TINY.replace("Tiny", "Net"), ""),
        (TINY.replace("Tiny", "Net").replace(".squeeze(-1)", ""), "unfit:Net: decide returns logits .* are needed"),
        (
            "from neuroute.networks.pomo import Pomo\nclass Net(Pomo): pass",
            f"{RUN}: Net builds many solutions at once",
        ),
        ("from neuroute.networks.bq import BqCvrp\nclass Net(BqCvrp): pass", "is a network of problem 'cvrp'"),
    ],
)
def test_a_network_is_looked_at_before_anything_is_solved_for_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, source: str, says: str
) -> None:
    monkeypatch.delitem(sys.modules, "unfit", raising=False)
    (folder / "unfit.py").write_text(source)
    run = planned(folder, "unfit:Net", {}).runs[RUN]
    with one_line(says) if says else nullcontext():
        check_run(run)


def test_arguments_alone_change_the_declared_network(folder: Path) -> None:
    plan = planned(folder, "null", {"gate": False})
    network = plan.runs[RUN].network
    assert network.kind.endswith(":DecoderOnly")
    assert network.arguments["gate"] is False
    assert network.arguments["depth"] > 0
