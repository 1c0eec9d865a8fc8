"""Small float64 networks of every kind, whose parameters have left their initial values, and what they decide on."""

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from neuroute import networks
from neuroute.core.dotted import packages, parts
from neuroute.networks.base import MultiStartNetwork, PathNetwork, RoutingNetwork
from neuroute.networks.bq import Bq, BqCvrp
from neuroute.networks.decoder_only import DecoderOnly
from neuroute.networks.icam import Icam, IcamCvrp
from neuroute.networks.lehd import Lehd, LehdCvrp
from neuroute.networks.mvmoe import MvMoe
from neuroute.networks.pens import Pens
from neuroute.networks.pomo import Pomo, PomoCvrp
from neuroute.networks.sit import Sit, SitCvrp
from neuroute_systems.dgl.network import Dgl
from neuroute_systems.elg.network import Elg, ElgCvrp
from neuroute_systems.glop.network import Glop
from neuroute_systems.invit.network import Invit, InvitCvrp
from neuroute_systems.pointerformer.network import Pointerformer

SHAPE: dict[str, Any] = {"depth": 2, "width": 24, "heads": 3, "feed_forward": 40}
DEEPER = SHAPE | {"depth": 3}
# Heads times representatives: less than the width, so that many tokens are not projected (SIT: long streams are
# folded); and more, so that all are.
FOLDING = {"representatives": 4}
PLAIN = {"width": 12, "feed_forward": 20, "representatives": 15}
CROSS = {"attention": "cross"}

PATH: Mapping[str, tuple[type[PathNetwork], dict[str, Any]]] = {
    "decoder-only": (DecoderOnly, {"depth": 3, "width": 32, "heads": 4}),
    "bq": (Bq, DEEPER),
    "lehd": (Lehd, DEEPER),
    "glop": (Glop, SHAPE | {"blocks": (30,)}),
    "dgl": (Dgl, DEEPER | {"nearest": 25}),
    "dgl near": (Dgl, SHAPE | {"nearest": 5}),
    **{f"pens {p}": (Pens, DEEPER | {"positions": p, "train_nodes": 20}) for p in ("alibi", "rope", "both")},
    "pens coordinates": (Pens, DEEPER | {"positions": "coordinates", "train_nodes": 20}),
    "sit": (Sit, DEEPER | FOLDING),
    "sit plain": (Sit, SHAPE | PLAIN),
    "sit self": (Sit, DEEPER | FOLDING | {"attention": "self"}),
    "bq cvrp": (BqCvrp, SHAPE),
    "bq cvrp cross": (BqCvrp, SHAPE | FOLDING | CROSS),
    "bq cvrp plain": (BqCvrp, SHAPE | PLAIN | CROSS),
    "lehd cvrp": (LehdCvrp, {"depth": 2, "width": 16, "heads": 4, "feed_forward": 24}),
    "sit cvrp": (SitCvrp, SHAPE | FOLDING),
    "sit cvrp plain": (SitCvrp, SHAPE | PLAIN),
    "sit cvrp self": (SitCvrp, SHAPE | FOLDING | {"attention": "self"}),
}
TSP = [name for name, (kind, _) in PATH.items() if kind.problem == "tsp"]
CVRP = [name for name, (kind, _) in PATH.items() if kind.problem == "cvrp"]

SWITCHES = [(True, True), (True, False), (False, True), (False, False)]  # adaptation, compatibility: icam, Table 9
WITHOUT_HEADS = {"depth": 2, "width": 32, "feed_forward": 40}  # as wide as compiled decisions take
MULTI_START: Mapping[str, tuple[type[MultiStartNetwork], dict[str, Any]]] = {
    "pomo": (Pomo, SHAPE),
    "pomo cvrp": (PomoCvrp, SHAPE),
    "pointerformer": (Pointerformer, SHAPE),
    "elg": (Elg, SHAPE | {"neighbours": 3}),
    "elg cvrp": (ElgCvrp, SHAPE | {"neighbours": 3}),
    "elg alone": (Elg, SHAPE | {"neighbours": 3, "local": False}),
    **{
        f"{name} {int(a)}{int(c)}": (kind, WITHOUT_HEADS | {"adaptation": a, "compatibility": c})
        for name, kind in (("icam", Icam), ("icam cvrp", IcamCvrp))
        for a, c in SWITCHES
    },
    **{
        name: (kind, SHAPE | {"depth": 1, "views": (10, 12), "actions": 9})
        for name, kind in (("invit", Invit), ("invit cvrp", InvitCvrp))
    },
}
VRP: Mapping[str, tuple[type[MultiStartNetwork], dict[str, Any]]] = {
    "mvmoe": (MvMoe, SHAPE),
    "pomo-mtl": (MvMoe, SHAPE | {"experts": 0}),
}
MIXTURES: list[dict[str, Any]] = [  # what differs from MVMoE/4E
    {},
    {"positions": ["raw", "enc1", "dec"]},
    {"top": 1},
    {"level": "instance"},
    {"level": "problem"},
    {"method": "random"},
    {"method": "expert-choice"},
    {"method": "soft"},
    {"decoder_method": "soft"},
    {"hierarchy": "step"},
    {"hierarchy": "episode"},
    {"hierarchy": "random"},
    {"norm": "batch"},
]
N = 9  # nodes of an instance for networks of many starts


