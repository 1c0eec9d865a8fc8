"""Searches for the CVRP: beams; re-construction of pieces by networks of paths, of routes by those of many starts."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.cvrp import CVRP, CvrpBatch, Decide, decide_for
from neuroute.decoding.decode import Search, blocks_per_batch
from neuroute.decoding.multi_start import check_starts, multi_start, starts_of
from neuroute.decoding.prc.cvrp import prc, rrc
from neuroute.decoding.route_groups import rebuild
from neuroute.decoding.sampling import RoutePrefixes, search_beams
from neuroute.networks.base import MultiStartNetwork, PathNetwork, RoutingNetwork
from neuroute.specs.objects import Decoding


class CvrpSearch(Search[CvrpBatch]):
    environment = CVRP

    def check(self, net: RoutingNetwork, decoding: Decoding, *, improves: bool = False) -> None:
        check_starts(net, decoding)
        if net.multi_start and (improves or decoding.method != "greedy"):
            raise NeurouteError(
                f"{type(net).__name__}: re-construction and beam search of the CVRP need a path network, such as LEHD; "
                "decode greedily or by multistart, or give `seconds`"
            )

    def search_beams(self, net: PathNetwork, batch: CvrpBatch, decoding: Decoding, first: int) -> Tensor:
        decide, nodes = decide_for(net, decoding, batch.coords.shape[1] - 1), net.encode(batch.coords, batch.share)
        prefixes = RoutePrefixes(decide, nodes, batch.demand, batch.capacity)
        return search_beams(prefixes, batch.lengths, decoding.beam)[0]

    def start_from_many(self, net: Any, batch: CvrpBatch, decoding: Decoding, memory_gb: float) -> Tensor | None:
        if not net.multi_start:
            return None
        best = multi_start(CVRP, net, batch.instances(), starts_of(decoding), memory_gb=memory_gb)
        return best.to(batch.coords.device)

    def reconstruct(
        self,
        net: RoutingNetwork,
        batch: CvrpBatch,
        solutions: Tensor,
        decoding: Decoding,
        memory_gb: float,
        *,
        seed: int = 0,
        first: int = 0,
        iterations_before: int = 0,
    ) -> Iterator[Tensor]:
        if isinstance(net, MultiStartNetwork):
            customers = decoding.longest or solutions.shape[-1]
            iterations = range(iterations_before, iterations_before + decoding.iterations)
            return rebuild(net, batch, solutions, customers, seed, first, iterations, memory_gb)
        self.check(net, decoding, improves=True)
        paths = self.path_network(net)

        def decide(customers: int) -> Decide:
            return decide_for(paths, decoding, max(customers, paths.train_nodes))

        what = (decide, paths.encode, batch, solutions, decoding.iterations)
        if decoding.method == "rrc":
            return rrc(*what, longest=decoding.longest, seed=seed, first=first, iterations_before=iterations_before)
        return prc(
            *what,
            rule=decoding.rule,
            longest=decoding.longest,
            most_blocks=decoding.most_blocks,
            blocks_per_batch=partial(blocks_per_batch, paths, memory_gb),
            seed=seed,
            first=first,
            iterations_before=iterations_before,
        )


SEARCH = CvrpSearch()
