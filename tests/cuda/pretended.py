"""A GPU that is not there: tensors that say they are on one, while their numbers lie in host memory.

Every operation runs on the CPU, on what the tensors hold, so loops end as they do there.  An operation on tensors of
both places raises, as does one that lets the host wait for a value of the device, unless it is one of `READS`.
"""

import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch._dynamo  # which notes torch's functions as it is loaded: those that are not patched
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import neuroute
import neuroute_systems
from neuroute.core import gpus

SOURCES = [Path(package.__file__).parent for package in (neuroute, neuroute_systems)]
PLACE = torch.device("cuda", 0)
aten = torch.ops.aten
# What has as many rows as the device has counted, or is a value: the host waits for it.
WAITS = {aten._local_scalar_dense, aten.nonzero, aten.masked_select, aten.bincount, aten.equal, aten.item}
WAITS |= {aten.is_nonzero, aten.nonzero_numpy, aten.argwhere, aten._unique2, aten.unique_dim, aten.unique_consecutive}

# Where the host may wait for the device, and why.
READS = {
    "decoding.decode:construct": "solutions, once a batch",
    "decoding.cvrp:RouteRollout.done": "routes differ in length; not asked before as many moves as customers",
    "decoding.decode:_solve": "solutions, once a batch and milestone",
    "decoding.decode:solve_in_own_way": "whether numbers are of nodes, once a batch",
    "systems.edge_maps.decoding:_build.<locals>.<genexpr>": "maps, once an instance: searches are on the host",
    "decoding.greedy:check_numbers": "whether scores were numbers, once a construction",
    "decoding.multi_start:multi_start.<locals>.<genexpr>": "solutions, once a batch",
    "systems.glop.decoding:partition": "a partition, once an instance: its routes are for LKH",
    "decoding.revision:revise_batch": "coordinates, once a batch: insertion is on the host",
    "decoding.cvrp_search:rebuild": "lengths of a batch of pieces: the shapes of their decisions",
    "decoding.sampling:Sampled.and_round": "once a round, which is as many decisions as stops",
    "decoding.sampling:bonus": "once a round",
    "decoding.sampling:sample_shortest": "whether scores are finite, once a page of instances",
    "decoding.tsp:TspRollout.solutions": "whether scores were numbers, once a construction",
    "networks.blocks.mixture:_from_chosen": "tokens of each expert, once a layer: the shapes of their products",
    "networks.blocks.mixture:Hierarchical.forward": "which of two layers runs",
    "networks.weights:are_finite": "once a line of the log, and a batch of reinforcement: divergence stops it",
    "networks.weights:checkpoint_bytes": "weights, at the end of a run",
    "networks.weights:weights_digest": "weights, at the end of a run",
    "problems.cvrp_sub_paths:_longest_first": "how many pieces there are, once an iteration",
    "systems.att_gcn.network:AttGcn.sub_graphs": "the nearest nodes, once an instance: the host draws",
    "systems.dgl.training:PoolBatches.train": "the mean length of the pool's tours, once an epoch",
    "systems.dimes.network:follow": "theta, once a step on an instance: its tours are drawn on the host",
    "systems.dimes.network:instance_of": "coordinates and neighbours, once an instance",
    "systems.glop.partitioning:revised_costs": "partitions, once an instance: their routes are inserted on the host",
    "systems.glop.revising:RevisingBatches._begin.<locals>.costs": "lengths that a test compares, once an epoch",
    "systems.glop.revising:RevisingBatches._rebuilt": "revised paths, once a phase: they are kept on the host",
    "systems.htsp.decoding:Episode.__init__": "coordinates, once a batch: tours grow on the host",
    "systems.htsp.decoding:Episode.grow": "actions, once a step: tours grow on the host",
    "systems.htsp.training:JointBatches._deviation": "the deviation of actions, once a batch, of hundreds of updates",
    "systems.htsp.training:JointBatches._learn_upper": "the same, which steers the weight of the entropy",
    "systems.htsp.training:JointBatches._estimate": "values of all steps, once a pass",
    "systems.htsp.training:JointBatches._play_round": "values, once a step of all episodes",
    "training.loop:TrainingLoop._log_loss": "once a line of the log",
    "training.loop:TrainingLoop._save": "the loss so far, with a state",
    "training.self_improvement:ReconstructedSet._improve_part.<locals>.at_hand": "solutions, when they are kept",
    "training.loop:on_host": "weights and moments, with a state",
    "training.self_improvement:SampledTrainingSet._sample": "solutions, once a page of instances",
}


