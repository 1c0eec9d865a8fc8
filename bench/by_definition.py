"""Distances, routes and optima by their definitions, in plain Python: nothing here is the package's code."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations

Point = Sequence[float]


def distance(kind: str, a: Point, b: Point) -> float:
    """TSPLIB 95 (Reinelt), section 2; EXACT_2D is not rounded."""
    if kind == "GEO":
        (lat_a, lon_a), (lat_b, lon_b) = (tuple(map(radians, point)) for point in (a, b))
        q1, q2, q3 = math.cos(lon_a - lon_b), math.cos(lat_a - lat_b), math.cos(lat_a + lat_b)
        return int(6378.388 * math.acos(0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3)) + 1.0)
    dx, dy = a[0] - b[0], a[1] - b[1]
    if kind == "ATT":
        real = math.sqrt((dx * dx + dy * dy) / 10.0)
        whole = int(real + 0.5)
        return whole + 1 if whole < real else whole
    real = math.sqrt(dx * dx + dy * dy)
    return {"EXACT_2D": real, "CEIL_2D": math.ceil(real), "EUC_2D": int(real + 0.5)}[kind]


def radians(degrees_minutes: float) -> float:
    degrees = int(degrees_minutes)
    return 3.141592 * (degrees + 5.0 * (degrees_minutes - degrees) / 3.0) / 180.0


def ways(kind: str, points: Sequence[Point]) -> list[list[float]]:
    """Distances of all pairs, 0 on the diagonal."""
    return [[0 if a is b else distance(kind, a, b) for b in points] for a in points]


def tour_length(distances: Sequence[Sequence[float]], tour: Sequence[int]) -> float:
    return sum(distances[a][b] for a, b in zip(tour, [*tour[1:], tour[0]], strict=True))


def shortest_tour(distances: Sequence[Sequence[float]]) -> float:
    return min(tour_length(distances, (0, *rest)) for rest in permutations(range(1, len(distances))))


@dataclass(frozen=True)
class Vehicles:
    """A vehicle routing problem; node 0 is the depot, demands below 0 are picked up."""

    distances: Sequence[Sequence[float]]
    demand: Sequence[int]
    capacity: int
    open: bool = False
    limit: float | None = None
    windows: Sequence[tuple[float, float]] | None = None
    service: Sequence[float] | None = None

    def cost(self, route: Sequence[int], late: float) -> float | None:
        """What a route costs; None if it cannot be driven, late by no more than that anywhere.

        A vehicle may leave the depot with any load: what it carries later differs from that by sums of demands.
        """
        sums = [0]
        for customer in route:
            sums.append(sums[-1] + self.demand[customer])
        if max(sums) - min(sums) > self.capacity:
            return None
        place, driven, clock = 0, 0.0, 0.0
        for stop in route if self.open else [*route, 0]:
            driven += self.distances[place][stop]
            clock += self.distances[place][stop]
            if self.windows is not None and self.service is not None:
                opens, closes = self.windows[stop]
                if clock > closes + late:
                    return None
                clock = max(clock, opens) + self.service[stop]
            place = stop
        return None if self.limit is not None and driven > self.limit + late else driven

    def total(self, routes: Sequence[Sequence[int]], late: float) -> float | None:
        """What routes cost; None if one cannot be driven, or a customer is not served exactly once."""
        costs = [self.cost(route, late) for route in routes]
        if sorted(c for route in routes for c in route) != list(range(1, len(self.demand))) or None in costs:
            return None
        return sum(cost for cost in costs if cost is not None)

    def least(self, late: float) -> float:
        """The least cost of all solutions."""
        everyone = (1 << (len(self.demand) - 1)) - 1
        cheapest: dict[int, float] = {}  # of one vehicle for these customers, as bits
        for count in range(1, len(self.demand)):
            for route in permutations(range(1, len(self.demand)), count):
                cost = self.cost(route, late)
                served = sum(1 << (customer - 1) for customer in route)
                if cost is not None and cost < cheapest.get(served, math.inf):
                    cheapest[served] = cost

        @cache
        def best(left: int) -> float:
            if not left:
                return 0.0
            first = left & -left  # one vehicle serves the first of those that are left
            fitting = ((by, cost) for by, cost in cheapest.items() if by & first and by & left == by)
            return min((cost + best(left & ~by) for by, cost in fitting), default=math.inf)

        return best(everyone)
