"""Revision of blocks: tours are cut into blocks of a fixed size, again and again at other places, and these rebuilt.

Any network of paths may rebuild them (Ye et al., 2024, take one reviser for each size).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.decode import blocks_per_batch, solve_with
from neuroute.decoding.greedy import Decide, complete_paths
from neuroute.decoding.memory import device_of
from neuroute.decoding.tsp import TspBatch, decide_for, encode_again
from neuroute.networks.base import PathNetwork
from neuroute.problems.sub_paths import path_lengths
from neuroute.specs.decodings import Decoding, Revision

Encode = Callable[[Tensor], Tensor]
Build = Callable[[Tensor], Tensor]  # rows (batch, m, E) of paths -> orders (2 batch, m), built from either end
LARGE = 5000  # nodes from which on tours start from a single insertion
START = 2**32  # numbers of instances between the seeds of two insertions
FLIPS = ((0, 0), (1, 0), (0, 1), (1, 1))  # whether x is mirrored, and y


def revise_batch(net: PathNetwork, batch: TspBatch, decoding: Decoding, memory_gb: float, first: int) -> Tensor:
    """The revised tours (batch, n) of random insertions.  first: the number of the batch's first instance.

    Raises NeurouteError for instances smaller than all blocks, for networks with random embeddings, and for those
    without blocks of their own where none are stated.
    """
    n = batch.coords.shape[1]
    how = decoding.revision if isinstance(decoding.revision, Revision) else published(net, n, decoding.revision)
    blocks = [(nodes, iterations) for nodes, iterations in how.blocks if nodes <= n]
    if not blocks:
        least = min(nodes for nodes, _ in how.blocks)
        raise NeurouteError(f"blocks of {least} nodes and more for a tour of {n}: give a smaller block too")
    if net.random_embeddings:
        raise NeurouteError("revision is not for networks with random embeddings; take method 'rrc'")
    device, several = batch.coords.device, batch.repeat(how.width)
    host = batch.coords.cpu().numpy()
    insertions = [solve_with("tsp", "insertion", host, first + START * i) for i in range(how.width)]
    tours = torch.cat(insertions).to(device)
    if how.flips == "tours":
        several, tours = TspBatch(mirrored(several.coords).flatten(0, 1)), tours.repeat(len(FLIPS), 1)
    for number, (nodes, iterations) in enumerate(blocks):
        tours = revise(
            builder(net, decide_for(net, decoding, max(nodes, net.train_nodes))),
            partial(encode_again, net, decoding=decoding),
            several.coords,
            tours,
            nodes,
            iterations,
            flips=how.flips == "blocks",
            batch_size=blocks_per_batch(net, memory_gb, nodes),
        )
        if number == len(blocks) - 1 or (number == 0 and how.prune):
            count = len(batch)
            lengths = several.lengths(tours[:, None]).view(-1, count)
            best: Tensor = tours.unflatten(0, (-1, count))[
                lengths.argmin(dim=0), torch.arange(count, device=tours.device)
            ]
            tours, several = best, batch
    return tours


def published(net: PathNetwork, n: int, what: str) -> Revision:
    """How tours of n nodes are revised as published, by the blocks of the network.

    what: "library" for TSPLIB's, "usual" for drawn ones.  Iterations are the part of a block's nodes that they are of
    the published ones.  Raises NeurouteError for a network without blocks.
    """
    blocks: tuple[int, ...] = getattr(net, "blocks", ())
    if not blocks:
        raise NeurouteError(f"{type(net).__name__} has no blocks of its own: state them, as in --revise 100x20,50x25")
    of_small, of_others, of_large, of_library = net.insertions  # type: ignore[misc]
    parts: tuple[int, ...]
    how: dict[str, Any]
    if what == "library":
        parts, how = (10, 5, 4), {"width": of_library, "prune": False}
    elif n <= blocks[0]:
        parts, how = (5, 5, 2, 2), {"width": of_small, "prune": False, "flips": "tours"}
    else:
        parts, how = ((5, 2, 4), {"width": of_others}) if n < LARGE else ((2, 2, 4), {"width": of_large})
    each = zip(blocks, parts, strict=False)
    return Revision(blocks=tuple((block, max(1, block // part)) for block, part in each), **how)


def builder(net: PathNetwork, decide: Decide) -> Build:
    """How paths are built: by these decisions of the network, or on a CPU by its own loop over them, if it has one."""
    if hasattr(net, "build") and device_of(net).type == "cpu":
        return cast(Build, net.build)
    return partial(from_either_end, decide)


def from_either_end(decide: Decide, rows: Tensor) -> Tensor:
    """rows (batch, m, E) -> the greedy orders (2 batch, m) of their places, each from place 0 to place m - 1.

    The second half was built from the last row to the first.
    """
    there, back = complete_paths(decide, torch.cat([rows, rows.flip(1)])).chunk(2)
    return torch.cat([there, (rows.shape[1] - 1 - back).flip(1)])


@torch.no_grad()
def revise(
    build: Build,
    encode: Encode,
    coords: Tensor,
    tours: Tensor,
    nodes: int,
    iterations: int,
    *,
    flips: bool = True,
    batch_size: int | None = None,
) -> Tensor:
    """The tours (batch, n) after so many iterations over blocks of so many nodes, none longer than before.

    coords (batch, n, 2).  Each iteration begins nodes // iterations stops further on, at least one, and cuts
    floor(n / nodes) blocks; the rest stays.  batch_size: paths that are built at a time; None: all.
    """
    stops = tours.shape[1] // nodes * nodes
    for _ in range(iterations):
        tours = tours.roll(-max(nodes // iterations, 1), dims=1)
        old = tours[:, :stops].reshape(-1, nodes)
        instance = torch.arange(len(tours), device=tours.device).repeat_interleave(stops // nodes)[:, None]
        size = max(1, (batch_size or len(old) * 8) // (2 * len(FLIPS) if flips else 2))
        parts = zip(instance.split(size), old.split(size), strict=True)
        new = [path.gather(1, rebuild(build, encode, coords[i, path], flips=flips)) for i, path in parts]
        tours = torch.cat([torch.cat(new).view(len(tours), stops), tours[:, stops:]], dim=1)
    return tours


def rebuild(build: Build, encode: Encode, points: Tensor, *, flips: bool) -> Tensor:
    """The best order (batch, m) of the points (batch, m, 2) of paths whose ends stay: as given, unless one is as short.

    Of each path, and with `flips` of its mirror images, one is built from either end.
    """
    batch, m = points.shape[:2]
    images = mirrored(points).flatten(0, 1) if flips else points
    orders = build(encode(images)).view(-1, batch, m)
    exact = points.double()
    every = exact.expand(len(orders), -1, -1, -1).gather(2, orders[..., None].expand(-1, -1, -1, 2))
    lengths, which = path_lengths(every.flatten(0, 1)).view(-1, batch).min(dim=0)
    best = orders[which, torch.arange(batch, device=points.device)]
    as_given = torch.arange(m, device=points.device)
    return torch.where((lengths <= path_lengths(exact))[:, None], best, as_given)


def mirrored(points: Tensor) -> Tensor:
    """points (batch, m, 2) -> (4, batch, m, 2): themselves, and mirrored in x, in y and in both, within their box."""
    both = points.amin(dim=1, keepdim=True) + points.amax(dim=1, keepdim=True)
    turned = both - points
    return torch.stack([torch.stack([(points, turned)[f][..., a] for a, f in enumerate(flip)], -1) for flip in FLIPS])
