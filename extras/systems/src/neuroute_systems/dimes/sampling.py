"""Tours drawn from a map of edges, and which way the map has to go for shorter ones (Qiu et al., 2022)."""

import math

import numba
import numpy as np

from neuroute_systems.edge_maps.tree_moves import draw


@numba.njit(cache=True)
def estimate(
    points: np.ndarray, neighbours: np.ndarray, theta: np.ndarray, tours: int, random: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the estimated gradient (n, k) of the mean length by theta, and the lengths (tours,) it is of.

    A tour begins at any node, and goes on to the neighbours that are left by the softmax of their theta; where none is,
    to the nearest node, which is no choice.  The gradient is the mean over tours of the length, less the mean length,
    times what was chosen less how likely it was (REINFORCE).  points (n, 2) float64, neighbours (n, k), theta (n, k)
    float64, random: the state of `draw`.
    """
    n, k = neighbours.shape
    weight, odds = np.empty((n, k)), np.empty((n, k))
    for i in range(n):
        weight[i] = np.exp(theta[i] - theta[i].max())
    plain, weighed, lengths = np.zeros((n, k)), np.zeros((n, k)), np.zeros(tours)
    nodes, where = np.empty(n, np.int64), np.empty(n, np.int64)  # those that are left come first; places of nodes
    for tour in range(tours):
        odds[:] = 0.0
        for i in range(n):
            nodes[i] = where[i] = i
        here = start = int(draw(random) * n)
        length = 0.0
        for others in range(n - 1, -1, -1):
            place, last = where[here], nodes[others]
            nodes[place], where[last], nodes[others], where[here] = last, place, here, others
            then = start
            if others:
                then = _go_on(here, others, points, neighbours, nodes, where, weight, odds, random)
            length += math.hypot(points[here, 0] - points[then, 0], points[here, 1] - points[then, 1])
            here = then
        lengths[tour] = length
        plain += odds
        weighed += length * odds
    return (weighed - lengths.mean() * plain) / tours, lengths


@numba.njit(cache=True)
def _go_on(
    here: int,
    others: int,
    points: np.ndarray,
    neighbours: np.ndarray,
    nodes: np.ndarray,
    where: np.ndarray,
    weight: np.ndarray,
    odds: np.ndarray,
    random: np.ndarray,
) -> int:
    """Return where a tour goes; odds: of the slots of `here`, what was chosen less how likely it was."""
    mass, choice = 0.0, -1
    for slot in range(neighbours.shape[1]):
        if where[neighbours[here, slot]] < others:
            mass += weight[here, slot]
    if mass > 0:
        mark = draw(random) * mass
        for slot in range(neighbours.shape[1]):
            if where[neighbours[here, slot]] < others:
                odds[here, slot] -= weight[here, slot] / mass
                if mark >= 0:
                    choice = slot
                    mark -= weight[here, slot]
        odds[here, choice] += 1
        return int(neighbours[here, choice])
    nearest = np.inf
    for i in range(others):
        x, y = points[nodes[i], 0] - points[here, 0], points[nodes[i], 1] - points[here, 1]
        if x * x + y * y < nearest:
            nearest, choice = x * x + y * y, nodes[i]
    return choice
