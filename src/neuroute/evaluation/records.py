"""What every evaluation shares: the loaded model, the columns that say what was measured where, and writing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from neuroute.analysis.rescaling import factor_for, read_best
from neuroute.core import device as devices
from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_whole
from neuroute.decoding.decode import instances_per_batch
from neuroute.evaluation.columns import COLUMNS
from neuroute.networks.weights import load_checkpoint
from neuroute.plan.objects import Decoding, Run

UNITS = {
    "gap_pct": "%",
    "gap_mean_of_ratios_pct": "%",
    "gap_rounded_pct": "%",
    "gap_spread_pct": "%",
    "reference_feasible_pct": "%",
    "rescale_factor": "",
    "length": "",
    "time_s": "s",
    "peak_memory_mb": "MiB",
    "gflops_paper": "GFLOP",
    "gflops_shrinking": "GFLOP",
    "parameters": "",
    "success_pct": "%",
    "decisions": "",
    "out_of_memory": "",
}


@dataclass(frozen=True)
class Where:
    """On what a model is measured; none of it changes what is measured, but times depend on it."""

    scale: str
    code: str  # digest of the evaluation's code
    network_code: str  # digest of the network's code
    device: str = "auto"
    threads: int | None = None
    memory_gb: float | None = None
    benchmarks: Mapping[str, Path] = field(default_factory=dict)  # name of a fetched benchmark -> its manifest
    rescaling: Path | None = None  # arrays of the model's rescaling: its best factors


@dataclass(frozen=True)
class Loaded:
    """A trained run, ready on its device."""

    net: Any
    run: Run
    place: torch.device
    memory_gb: float
    where: Where

    def settled(self, decoding: Decoding, nodes: int) -> Decoding:
        """The decoding for instances of so many nodes: with the best scaling factor, without repeats that are alike.

        Raises NeurouteError when the best factor is asked for and has not been measured.
        """
        change: dict[str, Any] = {}
        if decoding.rescale == "best":
            sizes, best = read_best(self.where.rescaling, self.run.id)
            change["rescale"] = factor_for(nodes, sizes, best)
        if not self.net.random_embeddings:
            change["repeats"] = 1
        return decoding.model_copy(update=change)

    def rows(
        self, group: str, test: Mapping[str, Any], decoding: Decoding, values: Mapping[str, float], wall_time_s: float
    ) -> list[dict[str, Any]]:
        """One record per value.  `test` holds test (id), distribution, n, n_instances and reference."""
        shared = {
            "paper": self.run.paper,
            "run": self.run.id,
            "group": group,
            "seed": self.run.seed,
            **test,
            "decoding": decoding.id,
            "method": decoding.method,
            "beam": decoding.beam,
            "log_n": decoding.log_n,
            "batch_size": instances_per_batch(self.net, test["n"], decoding, self.memory_gb),
        }
        on = {
            "device": devices.name(self.place),
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
            "scale": self.where.scale,
            "code": self.where.code,
            "wall_time_s": round(wall_time_s, 4),
        }
        return [{**shared, "metric": m, "value": float(v), "unit": UNITS[m], **on} for m, v in values.items()]


def load_run(run: Run, checkpoint: Path, where: Where) -> Loaded:
    """Raises NeurouteError when the checkpoint holds another architecture or was written by other network code."""
    place = devices.choose(where.device)
    if where.threads:
        torch.set_num_threads(where.threads)
    net, about = load_checkpoint(checkpoint, expected=run.network)
    if about["code"] != where.network_code:
        raise NeurouteError(
            f"{checkpoint}: written by another version of the network's code; retrain with `neuroute train {run.id}`, "
            "or, if its arithmetic is the same, keep the weights with `neuroute import-weights`"
        )
    net.to(place)
    return Loaded(net, run, place, devices.memory_budget_gb(place, where.memory_gb), where)


def write_records(out: Path, rows: list[dict[str, Any]], arrays: Mapping[str, np.ndarray]) -> None:
    """Write `out` (.csv, one row per number) and its .npz twin (what does not fit a row), each whole."""
    table = pd.DataFrame(rows, columns=list(COLUMNS)).to_csv(index=False)
    write_whole(out.with_suffix(".npz"), lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]
    write_whole(out, lambda file: file.write(table.encode()))
