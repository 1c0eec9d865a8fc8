"""Training of DIFUSCO: the tour's edges from edges with as much noise as a time that is drawn (Sun and Yang, 2023)."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from neuroute.training.batches import Scheme
from neuroute_systems.difusco.network import STEPS, Difusco, add_noise, remaining
from neuroute_systems.edge_maps.training import EdgeLabelBatches, successors

JITTER = 0.05  # by which a noisy value may be larger, as a share of it


class DenoisingBatches(EdgeLabelBatches):
    """What follows a node is its edge in the tour, in one direction.  AdamW, with half a cosine to 0."""

    net: Difusco

    def __init__(self, scheme: Scheme) -> None:
        super().__init__(scheme, decoupled=True)
        self.remaining = remaining().float()

    def learning_rate(self, index: int) -> float:
        return float(self.training.learning_rate * (1 + math.cos(math.pi * index / self.training.batches)) / 2)

    def prepare(self, coords: Tensor, tours: Tensor, generator: torch.Generator) -> tuple[Tensor, ...]:
        """coords, ends of edges, whether these are in the tour, noisy values, times."""
        neighbours = self.net.graph(coords)
        edges = (neighbours == successors(tours)[..., None]).long()
        times = torch.randint(1, STEPS + 1, (len(coords),), generator=generator)
        noisy = add_noise(edges, self.remaining[times], torch.rand(edges.shape, generator=generator))
        jitter = 1 + JITTER * torch.rand(edges.shape, generator=generator)
        return coords, neighbours, edges, (2 * noisy - 1) * jitter, times.float()

    def loss(self, *prepared: Tensor) -> Tensor:
        coords, neighbours, edges, noisy, times = prepared
        logits = self.net.denoise(coords, neighbours, noisy, times).float()
        each = F.cross_entropy(logits.flatten(0, 2), edges.flatten(), reduction="none")
        return each.view(len(coords), -1).mean(dim=1)


def denoising(scheme: Scheme) -> DenoisingBatches:
    """Raises NeurouteError for another network, and where labels are missing."""
    scheme.require(Difusco)
    return DenoisingBatches(scheme)
