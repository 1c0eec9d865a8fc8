"""When weights take the place of those that were the best so far (Kool et al., 2019; INViT; GLOP)."""

import numpy as np
from scipy.stats import ttest_rel


def is_shorter(present: np.ndarray, before: np.ndarray, alpha: float | None, margin: float = 0.0) -> bool:
    """Whether costs (count,) are lower than those before by more than `margin` in the mean.

    alpha: what a one-sided paired t-test must stay below as well; None: no test.
    """
    if not present.mean() < before.mean() - margin:
        return False
    if alpha is None or np.ptp(present - before) == 0:  # no spread, no doubt
        return True
    return bool(ttest_rel(present, before, alternative="less").pvalue < alpha)
