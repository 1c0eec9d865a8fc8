"""Time and memory of greedy decoding in Tables 3, 4 and 10, from networks with random weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from neuroute.papers.sit import roles
from neuroute.papers.sit.roles import run_id
from neuroute.papers.sit.scale import SitScale
from neuroute.plan.config import Scale
from neuroute.plan.objects import Dataset, Problem
from neuroute.rendering.cells import number
from neuroute.rendering.columns import short
from neuroute.rendering.table import Cell, Column, Value, fixed

if TYPE_CHECKING:
    import pandas as pd

    from neuroute.rendering.study import Study

HELD = "-math"  # attention that holds its scores
METRICS = ("time_s", "peak_memory_mb")
PRINTED = {"time_s": "time_s", "peak_memory_mb": "memory_mb"}
OUT_OF_MEMORY = "OOM"


def efficiency_columns(scale: Scale, problem: Problem, size: int) -> tuple[Column, Column]:
    """Head the time and the memory of one of the paper's sizes."""
    name, at = short(size), at_one(roles.efficiency(scale, problem, size))
    group = name.upper()
    return (
        Column(f"time_{name}_s", "Time", "s", fixed(2), group, at),
        Column(f"memory_{name}_mb", "Memory", "MB", fixed(2), group, at),
    )


def efficiency_cells(study: Study, problem: Problem, network: str, rows: pd.DataFrame, size: int) -> tuple[Cell, Cell]:
    """Seconds and MiB of one instance; "OOM" where it does not fit.  `rows` holds the printed numbers."""
    dataset = roles.efficiency(study.scale, problem, size)
    at = at_one(dataset)
    time, memory = (
        Cell(_measured(study, problem, network, dataset, metric), number(rows, size, PRINTED[metric]), at=at)
        for metric in METRICS
    )
    return time, memory


def _measured(study: Study, problem: Problem, network: str, dataset: Dataset, metric: str) -> Value:
    run, decoding = run_id(f"{problem}_1k"), f"efficiency-{network}"
    if study.value("out_of_memory", run, dataset, decoding):
        return OUT_OF_MEMORY
    share = study.value("share_at_once", run, dataset, decoding)
    if share is not None and metric == "peak_memory_mb":  # the memory there is, not what all at once would take
        return f"in {math.ceil(1 / share)} parts"
    return study.value(metric, run, dataset, decoding)


def exponent(sizes: Sequence[float], values: Sequence[Value]) -> float | None:
    """b of values ~ n^b by least squares on the log-log scale, over the numbers; None with fewer than two."""
    points = [(n, v) for n, v in zip(sizes, values, strict=True) if isinstance(v, int | float) and v > 0]
    if len({n for n, _ in points}) < 2:
        return None
    from neuroute.analysis.power_laws import fit

    return -fit([n for n, _ in points], [v for _, v in points], "log-log").alpha


def exponents_note(
    study: Study, problem: Problem, networks: Mapping[str, str], sizes: Sequence[int], rows: Mapping[str, pd.DataFrame]
) -> list[str]:
    """How time and memory grow with n: `networks` are labels and names, `rows` the printed numbers by label."""
    data = {size: roles.efficiency(study.scale, problem, size) for size in sizes}
    parts = []
    for label, name in networks.items():
        fits = []
        for metric, word in zip(METRICS, ("time", "memory"), strict=True):
            values = [_measured(study, problem, name, dataset, metric) for dataset in data.values()]
            here = exponent([dataset.n for dataset in data.values()], values)
            if here is None:
                continue
            shown = rows.get(label)
            paper = (
                exponent(sizes, [number(shown, size, PRINTED[metric]) for size in sizes]) if shown is not None else None
            )
            fits.append(f"{word} {here:.2f}" + (f" ({paper:.2f})" if paper is not None else ""))
        if fits:
            parts.append(f"{label}: {', '.join(fits)}")
    if not parts:
        return []
    return [
        "Exponents of n, by least squares on the log-log scale over the sizes measured, the printed numbers' in "
        f"parentheses: {'; '.join(parts)}. With n decisions, time that is linear in n at each decision has exponent 2."
    ]


def at_one(dataset: Dataset) -> str:
    """CVRP1000, one instance"""
    return f"{dataset.problem.upper()}{dataset.n}, one instance"


def protocol_note(study: Study, problem: Problem, sizes: Sequence[int]) -> str:
    """How time and memory were measured, and of which networks."""
    wanted = ("sit", "lehd", "sigd", "pomo") if problem == "tsp" else ("sit", "bq")
    shapes = {name.upper(): s for name, s in study.scale[SitScale].efficiency_shapes.items() if name in wanted}
    nodes = ", ".join(f"{roles.efficiency(study.scale, problem, size).n:,}" for size in sizes)
    named = ", ".join(f"{name} D={s.depth}, W={s.width}" for name, s in shapes.items())
    return (
        f"Time and memory are of one instance of {problem.upper()} with {nodes} nodes, not of the test sets, and of "
        f"networks with random weights in shapes of their own ({named}): {study.scale[SitScale].efficiency_decisions} "
        "decisions along a greedy construction are timed and integrated over all of it; what would take long is left "
        "out. Memory is what the decisions add at their peak, without weights, in MiB. The paper averages over test "
        "sets on one RTX 3090 and says neither how many instances share a batch nor what its memory counts."
    )


ATTENTION = (
    "Self-attention is measured twice: holding all scores, as the implementations that the paper measures do, beside "
    "the printed numbers; and by a fused kernel, which never holds them and which everything else here uses."
)
