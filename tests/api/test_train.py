"""Training from Python: the DAG's own, and one line for what cannot be trained."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import done
from refusals import one_line

import neuroute
import own_parts
from neuroute.networks.decoder_only import DecoderOnly
from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import parse_config
from neuroute.problems.vrp import SWITCHES
from neuroute.specs.trainings import Reinforced
from neuroute.training.train import Settings

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
SMALL = {"n": 8, "batches": 4, "batch_size": 4, "validations": 2, "validate_on": 4, "solver": "nearest", "workers": 1}
TINY = {"depth": 1, "width": 16, "heads": 2, "feed_forward": 32}


def train(network: Any, folder: Path, **more: Any) -> neuroute.Model:
    return neuroute.train(network, **{**SMALL, "work": folder, "device": "cpu", **more})


def lines(folder: Path, kind: str) -> list[dict[str, Any]]:
    (file,) = folder.glob("python/runs/python/*/log.jsonl")
    return [line for line in map(json.loads, file.read_text().splitlines()) if line["kind"] == kind]


def test_a_run_of_the_dag_and_the_same_from_python_have_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scale = (EXAMPLES / "toy.yaml").read_text().replace("samples: 4000", "samples: 96")
    (tmp_path / "toy.yaml").write_text(scale)
    settings = {"scale": str(tmp_path / "toy.yaml"), "papers_path": [str(EXAMPLES / "papers")], "papers": ["toy"]}
    settings |= {"substitutes": {"concorde": "nearest", "lkh": "nearest"}, "device": "cpu"}
    (tmp_path / "config.yaml").write_text(json.dumps(settings))
    plan = build_plan(parse_config(settings))
    monkeypatch.chdir(tmp_path)
    for command in (*(["label", job, "--workers", "1"] for job in plan.label_jobs), ["train", "toy/decoder"]):
        done(*command)
    job = tmp_path / "work" / "toy" / "runs" / "toy" / "decoder"

    run, work = plan.runs["toy/decoder"], tmp_path / "python"
    trainer = neuroute.Trainer(run, work, [tmp_path / "work" / "labels"], Settings("cpu", 1))
    trainer.label(workers=1)
    trainer.train()
    for name in ("model.safetensors", "run.json", "log.jsonl"):
        assert (work / "runs" / "toy" / "decoder" / name).exists()
    assert (work / "runs/toy/decoder/model.safetensors").read_bytes() == (job / "model.safetensors").read_bytes()
    neuroute.Trainer(run, work, [tmp_path / "work" / "labels"], Settings("cpu", 1, tf32=False)).train()
    assert len([*(work / "state").rglob("state.pt")]) == 2  # of a GPU's other products nothing is taken over

    shape = {"depth": 2, "width": 32, "heads": 4}
    same: dict[str, Any] = {"batches": 3, "batch_size": 32, "learning_rate": 2e-3, "validations": 4}
    model = train(DecoderOnly, tmp_path / "w", how="labels", arguments=shape, validate_on=100, **same)
    theirs = json.loads((job / "run.json").read_text())
    ours = json.loads((model.path.parent / "run.json").read_text())  # type: ignore[union-attr]
    assert ours["weights_sha256"] == theirs["weights_sha256"]


KILLED = """
import sys
import neuroute
from neuroute.networks.pomo import Pomo
from neuroute.training import loop
loop.SAVE_EVERY_S = loop.SHARE = 0.0
neuroute.train(Pomo, n=8, batches=60, batch_size=4, validations=2, validate_on=4, solver="nearest", workers=1,
               arguments={"depth": 1, "width": 16, "heads": 2, "feed_forward": 32}, work=sys.argv[1], device="cpu")
"""


@pytest.mark.slow
def test_a_killed_call_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    def call(folder: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", KILLED, folder], cwd=tmp_path, start_new_session=True)

    assert call("whole").wait() == 0
    process = call("killed")
    while not list(tmp_path.glob("killed/python/state/python/*/*/state.pt")):
        assert process.poll() is None, "the training ended before it could be killed"
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not list(tmp_path.glob("killed/python/runs/python/*/model.safetensors"))
    assert call("killed").wait() == 0
    name = "python/runs/python/pomo_tsp8/model.safetensors"
    assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


class Killing(neuroute.Callback):
    """Stops a training as a cluster does, or Ctrl-C."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def after_batch(self, progress: neuroute.Progress) -> None:
        if progress.batch == 2:
            os.kill(os.getpid(), self.number)


