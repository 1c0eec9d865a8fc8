"""Models that were never trained, evaluations of them, and what the command line says."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import commands
import numpy as np
import pandas as pd
import torch

from neuroute.core.digest import code_digest
from neuroute.datasets.benchmarks import published_instances, write_manifest
from neuroute.evaluation.driver import evaluate
from neuroute.evaluation.loaded import RunContext
from neuroute.networks.weights import build, parameters, save_checkpoint
from neuroute.specs.objects import (
    BenchmarkEvaluation,
    Decoding,
    Evaluation,
    Labels,
    Measurement,
    Network,
    Run,
    Supervised,
    Test,
)

CONTEXT = RunContext("test", "c", "n", device="cpu", threads=1)
Arrays = dict[str, np.ndarray]


def ready(network: Network, seed: int = 0) -> Any:
    """A network with random weights, always the same."""
    torch.manual_seed(seed)
    return build(network).eval()


def untrained(path: Path, network: Network, run: str, code: str | None = None, net: Any = None) -> Path:
    """A checkpoint of such a network, by default of the network's code."""
    about = {"run": run, "network": network.model_dump(), "code": code or code_digest(network.kind)}
    save_checkpoint(path, net or ready(network), about)
    return path


def run_of(network: Network, labels: Labels, name: str = "scaling/x") -> Run:
    """A run that nobody trains.  `labels` are not read; their size is the run's."""
    paper, _, short = name.partition("/")
    training, n = Supervised(samples=1), labels.dataset.n
    return Run(paper=paper, name=short, network=network, training=training, n=n, data=(labels,), validation=labels)


def tiny_run(paper: str, kind: str, labels: Labels, **arguments: Any) -> Run:
    return run_of(Network(kind=f"neuroute.networks.{kind}", arguments=arguments), labels, f"{paper}/tiny")


def alone(measurement: Measurement) -> Evaluation:
    """The job of one measurement."""
    return Evaluation(run=measurement.run, group=measurement.name, measurements=(measurement,))


def decoded(run: Run, *tests: tuple[Labels, Decoding], group: str = "tests") -> Evaluation:
    """The job that decodes these labelled test sets."""
    return Evaluation(
        run=run.id, group=group, measurements=tuple(Test(run=run.id, labels=of, decoding=how) for of, how in tests)
    )


def evaluated(
    folder: Path, what: Evaluation | Measurement, run: Run, net: Any = None, out: Path | None = None, **context: Any
) -> tuple[pd.DataFrame, Arrays]:
    """Records and arrays of an evaluation of a run that was never trained, and which `folder` then holds.

    Or of one measurement, whose arrays then are called as it calls them.
    """
    evaluation = what if isinstance(what, Evaluation) else alone(what)
    out = out or folder / "out" / f"{evaluation.group}.csv"
    untrained(folder / "model.safetensors", run.network, run.id, CONTEXT.network_code, net)
    evaluate(evaluation, run, folder / "model.safetensors", out, replace(CONTEXT, **context))
    with np.load(out.with_suffix(".npz"), allow_pickle=False) as file:
        prefix = f"{what.name}/" if isinstance(what, Measurement) else ""
        return pd.read_csv(out), {key.removeprefix(prefix): each for key, each in file.items()}


def looked_into(folder: Path, measurement: Measurement, run: Run, net: Any, **context: Any) -> Arrays:
    """Arrays of a measurement whose records of each set, as the end of its modules, are the count of the parameters."""
    records, arrays = evaluated(folder, measurement, run, net, **context)
    columns = records[["run", "group", "n", "metric", "value"]].drop_duplicates().to_numpy().tolist()
    assert columns == [[run.id, measurement.name, run.n, "parameters", parameters(net)]]
    assert records.test.is_unique
    assert json.loads(str(arrays["modules"]))[-1] == {"parameters": parameters(net)}
    return arrays


def on_benchmark(
    folder: Path, given: Path, name: str, names: Iterable[str], run: Run, **how: Any
) -> tuple[pd.DataFrame, Arrays]:
    """The same on these instances of a benchmark, of which there is a copy."""
    lacking = {each: "" for each in published_instances(name) if each not in names}
    write_manifest(folder / "m.json", given, lacking, name)
    measurement = BenchmarkEvaluation.model_validate({"run": run.id, "name": name, "benchmark": name} | how)
    return evaluated(folder, measurement, run, benchmarks={name: folder / "m.json"})


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x.astype(float) - x.max(axis=axis, keepdims=True))
    return np.asarray(e / e.sum(axis=axis, keepdims=True))


def on_cpu(*arguments: object) -> tuple[object, ...]:
    """A command on the CPU, unless it says otherwise."""
    return *arguments, *(() if "--device" in arguments else ("--device", "cpu"))


def done(*arguments: object) -> str:
    return commands.done(*on_cpu(*arguments))


def refused(*arguments: object) -> str:
    return commands.refused(*on_cpu(*arguments))


def tsp_text(points: Any, kind: str = "EUC_2D", name: str = "mine") -> str:
    head = f"NAME: {name}\nTYPE: TSP\nDIMENSION: {len(points)}\nEDGE_WEIGHT_TYPE: {kind}\n"
    return head + coordinates(points) + "EOF\n"


def vrp_text(points: Any, demands: Any, capacity: int, kind: str = "EUC_2D", name: str = "mine") -> str:
    """Of CVRP; the first node is the depot, whose demand is not read."""
    lines = "".join(f"{i} {0 if i == 1 else d}\n" for i, d in enumerate(demands, 1))
    return (
        f"NAME: {name}\nTYPE: CVRP\nDIMENSION: {len(points)}\nEDGE_WEIGHT_TYPE: {kind}\nCAPACITY: {capacity}\n"
        f"{coordinates(points)}DEMAND_SECTION\n{lines}DEPOT_SECTION\n1\n-1\nEOF\n"
    )


def coordinates(points: Any) -> str:
    return "NODE_COORD_SECTION\n" + "".join(f"{i} {x} {y}\n" for i, (x, y) in enumerate(points, 1))
