"""When linear cross-attention projects its short side only: for the network, and for those who count its FLOPs."""

SHARE = 15 / 16  # of the multiply-adds: folding takes more and smaller calls (SIT on a CPU: it pays from 300 nodes)


def folds(width: int, heads: int, few: int, many: int) -> bool:
    """Whether (8 W + 4 heads many) few W FLOPs are clearly fewer than those of projecting both sides."""
    return few * (width + heads * many) < SHARE * many * (width + few)
