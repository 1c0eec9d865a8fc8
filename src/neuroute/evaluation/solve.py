"""Solve a file that the user brings, and draw the tour."""

import time
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure

from neuroute.datasets.tsplib import TsplibInstance, read_tsplib
from neuroute.decoding.decode import decode
from neuroute.device import memory_budget_gb
from neuroute.errors import NeurouteError
from neuroute.evaluation.user import choose_decoding, load_model
from neuroute.files import write_whole


def solve_file(
    path: Path,
    model: Path,
    beam: int,
    rrc: int,
    out: Path,
    device: str,
    rescale: float = 1.0,
    memory_gb: float | None = None,
) -> str:
    """Solve a TSPLIB file with a checkpoint, draw the tour to `out`, and say how long it is."""
    if out.suffix not in (".svg", ".pdf", ".png"):
        raise NeurouteError(f"--out {out}: the drawing must end in .svg, .pdf or .png")
    decoding = choose_decoding(beam, rrc, rescale)
    instance = read_tsplib(path)
    loaded = load_model(model, device)
    about = loaded.about
    if loaded.problem != "tsp":
        raise NeurouteError(f"{model}: {about['run']} solves {loaded.problem.upper()}, not TSP")
    began = time.perf_counter()
    tour = decode(
        loaded.net, torch.from_numpy(instance.unit_square())[None], decoding, memory_budget_gb(loaded.place, memory_gb)
    )[0].numpy()
    seconds = time.perf_counter() - began
    length = instance.length(tour)
    drawing = draw_tour(instance, tour, f"{instance.name}: {length:,.0f}  ({about['run']}, {decoding.id})")
    write_whole(out, lambda file: drawing.savefig(file, format=out.suffix[1:]))
    return (
        f"{instance.name}: n={len(tour)}, length {length:,.0f} ({instance.edge_type}), {seconds:.2f} s; tour in {out}"
    )


def draw_tour(instance: TsplibInstance, tour: np.ndarray, title: str) -> Figure:
    """A closed tour over the nodes, at the file's own aspect ratio."""
    figure = Figure(figsize=(6, 6), layout="constrained")
    axes = figure.add_subplot()
    closed = instance.coords[np.append(tour, tour[0])]
    axes.plot(closed[:, 0], closed[:, 1], linewidth=1.0, color="#3b6ea5")
    axes.scatter(instance.coords[:, 0], instance.coords[:, 1], s=max(2, 400 / len(tour)), color="#222222", zorder=3)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(title, fontsize=9)
    return figure
