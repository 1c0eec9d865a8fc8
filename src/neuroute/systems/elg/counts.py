"""Parameters and FLOPs of ELG, as in `accounting.counts_many_starts`."""

from dataclasses import dataclass

from neuroute.accounting.counts_many_starts import Pomo
from neuroute.accounting.flops import linear

LOCAL, LOCAL_HEADS = 32, 4  # of the local policy


@dataclass(frozen=True)
class Elg(Pomo):
    """POMO and a local policy of 32 channels and 4 heads; distances, angles and the search for what is near are free.

    The policy's products with each neighbour are counted as they are made, with F numbers and not with 32.
    """

    clipping: float = 50.0
    neighbours: int = 30
    local: bool = True

    @property
    def parameters(self) -> int:
        """1,274,016 as published for the TSP, 1,258,304 for the CVRP."""
        return super().parameters + self.local * (LOCAL * (3 if self.cvrp else 2) + 4 * LOCAL**2 + 3 * LOCAL)

    def decision(self, tokens: int) -> int:
        """As POMO, and the local policy: scores of neighbours for each head, what they give the query, their logits.

        What all tours share, the query's products with the keys, is counted as if each made it.
        """
        if not self.local:
            return super().decision(tokens)
        w, h, f = LOCAL, LOCAL_HEADS, 3 if self.cvrp else 2
        k = min(self.neighbours, tokens - 1 - self.cvrp) + self.cvrp
        fits = linear(1, w, w) + linear(h, w, f) + linear(k, f, h) + linear(k, w, h) + h * k
        glimpse = linear(h, k, f) + linear(h, f, w) + linear(h, k, w) + 2 * linear(1, w, w)
        return super().decision(tokens) + fits + glimpse + linear(1, w, f) + linear(k, f, 1) + linear(1, w, k)


@dataclass(frozen=True)
class ElgCvrp(Elg):
    neighbours: int = 40
    cvrp = True
