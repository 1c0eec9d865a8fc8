"""Greedy tours of the attention model, which begin where it says."""

import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.greedy import greedy_tours
from neuroute.decoding.tsp import TspBatch
from neuroute.specs.objects import Decoding
from neuroute_systems.attention_model.network import AttentionModel


def from_its_choice(net: AttentionModel, batch: TspBatch, decoding: Decoding, memory_gb: float, first: int) -> Tensor:
    """Tours (batch, n).  Raises NeurouteError for other networks."""
    if not isinstance(net, AttentionModel):
        raise NeurouteError(f"method 'from_its_choice' is for AttentionModel, not for {type(net).__name__}")
    coords = batch.coords.to(next(net.parameters()).dtype)
    start, n = net.paths.decide_first(coords).argmax(dim=1, keepdim=True), coords.shape[1]
    nodes = (start + torch.arange(n, device=coords.device)) % n  # those before it last
    tours = greedy_tours(net.decide, net.encode(coords.gather(1, nodes[..., None].expand(-1, -1, 2))))
    return nodes.gather(1, tours)
