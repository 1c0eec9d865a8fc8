"""`config.yaml` and the scale files as typed models: read, merged and checked before any job starts."""

import os
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, Field, ValidationError

from neuroute.core.errors import NeurouteError
from neuroute.papers.icam.scale import IcamScale
from neuroute.papers.mvmoe.scale import MvmoeScale
from neuroute.papers.pens.scale import PensScale, PensShape
from neuroute.papers.scaling.scale import ScalingScale
from neuroute.papers.sit.scale import SitScale
from neuroute.plan.scale import Scale, ScalePart
from neuroute.plan.shapes import BaselineShape, DeepNarrow, Shape, TrainingChange, TrainingScale
from neuroute.plan.specs import Spec as Strict

__all__ = [
    "BaselineShape",
    "Config",
    "DeepNarrow",
    "IcamScale",
    "MvmoeScale",
    "PensScale",
    "PensShape",
    "Scale",
    "ScalePart",
    "ScalingScale",
    "Shape",
    "SitScale",
    "TrainingScale",
    "load_config",
    "load_scale",
    "parse_config",
    "validated",
]

M = TypeVar("M", bound=BaseModel)
Paper = Literal["scaling", "pens", "sit", "icam", "mvmoe"]
CONFIG_ENV = "NEUROUTE_CONFIG"  # the Snakefile hands its merged config to the jobs it starts


class RunChange(Strict):
    """Changes to one run: `runs: {scaling/base_6x128: {seed: 1, training: {learning_rate: 2.0e-4}}}`."""

    seed: Annotated[int, Field(ge=0, lt=2**20)] | None = None
    training: TrainingChange = TrainingChange()


class Machine(Strict):
    """Sustained rates that `neuroute plan` turns FLOPs into hours with; measure yours with `make bench`."""

    cpu_gflops_per_thread: Annotated[float, Field(gt=0)] = 50.0
    gpu_tflops: Annotated[float, Field(gt=0)] = 60.0


class Config(Strict):
    """The user's choices: what to run, at which scale, on what."""

    scale: Annotated[str, Field(description="a file in workflow/scales, without .yaml")] = "smoke"
    papers: Annotated[list[Paper], Field(min_length=1)] = ["scaling", "pens", "sit", "icam", "mvmoe"]
    device: Annotated[
        Literal["auto", "cpu", "cuda"], Field(description="auto: CUDA where there is a GPU, else CPU")
    ] = "auto"
    gpus_per_run: Annotated[int, Field(ge=1, description="more than one: torchrun with DDP")] = 1
    compile: Annotated[bool, Field(description="torch.compile the networks while training")] = False
    memory_gb: Annotated[
        float | None,
        Field(
            gt=0,
            allow_inf_nan=False,
            description="for a job's activations; null: 4 on CPU, 60 % of what a GPU has free",
        ),
    ] = None
    label_workers: Annotated[int | None, Field(ge=1, description="solver processes per label job; null: all cores")] = (
        None
    )
    label_caches: Annotated[list[str], Field(description="folders with label shards to reuse")] = []
    benchmarks_dir: Annotated[
        str | None, Field(description="a local copy of TSPLIB (its folder or the one above); null: download it")
    ] = None
    testsets_dir: Annotated[str | None, Field(description="folder of test sets (.npz) to evaluate by name")] = None
    tensorboard: Annotated[bool, Field(description="also write TensorBoard event files")] = False
    work_dir: str = "work"
    results_dir: str = "results"
    machine: Machine = Machine()
    runs: Annotated[dict[str, RunChange], Field(description="changes to single runs, by id")] = {}


def _first_error(error: ValidationError, where: str) -> NeurouteError:
    detail = error.errors()[0]
    path = ".".join(str(p) for p in detail["loc"] if p != "[key]")
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "extra_forbidden":
        message = "unknown key"
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return NeurouteError(f"{where}: {path or 'top level'}: {message}{more}; see workflow/schemas for what is allowed")


def validated(kind: type[M], values: dict[str, Any], where: str) -> M:
    """`values` as a model.  Raises NeurouteError that names `where` and the first wrong key."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise _first_error(error, where) from None


def parse_config(values: dict[str, Any], where: str = "config.yaml") -> Config:
    return validated(Config, values, where)


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(path.read_text())
    except FileNotFoundError:
        raise NeurouteError(f"{path}: no such file; run from the folder that holds the Snakefile") from None
    except OSError as error:
        raise NeurouteError(f"{path}: cannot be read ({error.strerror})") from None
    except yaml.YAMLError as error:
        raise NeurouteError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise NeurouteError(f"{path}: expected a mapping of keys to values")
    return values


def load_config(path: Path | None = None, **overrides: Any) -> Config:
    """The config of this process: an explicit file, else what the Snakefile handed down, else ./config.yaml."""
    if path is None and CONFIG_ENV in os.environ:
        values, where = yaml.safe_load(os.environ[CONFIG_ENV]), f"${CONFIG_ENV}"
    else:
        path = path or Path("config.yaml")
        values, where = _read_yaml(path), str(path)
    values |= {key: value for key, value in overrides.items() if value is not None}
    return parse_config(values, where)


def scales_dir() -> Path:
    """`workflow/scales` of the checkout that this package is installed from, or of the current folder."""
    for root in (Path.cwd(), Path(__file__).resolve().parents[3]):
        if (root / "workflow" / "scales").is_dir():
            return root / "workflow" / "scales"
    raise NeurouteError("workflow/scales not found; run from the folder that holds the Snakefile")


def load_scale(name: str) -> Scale:
    """A scale by name (a file in workflow/scales) or by path (ends in .yaml)."""
    path = Path(name) if name.endswith(".yaml") else scales_dir() / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in scales_dir().glob("*.yaml")))
        raise NeurouteError(f"scale '{name}': no file {path}; known scales: {known}")
    return validated(Scale, _read_yaml(path), str(path))
