"""All networks and decodings on a GPU that is not there: nothing mixes devices, waits unasked, or loses digits."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import pretended
from networks import MIXTURES, MULTI_START, PATH, decision, every_network, features, make, midway
from neuroute.core import device as devices
from neuroute.datasets.problem_spec import SPEC
from neuroute.datasets.streams import cvrp_dataset, vrp_dataset
from neuroute.decoding.decode import decode, improve
from neuroute.decoding.memory import autocast
from neuroute.networks.base import PathNetwork
from neuroute.networks.blocks.routing import Routing
from neuroute.networks.mvmoe import MvMoe
from neuroute.networks.weights import build
from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import parse_config
from neuroute.problems.registry import PARTS
from neuroute.problems.vrp import Vrp, valid
from neuroute.specs.decodings import revise
from neuroute.specs.objects import Dataset, Decoding, Run, Test
from pretended import PLACE, OnGpu, pretended_gpu

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    with pretended_gpu(monkeypatch):
        yield


def held(tensor: Tensor) -> Tensor:
    assert isinstance(tensor, OnGpu)
    return tensor.held


def learn(net: torch.nn.Module, logits: Tensor) -> None:
    """One update, as training does it."""
    optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], fused=True)
    before = [held(p).clone() for p in net.parameters()]
    logits.clamp(min=-1e3).square().sum().backward()
    optimizer.step()
    assert any(not torch.equal(held(p), old) for p, old in zip(net.parameters(), before, strict=True))


# -- the pretence ---------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("gpu")
def test_a_mix_of_devices_raises() -> None:
    there, here = torch.ones(3, device=PLACE), torch.ones(3)
    assert there.device == PLACE
    assert there.is_cuda
    for mix in (lambda: there + here, lambda: there[here.long()], lambda: torch.cat([there, here])):
        with pytest.raises(AssertionError, match="of the GPU and of the CPU"):
            mix()
    assert torch.equal(held(there + here.to(PLACE)), torch.full((3,), 2.0))
    assert torch.equal(held(there * torch.tensor(2.0)), torch.full((3,), 2.0))  # a single number may come along


@pytest.mark.usefixtures("gpu")
def test_a_hidden_read_raises() -> None:
    there = torch.ones(3, device=PLACE)
    reads = (
        lambda: there.sum().item(),
        lambda: float(there[0]),
        lambda: bool((there > 0).all()),
        lambda: there.tolist(),
        lambda: there.cpu(),
        lambda: there.to("cpu"),
        lambda: there.nonzero(),
        lambda: there[there > 0],
        lambda: there.long().bincount(),
        lambda: torch.zeros(3).copy_(there),
        lambda: range(there.long()[0]),
    )

    for read in reads:
        with pytest.raises(AssertionError, match="lets the host wait for the GPU in a test"):
            read()


@pytest.mark.usefixtures("gpu")
def test_a_generator_draws_on_its_device() -> None:
    there, here = torch.Generator(PLACE).manual_seed(1), torch.Generator().manual_seed(1)
    found = torch.rand(4, generator=there, device=PLACE)
    assert torch.equal(held(found), torch.rand(4, generator=here))
    with pytest.raises(AssertionError, match="a generator of the other device"):
        torch.rand(4, generator=here, device=PLACE)


# -- networks -------------------------------------------------------------------------------------------------------


def state_of(net: Any) -> tuple[Tensor, ...]:
    """What a network decides on: rows of paths; of many starts, what it encodes and where these are."""
    return decision(net) if isinstance(net, PathNetwork) else (*features(net), *midway(net))


def decided(net: Any, state: Sequence[Tensor]) -> Tensor:
    if isinstance(net, PathNetwork):
        return net.decide(*state)
    return net.decide(net.prepare(net.encode(*state[:-3])), *state[-3:])


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", [*PATH, *MULTI_START])
def test_a_network_decides_to_the_same_numbers_and_learns(name: str) -> None:
    net = make(name)
    state = state_of(net)
    with torch.inference_mode():
        wanted = decided(net, state)
    net, moved = net.to(PLACE), [part.to(PLACE) for part in state]
    with torch.inference_mode():
        torch.testing.assert_close(held(decided(net, moved)), wanted)
    logits = decided(net.train(), moved)
    if not logits.requires_grad:  # rows hold all that is learnt
        logits = net.decide(net.encode(torch.rand(3, 9, 2, dtype=torch.float64).to(PLACE)))
    learn(net, logits)


@pytest.mark.usefixtures("gpu")
@pytest.mark.skipif(torch.__version__ < (2, 13), reason="the gradient of `topk` asks where a wrapper really lies")
@pytest.mark.parametrize("way", [*MIXTURES, {"experts": 0}, {"norm": "layer"}], ids=str)
def test_networks_of_16_problems(way: dict[str, Any]) -> None:
    torch.manual_seed(0)
    net = MvMoe(depth=2, width=16, heads=2, feed_forward=24, **way).to(PLACE)
    coords, demand, windows = torch.rand(3, 9, 2), torch.rand(3, 9), torch.rand(3, 9, 2)
    context, current = torch.rand(3, 8, 4), torch.arange(1, 9).expand(3, 8)
    mask = torch.zeros(3, 8, 9)
    routing = Routing(torch.Generator(PLACE).manual_seed(1), balance=True)
    encoded = net.encode(*(part.to(PLACE) for part in (coords, demand, windows)), routing)
    state = [part.to(PLACE) for part in (context, current, mask)]
    logits = net.decide(net.begin_episode(net.prepare(encoded, routing), *state), *state)
    learn(net, logits + routing.loss().to(PLACE))


# -- decoding -------------------------------------------------------------------------------------------------------

TSP_WAYS = (
    Decoding(),
    Decoding(method="beam", beam=2),
    Decoding(method="rrc", iterations=1),
    Decoding(method="prc", iterations=1),
    revise((6, 2), (4, 2)),
)
ROUTE_WAYS = (
    Decoding(),
    Decoding(method="beam", beam=2),
    Decoding(method="rrc", iterations=1),
    Decoding(method="rrc", iterations=1, longest=5),
    Decoding(method="prc", iterations=1),
    Decoding(method="prc", iterations=1, rule="from-the-end"),
)
MANY = (Decoding(starts="all", augment=True), Decoding())


def ways(name: str) -> tuple[Decoding, ...]:
    kind = {**PATH, **MULTI_START}[name][0]
    if name in MULTI_START:
        return (*MANY, *TSP_WAYS[1:]) if kind.problem == "tsp" else MANY
    if kind.problem == "cvrp":
        return ROUTE_WAYS
    return TSP_WAYS[:3] if name.startswith("pens") else TSP_WAYS


def instances(problem: str) -> Any:
    if problem == "tsp":
        return np.random.default_rng(3).random((3, 8, 2))
    if problem == "vrp":
        return vrp_dataset(Dataset(problem="vrp", variant="OVRPBLTW", n=7, count=2))
    one = cvrp_dataset(Dataset(problem="cvrp", n=8, count=3))
    return Vrp(one.coords.astype(np.float64), one.demand, one.capacity)  # so that rounding decides nothing


@pytest.mark.slow
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", [*PATH, *MULTI_START])
def test_decoding_ends_as_on_the_cpu(name: str) -> None:
    net = make(name)
    given = instances(net.problem)
    wanted = [decode(net.problem, net, given, how) for how in ways(name)]
    net = net.to(PLACE)
    for how, solutions in zip(ways(name), wanted, strict=True):
        assert torch.equal(decode(net.problem, net, given, how), solutions), how


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_milestones(problem: str) -> None:
    name = {"tsp": "lehd", "cvrp": "lehd cvrp"}[problem]
    how = Decoding(method="rrc", iterations=2, milestones=(0, 1, 2))
    net, given = make(name), instances(problem)
    wanted = improve(problem, net, given, how)
    for (_, found, _), (_, solutions, _) in zip(improve(problem, net.to(PLACE), given, how), wanted, strict=True):
        assert torch.equal(found, solutions)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("variant", ["CVRP", "OVRPBLTW"])
@pytest.mark.parametrize("way", [{}, {"experts": 0}, {"hierarchy": "step"}], ids=str)
def test_decoding_of_16_problems(variant: str, way: dict[str, Any]) -> None:
    given = vrp_dataset(Dataset(problem="vrp", variant=variant, n=7, count=2))  # type: ignore[arg-type]
    torch.manual_seed(0)
    net = MvMoe(depth=1, width=16, heads=2, feed_forward=24, **way).to(PLACE).eval()
    for how in MANY:
        assert valid(given, decode("vrp", net, given, how).numpy()).all()


# -- what the papers ask for ----------------------------------------------------------------------------------------


def small(how: Decoding) -> Decoding:
    """The same way, on little."""
    return how.model_copy(
        update={
            "beam": min(how.beam, 2),
            "iterations": min(how.iterations, 1),
            "milestones": (),
            "longest": how.longest and 5,
            "most_blocks": how.most_blocks and 1,
            "starts": how.starts if how.starts == "all" else 1,
            "images": min(how.images, 2),
            "rescale": 1.0,
            "repeats": 1,
            "batch_size": None,
            "revision": revise((6, 2), (4, 2)).revision if how.method == "revise" else how.revision,
        }
    )


@cache
def asked_for() -> dict[str, tuple[Run, dict[str, Decoding]]]:
    """One run of each kind of network and choice of its options, and ways in which such are decoded, by their ids.

    Of all papers: networks as small as at smoke scale, decodings of paper scale too; each with one of the kind.
    """
    found: dict[str, tuple[Run, dict[str, Decoding]]] = {}
    ways: set[tuple[str, str]] = set()
    for scale in ("smoke", "paper"):
        plan = build_plan(parse_config({"scale": scale}))
        for run in plan.runs.values():
            choices = {key: value for key, value in run.network.arguments.items() if isinstance(value, str | bool)}
            of_kind = found.setdefault(f"{run.network.kind} {sorted(choices.items())}", (run, {}))
            for each in plan.evaluations.values():
                if each.run == run.id:
                    for how in (small(test.decoding) for test in each.of_kind(Test)):
                        if not of_kind[1] or (run.network.kind, how.name) not in ways:
                            ways.add((run.network.kind, how.name))
                            of_kind[1][how.name] = how
    return found


def test_every_network_is_of_some_run() -> None:
    assert {run.network.kind for run, _ in asked_for().values()} == every_network()


@pytest.mark.slow
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("problem", PARTS)
def test_every_network_decodes_in_all_of_its_ways(problem: str) -> None:
    given = instances(problem)
    for run, hows in asked_for().values():
        if run.validation.dataset.problem != problem:
            continue
        net = build(run.network)
        own = {"method": net.own_method} if hasattr(net, "own_method") else {}
        net = (net if problem == "vrp" else net.double()).to(PLACE).eval()
        for how in (hows or {"": Decoding(**own)}).values():
            try:
                solutions = decode(problem, net, given, how)
                assert SPEC.of(problem).valid(given, solutions.numpy()).all()
            except Exception as error:
                error.add_note(f"{run.id}, {how.name}")
                raise


# -- TF32 and bf16: coordinates go in and logits come out in all digits -----------------------------------------------


aten = torch.ops.aten
PRODUCTS = (aten.mm, aten.addmm, aten.bmm, aten.baddbmm)
# Nothing of a node goes in by a product, or not at a decision, whose rows are encoded.
WITHOUT_A_FIRST = ("pens alibi", "pens rope", "pens both", "glop", "lehd", "lehd cvrp")


@pytest.fixture
def products(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, torch.dtype]]:
    """Of each product on the GPU, whether it may be in TF32, and the precision of its factors."""
    seen, run = [], pretended._run

    def noting(func: Any, args: Any, kwargs: Any) -> Any:
        if func.overloadpacket in PRODUCTS:
            seen.append((torch.backends.cuda.matmul.allow_tf32, args[-1].dtype))
        return run(func, args, kwargs)

    monkeypatch.setattr(pretended, "_run", noting)
    return seen


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("name", [*PATH, *MULTI_START])
def test_first_and_last_products(
    name: str, precision: str, products: list[tuple[bool, torch.dtype]], monkeypatch: pytest.MonkeyPatch
) -> None:
    net = make(name)
    state = state_of(net)
    with pretended_gpu(monkeypatch):
        devices.claim("cuda", tf32=True)
        net = net.float().to(PLACE)
        floats = torch.float64 if name.startswith("dgl") else torch.float32
        moved = [part.to(floats if part.is_floating_point() else part.dtype).to(PLACE) for part in state]
        with torch.no_grad(), autocast(PLACE, precision):
            logits = decided(net, moved)
        assert torch.backends.cuda.matmul.allow_tf32
    in_tf32, dtypes = zip(*products, strict=True)
    assert logits.dtype == dtypes[-1] == torch.float32
    assert not in_tf32[-1]
    if name not in WITHOUT_A_FIRST:
        assert (in_tf32[0], dtypes[0]) == (False, torch.float32)
    if name != "glop":  # whose decision is three products with one query
        assert any(in_tf32)
