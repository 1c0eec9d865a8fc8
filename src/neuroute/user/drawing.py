"""Drawings of solutions of a user's file, at the file's own aspect ratio."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from neuroute.datasets.tsplib import TsplibInstance
from neuroute.datasets.vrplib import VrplibInstance

NODE, TOUR = "#222222", "#3b6ea5"
ROUTES = ("#3b6ea5", "#c2603a", "#4f8a5b", "#8a5a9e", "#b08a2e", "#4aa0a8", "#a34a68", "#6b6b6b")  # in turn


def draw_tour(instance: TsplibInstance, tour: np.ndarray, title: str) -> Figure:
    """Draw a closed tour (n,) over the nodes."""
    figure, axes = _canvas(title)
    closed = instance.coords[np.append(tour, tour[0])]
    axes.plot(closed[:, 0], closed[:, 1], linewidth=1.0, color=TOUR)
    axes.scatter(instance.coords[:, 0], instance.coords[:, 1], s=_dot(len(tour)), color=NODE, zorder=3)
    return figure


def draw_routes(instance: VrplibInstance, routes: Sequence[Sequence[int]], title: str) -> Figure:
    """Draw routes of customers; lines to and from the depot, the square, are thin, so that routes can be told apart."""
    figure, axes = _canvas(title)
    depot = instance.coords[0]
    for number, route in enumerate(routes):
        color, path = ROUTES[number % len(ROUTES)], instance.coords[list(route)]
        axes.plot(path[:, 0], path[:, 1], linewidth=1.0, color=color)
        for end in (path[0], path[-1]):
            axes.plot(*np.stack([depot, end]).T, linewidth=0.4, color=color, alpha=0.5)
    axes.scatter(instance.coords[1:, 0], instance.coords[1:, 1], s=_dot(len(instance.coords) - 1), color=NODE, zorder=3)
    axes.scatter(depot[0], depot[1], s=36, color=NODE, marker="s", zorder=4)
    return figure


def _canvas(title: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(6, 6), layout="constrained")
    axes = figure.add_subplot()
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(title, fontsize=9)
    return figure, axes


def _dot(nodes: int) -> float:
    """Return the area of a node's dot in square points."""
    return float(np.clip(400 / nodes, 0.2, 30)) if nodes > 200 else max(2, 400 / nodes)
