"""A fabricated work folder for the figures of paper `sit`: a decision, an iteration, logs, and repeated trainings."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from fabricated import Fabric, about, modules, records, write_records
from neuroute.pipeline.papers.sit.paper import PAPER, RoundEvaluation
from neuroute.pipeline.plan.config import load_scale
from neuroute.problems.tsp import tour_length
from neuroute.specs.objects import Decoding, Reconstruction, Run

SCALE = load_scale("smoke")
FABRIC = Fabric(PAPER, SCALE, lambda run, dataset, decoding: repeated_gap(run))
RUNS: dict[str, Run] = {run.id: run for run in FABRIC.runs}
ROUND = next(m for m in FABRIC.measurements if isinstance(m, RoundEvaluation))
study = FABRIC.study
LOGS = ("sit/warm_tsp", "sit/tsp_1k")
Arrays = dict[str, Any]


def decision(run: Run, n: int, k: int) -> Arrays:
    """Probabilities and weights that fall with the distance; the path goes around the middle."""
    a, rng = run.network.arguments, np.random.default_rng(n)
    coords = rng.random((n, 2)).astype(np.float32)
    around = np.argsort(np.arctan2(*(coords - coords.mean(axis=0)).T))
    visited = np.roll(around, -int(np.flatnonzero(around == 0)[0]))[:k]
    left = np.setdiff1d(np.arange(n), visited)
    apart = np.linalg.norm(coords - coords[visited[-1]], axis=1)
    probabilities = np.full(n, np.nan)
    probabilities[left] = np.exp(-9 * apart[left])
    probabilities[left] /= probabilities[left].sum()
    seen = np.unique([*left, visited[-1], 0])
    attention = np.full((a["depth"], a["representatives"] + 1, n), np.nan)
    attention[..., seen] = np.exp(-3 * apart[seen]) / np.exp(-3 * apart[seen]).sum()
    return {
        "coords": coords,
        "visited": visited,
        "destination": np.array(0),
        "probabilities": probabilities,
        "attention": attention,
        "modules": modules(run, "decoder.layers"),
    }


def iteration(coords: np.ndarray, length: int) -> Arrays:
    """A tour around the middle, whose second block was drawn in another order before."""
    n = len(coords)
    after = np.argsort(np.arctan2(*(coords - coords.mean(axis=0)).T))
    before, blocks = after.copy(), n // length
    before[length + 1 : 2 * length - 1] = after[length + 1 : 2 * length - 1][::-1]
    lengths = tour_length(coords, after) * np.array([1, 1, 0.98, 0.97])
    return {
        "iteration": np.array(1),
        "before": before,
        "after": after,
        "first": np.arange(blocks) * length,
        "length": np.array(length),
        "improved": np.arange(blocks) == 1,
        "rounds": lengths,
        "start": np.array("insertion"),
    }


def write_round(work: Path) -> None:
    run, d = RUNS[ROUND.run], ROUND.dataset
    arrays = decision(run, d.n, ROUND.decision)
    rows = records(ROUND.name, run, about(d, "none"), Decoding(), {"parameters": 12_345})
    arrays = {f"{ROUND.name}/{key}": each for key, each in (arrays | iteration(arrays["coords"], 7)).items()}
    evaluation = next(e for e in FABRIC.evaluations if ROUND in e.measurements)
    write_records(work, evaluation, rows, arrays)


def write_logs(work: Path) -> None:
    """Labels that get shorter in every round but the warm-up; gaps that fall."""
    length, gap = 5.0, 20.0
    for name in LOGS:
        training, lines = RUNS[name].training, []
        assert isinstance(training, Reconstruction)
        for k in range(training.rounds):
            batch = k * training.batches_per_round
            after = length * (0.98 if training.reconstructions else 1)
            line = {"kind": "round", "round": k, "batch": batch, "iterations": training.reconstructions}
            lines.append(line | {"length_before": length, "length_after": after, "seconds": 1.0, "samples": 0})
            length, each = after, training.validations // training.rounds
            for i in range(1, each + 1):
                gap *= 0.9
                at = {"batch": batch + training.batches_per_round * i // each, "samples": 1, "seconds": 1.0}
                lines.append({"kind": "train", "loss": 1.0, **at})
                lines.append({"kind": "validation", "gap_pct": gap, "gaps_pct": {}, **at})
        folder = work / "runs" / name
        folder.mkdir(parents=True)
        (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def repeated_gap(run: Run) -> float:
    return 2 + 6 / run.network.arguments["representatives"]


def write_repetitions(work: Path) -> None:
    for evaluation in FABRIC.evaluations:
        if "repetitions" in RUNS[evaluation.run].role:
            FABRIC.measure(evaluation, RUNS[evaluation.run], work)


def fabricate(work: Path) -> Path:
    write_round(work)
    write_logs(work)
    write_repetitions(work)
    return work