class OnGpu(Tensor):
    """A tensor of the GPU that is not there.  To torch's own code, which may lack CUDA, it lies elsewhere."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> "OnGpu":
        return Tensor._make_wrapper_subclass(  # type: ignore[attr-defined,no-any-return]
            cls, held.shape, strides=held.stride(), storage_offset=held.storage_offset(), dtype=held.dtype, device="cpu"
        )

    def __init__(self, held: Tensor) -> None:
        self.held = held

    @property
    def device(self) -> torch.device:
        return PLACE

    @property
    def is_cuda(self) -> bool:
        return True

    def __repr__(self, **_: Any) -> str:
        return f"OnGpu({self.held})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})

    __torch_function__ = torch._C._disabled_torch_function_impl


class Generator(torch.Generator):
    """One of the GPU draws as one of the CPU does."""

    def __new__(cls, device: Any = "cpu") -> "Generator":
        made: Generator = super().__new__(cls, "cpu")
        made.place = torch.device(device).type
        return made


class _Autocast(torch.autocast):
    """That of the GPU is that of the CPU."""

    def __init__(self, _device: str, dtype: torch.dtype | None = None, *, enabled: bool = True) -> None:
        super().__init__("cpu", dtype, enabled=enabled)


def _of_the_cpu(ask: Callable[[str], Any], _device: str) -> Any:
    return ask("cpu")


class _Made(TorchDispatchMode):
    """What is made on the GPU takes no tensor from there, so only a mode sees it."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


