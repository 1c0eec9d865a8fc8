"""LEHD/4E-L: LEHD for the CVRP with hierarchically gated experts in its decoder (MVMoE; Zhou et al., 2024, Table 8)."""

from typing import Any

import torch
from torch import Tensor, nn

from neuroute.networks.experts import Mixture, MlpExperts
from neuroute.networks.hierarchical_gate import Hierarchical
from neuroute.networks.lehd_cvrp import LehdCvrp
from neuroute.networks.residual_layer import ResidualLayer
from neuroute.networks.routing import Routing


class LightLayer(ResidualLayer):
    """A decoder layer of LEHD whose FFN is an FFN or a mixture of m, as a hierarchical gate draws it.

    2 W + 2 W m + m (2 W F + W + F) parameters more than the layer has.
    """

    def __init__(self, width: int, heads: int, feed_forward: int, experts: int, top: int) -> None:
        super().__init__(width, heads, 0, rezero=False, bias="output", scaled=True)
        self.light = Hierarchical(Mixture(MlpExperts(experts, width, feed_forward), width, top), width, width)
        self.light.dense = nn.Sequential(  # type: ignore[assignment]  # in place of a linear layer
            nn.Linear(width, feed_forward), nn.ReLU(), nn.Linear(feed_forward, width)
        )

    def feed(self, h: Tensor, *given: Any) -> Tensor:
        """given: the `Routing`."""
        fed: Tensor = self.light(h, *given)
        return fed


class LehdCvrpLight(LehdCvrp):
    """D (2 W + 2 W m + m (2 W F + W + F)) parameters more than `LehdCvrp`, m experts of which a token sees `top`.

    The paper says no more than "hierarchical MoE in each decoder layer": here it is each layer's FFN, as in MVMoE's
    encoder, and gates look at every decision.  With nothing said of another loss, LEHD's alone is learnt from.

    What a gate draws holds for the whole batch.  In training a `Routing` says what it draws from.  Elsewhere draws
    follow from how many rows are left, so that solutions can be repeated: as in MVMoE, some decisions of a construction
    run the experts and some do not, and p is the mean over the batch.
    """

    is_batch_dependent = True

    def __init__(
        self,
        depth: int = 6,
        width: int = 128,
        heads: int = 8,
        feed_forward: int = 512,
        experts: int = 4,
        top: int = 2,
        train_nodes: int = 100,
    ) -> None:
        super().__init__(depth, width, heads, feed_forward, train_nodes)
        self.layers = nn.ModuleList(LightLayer(width, heads, feed_forward, experts, top) for _ in range(depth))

    def decide(self, rows: Tensor, remaining: Tensor, attention_scale: float = 1.0, *given: Any) -> Tensor:
        """As of `LehdCvrp`; given: the `Routing` of training."""
        if not given:
            generator = None if self.training else torch.Generator(rows.device).manual_seed(rows.shape[1])
            given = (Routing(generator),)
        return super().decide(rows, remaining, attention_scale, *given)
