"""How much longer solutions are than known ones, in per cent: one measure for evaluations, users and comparisons."""

import numpy as np


def gap_pct(lengths: np.ndarray | float, reference: np.ndarray | float) -> float:
    """Return by how many per cent the mean length is above the mean of the references."""
    return float(100 * (np.mean(lengths) / np.mean(reference) - 1))


def gaps(lengths: np.ndarray, reference: np.ndarray, rounded: np.ndarray | None = None) -> dict[str, float]:
    """Return the gaps of lengths (count,) by the names that records have.

    `gap_pct` is of mean lengths, `gap_mean_of_ratios_pct` the mean of the instances' gaps, and `gap_rounded_pct` the
    same of lengths in a library's rounded distances, where they are given.
    """
    values = {"gap_pct": gap_pct(lengths, reference), "gap_mean_of_ratios_pct": gap_pct(lengths / reference, 1.0)}
    return values if rounded is None else values | {"gap_rounded_pct": gap_pct(rounded / reference, 1.0)}
