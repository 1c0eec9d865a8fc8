"""Insertion: nodes in some order, each put where it lengthens the tour or the routes least (sit, Algorithms 1 and 2).

TSP: in random order.  CVRP: each customer where it lengthens the routes least, or on a route of its own.  The paper sit
calls that random insertion too; its code takes customers by angle around the depot, and its scan of a route begins with
a wrong distance (`depot_slip`).  Its "Random Insertion" of Table 1 and its first labels need both.
"""

from typing import Literal

import numba
import numpy as np

from neuroute.problems.vrp import angle_order
from neuroute.solvers.base import Solver, check_demands, installed_version

HOW_TO_GET = "run `pip install numba`"
BLOCK = 1024
SLOTS = 8  # slots of a new route; doubled when they are full


def insertion_order(n: int, seed: int) -> np.ndarray:
    """Return a random permutation (n,) int64: the ranks of n Philox draws, the same under every numpy release."""
    return np.argsort(np.random.Philox(key=seed).random_raw(n), kind="stable")


def solve(coords: np.ndarray, seed: int) -> np.ndarray:
    """Return the tour (n,) of coords (n, 2): O(n^2) time, O(n) memory, float64."""
    order = insertion_order(len(coords), seed)
    tour: np.ndarray = order[insert_in_order(np.asarray(coords, dtype=np.float64)[order])]
    return tour


@numba.njit(cache=True)
def insert_in_order(points: np.ndarray) -> np.ndarray:
    """Insert points (n, 2) float64 one after the other as they come; return the tour (n,) of places.

    `after[i]` is the successor of i.  Edges i -> after[i] are scanned in the order of i rather than along the
    tour, with both their ends side by side, so that memory is read in sequence; of equally cheap edges the first
    in that order is taken.
    """
    n = len(points)
    x, y = points[:, 0].copy(), points[:, 1].copy()
    after = np.zeros(n, np.int64)
    x_after, y_after, edge = np.empty(n), np.empty(n), np.empty(n)
    x_after[0], y_after[0], edge[0] = x[0], y[0], 0.0
    cost = np.empty(BLOCK)
    for node in range(1, n):
        px, py = x[node], y[node]
        best, where = np.inf, 0
        for first in range(0, node, BLOCK):
            size = min(BLOCK, node - first)
            for k in range(size):
                i = first + k
                dx, dy, ex, ey = x[i] - px, y[i] - py, x_after[i] - px, y_after[i] - py
                cost[k] = np.sqrt(dx * dx + dy * dy) + np.sqrt(ex * ex + ey * ey) - edge[i]
            least = np.inf
            for k in range(size):  # apart from the loop above, which the compiler then vectorises
                least = min(least, cost[k])
            if least < best:
                best = least
                for k in range(size):
                    if cost[k] == least:
                        where = first + k
                        break
        dx, dy = x[where] - px, y[where] - py
        ex, ey = x_after[where] - px, y_after[where] - py
        after[node], x_after[node], y_after[node] = after[where], x_after[where], y_after[where]
        edge[node] = np.sqrt(ex * ex + ey * ey)
        after[where], x_after[where], y_after[where] = node, px, py
        edge[where] = np.sqrt(dx * dx + dy * dy)
    tour = np.zeros(n, np.int64)
    for i in range(1, n):
        tour[i] = after[tour[i - 1]]
    return tour


def solve_cvrp(
    coords: np.ndarray,
    demand: np.ndarray,
    capacity: int,
    seed: int,
    order: Literal["angle", "random"] = "random",
    depot_slip: bool = False,
) -> list[list[int]]:
    """Return routes of customers 1..n; coords (n + 1, 2) and demand (n + 1,), depot first.

    A customer opens a route only if no position in a route with room for it costs less than the way there and back.
    With `depot_slip`, the distance between depot and customer is taken to be half of the least cost so far in the
    first position of each route, as published.  The seed is for the random order.  float64, O(n^2) time, O(n)
    memory.  Raises NeurouteError if a customer demands more than the capacity.
    """
    check_demands("insertion", demand, capacity)
    customers = angle_order(coords) if order == "angle" else 1 + insertion_order(len(coords) - 1, seed)
    points = np.asarray(coords, dtype=np.float64)
    route, after = _insert_routes(points, np.asarray(demand, dtype=np.int64), int(capacity), customers, depot_slip)
    routes = []
    for customer in route.tolist():
        path = []
        while customer:
            path.append(customer)
            customer = int(after[customer])
        routes.append(path)
    return routes