@pytest.mark.parametrize(
    ("network", "how", "number", "error"),
    [
        ("Dropping", "labels", signal.SIGTERM, neuroute.NeurouteError),
        ("Starts", own_parts.Drawing, signal.SIGINT, KeyboardInterrupt),
    ],
)
def test_what_draws_from_no_generator_of_its_own_goes_on_to_the_same_bytes(
    network: str, how: Any, number: signal.Signals, error: type[BaseException], tmp_path: Path
) -> None:
    def call(folder: str, *callbacks: neuroute.Callback) -> bytes:
        more: dict[str, Any] = {"how": how, "name": "draws", "learning_rate": 0.1, "callbacks": callbacks}
        train(getattr(own_parts, network), tmp_path / folder, **more)
        return (tmp_path / folder / "python/runs/python/draws/model.safetensors").read_bytes()

    whole = call("whole")
    with pytest.raises(error, match=r"stopped .*at batch 2 of 4; run it again to go on"):
        call("killed", Killing(number))
    assert call("killed") == whole


@pytest.mark.parametrize(
    ("network", "how"), [("Path", "labels"), ("Tied", "labels"), ("Path", "self-improvement"), ("Starts", None)]
)
def test_networks_of_ones_own_learn_by_each_scheme(network: str, how: str | None, tmp_path: Path) -> None:
    more = {"epochs": 2, "beam": 2, "rounds": 1} if how == "self-improvement" else {}
    model = train(getattr(own_parts, network), tmp_path, how=how, **more)
    assert [line["batch"] for line in lines(tmp_path, "validation")] == [0, 2, 4]
    (instance,) = neuroute.generate("tsp", 8)
    solution = neuroute.solve(instance, model=model, seconds=0)
    measured = neuroute.evaluate(model, [instance], reference="lkh", workers=1)
    assert solution.cost == pytest.approx(measured.lengths[0], rel=1e-5)
    model.save(tmp_path / "kept.safetensors")
    kind = f"own_parts:{network}"
    again = neuroute.load_model(tmp_path / "kept.safetensors", "cpu", trusted=[kind])
    assert np.array_equal(neuroute.evaluate(again, [instance]).lengths, measured.lengths)
    assert model.source == f"{kind}={model.path}"
    assert np.array_equal(neuroute.evaluate(model.source, [instance]).lengths, measured.lengths)


def test_a_loss_of_ones_own_is_gone_down(tmp_path: Path) -> None:
    rate = 0.01
    more: dict[str, Any] = {"how": own_parts.Squares, "learning_rate": rate, "name": "squares"}
    (after,) = train(own_parts.Starts, tmp_path, batches=1, validations=1, **more).net.parameters()
    assert float(after.detach()) == pytest.approx(1 - rate, abs=1e-6)
    assert [line["loss"] for line in lines(tmp_path, "train")] == [1.0]


def test_it_starts_from_a_trained_model(tmp_path: Path) -> None:
    first = train(own_parts.Starts, tmp_path, name="first")
    frozen = train(first, tmp_path, how=own_parts.Squares, learning_rate=1e-9, batches=1, validations=1, name="second")
    assert torch.allclose(*(net.nearness for net in (first.net, frozen.net)))  # type: ignore[arg-type]


class Follower(neuroute.Callback):
    def __init__(self, last: int) -> None:
        self.last, self.seen = last, list[int]()

    def after_batch(self, progress: neuroute.Progress) -> bool:
        assert progress.loss.isfinite()
        self.seen.append(progress.batch)
        return progress.batch == self.last


@pytest.mark.parametrize("how", ["reinforce", own_parts.Squares])
def test_a_callback_sees_each_batch_and_may_end_the_training(
    how: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    follower = Follower(last=3)
    model = train(own_parts.Starts, tmp_path, how=how, callbacks=[follower])
    assert follower.seen == [1, 2, 3]
    assert json.loads((model.path.parent / "run.json").read_text())["batches"] == 3  # type: ignore[union-attr]
    train(own_parts.Starts, tmp_path, how=how, callbacks=[follower])
    assert follower.seen == [1, 2, 3]  # it has ended
    assert "a callback ended it there: for other callbacks train under another name" in caplog.text
    model = train(own_parts.Starts, tmp_path, how=how)
    assert json.loads((model.path.parent / "run.json").read_text())["batches"] == 4  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("gaps", "ends"), [([5, 4, 3, 2], False), ([5, 4, 4.5, 4.2], False), ([5, 4, 4.5, 4.2, 4], True), ([5] * 4, True)]
)
def test_it_stops_early_where_validations_get_no_better(gaps: list[float], ends: bool) -> None:
    progress = neuroute.Progress(1, 9, 1, 1.0, None, gaps, torch.nn.Identity())
    assert neuroute.StopEarly(patience=3).after_validation(progress) is ends


