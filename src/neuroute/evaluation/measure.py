"""The evaluation stage: one model on the tests of one group -> tidy records.

What is timed: from coordinates in host memory to tours in host memory, model loaded and warmed up, including the
transfers; reading labels, computing lengths and the warm-up are not.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from neuroute import device as devices
from neuroute.analysis import cost
from neuroute.datasets.labels import load_tours
from neuroute.datasets.streams import dataset_coordinates
from neuroute.decoding.decode import batch_size, decode
from neuroute.errors import NeurouteError
from neuroute.files import write_whole
from neuroute.networks.weights import load_checkpoint, parameters
from neuroute.plan.objects import Evaluation, Run, Test
from neuroute.problems.tsp import is_permutation, tour_length

UNITS = {
    "gap_pct": "%",
    "gap_mean_of_ratios_pct": "%",
    "length": "",
    "time_s": "s",
    "peak_memory_mb": "MiB",
    "gflops_paper": "GFLOP",
    "gflops_shrinking": "GFLOP",
    "parameters": "",
}


def measure(
    evaluation: Evaluation,
    run: Run,
    checkpoint: Path,
    out: Path,
    label_dirs: list[Path],
    *,
    scale: str,
    code: str,
    network_code: str,
    device: str = "auto",
    threads: int | None = None,
    memory_gb: float | None = None,
) -> None:
    """Write `out` (.csv, one row per number) and its .npz twin (lengths per instance).

    Raises NeurouteError when the checkpoint holds another architecture or was written by other network code.
    """
    place = devices.choose(device)
    if threads:
        torch.set_num_threads(threads)
    net, about = load_checkpoint(checkpoint, expected=run.network)
    if about["code"] != network_code:
        raise NeurouteError(
            f"{checkpoint}: written by another version of the network's code; "
            f"retrain with `neuroute train {run.id}` (or check out the version that wrote it)"
        )
    net.to(place)
    budget = devices.memory_budget_gb(place, memory_gb)
    rows: list[dict[str, Any]] = []
    lengths: dict[str, np.ndarray] = {}
    for test in evaluation.tests:
        dataset = test.labels.dataset
        coords = dataset_coordinates(dataset)
        reference = tour_length(coords, load_tours(test.labels, label_dirs))
        own, seconds, peak = _timed(net, coords, test, run.training.precision, budget, place)
        lengths[f"{dataset.id}|reference"] = reference
        lengths[f"{dataset.id}|{test.decoding.id}"] = own
        values = {
            "gap_pct": 100 * (own.mean() / reference.mean() - 1),
            "gap_mean_of_ratios_pct": 100 * float(np.mean(own / reference) - 1),
            "length": own.mean(),
            "time_s": seconds,
            "peak_memory_mb": peak,
            **cost.per_solution(run.network, dataset.n, test.decoding.beam),
            "parameters": parameters(net),
        }
        shared = {
            "paper": run.paper,
            "run": run.id,
            "group": evaluation.group,
            "seed": run.seed,
            "test": dataset.id,
            "distribution": dataset.distribution,
            "n": dataset.n,
            "n_instances": dataset.count,
            "reference": test.labels.solver,
            "decoding": test.decoding.id,
            "method": test.decoding.method,
            "beam": test.decoding.beam,
            "log_n": test.decoding.log_n,
            "batch_size": batch_size(net, dataset.n, test.decoding, budget),
        }
        on = {
            "device": devices.name(place),
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
            "scale": scale,
            "code": code,
            "wall_time_s": round(seconds, 4),
        }
        rows += [{**shared, "metric": m, "value": float(v), "unit": UNITS[m], **on} for m, v in values.items()]
    table = pd.DataFrame(rows).to_csv(index=False)
    write_whole(out.with_suffix(".npz"), lambda file: np.savez(file, **lengths))  # type: ignore[arg-type]
    write_whole(out, lambda file: file.write(table.encode()))


def _timed(
    net: Any, coords: np.ndarray, test: Test, precision: str, memory_gb: float, place: torch.device
) -> tuple[np.ndarray, float, float]:
    """Lengths (count,), seconds, and peak memory in MiB of decoding one test set."""
    points = torch.from_numpy(coords)
    decode(net, points[:2], test.decoding, memory_gb, precision)
    devices.reset_peak_memory(place)
    devices.synchronize(place)
    began = time.perf_counter()
    tours = decode(net, points, test.decoding, memory_gb, precision).numpy()
    seconds = time.perf_counter() - began
    if not is_permutation(tours).all():
        raise AssertionError(f"{test.labels.id}: decoding returned an invalid tour")  # a bug, never the user's
    return tour_length(coords, tours), seconds, devices.peak_memory_mb(place)
