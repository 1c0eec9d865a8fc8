"""FLOPs and sizes of a described network, without building it."""

from typing import Any

from neuroute.analysis import flops
from neuroute.plan.objects import Network, Run


def _shape(network: Network) -> dict[str, Any]:
    return {k: network.arguments[k] for k in ("depth", "width", "heads")} | {
        "gate": network.arguments.get("gate", True)
    }


def parameters_of(network: Network) -> int:
    """Trainable parameters."""
    a = network.arguments
    return flops.parameters(a["depth"], a["width"], gate=a.get("gate", True), rezero=a.get("rezero", True))


def per_solution(network: Network, nodes: int, beam: int = 1) -> dict[str, float]:
    """GFLOPs of one solution: as the paper counts (Table 17), and as computed on the shrinking set."""
    shape = _shape(network)
    return {
        "gflops_paper": flops.beam_flops_paper(**shape, nodes=nodes, beam=beam) / 1e9,
        "gflops_shrinking": flops.beam_flops(**shape, nodes=nodes, beam=beam) / 1e9,
    }


def training_per_sample(run: Run) -> float:
    """FLOPs of one training instance, forward and backward."""
    return flops.training_flops_per_sample(**_shape(run.network), nodes=run.n, step=run.training.step)
