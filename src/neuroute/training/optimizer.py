"""Adam and AdamW, as every training takes them."""

from torch import nn
from torch.optim import Adam, AdamW, Optimizer


def adam(net: nn.Module, learning_rate: float, weight_decay: float, decoupled: bool) -> Optimizer:
    """Return the optimizer of a network's parameters; fused is torch's fastest way on a GPU and on a CPU.

    decoupled: AdamW (Loshchilov & Hutter, 2019), whose weight decay is no part of the gradient.
    """
    kind = AdamW if decoupled else Adam
    return kind(net.parameters(), lr=learning_rate, weight_decay=weight_decay, fused=True)
