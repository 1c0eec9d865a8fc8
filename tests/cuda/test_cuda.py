"""What only a GPU can show.  Skipped where there is none."""

import pytest
import torch

from neuroute.datasets.streams import cvrp_dataset
from neuroute.decoding.cvrp import decode as decode_cvrp
from neuroute.decoding.decode import decode
from neuroute.decoding.sampling import sample_tours
from neuroute.networks.bq import Bq
from neuroute.networks.decoder_only import DecoderOnly
from neuroute.networks.lehd import Lehd
from neuroute.networks.lehd_cvrp import LehdCvrp
from neuroute.plan.objects import Dataset, Decoding
from neuroute.problems.cvrp import is_feasible

DEVICE = "cuda"
pytestmark = [pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


def awake(device: str) -> DecoderOnly:
    torch.manual_seed(0)
    net = DecoderOnly(4, 64, 4)
    for layer in net.layers:
        layer.alpha1.data.fill_(0.5)
        layer.alpha2.data.fill_(0.5)
    return net.to(device).eval()


def test_cuda_and_cpu_agree() -> None:
    rows = torch.rand(8, 30, 2)
    with torch.inference_mode():
        torch.testing.assert_close(
            awake("cuda").decide(rows.cuda()).cpu(), awake("cpu").decide(rows), rtol=1e-3, atol=1e-4
        )


def test_cuda_decodes_valid_tours() -> None:
    for decoding in (Decoding(), Decoding(method="beam", beam=4)):
        for precision in ("fp32", "bf16"):
            tours = decode(awake("cuda"), torch.rand(16, 40, 2), decoding, precision=precision)
            assert torch.equal(tours.sort(1).values, torch.arange(40).expand(16, -1))


def test_bf16_trains_on_cuda() -> None:
    net = awake("cuda").train()
    rows, first = torch.rand(64, 20, 2, device="cuda"), torch.zeros(64, dtype=torch.long, device="cuda")
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    losses = []
    for _ in range(30):
        with torch.autocast("cuda", torch.bfloat16):
            logits = net.decide(rows)
        loss = torch.nn.functional.cross_entropy(logits.float(), first)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss))
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("kind", [Lehd, Bq])
def test_baselines_decode_on_cuda(kind: type) -> None:
    """Greedy, beam, re-construct and sampling give tours wherever the network lies."""
    torch.manual_seed(0)
    net = kind(depth=2, width=32, heads=2, feed_forward=64, train_nodes=20).to(DEVICE).eval()
    coords = torch.rand(8, 20, 2)
    rrc = Decoding(method="rrc", iterations=3)
    for decoding in (Decoding(), Decoding(method="beam", beam=4), rrc):
        tours = decode(net, coords, decoding)
        assert torch.equal(tours.sort(1).values, torch.arange(20).expand(8, -1))
    there = coords.to(DEVICE)
    with torch.inference_mode():
        found = sample_tours(net.decide, net.encode(there), there, 4, 2, 0.3, torch.Generator().manual_seed(0))
    assert torch.equal(found.cpu().sort(1).values, torch.arange(20).expand(8, -1))


def test_cvrp_decodes_on_cuda() -> None:
    torch.manual_seed(0)
    net = LehdCvrp(depth=2, width=32, heads=2, feed_forward=64, train_nodes=20).to(DEVICE).eval()
    instances = cvrp_dataset(Dataset(problem="cvrp", n=20, count=8))
    for decoding in (Decoding(), Decoding(method="rrc", iterations=3)):
        assert is_feasible(instances, decode_cvrp(net, instances, decoding).numpy()).all()
