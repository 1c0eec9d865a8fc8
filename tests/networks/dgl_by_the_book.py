"""DGL from its description, node by node in float64: nothing of this package is used."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from published_code import Size, State, layers, linear_shapes
from published_formulas import attend, linear

NEAREST = 5  # in these tests


def shapes(size: Size, idle: bool = False) -> Iterator[tuple[str, tuple[int, ...]]]:
    """As published; idle: with two projections that nothing computes with."""
    width = size.width
    yield from layers(size)
    yield from linear_shapes("encoder.embedding", width, 7)
    yield from linear_shapes("decoder.embedding_last_node", width, width)
    yield from linear_shapes("decoder.Linear_final", 1, width)
    for name in ("embedding_last_node_pos", "k_1") if idle else ():
        yield from linear_shapes(f"decoder.{name}", width, width)


def features(points: list[tuple[float, float]], visited: list[int]) -> dict[int, list[float]]:
    """The seven of the current stop and of each open node: of the distances to open nodes the mean, exactly, and the
    root of a variance that is brought forward stop by stop with the mean before."""
    here, first = visited[-1], points[visited[0]]
    every = range(len(points))
    open_ = [j for j in every if j not in visited]
    found = {}
    for i in [here, *open_]:
        away = [math.dist(points[i], points[j]) for j in every]
        among = list(every)
        variance = sum((d - sum(away) / len(away)) ** 2 for d in away) / len(away)
        for stop in visited:
            mean = sum(away[j] for j in among) / len(among)
            among.remove(stop)
            variance = ((len(among) + 1) * variance - (away[stop] - mean) ** 2) / len(among)
        mean = sum(away[j] for j in among) / len(among)
        dx, dy = first[0] - points[i][0], first[1] - points[i][1]
        d = math.hypot(dx, dy) + 1e-7
        found[i] = [*points[i], away[here], mean, math.sqrt(variance), dy / d, dx / d]
    return found


def normalised(rows: list[list[float]]) -> list[list[float]]:
    """Each column moved and scaled to 0..1."""
    columns = []
    for column in zip(*rows, strict=True):
        low, high = min(column), max(column)
        columns.append([(value - low) / (high - low) if high > low else 0.0 for value in column])
    return [list(row) for row in zip(*columns, strict=True)]


def step(p: State, coords: Tensor, _demand: None, visited: list[int], _left: None) -> Tensor:
    """Probabilities (batch, open) of the open nodes in their order; 0 of those that are not near."""
    open_ = [j for j in range(coords.shape[1]) if j not in visited]
    out = torch.zeros(len(coords), len(open_), dtype=torch.float64)
    for number, instance in enumerate(coords.tolist()):
        told = features([tuple(point) for point in instance], visited)
        near = sorted(sorted(open_, key=lambda j: told[j][2])[:NEAREST])
        x = torch.tensor([normalised([told[j] for j in (visited[-1], *near)])], dtype=torch.float64)
        h = linear(p, "encoder.embedding", x)
        h = attend(p, "encoder.layers.0", h, h)
        h = torch.cat([linear(p, "decoder.embedding_last_node", h[:, :1]), h[:, 1:]], dim=1)
        for i in range(sum(name.endswith("Wq.weight") for name in p) - 1):
            h = attend(p, f"decoder.layers.{i}", h, h)
        scores = torch.softmax(linear(p, "decoder.Linear_final", h)[0, 1:, 0], dim=0)
        for j, chance in zip(near, scores, strict=True):
            out[number, open_.index(j)] = chance
    return out
