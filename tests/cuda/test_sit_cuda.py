"""SIT where only a GPU can show it.  Skipped where there is none."""

import pytest
import torch

from neuroute.decoding.decode import decode
from neuroute.networks.sit import Sit, SitCvrp
from neuroute.plan.objects import Decoding

pytestmark = [pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


@pytest.mark.parametrize("tokens", [20, 300])  # not folded, and folded
def test_cuda_and_cpu_agree(tokens: int) -> None:
    torch.manual_seed(0)
    tsp, cvrp = Sit().eval(), SitCvrp().eval()
    rows, left = torch.rand(4, tokens, 3), torch.rand(4)
    close = {"rtol": 1e-3, "atol": 1e-4}
    with torch.inference_mode():
        expected = tsp.decide(rows[..., :2]), cvrp.decide(rows, left)
        found = tsp.cuda().decide(rows[..., :2].cuda()), cvrp.cuda().decide(rows.cuda(), left.cuda())
    for here, there in zip(found, expected, strict=True):
        torch.testing.assert_close(here.cpu(), there, **close)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_cuda_decodes_valid_tours(precision: str) -> None:
    torch.manual_seed(0)
    tours = decode("tsp", Sit().cuda().eval(), torch.rand(8, 160, 2), Decoding(), precision=precision)
    assert torch.equal(tours.sort(1).values, torch.arange(160).expand(8, -1))


def test_memory_is_linear_in_the_nodes() -> None:
    """One decision at 100,000 nodes: at most 1 GiB above the weights."""
    torch.manual_seed(0)
    net, rows = Sit().cuda().eval(), torch.rand(1, 100_001, 2, device="cuda")
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with torch.inference_mode():
        net.decide(rows)
    assert torch.cuda.max_memory_allocated() - before < 2**30
