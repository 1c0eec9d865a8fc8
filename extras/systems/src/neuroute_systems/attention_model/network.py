"""The attention model for the TSP (Kool et al., 2019), to take published weights: no table has a row of it."""

from typing import ClassVar

from torch import Tensor

from neuroute.networks.base import PathNetwork
from neuroute_systems.blocks.path_attention import PathAttention, Prepared


class AttentionModel(PathNetwork):
    """Says where a tour begins, and what follows.

    D (4 W^2 + 2 W F + 5 W + F) + 7 W^2 + 5 W parameters: 708,608 as published, with 3 layers.

    What reads paths (beams, re-construction) gives it tours that begin at node 0.
    """

    own_method: ClassVar[str] = "attention_model:from_its_choice"
    other_methods: ClassVar[tuple[str, ...]] = ("greedy", "beam", "rrc", "prc")

    def __init__(
        self,
        depth: int = 3,
        width: int = 128,
        heads: int = 8,
        feed_forward: int = 512,
        clipping: float = 10.0,
        train_nodes: int = 100,
    ) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not divisible by {heads} heads")
        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.paths = PathAttention(depth, width, heads, feed_forward, clipping)

    def encode(self, coords: Tensor) -> Tensor:
        """coords (batch, nodes, 2), where the tour begins first -> rows (batch, nodes, 4 width)."""
        prepared: Prepared = self.paths.prepare(coords)
        return prepared.rows()

    def decide(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        """rows (batch, 1 + available + 1, 4 width) -> logits (batch, available); no factor depends on the size."""
        return self.paths.decide(rows)
