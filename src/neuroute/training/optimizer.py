"""Adam and AdamW, as every training takes them."""

from torch import device as Device
from torch import nn
from torch.optim import Adam, AdamW, Optimizer


def adam(net: nn.Module, device: Device, learning_rate: float, weight_decay: float, decoupled: bool) -> Optimizer:
    """Return the optimizer of a network's parameters, by torch's fastest way for the device.

    decoupled: AdamW (Loshchilov & Hutter, 2019), whose weight decay is no part of the gradient.
    """
    fused = device.type == "cuda"
    kind = AdamW if decoupled else Adam
    return kind(net.parameters(), lr=learning_rate, weight_decay=weight_decay, fused=fused, foreach=not fused)
