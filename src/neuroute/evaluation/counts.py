"""Parameters and FLOPs of a network: counted once while it runs on shapes alone, then kept for all runs of this user.

One multiply-add is two FLOPs.  Besides matrix products, one FLOP is counted for each entry of a softmax and each output
of an activation (`measured`).  All counts are integers; divide by 1e9 for GFLOPs.
"""

import hashlib
import json
import logging
import math
from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from neuroute.core.digest import code_digest
from neuroute.core.dotted import resolve
from neuroute.core.errors import NeurouteError
from neuroute.core.files import cache_folder, write_json
from neuroute.specs.objects import Network

log = logging.getLogger(__name__)
COUNTING = "neuroute.evaluation.counting:measure"  # of FLOPs; by name, as it loads torch
MOST_KEPT = 5000

Piece = tuple[int, float, float, float]  # a size, and there the amount, its first and its second difference


@dataclass(frozen=True)
class Amount:
    """FLOPs by size: a quadratic from each of some sizes on.  Below the first size it is what it is there."""

    pieces: tuple[Piece, ...]

    def __call__(self, size: int) -> int:
        """FLOPs at a size; not a number where they are not known."""
        number = max(0, bisect_right(self.pieces, size, key=lambda piece: piece[0]) - 1)
        return _whole(_terms(self.pieces[number], max(0, size - self.pieces[number][0]), 0))

    def total(self, first: int, last: int) -> int:
        """Sum over all sizes from first to last; 0 if there is none."""
        starts = [first, *(start for start, *_ in self.pieces if first < start <= last), last + 1]
        return sum(self._sum(low, high) for low, high in pairwise(starts)) if first <= last else 0

    def _sum(self, low: int, high: int) -> int:
        """Sum over low, ..., high - 1, which are of one piece."""
        if low < self.pieces[0][0]:
            return (high - low) * self(low)
        piece = self.pieces[bisect_right(self.pieces, low, key=lambda piece: piece[0]) - 1]
        return _whole(_terms(piece, high - piece[0], 1) - _terms(piece, low - piece[0], 1))


def _terms(piece: Piece, steps: int, order: int) -> float:
    """Newton's series of a piece so many steps on (order 0), or of its sum over all steps before (order 1)."""
    _, *differences = piece
    return sum(each * math.comb(steps, number + order) for number, each in enumerate(differences))


def _whole(amount: float) -> int:
    return amount if isinstance(amount, int) or math.isnan(amount) else round(amount)  # type: ignore[return-value]


@dataclass(frozen=True)
class Counts:
    """What one network takes: an encoder runs once on the nodes, a decision on the tokens that are left.

    A decision of a network of many starts on k tokens is that of one solution on k - 1 nodes, as many as there are when
    a tour begins: visited nodes are computed and then left out, so the last decision costs as much as the first.
    """

    parameters: int  # those that are never trained included
    encoder: Amount
    decision: Amount


UNKNOWN = Amount(((0, math.nan, 0, 0),))


def counts(network: Network) -> Counts:
    """Look up what was counted, or count it.  Raises NeurouteError if the network cannot be built."""
    return _counts(network.kind, json.dumps(network.arguments, sort_keys=True))


@cache
def _counts(kind: str, arguments: str) -> Counts:
    key = _key(kind, arguments)
    if key is not None and (entry := _load().get(key)):
        with suppress(ValueError, TypeError):
            parameters, encoder, decision = entry
            return Counts(parameters, _amount(encoder), _amount(decision))
    _say_once()
    fresh: Counts = resolve(COUNTING)(Network(kind=kind, arguments=json.loads(arguments)))
    if key is not None and UNKNOWN not in (fresh.encoder, fresh.decision):
        _keep(key, [fresh.parameters, fresh.encoder.pieces, fresh.decision.pieces])
    return fresh


@cache
def _say_once() -> None:
    log.info("FLOPs of networks are counted, once: about a sixth of a second for each")


def _amount(pieces: list[list[float]]) -> Amount:
    return Amount(tuple((int(start), *differences) for start, *differences in pieces))  # type: ignore[misc]


def _key(kind: str, arguments: str) -> str | None:
    """Of the code that counts and that is counted, and of the arguments; None of code that is not there."""
    try:
        code = [code_digest(COUNTING), code_digest(kind)]
    except (LookupError, SyntaxError, ValueError, OSError):
        return None
    return hashlib.sha256("\0".join([*code, arguments]).encode()).hexdigest()[:32]


def _file() -> Path:
    return cache_folder() / "counts.json"


@cache
def _load() -> dict[str, list[Any]]:
    """What this process and earlier ones counted; nothing where it cannot be read."""
    with suppress(OSError, ValueError, NeurouteError):
        content = json.loads(_file().read_text())
        if isinstance(content, dict) and len(content) < MOST_KEPT:
            return content
    return {}


def _keep(key: str, entry: list[Any]) -> None:
    _load()[key] = entry
    with suppress(OSError, NeurouteError):  # then the next process counts again
        write_json(_file(), _load())
