"""Insertion for the CVRP: each customer where it lengthens the routes least, or on a route of its own.

The paper sit calls it random insertion; its code takes customers by angle around the depot, and its scan of a route
begins with a wrong distance (`depot_slip`).  Its "Random Insertion" of Table 1 and its first labels need both.
"""

from typing import Literal

import numba
import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.solvers.base import Solver
from neuroute.solvers.insertion import HOW_TO_GET, insertion_order, solve, version

ROOM = 8  # slots of a new route; doubled when they are full


def angle_order(coords: np.ndarray) -> np.ndarray:
    """Customers 1..n by the angle under which the depot, row 0 of coords (n + 1, 2), sees them, from -pi upwards."""
    out = coords[1:].astype(np.float64) - coords[0]
    return 1 + np.argsort(np.arctan2(out[:, 1], out[:, 0]), kind="stable")


def solve_cvrp(
    coords: np.ndarray,
    demand: np.ndarray,
    capacity: int,
    seed: int,
    order: Literal["angle", "random"] = "angle",
    depot_slip: bool = False,
) -> list[list[int]]:
    """Routes of customers 1..n; coords (n + 1, 2) and demand (n + 1,), depot first.

    A customer opens a route only if no position in a route with room for it costs less than the way there and back.
    With `depot_slip`, the distance between depot and customer is taken to be half of the least cost so far in the
    first position of each route, as published.  The seed counts for the random order.  float64, O(n^2) time, O(n)
    memory.  Raises NeurouteError for a customer that demands more than the capacity.
    """
    if demand[1:].max(initial=0) > capacity:
        who = 1 + int(demand[1:].argmax())
        raise NeurouteError(f"insertion: customer {who} demands more than the capacity {capacity}; split it")
    customers = angle_order(coords) if order == "angle" else 1 + insertion_order(len(coords) - 1, seed)
    points = np.asarray(coords, dtype=np.float64)
    route, after = _insert(points, np.asarray(demand, dtype=np.int64), int(capacity), customers, depot_slip)
    routes = []
    for customer in route.tolist():
        path = []
        while customer:
            path.append(customer)
            customer = int(after[customer])
        routes.append(path)
    return routes


@numba.njit(cache=True)
def _insert(
    points: np.ndarray, demand: np.ndarray, capacity: int, customers: np.ndarray, depot_slip: bool
) -> tuple[np.ndarray, np.ndarray]:
    """(first customer of each route, successor of each customer, 0 for the depot).

    A route's edges lie side by side in one stretch of the columns of `edges`, the one that leaves the depot first, in
    the order in which their tails came: x and y of the tail and of the head, length.  They are scanned in that order,
    so that memory is read in sequence; of equally cheap ones the first is taken.
    """
    n = len(points) - 1
    # A route of s customers takes ROOM slots, or with those that it left when it grew fewer than 4 (s + 1) - ROOM.
    edges = np.empty((5, ROOM * n))
    tail = np.zeros(edges.shape[1], np.int64)
    after = np.zeros(n + 1, np.int64)
    begin, size, slots, room, head = np.zeros((5, n + 1), np.int64)
    useful = np.empty(n + 1, np.int64)  # the routes that have room for some customer, oldest first
    cost = np.empty(n + 1)
    smallest = demand[1:].min() if n else 0
    routes, open_routes, used = 0, 0, 0
    dx, dy = points[0]
    for customer in customers:
        px, py = points[customer]
        out = np.sqrt((px - dx) ** 2 + (py - dy) ** 2)
        best, chosen, where = 2 * out, -1, 0
        for k in range(open_routes):
            r = useful[k]
            if room[r] < demand[customer]:
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
                best, chosen = least, r
                for i in range(b - a):
                    if cost[i] == least:
                        where = a + i
                        break
        if chosen < 0:
            chosen = routes
            begin[chosen], slots[chosen], room[chosen], size[chosen] = used, ROOM, capacity, 1
            used += ROOM
            useful[open_routes] = chosen
            routes, open_routes = routes + 1, open_routes + 1
            where = begin[chosen]
            edges[0, where], edges[1, where], tail[where] = dx, dy, 0
            edges[2, where], edges[3, where] = dx, dy
        if size[chosen] == slots[chosen]:
            a, s = begin[chosen], size[chosen]
            edges[:, used : used + s] = edges[:, a : a + s]
            tail[used : used + s] = tail[a : a + s]
            where += used - a
            begin[chosen], slots[chosen] = used, 2 * s
            used += 2 * s
        new = begin[chosen] + size[chosen]
        size[chosen] += 1
        if tail[where] == 0:
            after[customer], head[chosen] = head[chosen], customer
        else:
            after[customer], after[tail[where]] = after[tail[where]], customer
        tail[new] = customer
        edges[0, new], edges[1, new] = px, py
        edges[2, new], edges[3, new] = edges[2, where], edges[3, where]
        edges[2, where], edges[3, where] = px, py
        for slot in (where, new):
            ux, uy = edges[0, slot] - edges[2, slot], edges[1, slot] - edges[3, slot]
            edges[4, slot] = np.sqrt(ux * ux + uy * uy)
        room[chosen] -= demand[customer]
        if room[chosen] < smallest:
            k = 0
            for j in range(open_routes):
                if useful[j] != chosen:
                    useful[k] = useful[j]
                    k += 1
            open_routes = k
    return head[:routes], after


SOLVER = Solver("insertion-angle", False, HOW_TO_GET, version, solve, solve_cvrp)
