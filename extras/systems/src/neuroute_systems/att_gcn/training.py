"""Training of Att-GCN: which pairs of nodes are edges of the tour, by a focal loss (Fu et al., 2021)."""

import torch
from torch import Tensor

from neuroute.training.batches import Scheme
from neuroute_systems.att_gcn.network import AttGcn
from neuroute_systems.edge_maps.training import EdgeLabelBatches, successors

TURNED = 0.1  # of a batch's instances, turned by any angle


class EdgeBatches(EdgeLabelBatches):
    """Norms look at whole batches, so each of several processes computes all of one.  Adam; rates fall by epochs."""

    net: AttGcn
    together = True

    def learning_rate(self, index: int) -> float:
        return float(self.training.learning_rate * self.training.decay ** (index // self.training.batches_per_epoch))

    def prepare(self, coords: Tensor, tours: Tensor, generator: torch.Generator) -> tuple[Tensor, ...]:
        """coords, some of them turned, and whether each pair is in the tour."""
        after, n = successors(tours), coords.shape[1]
        edges = torch.zeros(len(coords), n, n, dtype=torch.int64).scatter_(2, after[..., None], 1)
        angles = 2 * torch.pi * torch.rand(len(coords), generator=generator)
        angles = torch.where(torch.rand(len(coords), generator=generator) < TURNED, angles, 0.0)
        cosine, sine = angles.cos()[:, None], angles.sin()[:, None]
        x, y = coords.unbind(-1)
        turned = torch.stack([cosine * x - sine * y, sine * x + cosine * y], dim=-1)
        return turned, torch.maximum(edges, edges.transpose(1, 2))

    def loss(self, *prepared: Tensor) -> Tensor:
        """The mean over pairs, in which edges weigh as much as all others together, and sure ones little."""
        coords, edges = prepared
        log_p = self.net.classify(coords).float().log_softmax(dim=-1)
        log_p = log_p.gather(-1, edges[..., None]).squeeze(-1)
        n = coords.shape[1]
        weight = torch.where(edges > 0, n / (2 * 2), n / (2 * (n - 2)))
        each = -weight * (1 - log_p.exp()) * log_p
        return each.flatten(1).sum(dim=1) / weight.flatten(1).sum(dim=1)


def edges(scheme: Scheme) -> EdgeBatches:
    """Raises NeurouteError for another network, and where labels are missing."""
    scheme.require(AttGcn)
    return EdgeBatches(scheme)
