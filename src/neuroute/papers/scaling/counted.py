"""What networks of the paper's shapes take, by its own conventions and without building them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DecoderOnly:
    """D layers of width W with H heads, an FFN of 4 W and, as published, ReZero."""

    depth: int
    width: int
    heads: int
    gate: bool = True

    @property
    def parameters(self) -> int:
        """D (13 W^2 + 7 W + 2) + 2 W^2 + 6 W + 1 (Table 1); D (W^2 + W) fewer without the gate."""
        w = self.width
        return self.depth * (12 * w**2 + 6 * w + 2 + self.gate * (w**2 + w)) + 2 * w**2 + 6 * w + 1

    def decision(self, tokens: int) -> int:
        """FLOPs of a decision on k tokens: D (26 W^2 k + 4 W k^2 + H k^2 + 4 W k) + 4 W^2 + 6 W k.

        So printed FLOPs come out (`accounting.flops.solution_paper`): one for each entry of a softmax and each output
        of a ReLU, and the head is of all tokens, not of the candidates alone.
        """
        w, k = self.width, tokens
        layer = (24 + 2 * self.gate) * w**2 * k + (4 * w + self.heads) * k**2 + 4 * w * k
        return self.depth * layer + 4 * w**2 + 6 * w * k
