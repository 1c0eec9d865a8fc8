"""Images of an instance under random rotations and reflections, and random first stops (Fang et al., 2024)."""

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor


def images_of(coords: Tensor, turns: Tensor) -> Tensor:
    """coords (batch, nodes, 2) -> images (images, batch, nodes, 2), the first of which is the instance itself.

    Of the others even ones are rotated and odd ones reflected, by the angles turns (images, batch), in [0, 1); then
    they are moved and scaled alike on both axes, so that the larger range is 1.  Lengths are those of `coords`.
    """
    angle = (2 * torch.pi * turns.double())[..., None]
    side = 1.0 - 2 * (torch.arange(len(turns), device=coords.device) % 2)[:, None, None]
    x, y = coords.double().unbind(-1)
    turned = torch.stack([angle.cos() * x - side * angle.sin() * y, angle.sin() * x + side * angle.cos() * y], dim=-1)
    low, high = turned.aminmax(dim=2, keepdim=True)
    scale = (high - low).amax(dim=-1, keepdim=True)
    moved = (turned - low) / torch.where(scale > 0, scale, 1.0)
    return torch.cat([coords[None], moved[1:].to(coords.dtype)])


def draw_images(draw: int, instances: Iterable[int], images: int) -> Tensor:
    """Uniform numbers in [0, 1): turns, and places to start at, float64 (2, images, instances).

    Those of an instance follow from `draw` and its number in its test set alone; more images have the same first ones.
    """
    streams = (np.random.Philox(key=np.array([draw, number], np.uint64)) for number in instances)
    numbers = [np.random.Generator(stream).random((images, 2)) for stream in streams]
    return torch.from_numpy(np.stack(numbers, axis=1)).movedim(2, 0)
