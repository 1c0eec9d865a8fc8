"""What a live network is made of, for drawings of it (`rendering.modules` reads it)."""

from typing import Any

from torch import nn

from neuroute.networks.weights import parameters


def modules(net: nn.Module, layers: str) -> list[dict[str, Any]]:
    """{"name", "kind", "shapes": {parameter: shape}} of the network itself (name "") and its modules, in order.

    `layers` is the name of the list of its layers, of which the first stands for all; its entry says how many these
    are ("copies").  The last entry is {"parameters": total}.
    """
    first, found = f"{layers}.0", []
    for name, module in net.named_modules():
        if name.startswith(f"{layers}.") and name != first and not name.startswith(f"{first}."):
            continue
        shapes = {key: list(p.shape) for key, p in module.named_parameters(recurse=False)}
        entry = {"name": name, "kind": type(module).__name__, "shapes": shapes}
        found.append(entry | ({"copies": len(module)} if isinstance(module, nn.ModuleList) else {}))
    return [*found, {"parameters": parameters(net)}]
