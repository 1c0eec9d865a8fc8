"""What the end of each stage leaves: weights to measure and to start from, and the moments that Adam has of them.

A checkpoint `x.safetensors` may have moments beside it, in `x.moments.safetensors`; a run that starts from it goes on
with them (icam: only the rate changes with stage 3).
"""

import logging
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_whole
from neuroute.networks.tensor_files import read_tensors
from neuroute.networks.weights import save_checkpoint
from neuroute.specs.reinforced import Reinforced
from neuroute.training.loop import load_whole, on_host

log = logging.getLogger("neuroute.train")


def keep_stage(state: Path, stage: str, net: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """In the folder that survives a kill, moments as "<parameter>/<what>".  A stage that ends twice ends the same."""
    states = {name: optimizer.state.get(parameter, {}) for name, parameter in net.named_parameters()}
    moments = {f"{name}/{key}": torch.as_tensor(each) for name, of in states.items() for key, each in of.items()}
    content = on_host({"net": net.state_dict(), "moments": moments})
    write_whole(_stage_file(state, stage), lambda file: torch.save(content, file))


def export_stages(training: Reinforced, state: Path, out: Path, net: nn.Module, about: dict[str, Any]) -> None:
    """Checkpoints `stages/<stage>.safetensors` of all stages but the last, whose is model.safetensors, and moments of
    all.

    `net` is used to hold the weights, and holds those of the last stage in the end.
    """
    for stage in training.stages:
        file = _stage_file(state, stage.name)
        try:
            content = load_whole(file)
        except Exception as error:
            raise NeurouteError(
                f"{file}: unreadable end of a stage ({error}); delete the folder above it to train anew"
            ) from None
        net.load_state_dict(content["net"])
        path = out / "model.safetensors"
        if stage is not training.stages[-1]:
            path = out / "stages" / f"{stage.name}.safetensors"
            save_checkpoint(path, net, {**about, "stage": stage.name})
        data = save({name: tensor.cpu().contiguous() for name, tensor in content["moments"].items()})
        write_whole(beside(path), lambda file, data=data: file.write(data))  # type: ignore[misc]


def beside(checkpoint: Path) -> Path:
    """Where a checkpoint's moments lie."""
    return checkpoint.with_suffix(".moments.safetensors")


def recall_moments(checkpoint: Path, net: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Go on with the moments beside a checkpoint; without any, the optimizer starts anew.

    Raises NeurouteError for moments of other parameters.
    """
    path = beside(checkpoint)
    if not path.exists():
        log.info("%s has no moments beside it; the optimizer starts anew", checkpoint)
        return
    parameters = dict(net.named_parameters())
    state: dict[str, dict[str, Tensor]] = {}
    for key, value in read_tensors(path).items():
        name, _, what = key.rpartition("/")
        if name not in parameters or (value.ndim and value.shape != parameters[name].shape):
            raise NeurouteError(f"{path}: '{key}' does not fit this network; delete it to start the optimizer anew")
        state.setdefault(name, {})[what] = value
    by_number = {number: state[name] for number, name in enumerate(parameters) if name in state}
    optimizer.load_state_dict({"state": by_number, "param_groups": optimizer.state_dict()["param_groups"]})


def _stage_file(state: Path, stage: str) -> Path:
    return state / "stages" / f"{stage}.pt"
