"""What the end of each stage leaves: weights to measure and to start from, and the moments that Adam has of them.

They lie in one file (`networks/stage_files.py`).  A run that starts from a stage goes on with its moments (icam: only
the rate changes with stage 3).
"""

import logging
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_whole
from neuroute.networks.stage_files import LAST
from neuroute.networks.tensor_files import read_tensors
from neuroute.networks.weights import checkpoint_bytes
from neuroute.specs.reinforced import Reinforced
from neuroute.training.loop import load_whole, on_host

log = logging.getLogger("neuroute.train")


def keep_stage(state: Path, stage: str, net: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """In the folder that survives a kill, moments as "<parameter>/<what>".  A stage that ends twice ends the same."""
    states = {name: optimizer.state.get(parameter, {}) for name, parameter in net.named_parameters()}
    moments = {f"{name}/{key}": torch.as_tensor(each) for name, of in states.items() for key, each in of.items()}
    content = on_host({"net": net.state_dict(), "moments": moments})
    write_whole(_stage_file(state, stage), lambda file: torch.save(content, file))


def stage_ends(training: Reinforced, state: Path, net: nn.Module, about: dict[str, Any]) -> dict[str, bytes]:
    """Files of the ends of all stages, by name.

    `net` is used to hold the weights, and holds those of the last stage in the end.
    """
    files: dict[str, bytes] = {}
    for stage in training.stages:
        file = _stage_file(state, stage.name)
        try:
            content = load_whole(file)
        except Exception as error:
            raise NeurouteError(
                f"{file}: unreadable end of a stage ({error}); delete the folder above it to train anew"
            ) from None
        net.load_state_dict(content["net"])
        name = LAST if stage is training.stages[-1] else stage.name
        if name != LAST:
            files[f"{name}.safetensors"] = checkpoint_bytes(net, {**about, "stage": name})
        files[f"{name}.moments.safetensors"] = save(
            {key: tensor.cpu().contiguous() for key, tensor in content["moments"].items()}
        )
    return files


def recall_moments(path: Path, net: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Go on with the moments of a stage's end; where there are none, the optimizer starts anew.

    Raises NeurouteError for moments of other parameters.
    """
    if not path.exists():
        log.info("the weights that this run starts from have no moments beside them; the optimizer starts anew")
        return
    parameters = dict(net.named_parameters())
    state: dict[str, dict[str, Tensor]] = {}
    for key, value in read_tensors(path).items():
        name, _, what = key.rpartition("/")
        if name not in parameters or (value.ndim and value.shape != parameters[name].shape):
            raise NeurouteError(f"{path.name}: '{key}' does not fit this network; let the run start `fresh`")
        state.setdefault(name, {})[what] = value
    by_number = {number: state[name] for number, name in enumerate(parameters) if name in state}
    optimizer.load_state_dict({"state": by_number, "param_groups": optimizer.state_dict()["param_groups"]})


def _stage_file(state: Path, stage: str) -> Path:
    return state / "stages" / f"{stage}.pt"
