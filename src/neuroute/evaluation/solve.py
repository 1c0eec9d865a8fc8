"""Solve a file that the user brings, and draw the tour."""

import time
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure

from neuroute import device as devices
from neuroute.datasets.tsplib import TsplibInstance, read_tsplib
from neuroute.decoding.decode import decode
from neuroute.errors import NeurouteError
from neuroute.files import write_whole
from neuroute.networks.weights import load_checkpoint
from neuroute.plan.digest import code_digest
from neuroute.plan.objects import Decoding


def solve_file(path: Path, model: Path, beam: int, rrc: int, out: Path, device: str) -> str:
    """Solve a TSPLIB file with a checkpoint, draw the tour to `out`, and say how long it is."""
    if out.suffix not in (".svg", ".pdf", ".png"):
        raise NeurouteError(f"--out {out}: the drawing must end in .svg, .pdf or .png")
    decoding = _decoding(beam, rrc)
    instance = read_tsplib(path)
    net, about = load_checkpoint(model)
    if about["code"] != code_digest(about["network"]["kind"]):
        raise NeurouteError(f"{model}: written by another version of the network's code; retrain {about['run']}")
    net.to(devices.choose(device))
    began = time.perf_counter()
    tour = decode(net, torch.from_numpy(instance.unit_square())[None], decoding)[0].numpy()
    seconds = time.perf_counter() - began
    length = instance.length(tour)
    drawing = draw_tour(instance, tour, f"{instance.name}: {length:,.0f}  ({about['run']}, {decoding.id})")
    write_whole(out, lambda file: drawing.savefig(file, format=out.suffix[1:]))
    return (
        f"{instance.name}: n={len(tour)}, length {length:,.0f} ({instance.edge_type}), {seconds:.2f} s; tour in {out}"
    )


def _decoding(beam: int, rrc: int) -> Decoding:
    if beam > 1 and rrc:
        raise NeurouteError("--beam and --rrc exclude each other: re-construct starts from the greedy tour")
    if rrc:
        return Decoding(method="rrc", iterations=rrc)
    return Decoding(method="beam" if beam > 1 else "greedy", beam=beam)


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