@numba.njit(cache=True)
def _insert_routes(
    points: np.ndarray, demand: np.ndarray, capacity: int, customers: np.ndarray, depot_slip: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first customer of each route, and the successor of each customer, 0 for the depot.

    A route's edges lie side by side in one stretch of the columns of `edges`, the one that leaves the depot first, in
    the order in which their tails came: x and y of the tail and of the head, length.  They are scanned in that order,
    so that memory is read in sequence; of equally cheap ones the first is taken.
    """
    n = len(points) - 1
    # A route of s customers takes SLOTS slots, or with those that it left when it grew fewer than 4 (s + 1) - SLOTS.
    edges = np.empty((5, SLOTS * n))
    tail = np.zeros(edges.shape[1], np.int64)
    after = np.zeros(n + 1, np.int64)
    begin, size, slots, spare, head = np.zeros((5, n + 1), np.int64)
    useful = np.empty(n + 1, np.int64)  # the routes that have room for some customer, oldest first
    cost = np.empty(n + 1)
    smallest = demand[1:].min() if n else 0
    routes, open_routes, used = 0, 0, 0
    dx, dy = points[0]
    for customer in customers:
        px, py = points[customer]
        out = np.sqrt((px - dx) ** 2 + (py - dy) ** 2)
        best, route, where = 2 * out, -1, 0
        for k in range(open_routes):
            r = useful[k]
            if spare[r] < demand[customer]:
                continue
            a, b = begin[r], begin[r] + size[r]
            ax, ay, bx, by, length = edges[0, a:b], edges[1, a:b], edges[2, a:b], edges[3, a:b], edges[4, a:b]
            for i in range(b - a):
                ux, uy, vx, vy = ax[i] - px, ay[i] - py, bx[i] - px, by[i] - py
                cost[i] = np.sqrt(ux * ux + uy * uy) + np.sqrt(vx * vx + vy * vy) - length[i]
            if depot_slip:
                cost[0] += best / 2 - out
            least = np.inf
            for i in range(b - a):  # apart from the loop above, which the compiler then vectorises
                least = min(least, cost[i])
            if least < best:
                best, route = least, r
                for i in range(b - a):
                    if cost[i] == least:
                        where = a + i
                        break
        if route < 0:
            route = routes
            begin[route], slots[route], spare[route], size[route] = used, SLOTS, capacity, 1
            used += SLOTS
            useful[open_routes] = route
            routes, open_routes = routes + 1, open_routes + 1
            where = begin[route]
            edges[0, where], edges[1, where], tail[where] = dx, dy, 0
            edges[2, where], edges[3, where] = dx, dy
        if size[route] == slots[route]:
            a, s = begin[route], size[route]
            edges[:, used : used + s] = edges[:, a : a + s]
            tail[used : used + s] = tail[a : a + s]
            where += used - a
            begin[route], slots[route] = used, 2 * s
            used += 2 * s
        new = begin[route] + size[route]
        size[route] += 1
        if tail[where] == 0:
            after[customer], head[route] = head[route], customer
        else:
            after[customer], after[tail[where]] = after[tail[where]], customer
        tail[new] = customer
        edges[0, new], edges[1, new] = px, py
        edges[2, new], edges[3, new] = edges[2, where], edges[3, where]
        edges[2, where], edges[3, where] = px, py
        for slot in (where, new):
            ux, uy = edges[0, slot] - edges[2, slot], edges[1, slot] - edges[3, slot]
            edges[4, slot] = np.sqrt(ux * ux + uy * uy)
        spare[route] -= demand[customer]
        if spare[route] < smallest:
            k = 0
            for j in range(open_routes):
                if useful[j] != route:
                    useful[k] = useful[j]
                    k += 1
            open_routes = k
    return head[:routes], after


SOLVER = Solver("insertion", False, HOW_TO_GET, installed_version("numba", "insertion", HOW_TO_GET), solve, solve_cvrp)
ANGLE = SOLVER.variant("insertion-angle", "solve_cvrp", order="angle")
# As in the code of sit: the TSP at random, the CVRP by angle, with its slip.
PUBLISHED = SOLVER.variant("insertion-published", "solve_cvrp", order="angle", depot_slip=True)
