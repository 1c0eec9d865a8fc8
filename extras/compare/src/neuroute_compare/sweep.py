"""Train a network at each point of a grid, with several seeds, and measure what the trainings reach."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import product
from pathlib import Path
from typing import Any

from neuroute import Decoding
from neuroute.api.evaluate import evaluate, fitting
from neuroute.api.files import gather, generate
from neuroute.api.model import Model
from neuroute.api.reference import with_reference
from neuroute.api.train import Trainer, prepare, train
from neuroute.core.errors import NeurouteError
from neuroute.core.files import check_folder, check_writable, read_json, write_text
from neuroute.core.lazy import mpl, pd
from neuroute.core.text import csv_text, html_table
from neuroute.networks.base import RoutingNetwork
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.sweeps import draw_sweep
from neuroute_compare.summary import mean_interval

log = logging.getLogger("neuroute.train")
TEST_COUNT = 128
# Arguments of `train` that are no keys of a grid.
OF_THE_CALL = ("seed", "name", "work", "callbacks", "loggers", "device", "threads", "memory_gb", "workers", "solver")


@dataclass(frozen=True)
class Sweep:
    """What trainings at the points of a grid reached; `str` gives a row for each point.

    Attributes:
        keys: of the grid.
        records: a row for each training and instance: the keys, `seed`, `model` (its checkpoint), `train_s`, and what
            `Evaluation.to_frame` has.
        folder: where records, table and figure are.
        title: network and instances.
    """

    keys: tuple[str, ...]
    records: pd.DataFrame
    folder: Path
    title: str

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each point.

        The mean gap (%) of its trainings with a 95 % interval, by a bootstrap over instances with Student's t of the
        seeds, the least and the largest gap of a training, and the mean seconds of training.
        """
        rows = []
        for point, of_point in self.records.groupby(list(self.keys), sort=False, dropna=False):
            values = of_point.pivot_table(index="number", columns="seed", values="gap_pct", sort=False).to_numpy(float)
            interval, each = mean_interval(values), values.mean(0)
            row = dict(zip(self.keys, point, strict=True)) | {"seeds": len(each), "gap_pct": each.mean()}
            row |= {"gap_low_pct": interval.low, "gap_high_pct": interval.high}
            row |= {"least_pct": each.min(), "largest_pct": each.max(), "train_s": of_point.train_s.mean()}
            rows.append(row)
        return pd.DataFrame(rows)

    def plot(self) -> mpl.figure.Figure:
        """Draw the gaps over the first key, a line for each value of the others, with the 95 % intervals.

        Returns:
            A matplotlib figure, which notebooks show; `figure.svg` and `figure.png` of the folder have it, too.
        """
        with style.house():
            return self._draw().figure

    def _draw(self) -> style.Drawing:
        means = self.records.groupby([*self.keys, "seed"], sort=False, dropna=False).gap_pct.mean()
        of_points = means.groupby(list(self.keys), sort=False, dropna=False).apply(list)
        rows = []
        for row, trainings in zip(self.to_frame().to_dict("records"), of_points, strict=True):
            bounds = {"low_pct": row["gap_low_pct"], "high_pct": row["gap_high_pct"], "trainings": trainings}
            rows.append({key: row[key] for key in (*self.keys, "gap_pct")} | bounds)
        return draw_sweep(rows, self.keys, self.title, "95 % interval")

    def write(self) -> None:
        """Write records, table and figure into the folder."""
        write_text(self.folder / "records.csv", csv_text(self.records))
        write_text(self.folder / "table.csv", csv_text(self.to_frame()))
        with style.house():
            style.save_figure(self._draw().figure, self.folder / "figure")

    def __repr__(self) -> str:
        return f"<Sweep {self.title}: {len(self.to_frame())} points>"

    def __str__(self) -> str:
        rows = self.to_frame().to_string(index=False, float_format="{:.4g}".format)
        head = f"{self.title}; gaps in %, 95 % intervals over instances and seeds"
        return f"{head}\n{rows}\nfigure: {self.folder}/figure.svg"

    def _repr_html_(self) -> str:
        return html_table(f"{self.title}; gaps in %", self.to_frame())


