"""Whether what a network makes of an instance hangs on what else is in its batch (MVMoE's gates, Appendix B.4)."""

from torch import nn

from neuroute.networks.gates import Gate
from neuroute.networks.hierarchical_gate import Hierarchical
from neuroute.networks.norms import UntrackedBatchNorm


def mixes(net: nn.Module) -> bool:
    """In evaluation: by gates that draw, that choose for all of a batch or among all of it, or by a norm over it.

    Noisy input choice of single nodes or instances, the default, is neither noisy nor does it mix in evaluation.
    """
    return any(_mixes(module) for module in net.modules())


def _mixes(module: nn.Module) -> bool:
    if isinstance(module, Gate):
        return module.method != "input-choice" or module.level == "problem"
    return isinstance(module, Hierarchical | UntrackedBatchNorm)
