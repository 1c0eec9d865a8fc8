"""Moving, turning and mirroring an instance: PENS-A heeds none of it, PENS-R no moving (pens, Section 4.1)."""

import math

import pytest
import torch
from torch import Tensor

from neuroute.networks.pens import Pens

N, BATCH = 30, 6
ANGLE = 0.7
TURN = torch.tensor([[math.cos(ANGLE), -math.sin(ANGLE)], [math.sin(ANGLE), math.cos(ANGLE)]], dtype=torch.float64)
MOVES = {
    "translation": lambda x: x + torch.tensor([1.25, -0.6], dtype=torch.float64),
    "rotation": lambda x: x @ TURN.T,
    "reflection": lambda x: x * torch.tensor([-1.0, 1.0], dtype=torch.float64),
    "all three": lambda x: (x @ TURN.T).flip(-1) + 0.5,
}
INVARIANT = {
    "alibi": set(MOVES),
    "rope": {"translation"},
    "both": {"translation"},
    "coordinates": set[str](),
}
CASES = [(positions, move) for positions in INVARIANT for move in MOVES]


def network(positions: str, dtype: torch.dtype) -> Pens:
    torch.manual_seed(0)
    return Pens(4, 48, 4, 96, positions, train_nodes=N).to(dtype).eval()  # type: ignore[arg-type]


def instances() -> Tensor:
    return torch.rand(BATCH, N, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


def logits(positions: str, coords: Tensor, dtype: torch.dtype) -> Tensor:
    net = network(positions, dtype)
    with torch.inference_mode():
        return net.decide(net.encode(coords.to(dtype)))


@pytest.mark.parametrize(("positions", "move"), CASES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-4)])
def test_logits(positions: str, move: str, dtype: torch.dtype, tolerance: float) -> None:
    before, after = (logits(positions, c, dtype) for c in (instances(), MOVES[move](instances())))
    change = float((after - before).abs().max())
    if move in INVARIANT[positions]:
        assert change < tolerance
    else:
        assert change > 1e-2
