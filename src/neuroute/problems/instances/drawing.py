"""Drawings of instances and their solutions, at their own aspect ratio."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from neuroute.core.errors import NeurouteError
from neuroute.core.files import PICTURES, write_whole
from neuroute.problems.vrp import to_routes

NODE, TOUR = "#222222", "#3b6ea5"
ROUTES = ("#3b6ea5", "#c2603a", "#4f8a5b", "#8a5a9e", "#b08a2e", "#4aa0a8", "#a34a68", "#6b6b6b")  # in turn


class Drawing(Figure):
    """A figure that notebooks show as it is; they draw matplotlib's own once pyplot, which keeps state, is set up."""

    def _repr_png_(self) -> bytes:
        picture = BytesIO()
        self.savefig(picture, format="png")
        return picture.getvalue()


def draw(
    coords: np.ndarray, stops: np.ndarray | None, title: str, *, has_depot: bool, home: bool, path: str | Path | None
) -> Drawing:
    """Draw nodes, and a tour (n,) or routes (2, n) over them; write it to `path`.  See `Instance.plot`."""
    if path is not None and Path(path).suffix not in PICTURES:
        raise NeurouteError(f"{path}: the drawing must end in {', '.join(PICTURES[:-1])} or {PICTURES[-1]}")
    figure = Drawing(figsize=(6, 6), layout="constrained")
    axes = figure.add_subplot()
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(title, fontsize=9, parse_math=False)  # names may hold a `$`
    if stops is not None and has_depot:
        _routes(axes, coords, to_routes(stops), home)
    elif stops is not None:
        closed = coords[np.append(stops, stops[0])]
        axes.plot(closed[:, 0], closed[:, 1], linewidth=1.0, color=TOUR)
    nodes = coords[1:] if has_depot else coords
    area = max(0.2, 400 / len(nodes))  # of a dot, in square points
    axes.scatter(nodes[:, 0], nodes[:, 1], s=area, color=NODE, zorder=3)
    if has_depot:
        axes.scatter(coords[0, 0], coords[0, 1], s=36, color=NODE, marker="s", zorder=4)
    if path is not None:
        target = Path(path)
        write_whole(target, lambda opened: figure.savefig(opened, format=target.suffix[1:]))
    return figure


def draw_sorted(values: np.ndarray, title: str, label: str, of: str) -> Drawing:
    """Draw values (count,), smallest first, with their mean."""
    figure = Drawing(figsize=(6, 3), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(np.arange(1, len(values) + 1), np.sort(values), ".", color=TOUR)
    axes.axhline(values.mean(), linewidth=0.8, color=NODE, label=f"mean {values.mean():.2f}")
    axes.set_title(title, fontsize=9, parse_math=False)
    axes.set_xlabel(of)
    axes.set_ylabel(label)
    axes.legend()
    return figure


def _routes(axes: Axes, coords: np.ndarray, routes: Sequence[Sequence[int]], home: bool) -> None:
    """Draw routes of customers over nodes (1 + n, 2), the depot first.

    Lines to and from the depot, the square, are thin, so that routes can be told apart; `home`: routes lead back to it.
    """
    paths = [coords[list(route)] for route in routes]
    colors = [ROUTES[number % len(ROUTES)] for number in range(len(paths))]
    axes.add_collection(LineCollection(paths, linewidths=1.0, colors=colors))
    for end in (0, -1)[: 1 + home]:
        ways = [np.stack([coords[0], path[end]]) for path in paths]
        axes.add_collection(LineCollection(ways, linewidths=0.4, colors=colors, alpha=0.5))
