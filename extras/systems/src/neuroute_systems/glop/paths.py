"""Greedy paths of Kool's decoder on a CPU: all decisions of a path in one compiled loop (Kool et al., 2019).

A decision is a single query over what is left of a path: so little work that calls, and copies of rows that are left,
would take most of the time.  Here a path's numbers stay in the cache from its first decision to its last.
"""

import math
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import torch
from torch import Tensor

FAST = {"contract", "reassoc", "nsz", "arcp"}  # sums in any order; infinities stay what they are


def paths_from_either_end(rows: Tensor, heads: int) -> Tensor:
    """rows (batch, m, 4 width), `Prepared.rows` of paths with given ends -> orders (2 batch, m) of their places.

    The first half is built from the first row to the last, the second half the other way, and lists what it found from
    its end to its start: each order begins with place 0 and ends with place m - 1.  Always the most probable next, by
    the logits before they are clipped, and of equal ones the first in the order that `complete_paths` has.
    """
    batch, m = rows.shape[:2]
    numbers = (rows if rows.dtype == torch.float64 else rows.float()).numpy()
    orders = np.empty((2, batch, m), dtype=np.int64)
    scale = numbers.dtype.type(1 / math.sqrt(rows.shape[2] // 4 // heads))
    threads = min(torch.get_num_threads(), batch)
    shares = [slice(batch * i // threads, batch * (i + 1) // threads) for i in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda share: _build(numbers[share], heads, scale, orders[:, share]), shares))
    return torch.from_numpy(orders).flatten(0, 1)


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _build(rows: np.ndarray, heads: int, scale: float, orders: np.ndarray) -> None:
    """Fill orders (2, batch, m).  Columns of what is left lie side by side: the chosen one leaves from the front."""
    batch, m, width = rows.shape[0], rows.shape[1], rows.shape[2] // 4
    columns = np.empty((3 * width, m), rows.dtype)  # keys, values, targets
    scores, query, glimpse = np.empty(m, rows.dtype), np.empty(width, rows.dtype), np.empty(width, rows.dtype)
    places = np.empty(m, np.int64)
    for path in range(batch):
        for backwards in range(2):
            for j in range(m):
                places[j] = m - 1 - j if backwards else j
                for c in range(3 * width):
                    columns[c, j] = rows[path, places[j], c]
            for first in range(1, m - 2):
                open_scores = scores[first : m - 1]
                for c in range(width):
                    query[c] = rows[path, places[first - 1], 3 * width + c] * scale
                for h in range(heads):
                    begin, end = h * width // heads, (h + 1) * width // heads
                    _score(query, columns, begin, end, 0, first, open_scores)
                    _glimpse(open_scores, columns, begin, end, width, first, glimpse)
                _score(glimpse, columns, 0, width, 2 * width, first, open_scores)
                best = 0
                for j in range(1, len(open_scores)):
                    if open_scores[j] > open_scores[best]:
                        best = j
                best += first
                for c in range(3 * width):
                    columns[c, best] = columns[c, first]
                places[first], places[best] = places[best], places[first]
            for j in range(m):
                orders[backwards, path, m - 1 - j if backwards else j] = places[j]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _score(
    query: np.ndarray, columns: np.ndarray, begin: int, end: int, offset: int, first: int, out: np.ndarray
) -> None:
    """Channels begin to end of a query times those of columns, which are `offset` further down, from `first` on."""
    for j in range(len(out)):
        out[j] = 0
    for c in range(begin, end):
        channel = columns[offset + c, first:]
        for j in range(len(out)):
            out[j] += query[c] * channel[j]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _glimpse(
    scores: np.ndarray, columns: np.ndarray, begin: int, end: int, offset: int, first: int, out: np.ndarray
) -> None:
    """Means of channels begin to end by the softmax of scores, which are overwritten."""
    top = scores[0]
    for j in range(1, len(scores)):
        top = max(top, scores[j])
    total = scores[0] - scores[0]
    for j in range(len(scores)):
        scores[j] = math.exp(scores[j] - top)
        total += scores[j]
    for c in range(begin, end):
        channel = columns[offset + c, first:]
        mean = total - total
        for j in range(len(scores)):
            mean += scores[j] * channel[j]
        out[c] = mean / total
