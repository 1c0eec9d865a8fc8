"""The TSP for decoding: batches, tours from many starts, greedy tours of path networks, searches for better ones."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from neuroute.decoding.decode import Search, blocks_per_batch
from neuroute.decoding.environment import (
    Batch,
    Environment,
    empty_mask,
    mask_stops,
    no_numbers,
    select_masks,
    select_tours,
)
from neuroute.decoding.greedy import Arrive, Decide, complete_paths, greedy_tours
from neuroute.decoding.memory import pair_floats
from neuroute.decoding.multi_start import check_starts, multi_start, starts_of
from neuroute.decoding.sampling import TourPrefixes, search_beams
from neuroute.networks.base import MultiStartNetwork, PathNetwork, RoutingNetwork
from neuroute.problems.longest import longest_sub_path
from neuroute.problems.sub_paths import draw_within, path_lengths
from neuroute.specs.objects import Decoding

Coords = np.ndarray | Tensor


class TspRollout:
    """Tours under construction; `context` is where they began.  The last stop goes without saying: it is not asked."""

    def __init__(self, starts: Tensor, nodes: int, dtype: torch.dtype) -> None:
        self.context = self.current = starts
        self.action_mask = mask_stops(empty_mask(starts, nodes, dtype), starts)
        self._stops = [starts]

    def done(self) -> bool:
        return len(self._stops) >= self.action_mask.shape[2] - 1

    def step(self, stops: Tensor) -> None:
        self.current, self.action_mask = stops, mask_stops(self.action_mask, stops)
        self._stops.append(stops)

    def select(self, parents: Tensor) -> None:
        self.context, self.current, *self._stops = (
            select_tours(each, parents) for each in (self.context, self.current, *self._stops)
        )
        self.action_mask = select_masks(self.action_mask, parents)

    def solutions(self) -> Tensor:
        """(batch, tours, n).  Raises NeurouteError unless one stop is left, as after scores that are no numbers."""
        is_open = self.action_mask == 0
        if not bool((is_open.sum(dim=-1) == 1).all()):
            raise no_numbers()
        return torch.stack([*self._stops, is_open.int().argmax(dim=-1)], dim=-1)


@dataclass(frozen=True)
class TspBatch(Batch):
    @property
    def features(self) -> tuple[Tensor, ...]:
        return (self.coords,)

    def start_nodes(self, number: int) -> Tensor:
        return torch.arange(number, device=self.coords.device).expand(len(self.coords), -1)

    def rollout(self, starts: Tensor, dtype: torch.dtype) -> TspRollout:
        return TspRollout(starts, self.coords.shape[1], dtype)

    def lengths(self, solutions: Tensor) -> Tensor:
        return tour_lengths(self.coords, solutions)


class TspEnvironment(Environment[TspBatch]):
    """Instances are coordinates (count, n, 2) anywhere, solutions tours (n,)."""

    noun, depots = "nodes", 0

    def size(self, instances: Coords) -> int:
        return instances.shape[1]

    def shape(self, n: int) -> tuple[int, ...]:
        return (n,)

    def batch(self, instances: Coords, device: torch.device) -> TspBatch:
        return TspBatch(torch.as_tensor(instances).to(device))

    def max_moves(self, n: int) -> int:
        return n - 2  # the last stop goes without saying

    def build_greedily(
        self, net: PathNetwork, batch: TspBatch, decoding: Decoding, memory_gb: float, first: int
    ) -> Tensor:
        """Tours (batch, n); what a network keeps of pairs of nodes is computed once."""
        pairs: Callable[[Tensor], Tensor | None] | None = None
        if decoding.cached:
            pairs = partial(net.pairs, floats=pair_floats(memory_gb))
        decide = decide_for(net, decoding, batch.coords.shape[1])
        return greedy_tours(decide, encode(net, batch.coords, decoding, first), pairs, arrive_of(net))


def encode(net: PathNetwork, coords: Tensor, decoding: Decoding, first: int) -> Tensor:
    """What `decide` reads of coords (batch, n, 2), stretched by the decoding's factor; lengths are of the original.

    `first`: the place of the first instance in its test set, for a network whose embeddings are random.
    """
    net.draw, net.first = decoding.draw, first
    return encode_again(net, coords, decoding)


def encode_again(net: PathNetwork, coords: Tensor, decoding: Decoding) -> Tensor:
    """As `encode`, of parts of instances: with the draws that are set already."""
    assert decoding.rescale != "best"  # which was looked up before
    rows: Tensor = net.encode(coords * decoding.rescale)
    return rows


def decide_for(net: PathNetwork, decoding: Decoding, nodes: int) -> Decide:
    """The network's decisions on instances of `nodes` nodes.

    The entropy scaling factor follows what is left of an instance (pens, Table 3: BQ changes at the training size
    too), the log(n) factor of scaling the instance.
    """
    if decoding.esf:
        return lambda rows, *pairs: net.decide(rows, math.log(rows.shape[1]) / math.log(net.train_nodes), *pairs)
    scale = net.attention_scale(nodes) if decoding.log_n else 1.0
    return lambda rows, *pairs: net.decide(rows, scale, *pairs)


def arrive_of(net: PathNetwork) -> Arrive | None:
    """How rows learn of a new stop, where the network remembers."""
    return net.arrive if net.remembers else None


def tour_lengths(coords: Tensor, tours: Tensor) -> Tensor:
    """Lengths (batch, tours), float64, of closed tours (batch, tours, n) over coords (batch, n, 2).

    One stop after the other: of all points at once there would be three times as many numbers as of the tours.
    """
    points = coords.double()
    instance = torch.arange(len(coords), device=coords.device)[:, None]
    total = torch.zeros(tours.shape[:2], dtype=torch.float64, device=coords.device)
    for stop in range(tours.shape[2]):
        total += (points[instance, tours[..., stop]] - points[instance, tours[..., stop - 1]]).norm(dim=-1)
    return total


TSP = TspEnvironment()


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


# -- Parallel local re-construction (PRC): many segments of every tour at once (sit, Section 4.3, Algorithm 3)
# Random re-construct (LEHD's RRC) is the case of one block per tour and no limit to its length.


def prc(
    decide_for: Callable[[int], Decide],
    encode: Callable[[Tensor], Tensor],
    coords: Tensor,
    tours: Tensor,
    iterations: int,
    *,
    longest: int | None = None,
    most_blocks: int | None = None,
    blocks_per_batch: Callable[[int], int] | None = None,
    arrive: Arrive | None = None,
    seed: int = 0,
    iterations_before: int = 0,
) -> Iterator[Tensor]:
    """Yields the tours (batch, n) after each iteration, nowhere longer than before it.

    coords (batch, n, 2); `encode` gives the rows of a block's nodes from their coordinates, which stay where they are
    in the plane, and `decide_for(m)` decides on paths of m nodes.  Each iteration draws a start, a length from 4 to
    `longest` (None: 1000, or n where that is less) and a direction for the whole batch, and cuts every tour from that
    start on into floor(n / length) blocks, of which the first `most_blocks` (None: all) are rebuilt greedily
    between their ends, and kept where strictly shorter.  What is left at the end of the tour stays.

    The blocks of all instances are one batch, taken `blocks_per_batch(m)` blocks of m nodes at a time (None: all).
    The draws depend on the lower 32 bits of the seed alone (`stream_seed`), so no way of splitting changes anything.
    With `iterations_before`, `tours` are those after as many iterations of this seed, and the others follow.  Raises
    NeurouteError for a `longest` below 4 or above n.
    """
    n = tours.shape[1]
    longest = longest_sub_path(longest, n)

    def rounds() -> Iterator[Tensor]:
        now, generator = tours, torch.Generator().manual_seed(seed)
        for iteration in range(iterations):
            start, length, backwards = draw_within(generator, n, longest)
            if iteration < iterations_before:
                continue
            now = (now.flip(1) if backwards else now).roll(-start, dims=1)
            stops = length * min(n // length, most_blocks or n)
            size = blocks_per_batch(length) if blocks_per_batch else len(now) * n
            blocks = rebuild(decide_for(length), encode, coords, now[:, :stops], length, size, arrive)
            now = torch.cat([blocks, now[:, stops:]], dim=1)
            yield now

    return rounds()


@torch.no_grad()
def rebuild(
    decide: Decide,
    encode: Callable[[Tensor], Tensor],
    coords: Tensor,
    tours: Tensor,
    length: int,
    batch_size: int,
    arrive: Arrive | None = None,
) -> Tensor:
    """The first stops of tours, (batch, blocks * length), with each block rebuilt where that makes it shorter."""
    batch, stops = tours.shape
    instance = torch.arange(batch, device=tours.device).repeat_interleave(stops // length)[:, None]
    paths = []
    for i, old in zip(instance.split(batch_size), tours.reshape(-1, length).split(batch_size), strict=True):
        new = old.gather(1, complete_paths(decide, encode(coords[i, old]), arrive=arrive))
        before, after = (path_lengths(coords[i, path].double()) for path in (old, new))
        paths.append(torch.where((after < before)[:, None], new, old))
    return torch.cat(paths).reshape(batch, stops)


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

        reconstruct = partial(
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
            return reconstruct(longest=decoding.longest or solutions.shape[1], most_blocks=1)
        fit = partial(blocks_per_batch, paths, memory_gb)
        return reconstruct(longest=decoding.longest, most_blocks=decoding.most_blocks, blocks_per_batch=fit)


SEARCH = TspSearch()
