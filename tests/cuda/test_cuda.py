"""What only a GPU can show.  Skipped where there is none."""

import pytest
import torch

from neuroute.datasets.streams import cvrp_dataset
from neuroute.decoding.decode import decode
from neuroute.decoding.prefixes import TourPrefixes
from neuroute.decoding.sampling import sample_shortest
from neuroute.decoding.tsp import TspBatch
from neuroute.networks.bq import Bq
from neuroute.networks.decoder_only import DecoderOnly
from neuroute.networks.lehd import Lehd, LehdCvrp
from neuroute.networks.pens import Pens
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
            tours = decode("tsp", awake("cuda"), torch.rand(16, 40, 2), decoding, precision=precision)
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
        tours = decode("tsp", net, coords, decoding)
        assert torch.equal(tours.sort(1).values, torch.arange(20).expand(8, -1))
    there = coords.to(DEVICE)
    with torch.inference_mode():
        nodes, generator = net.encode(there), torch.Generator(DEVICE).manual_seed(0)
        lengths = TspBatch(there).lengths
        found = sample_shortest(lambda: TourPrefixes(net.decide, nodes), lengths, 4, 2, 0.3, generator)
    assert torch.equal(found.cpu().sort(1).values, torch.arange(20).expand(8, -1))


def test_cvrp_decodes_on_cuda() -> None:
    torch.manual_seed(0)
    net = LehdCvrp(depth=2, width=32, heads=2, feed_forward=64, train_nodes=20).to(DEVICE).eval()
    instances = cvrp_dataset(Dataset(problem="cvrp", n=20, count=8))
    for decoding in (Decoding(), Decoding(method="beam", beam=4), Decoding(method="rrc", iterations=3)):
        assert is_feasible(instances, decode("cvrp", net, instances, decoding).numpy()).all()


POSITIONS = ("alibi", "rope", "both", "coordinates")


def pens(positions: str, device: str) -> Pens:
    torch.manual_seed(0)
    return Pens(4, 64, 4, 128, positions, train_nodes=40).to(device).eval()  # type: ignore[arg-type]


@pytest.mark.parametrize("positions", POSITIONS)
def test_pens_on_cuda_and_cpu_agree(positions: str) -> None:
    """With and without absent rows; the random embeddings are the same on both."""
    coords, lengths = torch.rand(8, 40, 2), torch.tensor([40, 38, 33, 30, 21, 9, 5, 4])
    here, there = pens(positions, "cpu"), pens(positions, "cuda")
    with torch.inference_mode():
        rows, moved = here.encode(coords), there.encode(coords.to(DEVICE))
        torch.testing.assert_close(moved.cpu(), rows, rtol=1e-5, atol=1e-5)
        for n in (None, lengths):
            found = there.decide(moved, lengths=None if n is None else n.to(DEVICE)).cpu()
            torch.testing.assert_close(found, here.decide(rows, lengths=n), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("positions", POSITIONS)
def test_pens_in_bf16_is_close_on_cuda(positions: str) -> None:
    net, coords = pens(positions, "cuda"), torch.rand(32, 40, 2, device=DEVICE)
    with torch.inference_mode():
        exact = net.decide(net.encode(coords))
        with torch.autocast("cuda", torch.bfloat16):
            half = net.decide(net.encode(coords)).float()
    assert (half - exact).norm() < 0.05 * exact.norm()


@pytest.mark.parametrize("positions", POSITIONS)
def test_pens_decodes_alike_on_cuda_whatever_is_kept(positions: str) -> None:
    net, coords = pens(positions, "cuda").double(), torch.rand(16, 40, 2, dtype=torch.float64)
    tours = decode("tsp", net, coords, Decoding())
    assert torch.equal(tours.sort(1).values, torch.arange(40).expand(16, -1))
    assert torch.equal(decode("tsp", net, coords, Decoding(cached=False)), tours)
    assert torch.equal(decode("tsp", net, coords, Decoding(batch_size=1)), tours)
    assert torch.equal(decode("tsp", pens(positions, "cpu").double(), coords, Decoding()), tours)
    for how in (Decoding(method="beam", beam=4), Decoding(method="rrc", iterations=3, rescale=1.5)):
        for precision in ("fp32", "bf16"):
            found = decode("tsp", net.float(), coords.float(), how, precision=precision)
            assert torch.equal(found.sort(1).values, torch.arange(40).expand(16, -1))


def test_pens_is_exact_in_parts_on_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    net = pens("both", "cuda").double()
    rows = net.encode(torch.rand(2, 101, 2, device=DEVICE, dtype=torch.float64))
    with torch.inference_mode():
        whole = net.decide(rows)
        monkeypatch.setattr(Pens, "DENSE", 0)
        monkeypatch.setattr(Pens, "PART", 2 * 4 * 101 * 7)
        monkeypatch.setattr(Pens, "GPU_PARTS", 1)
        for kept in (None, net.pairs(rows, 2 * 101**2)):
            torch.testing.assert_close(net.decide(rows, pairs=kept), whole, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("positions", POSITIONS)
def test_pens_trains_on_padded_paths_on_cuda(positions: str, precision: str) -> None:
    net = pens(positions, "cuda").train()
    coords = torch.rand(64, 20, 2, device=DEVICE)
    lengths = torch.randint(4, 21, (64,), device=DEVICE).sort(descending=True).values
    noise = torch.randn(64, 20, 64, device=DEVICE)
    first = torch.zeros(64, dtype=torch.long, device=DEVICE)
    optimizer, losses = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True), []
    for _ in range(30):
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
            logits = net.decide(net.encode(coords, noise), lengths=lengths)
        loss = torch.nn.functional.cross_entropy(logits.float(), first)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss))
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("nodes", [39, 47, 60])
def test_pens_decodes_in_single_precision_with_any_corner_kept(nodes: int) -> None:
    """Rows of the kept biases start anywhere in memory, and fused kernels want them aligned."""
    torch.manual_seed(0)
    coords = torch.rand(3, nodes, 2)
    tours = decode("tsp", pens("alibi", "cuda"), coords, Decoding())
    assert torch.equal(tours.sort(1).values, torch.arange(nodes).expand(3, -1))
