"""What only a GPU can show.  Skipped where there is none."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from neuroute.datasets.streams import cvrp_dataset
from neuroute.decoding.decode import decode
from neuroute.decoding.sampling import TourPrefixes, sample_shortest
from neuroute.decoding.tsp import TspBatch
from neuroute.networks.bq import Bq
from neuroute.networks.decoder_only import DecoderOnly
from neuroute.networks.icam import Icam
from neuroute.networks.lehd import Lehd, LehdCvrp
from neuroute.networks.pens import Pens
from neuroute.networks.pomo import Pomo
from neuroute.networks.sit import Sit, SitCvrp
from neuroute.networks.weights import build
from neuroute.problems.cvrp import is_feasible
from neuroute.problems.registry import Part
from neuroute.problems.tsp import canonical
from neuroute.specs.objects import Dataset, Decoding, Labels, Network, Reinforced, Run, Stage
from tiny import scheme_of

DEVICE = "cuda"
pytestmark = [pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


def awake(device: str) -> DecoderOnly:
    torch.manual_seed(0)
    net = DecoderOnly(4, 64, 4)
    for layer in net.layers:
        layer.alpha1.data.fill_(0.5)
        layer.alpha2.data.fill_(0.5)
    return net.to(device).eval()


def assert_tours(found: Tensor, nodes: int) -> None:
    assert torch.equal(found.cpu().sort(1).values, torch.arange(nodes).expand(len(found), -1))


def assert_it_learns(net: torch.nn.Module, decide: Callable[[], Tensor], precision: str) -> None:
    """Thirty updates towards the first candidate."""
    optimizer, losses = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True), []
    for _ in range(30):
        with torch.autocast(DEVICE, torch.bfloat16, enabled=precision == "bf16"):
            logits = decide()
        first = torch.zeros(len(logits), dtype=torch.long, device=DEVICE)
        loss = torch.nn.functional.cross_entropy(logits.float(), first)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss))
    assert losses[-1] < losses[0]


def test_cuda_and_cpu_agree() -> None:
    rows = torch.rand(8, 30, 2)
    with torch.inference_mode():
        found, wanted = awake(DEVICE).decide(rows.to(DEVICE)).cpu(), awake("cpu").decide(rows)
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("tokens", [20, 300])  # not folded, and folded
def test_sit_on_cuda_and_cpu_agrees(tokens: int) -> None:
    torch.manual_seed(0)
    tsp, cvrp = Sit().eval(), SitCvrp().eval()
    rows, left = torch.rand(4, tokens, 3), torch.rand(4)
    with torch.inference_mode():
        expected = tsp.decide(rows[..., :2]), cvrp.decide(rows, left)
        rows, left = rows.to(DEVICE), left.to(DEVICE)
        found = tsp.to(DEVICE).decide(rows[..., :2]), cvrp.to(DEVICE).decide(rows, left)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-3, atol=1e-4)


SMALL: dict[str, Any] = {"depth": 2, "width": 32, "heads": 2, "feed_forward": 64, "train_nodes": 20}
PATHS = (Decoding(), Decoding(method="beam", beam=4), Decoding(method="rrc", iterations=3))
MANY = (Decoding(starts="all"),)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(
    ("make", "nodes", "ways"),
    [
        (partial(awake, DEVICE), 40, PATHS[:2]),
        (Sit, 160, PATHS[:1]),
        (Icam, 100, MANY),
        (Pomo, 100, MANY),
        *((partial(kind, **SMALL), 20, PATHS) for kind in (Lehd, Bq, LehdCvrp)),
    ],
)
def test_cuda_decodes_valid_solutions(make: Any, nodes: int, ways: tuple[Decoding, ...], precision: Any) -> None:
    torch.manual_seed(0)
    net = make().to(DEVICE).eval()
    cvrp = net.problem == "cvrp"
    given = cvrp_dataset(Dataset(problem="cvrp", n=nodes, count=8)) if cvrp else torch.rand(8, nodes, 2)
    for how in ways:
        found = decode(net.problem, net, given, how, precision=precision)
        if cvrp:
            assert is_feasible(given, found.numpy()).all()
        else:
            assert_tours(found, nodes)


@pytest.mark.parametrize("kind", [Icam, Pomo])
@pytest.mark.parametrize(
    "way", [Decoding(starts="all", augment=True), Decoding(method="beam", beam=4, starts="all")], ids=str
)
def test_cuda_and_cpu_find_the_same_tours(kind: Any, way: Decoding) -> None:
    """In float64, where rounding decides nothing but which of two starts of one tour is the shorter."""
    torch.manual_seed(0)
    net, coords = kind(depth=2).double().eval(), torch.rand(4, 20, 2, dtype=torch.float64)
    here = decode("tsp", net, coords, way).numpy()
    np.testing.assert_array_equal(canonical(decode("tsp", net.to(DEVICE), coords, way).numpy()), canonical(here))


def test_bf16_trains_on_cuda() -> None:
    net, rows = awake(DEVICE).train(), torch.rand(64, 20, 2, device=DEVICE)
    assert_it_learns(net, lambda: net.decide(rows), "bf16")


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(
    ("kind", "way"),
    [
        ("icam:Icam", {}),
        ("pomo:Pomo", {}),
        ("mvmoe:MvMoe", {}),
        ("mvmoe:MvMoe", {"hierarchy": "step"}),
        ("mvmoe:MvMoe", {"method": "expert-choice"}),
        ("mvmoe:MvMoe", {"experts": 0}),
    ],
    ids=str,
)
def test_batches_are_learnt_from_and_repeat(kind: str, way: dict[str, Any], precision: Any, tmp_path: Path) -> None:
    of_16: dict[str, Any] = {"variants": ("VRPB", "OVRPTW", "VRPL")} if kind == "mvmoe:MvMoe" else {}
    stage = Stage(name="stage", epochs=1, batches_per_epoch=3, sizes=(30, 40), batch_size=8, **of_16)
    like: dict[str, Any] = {"problem": "vrp", "variant": "VRPB"} if of_16 else {}
    run = Run(
        paper="icam",
        name="t",
        network=Network(kind=f"neuroute.networks.{kind}", arguments=way),
        training=Reinforced(stages=(stage,), precision=precision, balance=0.01 if of_16 else 0.0),
        n=40,
        data=(),
        validation=Labels(dataset=Dataset(split="val", n=40, count=1, **like), solver="ortools"),
    )
    losses = []
    for _ in range(2):
        torch.manual_seed(0)
        net = build(run.network).to(DEVICE)
        before = [p.detach().clone() for p in net.parameters()]
        scheme = scheme_of(run, net, tmp_path, device=torch.device(DEVICE), memory_gb=8.0)
        batches = Part[Any]("reinforce").of(net.problem)(scheme)
        losses.append([float(batches.train(index)[0]) for index in range(3)])
        assert all(p.isfinite().all() for p in net.parameters())
        assert any(not torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))
    assert losses[0][0] == pytest.approx(losses[1][0], rel=1e-2, abs=1e-3)


def test_memory_of_sit_is_linear_in_the_nodes() -> None:
    """One decision at 100,000 nodes: at most 1 GiB above the weights."""
    torch.manual_seed(0)
    net, rows = Sit().to(DEVICE).eval(), torch.rand(1, 100_001, 2, device=DEVICE)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with torch.inference_mode():
        net.decide(rows)
    assert torch.cuda.max_memory_allocated() - before < 2**30


@pytest.mark.parametrize("kind", [Lehd, Bq])
def test_sampled_tours_are_tours_on_cuda(kind: type) -> None:
    torch.manual_seed(0)
    net, there = kind(**SMALL).to(DEVICE).eval(), torch.rand(8, 20, 2, device=DEVICE)
    with torch.inference_mode():
        nodes, generator = net.encode(there), torch.Generator(DEVICE).manual_seed(0)
        lengths = TspBatch(there).lengths
        found = sample_shortest(lambda: TourPrefixes(net.decide, nodes), lengths, 4, 2, 0.3, generator)
    assert_tours(found, 20)


POSITIONS = ("alibi", "rope", "both", "coordinates")


def pens(positions: str, device: str) -> Pens:
    torch.manual_seed(0)
    return Pens(4, 64, 4, 128, positions, train_nodes=40).to(device).eval()  # type: ignore[arg-type]


@pytest.mark.parametrize("positions", POSITIONS)
def test_pens_on_cuda_and_cpu_agree(positions: str) -> None:
    """With and without absent rows; the random embeddings are the same on both."""
    coords, lengths = torch.rand(8, 40, 2), torch.tensor([40, 38, 33, 30, 21, 9, 5, 4])
    here, there = pens(positions, "cpu"), pens(positions, DEVICE)
    with torch.inference_mode():
        rows, moved = here.encode(coords), there.encode(coords.to(DEVICE))
        torch.testing.assert_close(moved.cpu(), rows, rtol=1e-5, atol=1e-5)
        for n in (None, lengths):
            found = there.decide(moved, lengths=None if n is None else n.to(DEVICE)).cpu()
            torch.testing.assert_close(found, here.decide(rows, lengths=n), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("positions", POSITIONS)
def test_pens_in_bf16_is_close_on_cuda(positions: str) -> None:
    net, coords = pens(positions, DEVICE), torch.rand(32, 40, 2, device=DEVICE)
    with torch.inference_mode():
        exact = net.decide(net.encode(coords))
        with torch.autocast(DEVICE, torch.bfloat16):
            half = net.decide(net.encode(coords)).float()
    assert (half - exact).norm() < 0.05 * exact.norm()


@pytest.mark.parametrize("positions", POSITIONS)
def test_pens_decodes_alike_on_cuda_whatever_is_kept(positions: str) -> None:
    net, coords = pens(positions, DEVICE).double(), torch.rand(16, 40, 2, dtype=torch.float64)
    tours = decode("tsp", net, coords, Decoding())
    assert_tours(tours, 40)
    assert torch.equal(decode("tsp", net, coords, Decoding(cached=False)), tours)
    assert torch.equal(decode("tsp", net, coords, Decoding(batch_size=1)), tours)
    assert torch.equal(decode("tsp", pens(positions, "cpu").double(), coords, Decoding()), tours)
    for how in (Decoding(method="beam", beam=4), Decoding(method="rrc", iterations=3, rescale=1.5)):
        for precision in ("fp32", "bf16"):
            assert_tours(decode("tsp", net.float(), coords.float(), how, precision=precision), 40)


def test_pens_is_exact_in_parts_on_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    net = pens("both", DEVICE).double()
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
    net = pens(positions, DEVICE).train()
    coords = torch.rand(64, 20, 2, device=DEVICE)
    lengths = torch.randint(4, 21, (64,), device=DEVICE).sort(descending=True).values
    noise = torch.randn(64, 20, 64, device=DEVICE)
    assert_it_learns(net, lambda: net.decide(net.encode(coords, noise), lengths=lengths), precision)


@pytest.mark.parametrize("nodes", [39, 47, 60])
def test_pens_decodes_in_single_precision_with_any_corner_kept(nodes: int) -> None:
    """Rows of the kept biases start anywhere in memory, and fused kernels want them aligned."""
    torch.manual_seed(0)
    coords = torch.rand(3, nodes, 2)
    assert_tours(decode("tsp", pens("alibi", DEVICE), coords, Decoding()), nodes)
