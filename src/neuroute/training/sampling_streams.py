"""What reinforcement learning draws for a batch: its size, its capacity, its problem, the noise of its samples.

All of it is a function of the seed and of the batch's number: a batch needs nothing of those before it.  By numpy's
counter-based Philox generator an instance's noise needs nothing of those beside it, either.  A GPU draws noise itself.
"""

from collections.abc import Sequence
from enum import IntEnum
from itertools import count

import numpy as np
import torch
from torch import Tensor

from neuroute.core.device import stream_seed
from neuroute.decoding.environment import Choose
from neuroute.networks.blocks.precision import at_least_float32
from neuroute.specs.objects import Distribution
from neuroute.specs.trainings import Reinforced, Stage

SHAPES = 1 << 63  # second word of the key of sizes, capacities and variants; that of a batch's noise lies above
SIZE, CAPACITY, VARIANT, DISTRIBUTION = range(4)  # which of a batch's four draws
BATCHES_PER_BLOCK = 1 << 16  # batches


class Draw(IntEnum):
    """What is drawn of each row of a batch."""

    SAMPLE = 0  # its decisions
    START = 1  # where they begin
    BASELINE = 2  # where what they are compared with begins
    IMAGE = 3


def shapes(stage: Stage, seed: int, first: int, batches: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Sizes, and capacities if the stage draws some, of batches from number `first` on: int64 (batches,) each."""
    raw = _of_batches(seed, first, batches)
    capacities = _between(raw[:, CAPACITY], stage.capacities) if stage.capacities else None
    return _between(raw[:, SIZE], stage.sizes), capacities


def variants(stage: Stage, seed: int, first: int, batches: int) -> list[str]:
    """The stage's variants that batches from number `first` on are of, each as likely (mvmoe, Section 5)."""
    raw = _of_batches(seed, first, batches)
    return [stage.variants[i] for i in _between(raw[:, VARIANT], (0, len(stage.variants) - 1))]


def distribution(stage: Stage, seed: int, number: int) -> Distribution:
    """The stage's distribution that a batch is of, each as likely; uniform if it names none."""
    kinds = stage.distributions or ("uniform",)
    return kinds[int(_between(_of_batches(seed, number, 1)[:, DISTRIBUTION], (0, len(kinds) - 1))[0])]


def _of_batches(seed: int, first: int, batches: int) -> np.ndarray:
    """Four 32-bit draws of each batch: uint64 (batches, 4)."""
    stream = _stream(seed, SHAPES)
    stream.advance(first)  # a step of the counter gives four draws, and belongs to one batch
    return stream.random_raw(4 * batches).reshape(-1, 4) >> np.uint64(32)


def _between(raw: np.ndarray, limits: tuple[int, int]) -> np.ndarray:
    """32-bit draws as whole numbers from the first limit to the second, both included."""
    low, high = limits
    return low + (raw * np.uint64(high - low + 1) >> np.uint64(32)).astype(np.int64)


def instances_seen(training: Reinforced, seed: int) -> np.ndarray:
    """Instances in the first 0, 1, ... batches of a run: int64 (batches + 1,)."""
    counts = np.zeros(training.batches + 1, dtype=np.int64)
    for end, stage in zip(training.ends, training.stages, strict=True):
        for first in range(end - stage.batches, end, BATCHES_PER_BLOCK):
            batches = min(BATCHES_PER_BLOCK, end - first)
            sizes, _ = shapes(stage, seed, training.batches_before + first, batches)
            kinds, which = np.unique(sizes, return_inverse=True)
            batch_sizes = np.array([stage.batch_of(int(n)) for n in kinds])
            counts[first + 1 : first + 1 + batches] = batch_sizes[which]
    return np.cumsum(counts)


def noise_on(
    device: torch.device,
    seed: int,
    batch: int,
    rows: Sequence[int],
    every: int,
    each: tuple[int, ...],
    what: Draw = Draw.SAMPLE,
) -> Tensor:
    """Uniform numbers in [0, 1) of these of the `every` rows of a batch: float32 (rows, *each), on the device.

    A GPU draws those of all rows, and so the same ones, whichever of them are at hand here: to carry them over from the
    host would take as long as several decisions.
    """
    if device.type == "cpu":
        return noise(seed, batch, rows, each, what)
    generator = torch.Generator(device).manual_seed((1 + what) << 32 | stream_seed(seed, batch))
    uniform = torch.rand(every, *each, generator=generator, device=device)
    return uniform[rows.start : rows.stop] if isinstance(rows, range) else uniform[torch.tensor(rows, device=device)]


def noise(seed: int, batch: int, rows: Sequence[int], each: tuple[int, ...], what: Draw = Draw.SAMPLE) -> Tensor:
    """As `noise_on`, on the CPU: those of a row follow from its number."""
    size = int(np.prod(each))
    words = np.stack([_stream(seed, SHAPES + 1 + batch, i, what).random_raw(-(-size // 2)) for i in rows])
    halves = words.astype("<u8", copy=False).view("<u4")[:, :size]
    return torch.from_numpy((halves >> 8).astype(np.float32) * np.float32(2.0**-24)).view(-1, *each)


def _stream(seed: int, word: int, row: int = 0, what: Draw = Draw.SAMPLE) -> np.random.Philox:
    """Rows of one key lie 2^64 steps of the counter apart, and what is drawn 2^128."""
    return np.random.Philox(key=np.array([seed, word], np.uint64), counter=np.array([0, row, what, 0], np.uint64))


def sampling(uniform: Tensor) -> Choose:
    """Chooses by the probabilities of the logits, as `drawing` does."""
    draw = drawing(uniform)
    return lambda logits: draw(probabilities_of(logits))


def probabilities_of(logits: Tensor) -> Tensor:
    """In at least float32."""
    return torch.softmax(at_least_float32(logits), dim=-1)


def drawing(uniform: Tensor) -> Choose:
    """Chooses by probabilities (batch, tours, nodes); uniform (batch, tours, decisions) in [0, 1) decides.

    By the inverse of the distribution function.  What is closed, or so improbable that its probability is 0, is never
    chosen.
    """
    decisions = count()

    def choose(probabilities: Tensor) -> Tensor:
        below = probabilities.cumsum(dim=-1)
        at = uniform[..., next(decisions)].to(below.dtype) * below[..., -1]
        node = torch.searchsorted(below, at[..., None], right=True).clamp_(max=below.shape[-1] - 1)
        # Where a GPU sums in parallel, rounding may let the sum rise at a probability of 0.
        possible = probabilities.gather(-1, node) > 0
        return torch.where(possible, node, probabilities.max(dim=-1, keepdim=True).indices).squeeze(-1)

    return choose