def make(name: str, **changes: Any) -> Any:
    """The network of that name; ReZero factors, alphas, norms and biases that start at 0 or 1 are elsewhere."""
    kind, arguments = {**PATH, **MULTI_START, **VRP}[name]
    return awake(kind, **arguments | changes)


def awake(kind: type[Any], **arguments: Any) -> Any:
    torch.manual_seed(0)
    net = kind(**arguments).double().eval()
    for name, p in net.named_parameters():
        if kind is Pens:
            p.data += 0.1 * torch.randn_like(p)
        elif "norm" in name or name.endswith("alpha"):
            p.data.normal_(1.0, 0.3)
        elif kind is MvMoe and "gate" in name:
            p.data.normal_(0.0, 0.5)
        elif "alpha" in name:
            p.data.uniform_(0.4, 0.8).mul_(-1 if name.endswith("2") else 1)
        elif name.endswith(("value_bias", "key_value_bias")):
            p.data.normal_()
    return net


def decision(net: PathNetwork, batch: int = 6, rows: int = 20, capacity: float = 2.0) -> tuple[Tensor, ...]:
    """Rows [current, available..., destination]; of the CVRP what is left in the vehicle too, in which all fit."""
    torch.manual_seed(1)
    coords = torch.rand(batch, rows, 2, dtype=torch.float64)
    if net.problem == "tsp":
        seen = net.encode(coords).detach()
        net.arrive(seen)
        return (seen,)
    demand = torch.rand(batch, rows, dtype=torch.float64)
    demand[:, 0] = 0
    left = capacity - torch.rand(batch, dtype=torch.float64)
    return net.encode(coords, demand).detach().roll(-1, dims=1), left


def without_gradients(net: PathNetwork, *seen: Any) -> Tensor:
    with torch.inference_mode():
        return net.decide(*seen).clone()


def features(net: MultiStartNetwork, batch: int = 2) -> tuple[Tensor, ...]:
    """coords; demand too but for the TSP; windows too for the VRPs."""
    torch.manual_seed(1)
    coords = torch.rand(batch, N, 2, dtype=torch.float64)
    demand = torch.randint(1, 10, (batch, N)).double() / 20
    demand[:, 0] = 0
    read = {"tsp": (coords,), "cvrp": (coords, demand), "vrp": (coords, demand, torch.rand_like(coords))}
    return read[net.problem]


def midway(net: MultiStartNetwork, batch: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Where three tours began or what is known of them, where they are, and -inf at what they have visited.

    What is left comes with that where the network reads what has been served.
    """
    torch.manual_seed(2)
    tours = torch.stack([torch.stack([torch.randperm(N)[:4] for _ in range(3)]) for _ in range(batch)])
    closed = torch.zeros(batch, 3, N, dtype=torch.float64).scatter(2, tours, -torch.inf)
    known = tours[..., 0] if net.problem == "tsp" else torch.rand(batch, 3, dtype=torch.float64)
    if net.problem == "vrp":
        known = torch.rand(batch, 3, 4, dtype=torch.float64)
    if net.sees_served:
        known = torch.cat([known[..., None], closed], dim=-1)
    return known, tours[..., -1], closed


PART = "neuroute_systems.htsp.network:PathPomo"  # of a network, which is trained and decoded through that


def every_network() -> set[str]:
    """All kinds of networks that there are."""
    names = [f"{networks.__name__}.{found.name}" for found in pkgutil.iter_modules(networks.__path__)]
    names += [f"{packages()[system]}.network" for system, _ in parts("system", "SYSTEM")]  # others are not trained
    modules = [importlib.import_module(name) for name in names]
    classes = {value for module in modules for value in vars(module).values() if isinstance(value, type)}
    return {
        f"{kind.__module__}:{kind.__name__}"
        for kind in classes
        if issubclass(kind, RoutingNetwork) and not inspect.isabstract(kind)
    } - {PART}


def idle(net: torch.nn.Module) -> set[str]:
    """Parameters that a backward pass has left without a gradient."""
    return {name for name, p in net.named_parameters() if p.grad is None or not p.grad.any()}
