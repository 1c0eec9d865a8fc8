"""Self-improved training for the CVRP (sit, Appendix B.3)."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from neuroute.decoding.cvrp import reconstructing
from neuroute.decoding.cvrp_paths import Batch
from neuroute.problems.cvrp_sub_paths import draw_within
from neuroute.problems.vrp import Vrp
from neuroute.training.cvrp import CvrpBatches, CvrpPath, cut
from neuroute.training.reconstruction import ReconstructedSet, Rounds
from neuroute.training.supervised import Scheme


class ReconstructedRoutes(ReconstructedSet):
    """Coordinates, demands, capacities and solutions."""

    def instances(self, rows: slice) -> Any:
        return Vrp(*(array[rows] for array in self.arrays))

    def reconstructing(self, instances: Any, solutions: Tensor, seed: int, first: int, done: int) -> Iterator[Tensor]:
        batch, budget = Batch.of(instances, self.device), self.scheme.memory_gb
        return reconstructing(
            self.scheme.net, batch, solutions, self.decoding, budget, seed=seed, first=first, done=done
        )


class RouteRounds(Rounds, CvrpBatches):
    """Sub-paths of solutions, of one length in a batch: 4 to the longest.  Each ends where a route does."""

    def _sub_path(self, index: int, *arrays: Tensor) -> CvrpPath:
        coords, demand, capacity, solutions = arrays
        drawn = draw_within(self.run.seed, index, self.run.n, 0, len(coords), self.longest)
        return cut(coords, demand, capacity, solutions, drawn)


def reconstruction(scheme: Scheme) -> RouteRounds:
    """Raises NeurouteError when labels are missing, for several processes, and for sub-paths that cannot be."""
    return RouteRounds(scheme, ReconstructedRoutes(scheme))
