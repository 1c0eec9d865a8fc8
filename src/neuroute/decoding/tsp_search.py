"""Searches for the TSP: beams, and random or parallel local re-construction."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from neuroute.decoding.greedy import Decide
from neuroute.decoding.multi_start import check_starts, multi_start, starts_of
from neuroute.decoding.prc.tsp import prc
from neuroute.decoding.prefixes import TourPrefixes, search_beams
from neuroute.decoding.search import Search, blocks_per_batch
from neuroute.decoding.tsp import TSP, TspBatch, arrive_of, decide_for, encode, encode_again
from neuroute.networks.base import MultiStartNetwork, PathNetwork, RoutingNetwork
from neuroute.specs.objects import Decoding


class PathAdapter(PathNetwork):
    """A network of many starts as one that reads what is left of a path: by its `path_rows` and `decide_path`.

    What it computes of visited nodes is left out of every sum, so the open rows alone decide.

    No factor depends on the size: what does, ICAM's log2(N), is in the rows.
    """

    def __init__(self, net: MultiStartNetwork) -> None:
        super().__init__()
        self.net, self.width, self.train_nodes, self.pair_channels = net, net.width, net.train_nodes, net.pair_channels

    def encode(self, coords: Tensor) -> Tensor:
        """coords (batch, nodes, 2) of an instance, or of a sub-path as one -> rows (batch, nodes, E)."""
        return self.net.path_rows(coords)

    def decide(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        """rows (batch, 1 + available + 1, E) of [current, available..., destination] -> logits (batch, available)."""
        return self.net.decide_path(rows)


class TspSearch(Search[TspBatch]):
    """A network of many starts is searched with as one of paths."""

    environment = TSP

    def check(self, net: RoutingNetwork, decoding: Decoding, *, improves: bool = False) -> None:
        if not isinstance(net, PathAdapter):
            check_starts(net, decoding)

    def improves(self, net: RoutingNetwork) -> bool:
        return not isinstance(net, MultiStartNetwork) or type(net).path_rows is not MultiStartNetwork.path_rows

    def path_network(self, net: RoutingNetwork) -> PathNetwork:
        return PathAdapter(net) if net.multi_start else super().path_network(net)  # type: ignore[arg-type]

    def start_from_many(
        self, net: RoutingNetwork, batch: TspBatch, decoding: Decoding, memory_gb: float
    ) -> Tensor | None:
        if not isinstance(net, PathAdapter) or (decoding.starts == 1 and not decoding.augment):
            return None
        starts, augment = starts_of(decoding), decoding.augment
        best = multi_start(TSP, net.net, batch.coords, starts, augment=augment, memory_gb=memory_gb)
        return best.to(batch.coords.device)

    def search_beams(self, net: PathNetwork, batch: TspBatch, decoding: Decoding, first: int) -> Tensor:
        """The shortest tours (batch, n) that beams find from each of the decoding's starts, each the path's ends."""
        coords, n = batch.coords, batch.coords.shape[1]
        rows, decide = encode(net, coords, decoding, first), decide_for(net, decoding, n)
        best, least = None, torch.full((len(coords),), torch.inf, dtype=torch.float64, device=coords.device)
        for start in range(TSP.count_starts(coords, starts_of(decoding))):
            moved = TspBatch(coords.roll(-start, dims=1))
            prefixes = TourPrefixes(decide, rows.roll(-start, dims=1), arrive=arrive_of(net))
            tours, lengths = search_beams(prefixes, moved.lengths, decoding.beam)
            tours = (tours + start) % n
            best = tours if best is None else torch.where((lengths < least)[:, None], tours, best)
            least = torch.minimum(lengths, least)
        assert best is not None
        return best

    def reconstruct(
        self,
        net: RoutingNetwork,
        batch: TspBatch,
        solutions: Tensor,
        decoding: Decoding,
        memory_gb: float,
        *,
        seed: int = 0,
        first: int = 0,
        iterations_before: int = 0,
    ) -> Iterator[Tensor]:
        self.check(net, decoding, improves=True)
        paths = self.path_network(net)

        # A segment is a smaller problem: the log(n) factor follows its size, from the training size on.
        def decide(nodes: int) -> Decide:
            return decide_for(paths, decoding, max(nodes, paths.train_nodes))

        go = partial(
            prc,
            decide,
            partial(encode_again, paths, decoding=decoding),
            batch.coords,
            solutions,
            decoding.iterations,
            arrive=arrive_of(paths),
            seed=seed,
            iterations_before=iterations_before,
        )
        if decoding.method == "rrc":  # one block, and no more of them than there are instances
            return go(longest=decoding.longest or solutions.shape[1], most_blocks=1)
        fit = partial(blocks_per_batch, paths, memory_gb)
        return go(longest=decoding.longest, most_blocks=decoding.most_blocks, blocks_per_batch=fit)


SEARCH = TspSearch()
