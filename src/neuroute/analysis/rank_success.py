"""How often a model finds the optimal next node when it is not the nearest one (scaling, Appendix H.4)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

LAST = 8  # the paper quotes its success "beyond the eighth neighbour"
NORMAL_95 = 1.959963984540054


@dataclass(frozen=True)
class Success:
    """Success by neighbour rank 1, 2, ..., and in the last place of all greater ranks together; each (ranks + 1,)."""

    hits: NDArray[np.int64]
    decisions: NDArray[np.int64]
    low: Array  # %, 95 % Wilson interval
    high: Array

    @property
    def labels(self) -> list[str]:
        last = len(self.hits) - 1
        return [*(str(k) for k in range(1, last + 1)), f">{last}"]

    @property
    def percent(self) -> Array:
        """Not a number where there was no decision."""
        return 100 * _share(self.hits, self.decisions)

    @property
    def share_pct(self) -> Array:
        """Share of all decisions that has this rank."""
        return 100 * _share(self.decisions, np.full_like(self.decisions, self.decisions.sum()))


def success(hits: ArrayLike, decisions: ArrayLike, last: int = LAST) -> Success:
    """`hits` and `decisions` (ranks,): of rank 1, 2, ...; there may be fewer ranks than `last`."""
    hit_counts, decision_counts = (_pooled(np.asarray(x, np.int64), last) for x in (hits, decisions))
    return Success(hit_counts, decision_counts, *(100 * bound for bound in wilson(hit_counts, decision_counts)))


def wilson(hits: ArrayLike, decisions: ArrayLike, z: float = NORMAL_95) -> tuple[Array, Array]:
    """Wilson's score interval of a share, whose bounds stay within 0 and 1; not a number without decisions.

    It takes decisions for independent; those of one instance are not quite, so it is somewhat too narrow.
    """
    n = np.asarray(decisions, float)
    n = np.where(n > 0, n, np.nan)
    p = np.asarray(hits, float) / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)


def _pooled(counts: NDArray[np.int64], last: int) -> NDArray[np.int64]:
    padded = np.zeros(max(last + 1, len(counts)), np.int64)
    padded[: len(counts)] = counts
    return np.append(padded[:last], padded[last:].sum())


def _share(part: ArrayLike, whole: NDArray[np.int64]) -> Array:
    return np.asarray(part, float) / np.where(whole > 0, whole, np.nan)