def sweep(
    network: type[RoutingNetwork] | str | Model,
    grid: Mapping[str, Sequence[Any]],
    *,
    seeds: int = 1,
    instances: Any = None,
    reference: str | None = None,
    decoding: Decoding | str | None = None,
    out: str | Path = "results/sweep",
    **training: Any,
) -> Sweep:
    """Train a network at every point of a grid, with several seeds, and compare the gaps.

    What is trained is kept in `work`, so a killed sweep goes on, and a later one with more values trains these alone.

    Args:
        network: as of `neuroute.train`: a class, its dotted name, `pomo`, ..., or a model.
        grid: key -> its values; keys are arguments and settings of `neuroute.train` (`learning_rate`, `n`), and
            arguments of the network (`arguments.depth`).
        seeds: trainings of each point, from `seed` (0) on.
        instances: on which gaps are measured, as of `neuroute.evaluate`; None: 128 random ones of problem and size.
        reference: the solver to whose solutions gaps are; None: known best solutions, else the solver of validations.
        decoding: as of `neuroute.evaluate`.
        out: folder of records, table and figure.
        training: all else is as of `neuroute.train`.

    Raises:
        NeurouteError: before the first training, for a key, value, network, instance or solver that does not fit.
    """
    folder = Path(out)
    check_writable("out", folder / "records.csv", levels=2)
    for key, values in grid.items():
        if key in OF_THE_CALL:
            example = ", such as seeds=3" if key == "seed" else ""
            raise NeurouteError(f"sweep: {key}: cannot vary in the grid; pass it as an argument of `sweep`{example}")
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise NeurouteError(f"sweep: {key}: give a list of values, as in {{'learning_rate': [1e-3, 1e-4]}}")
        if len(set(map(_word, values))) < len(values):
            raise NeurouteError(f"sweep: {key}: {list(values)} has a value twice")
    if not grid:
        raise NeurouteError("sweep: the grid is empty; give a key with one value, as in {'learning_rate': [1e-4]}")
    if not isinstance(seeds, int) or seeds < 1:
        raise NeurouteError(f"sweep: seeds {seeds!r}: give a whole number from 1")
    first = training.pop("seed", 0)
    points = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    each = product(points, range(first, first + seeds))
    trainers = [(point, seed, _trainer(network, point, seed, training)) for point, seed in each]
    run = trainers[0][2].run
    if instances is None:
        problem = training.get("problem", "tsp")
        if "problem" in grid or not isinstance(problem, str) or problem == "vrp":
            raise NeurouteError("sweep: give `instances` to measure on, as the training covers several problems")
        instances = generate(problem, training.get("n", run.n), TEST_COUNT)
    tests, workers = gather(instances), training.get("workers")
    for _, seed, trainer in trainers:
        if seed == first:
            fitting(trainer.run.id, trainer.run.network, tests, decoding)
    check_folder(folder)
    if reference is not None or tests.reference is None:
        solver = reference or (run.validation.solver if run.validation else "lkh")
        tests = with_reference(tests, solver, folder / "tests.csv", workers or 1)
    device = {key: training[key] for key in ("device", "threads", "memory_gb") if key in training}
    rows = []
    for number, (point, seed, trainer) in enumerate(trainers, 1):
        log.info("training %d of %d: %s, seed %d", number, len(trainers), point, seed)
        trainer.label(workers)
        model = trainer.train()
        frame = evaluate(model, tests, decoding, **device).to_frame()
        about = {key: _word(value) for key, value in point.items()} | {"seed": seed, "model": str(model.path)}
        about["train_s"] = read_json(trainer.out / "run.json", "train it again")["wall_time_s"]
        rows.append(frame.assign(**about, number=range(len(frame))))
    sizes = [each.n for each in tests.members]
    least, most = min(sizes), max(sizes)
    name = run.network.kind.rpartition(":")[2]
    title = f"{name}, {tests.count} instances, n = {least}{f' to {most}' if most > least else ''}"
    found = Sweep(tuple(grid), pd.concat(rows, ignore_index=True), folder, title)
    found.write()
    return found


def _trainer(network: Any, point: Mapping[str, Any], seed: int, training: Mapping[str, Any]) -> Trainer:
    """Return the training of a point, checked, in a folder of its own."""
    options = {**training, "seed": seed, "arguments": dict(training.get("arguments") or {})}
    for key, value in point.items():
        if key.startswith("arguments."):
            options["arguments"][key.partition(".")[2]] = value
        else:
            options[key] = value
    bound = signature(train).bind(network, **options)
    bound.apply_defaults()
    values = bound.arguments
    words = [f"{key.rpartition('.')[2]}_{_word(value)}" for key, value in point.items()]
    base = training.get("name") or prepare(values).run.name
    values["name"] = "-".join([base, *(re.sub(r"[^\w.-]", "_", word) for word in words), f"s{seed}"])
    return prepare(values)


def _word(value: Any) -> Any:
    return value.__name__ if isinstance(value, type) else value if isinstance(value, int | float | str) else str(value)