def test_a_model_whose_folder_another_training_took_is_not_taken_for_that_one(tmp_path: Path) -> None:
    first = train(own_parts.Starts, tmp_path)
    assert first.source == f"own_parts:Starts={first.path}"
    train(first, tmp_path, learning_rate=0.1)
    for use in (lambda: first.source, lambda: train(first, tmp_path, name="third")):
        with one_line("model.safetensors changed since it was loaded; `save` this model and load that file"):
            use()


class Failing(neuroute.Callback):
    def after_validation(self, progress: neuroute.Progress) -> None:
        raise KeyError("mine")


def test_ctrl_c_stops_what_follows_a_training_that_fails_at_its_first_validation(tmp_path: Path) -> None:
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(KeyError, match="mine"):
        train(own_parts.Starts, tmp_path, callbacks=[Failing()])
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


def test_no_gap_is_told_of_a_model_that_diverges(tmp_path: Path) -> None:
    """Its tours are none; as lengths they would be the shortest of all."""
    with one_line("scores are not finite .diverged training"):
        train(own_parts.Starts, tmp_path, how=own_parts.LaterNoNumber)


SCRIPT = """
import logging, sys
sys.path.append(sys.argv[1])
import neuroute
import own_parts
HIDDEN = 4
class Mine(own_parts.Path):
    def __init__(self):
        super().__init__(HIDDEN)
model = neuroute.train(Mine, n=8, batches=1, batch_size=4, validate_on=4, solver="nearest", workers=1, device="cpu")
print(neuroute.load_model(model.path, "cpu", trusted=["__main__:Mine"]).name)
try:
    model.source
except neuroute.NeurouteError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_class_of_a_script_is_trained_and_its_edit_is_noticed(tmp_path: Path) -> None:
    def call(text: str) -> str:
        program = [sys.executable, "-c", text, str(Path(__file__).parent)]
        return subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    for text, states in ((SCRIPT, 1), (SCRIPT.replace("  super", "      super"), 1), (SCRIPT.replace("= 4", "= 5"), 2)):
        assert call(text).splitlines() == [
            "python/mine_tsp8",
            "python/mine_tsp8: other processes cannot load __main__:Mine; put its class into a module",
        ]
        assert len(list((tmp_path / "work/python/state/python/mine_tsp8").iterdir())) == states


VRP: dict[str, Any] = {
    "network": "neuroute.networks.mvmoe:MvMoe",
    "arguments": TINY | {"experts": 0},
    "solver": "ortools-short",
}
POMO = "neuroute.networks.pomo:Pomo"
NETWORKS = {
    "WrongSignature": r"own_parts:WrongSignature.*`def decide\(self, rows, attention_scale=1.0\)`",
    "WrongShape": r"decide returns logits \(2, 6, 1\), where \(2, 6\) are needed",
    "WrongRows": r"encode returns \(2, 7, 2\), not \(2, 8, E\)",
    "NoGradient": "without a gradient",
    "NotANumber": "no finite numbers",
    "NoMask": "add the mask to them",
    "NoNodes": "do not fit together",
    "Complex": "its state .phase. is no tensor of real numbers",
}
SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "no such setting": ({"learning_rat": 1.0}, "unknown setting 'learning_rat'.*did you mean learning_rate"),
    "no such training": ({"how": "reinforc"}, "did you mean reinforce"),
    "another problem": ({"problem": "cvrp"}, "Starts is a network of problem 'tsp'"),
    "no such argument": ({"arguments": {"depth": 3}}, "cannot be built with"),
    "a name that is no folder's": ({"name": "../x"}, "train: name: it becomes a folder's name"),
    "a name of 400 bytes": ({"name": "é" * 200}, "train: name: it becomes a folder's name: at most 200"),
    "no folder": ({"work": None}, "train: work: "),
    "no such logger": ({"loggers": "wandv"}, "no logger 'wandv'; did you mean wandb"),
    "no passes": (
        {"how": "self-improvement", "passes": 0},
        "train: passes: Input should be greater than",
    ),
    "epochs in letters": ({"epochs": "x"}, "train: epochs: Input should be a valid integer"),
    "more epochs than batches": ({"batches": 5, "epochs": 10}, "train: 5 batches in 10 epochs; give one for each"),
    "a batch that is a switch": ({"batch_size": True}, "train: batch_size: true, where a number is needed"),
    "memory that is no number": ({"memory_gb": float("nan")}, "train: memory_gb: .*finite number"),
    "problem None": ({"problem": None}, "train: problem: "),
    "a problem that is none": ({"problem": ["tsp", None]}, "train: problem.1: "),
    "arguments that are no mapping": ({"arguments": "depth=2"}, "train: arguments: "),
    "the class of a callback": ({"callbacks": [neuroute.StopEarly]}, "callbacks: give a list of objects"),
    "a rate that is far too high": ({"learning_rate": 1e38}, "not finite.*learning rate"),
    "a loss that is a number": ({"how": own_parts.Number}, "returns float, where a loss is needed"),
    "a loss without a gradient": ({"how": own_parts.Detached}, "a loss without a gradient"),
    "a loss that is no number": ({"how": own_parts.Infinite}, "a loss of inf"),
    "a loss that fails": ({"how": own_parts.Broken}, r"own_parts.py, line \d+, in train: RuntimeError"),
    "no such variant": (VRP | {"problem": "vrptv"}, "no routing problem 'VRPTV'; is VRPTW"),
    "another problem than the 16": (VRP | {"problem": "tsp"}, "MvMoe is a network of problem 'vrp'"),
    "none of the 16": (VRP | {"problem": []}, "MvMoe is a network of problem 'vrp'"),
    "labels of the 16": (VRP | {"problem": "vrptw", "how": "labels"}, "learn by reinforce"),
    "self-improvement of the 16": (VRP | {"problem": "vrptw", "how": "self-improvement"}, "learn by reinforce"),
    **{
        f"{name} of {value}": (
            {"network": POMO, "arguments": TINY | {name: value}},
            f"Pomo: its `{name}` is {value}; give a whole number from 1",
        )
        for name, value in (("depth", -1), ("depth", 0), ("depth", True), ("train_nodes", -3))
    },
}


@pytest.mark.parametrize("network", NETWORKS)
def test_a_network_that_does_not_fit_is_one_line_before_labels_are_solved(network: str, tmp_path: Path) -> None:
    with pytest.raises(neuroute.NeurouteError, match=NETWORKS[network]):
        train(getattr(own_parts, network), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_model_of_other_settings_is_not_replaced_without_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def warnings() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]

    train(own_parts.Starts, tmp_path, learning_rate=0.1)
    train(own_parts.Starts, tmp_path, learning_rate=0.1)
    assert warnings() == []
    train(own_parts.Starts, tmp_path, learning_rate=0.2)
    (line,) = warnings()
    assert "learning_rate: 0.1" in line
    assert str(tmp_path) in line


@pytest.mark.parametrize("what", SETTINGS)
def test_a_setting_that_does_not_fit_is_one_line(what: str, tmp_path: Path) -> None:
    more, message = SETTINGS[what]
    with one_line(message):
        train(**{"network": own_parts.Starts, "folder": tmp_path, **more})


@pytest.mark.parametrize(
    ("problem", "name", "variants"),
    [
        ("vrptw", "mvmoe_vrptw8", ("VRPTW",)),
        (["cvrp", "OVRPB"], "mvmoe_cvrp_ovrpb8", ("CVRP", "OVRPB")),
    ],
)
@pytest.mark.parametrize("how", [None, own_parts.Reinforce])
def test_one_of_the_16_problems_or_several_are_trained(
    problem: Any, name: str, variants: tuple[str, ...], how: Any, tmp_path: Path
) -> None:
    pytest.importorskip("ortools")
    model = train(folder=tmp_path, problem=problem, how=how, **VRP)
    assert model.name == f"python/{name}"
    for variant in variants:
        (instance,) = neuroute.generate(variant.lower(), 8)
        assert neuroute.solve(instance, model=model, seconds=0).cost > 0
    labels = {path.name.split("_uniform")[0] for path in (tmp_path / "labels").glob("*.npy")}
    assert labels == {f"vrp_{variant}" for variant in variants}
    assert all(line["gap_pct"] > -50 for line in lines(tmp_path, "validation"))


def test_all_16_problems_are_a_run_like_that_of_a_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neuroute.Trainer, "label", lambda *_: None)
    monkeypatch.setattr(neuroute.Trainer, "train", lambda trainer: trainer.run)
    run: Any = train(folder=tmp_path, problem="vrp", **VRP | {"validate_on": 32})
    assert isinstance(run.training, Reinforced)
    (stage,) = run.training.stages
    assert set(stage.variants) == set(SWITCHES)
    assert [each.dataset.count for each in (run.validation, *run.also_validation)] == [2] * 16
    assert run.name == "mvmoe_vrp8"


@pytest.mark.slow
def test_a_script_without_a_main_guard_has_its_labels_made_in_processes(tmp_path: Path) -> None:
    """Which spawned processes would run again, each of them."""
    text = "import neuroute, own_parts\nneuroute.train(own_parts.Path, n=8, batches=40, batch_size=8, workers=2,"
    (tmp_path / "script.py").write_text(text + ' validations=1, validate_on=4, solver="nearest", device="cpu")\n')
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env=environment, check=True, timeout=300)
