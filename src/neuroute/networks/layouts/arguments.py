"""What the tensors of a network, under our names, tell of its arguments."""

from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor

from neuroute.networks.layouts.tables import layouts
from neuroute.networks.mvmoe import ALL, POSITIONS

Tensors = Mapping[str, Tensor]
# Whether customers come with windows, and how many numbers of a route a decision reads -> the variants that do.
INPUTS = {
    (False, 1): ("CVRP",),
    (False, 2): ("OVRP", "VRPL"),
    (False, 3): ("OVRPL",),
    (True, 2): ("VRPTW",),
    (True, 3): ("OVRPTW", "VRPLTW"),
    (True, 4): (ALL,),
}


def read_arguments(network: str, tensors: Tensors) -> dict[str, Any]:
    """Return what tensors tell: depth and width, and what else the network (module:Class) has of its own.

    Raises KeyError or IndexError if a tensor is missing, or has fewer axes, that would tell.
    """
    module = network.partition(":")[0].rpartition(".")[2]
    readers = {"sit": _sit, "icam": _icam, "mvmoe": _mvmoe, "decoder_only": _decoder_only}
    of_layout = next((layout.read for layout in layouts() if layout.kind == network), None)
    return (of_layout or readers.get(module, residual))(tensors)


def unsettled(network: str, tensors: Tensors) -> tuple[str, ...]:
    """Variants that have the same tensors, where these are of one VRP and do not tell of which."""
    if not network.endswith(":MvMoe"):
        return ()
    variants = INPUTS.get(_inputs(tensors), ())
    return variants if len(variants) > 1 else ()


def residual(tensors: Tensors) -> dict[str, Any]:
    """LEHD, BQ, POMO."""
    width = len(tensors["key_value.weight"]) // 2 if "key_value.weight" in tensors else len(tensors["embed.weight"])
    return {"depth": depth_of(tensors, "layers"), "width": width, "feed_forward": len(tensors["layers.0.up.weight"])}


def _decoder_only(tensors: Tensors) -> dict[str, Any]:
    flags = {"gate": "layers.0.gate.weight" in tensors, "rezero": "layers.0.alpha1" in tensors}
    return {"depth": depth_of(tensors, "layers"), "width": len(tensors["embed.weight"])} | flags


def _sit(tensors: Tensors) -> dict[str, Any]:
    width, cross = len(tensors["embed.weight"]), "decoder.layers.0.gather.up.weight" in tensors
    return {
        "depth": depth_of(tensors, "decoder.layers"),
        "width": width,
        "feed_forward": len(tensors[f"decoder.layers.0.{'gather.' * cross}up.weight"]),
        "representatives": len(tensors["decoder.current.weight"]) // width,
        "attention": "cross" if cross else "self",
    }


def _icam(tensors: Tensors) -> dict[str, Any]:
    has = {"adaptation": "alpha" in tensors, "compatibility": "compatibility_alpha" in tensors}
    return residual(tensors) | has


def _mvmoe(tensors: Tensors) -> dict[str, Any]:
    depth, width = depth_of(tensors, "layers"), len(tensors["key_value.weight"]) // 2
    arguments: dict[str, Any] = {"depth": depth, "width": width, "experts": 0}
    mixed = {f"enc{i}": f"layers.{i}.mixture.experts.up.weight" for i in range(depth)}
    mixed |= {"raw": "embed.depot.experts.weight", "dec": "combine.experts.weight"}
    if "combine.sparse.experts.weight" in tensors:
        mixed["dec"] = "combine.sparse.experts.weight"
    experts = {place: tensors[name] for place, name in mixed.items() if name in tensors}
    if experts:
        places = set(experts)
        layers = {f"enc{i}" for i in range(depth)}
        if layers <= places:
            places = (places - layers) | {POSITIONS[0]}
        positions = sorted(places, key=lambda place: (place == "dec", place != "raw", place))
        arguments |= {"experts": len(next(iter(experts.values()))), "positions": positions}
    for i in range(depth):
        if f"layers.{i}.up.weight" in tensors:
            arguments["feed_forward"] = len(tensors[f"layers.{i}.up.weight"])
        elif f"enc{i}" in experts:
            arguments["feed_forward"] = experts[f"enc{i}"].shape[1]
    variants = INPUTS.get(_inputs(tensors), ())
    return arguments | ({"inputs": variants[0]} if len(variants) == 1 else {})


def _inputs(tensors: Tensors) -> tuple[bool, int]:
    of_experts, project = "embed.customers.experts.weight", tensors["context.project.weight"]
    customers = tensors[of_experts if of_experts in tensors else "embed.customers.weight"]
    return customers.shape[-1] == 5, project.shape[1] - project.shape[0]


def depth_of(names: Iterable[str], stem: str) -> int:
    """Number of layers `<stem>.<i>.` among the names."""
    start = f"{stem}."
    return len({name.removeprefix(start).partition(".")[0] for name in names if name.startswith(start)})
