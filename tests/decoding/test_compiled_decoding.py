"""What compiled networks decode, and which parts of them would become CUDA graphs, by stand-ins for torch.compile."""

import logging
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from networks import MULTI_START, PATH, awake, make
from neuroute.datasets.streams import cvrp_dataset
from neuroute.datasets.vrp_stream import vrp_dataset
from neuroute.decoding import compiled as compiling
from neuroute.decoding.compiled import PARTS, compiled, describe_device, replays
from neuroute.decoding.decode import decode
from neuroute.networks.base import RoutingNetwork
from neuroute.networks.mvmoe import MvMoe
from neuroute.plan.objects import Dataset, Decoding
from neuroute.problems.vrp import Vrp
from neuroute.systems.mdam.network import Mdam

pytestmark = pytest.mark.usefixtures("one_thread")
CPU, GPU = torch.device("cpu"), torch.device("cuda")
MANY = Decoding(starts="all", augment=True)
RRC = Decoding(method="rrc", iterations=1)
WAYS = {"pomo": MANY, "pointerformer": MANY, "elg": RRC, "lehd": Decoding()}
STARTS = Decoding(starts="all")
CAPTURED = {"icam 11": STARTS, "icam cvrp 11": STARTS}
CAPTURED |= dict.fromkeys(("decoder-only", "lehd cvrp", "pens both", "sit", "dgl", "bq"), Decoding())


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What was compiled for one test, and whether torch can, is of no use to the next."""
    compiling.can_compile.cache_clear()
    yield
    compiling.can_compile.cache_clear()
    torch.compiler.reset()


def instances(problem: str, n: int, count: int) -> Any:
    if problem == "tsp":
        return np.random.default_rng(3).random((count, n, 2))
    one = cvrp_dataset(Dataset(problem="cvrp", n=n, count=count))
    return Vrp(one.coords.astype(np.float64), one.demand, one.capacity)  # so that rounding decides nothing


def alike(net: RoutingNetwork, how: Decoding, *all_instances: Any) -> None:
    twin = compiled(net, CPU)
    assert twin is not net
    for given in all_instances:
        assert torch.equal(decode(net.problem, twin, given, how), decode(net.problem, net, given, how))


def alike_in_sizes(name: str) -> None:
    """Two sizes, the second of which has to do with what was compiled for the first, and a single instance."""
    net = make(name)
    alike(net, WAYS[name], *(instances(net.problem, n, count) for n, count in ((8, 3), (9, 2), (9, 1))))


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_what_is_traced_decodes_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    alike_in_sizes(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", CAPTURED)
def test_what_is_captured_decodes_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    net = make(name)
    alike(net, CAPTURED[name], instances(net.problem, 8, 3))


@pytest.mark.slow
@pytest.mark.parametrize("experts", [0, 4])
def test_what_is_captured_of_16_problems_decodes_alike(experts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    net = awake(MvMoe, depth=1, width=16, heads=2, feed_forward=24, experts=experts).float()
    alike(net, STARTS, vrp_dataset(Dataset(problem="vrp", variant="OVRPBLTW", n=7, count=3)))


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("c++") or shutil.which("g++")), reason="no C++ compiler")
@pytest.mark.parametrize("name", ["pomo"])
def test_compiled_code_decodes_alike(name: str) -> None:
    alike_in_sizes(name)


# -- CUDA graphs ----------------------------------------------------------------------------------------------------


def replay(part: Callable[..., Any], *, dynamic: bool, mode: str = "default") -> Callable[..., Any]:
    """torch.compile for a GPU: a graph has one place for what it returns, where each replay leaves it."""
    assert dynamic
    if mode == "default":
        return part
    assert mode == "reduce-overhead"
    places: dict[torch.Size, Tensor] = {}

    def run(*state: Any) -> Tensor:
        assert not torch.is_grad_enabled()
        found = part(*state)
        return places.setdefault(found.shape, torch.empty_like(found)).copy_(found)

    return run


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "can_compile", lambda device: device == "cuda")
    monkeypatch.setattr(torch, "compile", replay)


@pytest.mark.usefixtures("on_gpu")
@pytest.mark.parametrize("name", MULTI_START)
def test_what_a_replay_overwrites_has_been_copied(name: str) -> None:
    net = make(name)
    twin, given = compiled(net, GPU), instances(net.problem, 8, 3)
    assert torch.equal(decode(net.problem, twin, given, MANY), decode(net.problem, net, given, MANY))


@pytest.mark.usefixtures("on_gpu")
def test_what_is_learnt_from_is_not_replayed() -> None:
    net = make("pomo")
    twin, coords = compiled(net, GPU), torch.rand(2, 9, 2, dtype=torch.float64)
    state = torch.arange(3).expand(2, -1), torch.arange(3).expand(2, -1), torch.zeros(2, 3, 9, dtype=torch.float64)
    twin.decide(twin.prepare(twin.encode(coords)), *state).sum().backward()
    assert all(p.grad is not None for p in net.parameters() if p.requires_grad)


def parts(net: RoutingNetwork, place: torch.device) -> set[str]:
    return {name for name in PARTS if replays(net, name, place)}


def test_decisions_of_many_starts_become_graphs_on_a_gpu() -> None:
    for name in (*PATH, *MULTI_START):
        assert parts(make(name), GPU) == ({"decide", "decide_best"} if name in MULTI_START else set()), name
        assert parts(make(name), CPU) == set()


@pytest.mark.parametrize(
    ("way", "graphs"),
    [
        ({}, True),
        ({"experts": 0}, True),
        ({"hierarchy": "step"}, False),
        ({"method": "random"}, False),
        ({"method": "expert-choice"}, False),
        ({"level": "problem"}, False),
    ],
    ids=str,
)
def test_gates_that_draw_or_choose_for_all_of_a_batch_are_no_graphs(way: dict[str, Any], graphs: bool) -> None:
    net = awake(MvMoe, depth=1, width=16, heads=2, feed_forward=24, **way)
    assert bool(parts(net, GPU)) == graphs


# -- where nothing is compiled --------------------------------------------------------------------------------------


def test_without_a_compiler_one_line_says_so(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def fails(_part: object, **_how: object) -> Any:
        raise RuntimeError("\nNo working C++ compiler found\nmore")

    monkeypatch.setattr(torch, "compile", fails)
    net = make("pomo")
    with caplog.at_level(logging.WARNING):
        assert compiled(net, CPU) is net
        assert compiled(net, CPU) is net
    assert [record.getMessage() for record in caplog.records] == [
        "`compile`: torch cannot compile for cpu here (No working C++ compiler found); networks run as they are"
    ]
    assert ", compiled" not in describe_device(net, CPU)


@pytest.mark.usefixtures("on_gpu")
def test_networks_with_a_way_of_their_own_stay_as_they_are() -> None:
    net = Mdam(depth=1, width=16, heads=2, feed_forward=16)
    assert compiled(net, GPU) is net


@pytest.mark.usefixtures("on_gpu")
def test_records_say_that_a_network_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling.devices, "name", lambda place: "GPU")
    net = make("pomo")
    assert describe_device(compiled(net, GPU), GPU) == "GPU, compiled"
    assert describe_device(net, GPU) == "GPU"
    assert "decide" not in vars(net)
