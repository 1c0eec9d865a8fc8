"""What a training log says of stability: spikes of the loss, and where it stopped being a number."""

import math
from collections.abc import Sequence


def first_failure(losses: Sequence[float]) -> int | None:
    """Position of the first loss that is not finite; None when all are."""
    return next((i for i, loss in enumerate(losses) if not math.isfinite(loss)), None)


def largest_rise(losses: Sequence[float], peaks: Sequence[float] | None = None) -> float:
    """The largest ratio of a loss to the least before it; 1 when none rises.  Infinite when a loss is not finite.

    peaks: what rises instead, such as the largest of the losses that each is the mean of.
    """
    least, rise = math.inf, 1.0
    for loss, peak in zip(losses, peaks or losses, strict=True):
        if not (math.isfinite(loss) and math.isfinite(peak)):
            return math.inf
        if 0 < least < math.inf:
            rise = max(rise, peak / least)
        least = min(least, loss)
    return rise
