"""Coordinates go in and logits come out in float32, whatever the rest is computed in."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from networks import MULTI_START, PATH, N, awake, make, midway
from neuroute.networks.blocks.mixture import Hierarchical, LinearExperts
from neuroute.networks.blocks.precision import FullLinear
from neuroute.networks.blocks.routing import Gate
from neuroute.networks.mvmoe import MvMoe

aten = torch.ops.aten
PRODUCTS = (aten.mm, aten.addmm, aten.bmm, aten.baddbmm)
EXPERTS: dict[str, dict[str, Any]] = {"dense": {"experts": 0}, "experts": {}, "light": {"hierarchy": "step"}}
BATCH = 16
NEAR = 1e-3  # of two nodes; bf16 knows 0.5 and 0.504


class Seen(TorchDispatchMode):
    """The products, in their order: factors, and what came out."""

    def __init__(self) -> None:
        super().__init__()
        self.products: list[tuple[list[Tensor], Tensor]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **kwargs or {})
        if func.overloadpacket in PRODUCTS:
            self.products.append((list(args[-2:]), out))
        return out


def close_by(nodes: int) -> Tensor:
    """Instances (BATCH, nodes, 2) whose nodes 2 and 3 are NEAR each other, and the same in bf16."""
    torch.manual_seed(3)
    coords = torch.rand(BATCH, nodes, 2)
    coords[:, 2] = (0.5 + 0.49 * coords[:, 2]).bfloat16().float()
    coords[:, 3] = coords[:, 2] + NEAR * torch.tensor([1.0, 0.0])
    assert torch.equal(coords[:, 2].bfloat16(), coords[:, 3].bfloat16())
    return coords


def logits_of(name: str) -> tuple[nn.Module, Tensor]:
    """A network in float32 and its logits under bf16's autocast, of nodes 2 and 3 and some others."""
    with torch.autocast("cpu", torch.bfloat16):
        if name in EXPERTS:
            net = awake(MvMoe, depth=1, width=16, heads=2, feed_forward=24, **EXPERTS[name]).float()
            encoded = net.encode(close_by(N), torch.full((BATCH, N), 0.1), torch.rand(BATCH, N, 2))
            where = torch.rand(BATCH, 2, 4), torch.tensor([[0, 5]]).expand(BATCH, 2), torch.zeros(BATCH, 2, N)
            return net, net.decide(net.prepare(encoded), *where)[..., 2:4]
        net = make(name).float()
        if name in MULTI_START:
            demand = [torch.full((BATCH, N), 0.1)] * (net.problem == "cvrp")
            context, current, mask = (part.expand(BATCH, *part.shape[1:]) for part in midway(net, 1))
            mask = torch.zeros_like(mask).float()
            context = context if context.dtype == torch.int64 else context.float()
            if net.sees_served:
                context = torch.cat([context[..., :1], mask], dim=-1)
            prepared = net.prepare(net.encode(close_by(N), *demand))
            return net, net.decide(prepared, context, current.clamp(min=4), mask)[..., 2:4]
        if net.problem == "cvrp":
            rows = net.encode(close_by(8), torch.full((BATCH, 8), 0.1))
            return net, net.decide(rows, torch.rand(BATCH) + 0.5)[:, 1:3]
        rows = net.encode(close_by(8))
        net.arrive(rows)
        return net, net.decide(rows)[:, 1:3]


EVERY = [*PATH, *MULTI_START, *EXPERTS]


@pytest.mark.parametrize("name", EVERY)
def test_two_nodes_near_each_other_are_two_and_logits_are_those_of_a_full_product(name: str) -> None:
    with torch.no_grad(), Seen() as seen:
        _, logits = logits_of(name)
    assert logits.dtype == torch.float32
    both = logits.flatten(0, -2) if logits.shape[-1] == 2 and name not in PATH else logits.movedim(1, -1).flatten(0, -2)
    both = both[both.isfinite().all(dim=-1)]
    assert len(both)
    assert (both[:, 0] != both[:, 1]).double().mean() > 0.5  # narrow networks round some to one later on
    assert any(factor.dtype == torch.bfloat16 for factors, _ in seen.products for factor in factors)
    (a, b), out = seen.products[-1]
    assert a.dtype == b.dtype == out.dtype == torch.float32


@pytest.mark.parametrize("name", ["lehd cvrp", "sit cvrp", "bq cvrp"])
def test_what_is_left_in_a_vehicle_is_not_rounded(name: str) -> None:
    net, left = make(name).float(), torch.full((BATCH,), 0.5)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        rows = net.encode(close_by(8), torch.full((BATCH, 8), 0.1))
        assert not torch.equal(net.decide(rows, left), net.decide(rows, left + NEAR))


@pytest.mark.parametrize("name", EVERY)
def test_every_layer_of_features_and_to_logits_is_full(name: str) -> None:
    net, _ = logits_of(name)
    gates = {id(part.gate) for part in net.modules() if isinstance(part, Hierarchical)}  # of means, not of nodes
    for where, layer in net.named_modules():
        if isinstance(layer, nn.Linear) and id(layer) not in gates and not where.startswith("local"):
            sizes: Any = (layer.in_features, layer.out_features, net.width)
            narrow = min(sizes[:2]) < sizes[2] or sizes[0] == sizes[2] + 1
            elsewhere = where.startswith("context") or (name in EXPERTS and where.startswith("embed"))
            assert isinstance(layer, FullLinear) or not narrow or elsewhere, where
    assert not any(isinstance(part, LinearExperts | Gate) for part in net.modules()) or name in EXPERTS


def test_autocast_ends_for_a_full_product_alone() -> None:
    torch.manual_seed(0)
    layer, x = FullLinear(3, 5), torch.rand(4, 3)
    wanted, of_fewer = (F.linear(y, layer.weight, layer.bias) for y in (x, x.bfloat16().float()))
    assert torch.equal(layer(x), wanted)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(layer(x), wanted)
        assert torch.equal(layer(x.bfloat16()), of_fewer)
        assert F.linear(x, layer.weight).dtype == torch.bfloat16