class _Moved(TorchFunctionMode):
    """What torch would take for lying on the CPU already, or for being moved to nowhere else."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        generator = kwargs.get("generator")
        if generator is not None:
            where = kwargs.get("device") or getattr(args[0], "device", None) or "cpu"
            if torch.device(where).type != getattr(generator, "place", "cpu"):
                raise AssertionError(f"{func.__name__} takes a generator of the other device, in {_asker()}")
        if func is Tensor.to:
            asked = (
                torch._C._nn._parse_to(*args[1:], **kwargs) if not _is_like(args) else (args[1].device, args[1].dtype)
            )
            device, dtype = asked[:2]
            # `clip_grad_norm_` moves to where torch itself takes a gradient to lie.
            if sys._getframe(1).f_code.co_filename.endswith("clip_grad.py"):
                return args[0]
            if isinstance(args[0], OnGpu) and device is not None and device.type == "cpu":
                return func(_read("to", args[0]), dtype or args[0].dtype)
            if _is_like(args):
                return func(args[0], device, dtype)
        if func in (Tensor.cpu, Tensor.numpy, Tensor.tolist) and isinstance(args[0], OnGpu):
            held = _read(func.__name__, args[0])
            return held if func is Tensor.cpu else func(held)
        return func(*args, **kwargs)


def _is_like(args: Any) -> bool:
    return len(args) > 1 and isinstance(args[1], Tensor)


def _read(how: str, tensor: OnGpu) -> Tensor:
    _may_wait(how)
    return tensor.held.detach().clone()


@contextmanager
def pretended_gpu(monkeypatch: pytest.MonkeyPatch, count: int = 1) -> Iterator[None]:
    """`count` GPUs of 8 GB while the block runs; all tensors lie on the first."""
    with monkeypatch.context() as patch, tempfile.TemporaryDirectory() as locks:
        patch.setattr(gpus, "LOCKS", Path(locks))
        patch.setattr(gpus, "_open_locks", [])
        gpus.take.cache_clear()
        for name, value in {
            "is_available": lambda: True,
            "device_count": lambda: count,
            "current_device": lambda: 0,
            "is_bf16_supported": lambda *_: True,
            "mem_get_info": lambda *_: (8 * 10**9, 8 * 10**9),
            "get_device_name": lambda *_: "pretended GPU",
            "get_device_capability": lambda *_: (9, 0),
            "get_device_properties": lambda place: SimpleNamespace(uuid=f"pretended-{place}"),
            "max_memory_allocated": lambda *_: 0,
        }.items():
            patch.setattr(torch.cuda, name, value)
        # Builds of torch for CUDA ask the driver for their stream, unless there is nothing to ask.
        patch.setattr(torch.accelerator, "current_accelerator", lambda *_, **__: None)
        patch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
        for name in ("_lazy_init", "set_device", "synchronize", "reset_peak_memory_stats"):
            patch.setattr(torch.cuda, name, lambda *_: None)
        patch.setattr(torch, "Generator", Generator)
        # To torch's own code these tensors lie on the CPU, so what is cast for the GPU is cast as there.
        patch.setattr(torch, "autocast", _Autocast)
        for name in ("is_autocast_enabled", "get_autocast_dtype"):
            patch.setattr(torch, name, partial(_of_the_cpu, getattr(torch, name)))
        torch._C._set_only_lift_cpu_tensors(True)  # `torch.tensor` moves what it has made on the CPU
        tf32 = torch.backends.cuda.matmul.allow_tf32
        # A parameter that is moved is another object: the type says where it lies.
        before = torch.__future__.get_overwrite_module_params_on_conversion()
        torch.__future__.set_overwrite_module_params_on_conversion(True)
        try:
            with _Made(), _Moved():
                yield
        finally:
            for lock in gpus._open_locks:
                lock.close()
            gpus.take.cache_clear()
            torch.backends.cuda.matmul.allow_tf32 = tf32
            torch._C._set_only_lift_cpu_tensors(False)
            torch.__future__.set_overwrite_module_params_on_conversion(before)


def _run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    leaves = list(_leaves((*args, *kwargs.values())))
    there = [x for x in leaves if isinstance(x, OnGpu)]
    here = [x for x in leaves if isinstance(x, Tensor) and not isinstance(x, OnGpu) and x.dim()]
    asked = next((x for x in leaves if isinstance(x, torch.device)), None)
    if there and here and func is not aten.copy_.default:
        raise AssertionError(f"{func} takes tensors of the GPU and of the CPU, in {_asker()}")
    if there and _waits(func, args):
        _may_wait(str(func))
    elif there and asked is None and func._can_decompose():
        return func.decompose(*args, **kwargs)  # what inference mode leaves in one piece; a part of it may wait
    to_gpu = bool(there) or (asked is not None and asked.type == "cuda")
    if func is aten.copy_.default:
        to_gpu = isinstance(args[0], OnGpu)
    own_args, own = _changed(args, _own), {key: _changed(value, _own) for key, value in kwargs.items()}
    same = {id(x.held): x for x in there}  # what is changed in place stays the tensor that it was
    with torch.inference_mode(False), torch.no_grad():  # a tensor that is made within cannot be one's view
        out = func(*own_args, **own)
        if not to_gpu:
            return out
        return _changed(out, lambda x: _wrapped(x, same) if isinstance(x, Tensor) else x)


def _leaves(x: Any) -> Iterator[Any]:
    if isinstance(x, list | tuple):
        for each in x:
            yield from _leaves(each)
    else:
        yield x


def _changed(x: Any, change: Callable[[Any], Any]) -> Any:
    return type(x)([_changed(each, change) for each in x]) if isinstance(x, list | tuple) else change(x)


def _own(x: Any) -> Any:
    if isinstance(x, torch.device):
        return torch.device("cpu")
    return x.held if isinstance(x, OnGpu) else x


def _wrapped(x: Tensor, same: dict[int, OnGpu]) -> OnGpu:
    return same[id(x)] if id(x) in same else OnGpu(x)


def _waits(func: Any, args: Any) -> bool:
    if func is aten.copy_.default:
        return not isinstance(args[0], OnGpu)
    if func.overloadpacket in (aten.index, aten.index_put, aten.index_put_):
        return any(x is not None and x.dtype in (torch.bool, torch.uint8) for x in args[1])
    return func.overloadpacket in WAITS or func is aten.repeat_interleave.Tensor


def _may_wait(what: str) -> None:
    asker = _asker()
    if asker not in READS:
        raise AssertionError(f"{what} lets the host wait for the GPU in {asker}; if it must, say why in READS")


def _asker() -> str:
    """The function of this package that asks, as "decoding.cvrp:RouteRollout.done"."""
    frame = sys._getframe(1)
    while frame is not None and not _sources(frame):
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return "a test"
    (source,) = _sources(frame)
    module = Path("" if source.name == "neuroute" else "systems", Path(frame.f_code.co_filename).relative_to(source))
    # From Python 3.12 on a comprehension has no frame of its own.
    name = re.sub(r"\.<locals>\.<(?:list|dict|set)comp>$", "", frame.f_code.co_qualname)
    return f"{'.'.join(module.with_suffix('').parts)}:{name}"


def _sources(frame: Any) -> list[Path]:
    return [source for source in SOURCES if Path(frame.f_code.co_filename).is_relative_to(source)]
