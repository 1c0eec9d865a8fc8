"""Searches for the CVRP: random or parallel local re-construction, by networks of paths."""

from collections.abc import Iterator
from functools import partial

from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.cvrp import CVRP, CvrpBatch
from neuroute.decoding.cvrp_paths import Decide
from neuroute.decoding.multi_start import check_starts
from neuroute.decoding.prc_cvrp import prc, rrc
from neuroute.decoding.search import Search, blocks_per_batch
from neuroute.networks.base import PathNetwork, RoutingNetwork
from neuroute.plan.objects import Decoding


class CvrpSearch(Search[CvrpBatch]):
    environment = CVRP

    def check(self, net: RoutingNetwork, decoding: Decoding, *, improves: bool = False) -> None:
        check_starts(net, decoding)
        if net.multi_start and (improves or decoding.method != "greedy"):
            raise NeurouteError(
                f"{type(net).__name__}: re-construction and beam search are for the TSP and for networks that read "
                "what is left of a path; decode greedily, from all starts and with symmetric images if you like"
            )
        if decoding.method == "beam":
            raise NeurouteError("beam search is for the TSP; decode CVRP instances greedily or by re-construction")

    def reconstruct(
        self,
        net: PathNetwork,
        batch: CvrpBatch,
        solutions: Tensor,
        decoding: Decoding,
        memory_gb: float,
        *,
        seed: int = 0,
        first: int = 0,
        done: int = 0,
    ) -> Iterator[Tensor]:
        self.check(net, decoding, improves=True)

        def decide_for(customers: int) -> Decide:
            scale = net.attention_scale(max(customers, net.train_nodes)) if decoding.log_n else 1.0
            return lambda rows, left: net.decide(rows, left, scale)

        what = (decide_for, net.encode, batch, solutions, decoding.iterations)
        if decoding.method == "rrc":
            return rrc(*what, seed=seed, first=first, done=done)
        return prc(
            *what,
            rule=decoding.rule,
            longest=decoding.longest,
            most_blocks=decoding.most_blocks,
            blocks_per_batch=partial(blocks_per_batch, net, memory_gb),
            seed=seed,
            first=first,
            done=done,
        )


SEARCH = CvrpSearch()
