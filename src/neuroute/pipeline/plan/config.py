"""`config.yaml` as a typed model: read, merged and checked before any job starts, against this machine, too."""

import os
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, create_model, field_validator, model_validator

from neuroute.core import gpus as here
from neuroute.core.dotted import BESIDE, entries, how_to_get, load
from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.core.files import check_folder
from neuroute.core.job import CONFIG_ENV, FOLDERS, ROOT_ENV
from neuroute.core.yaml_files import parse_yaml, read_yaml, set_key, validate, with_exponents
from neuroute.pipeline.plan.paper import add_folders, all_papers, load_paper, paper_folders
from neuroute.pipeline.plan.scale import Scale, ScaleFile, load_scale
from neuroute.pipeline.plan.shapes import Sweep, TrainingChange
from neuroute.solvers.registry import SOLVERS
from neuroute.specs.data import Spec as Strict
from neuroute.specs.objects import LAST_SEED

__all__ = ["CONFIG_ENV", "Config", "Scale", "load_config", "load_scale", "parse_config", "schemas"]

PLANNED_ENV = "NEUROUTE_PLANNED"  # the Snakefile names a file with what it goes by: spec and code of each job


class RunChange(Strict):
    """Changes to one run: `runs: {scaling/base_6x128: {seed: 1, training: {learning_rate: 2.0e-4}}}`."""

    seed: Annotated[int, Field(ge=0, le=LAST_SEED)] | None = None
    seeds: Annotated[
        int | None,
        Field(
            ge=1,
            le=1000,
            description="trainings that differ by their seed, <run>, <run>-s1, ...; tables and figures show their mean "
            "and range; null: as many as the scale says",
        ),
    ] = None
    network: Annotated[
        str | None, Field(pattern=r"^[\w.]+:\w+$", description="module:Class, here or in a module beside the Snakefile")
    ] = None
    arguments: Annotated[
        dict[str, Any], Field(description="of the network: all of another one, changes of the declared one")
    ] = {}
    training: TrainingChange = TrainingChange()
    weights: Annotated[
        str | None,
        Field(description="a file to take instead of training: published weights, or a checkpoint of neuroute"),
    ] = None

    @model_validator(mode="after")
    def _weights_are_not_trained(self) -> "RunChange":
        changed = [name for name in ("seed", "seeds", "training") if name in self.model_fields_set]
        if self.weights is not None and changed:
            raise ValueError(f"with weights nothing is trained: leave out {' and '.join(changed)}")
        return self


class Machine(Strict):
    """Where jobs run: what `neuroute plan` reckons with, and what a cluster is asked for."""

    job_hours: Annotated[float, Field(gt=0, description="longest time that one job may have on your cluster")] = 48.0
    cpu_gflops_per_thread: Annotated[float | None, Field(gt=0, description="sustained; null: typical")] = None
    gpu_tflops: Annotated[float | None, Field(gt=0, description="of a GPU, likewise")] = None


Folder = Annotated[str, AfterValidator(os.path.expanduser)]  # `~` in a file is no shell's


class Config(Strict):
    """The user's choices: what to run, at which scale, on what."""

    scale: Annotated[str, Field(description="a file in workflow/scales, without .yaml")] = "smoke"
    scale_changes: Annotated[
        dict[str, Any], Field(description="keys of the scale file with other values: {scaling: {depths: {60: 6}}}")
    ] = {}
    papers_path: Annotated[
        list[Folder], Field(description="folders with papers of your own, beside those of this package")
    ] = []
    papers: Annotated[
        list[str] | None, Field(min_length=1, description="whose artifacts to make; null: all papers of the scale")
    ] = None
    device: Annotated[
        Literal["auto", "cpu", "cuda"], Field(description="auto: CUDA where there is a GPU, else CPU")
    ] = "auto"
    gpus_per_run: Annotated[int, Field(ge=1, description="more than one: torchrun with DDP")] = 1
    jobs_per_gpu: Annotated[int, Field(ge=1, description="that share a GPU, each with its part of the memory")] = 1
    tf32: Annotated[
        bool, Field(description="let a GPU multiply fp32 matrices in TF32; records say so beside the device")
    ] = True
    compile: Annotated[bool, Field(description="torch.compile the networks while training")] = False
    memory_gb: Annotated[
        float | None,
        Field(
            gt=0,
            allow_inf_nan=False,
            description="for a job's activations; null: 4 on CPU, 60 % of what a GPU has free",
        ),
    ] = None
    label_workers: Annotated[
        int | None, Field(ge=1, description="solver processes per label job; null: one for each 5 minutes of solving")
    ] = None
    label_caches: Annotated[list[Folder], Field(description="folders with label shards to reuse")] = []
    substitutes: Annotated[
        dict[str, str] | None,
        Field(
            description="solver -> solver that does its work, {concorde: lkh}; null: the next best one where one is "
            "missing, but not at scale paper; {}: none"
        ),
    ] = None
    benchmarks_dir: Annotated[
        Folder | None,
        Field(description="a local copy of TSPLIB (its folder or the one above); null: download the rest"),
    ] = None
    testsets_dir: Annotated[Folder | None, Field(description="folder of test sets, for `test_sets` and by name")] = None
    test_sets: Annotated[
        Literal["drawn", "published"] | dict[str, str],
        Field(
            description="published: those of testsets_dir whose names say which they are take the place of drawn ones; "
            "or {drawn set: file}"
        ),
    ] = "drawn"
    loggers: Annotated[
        list[Literal["csv", "tensorboard", "wandb", "mlflow"]],
        Field(description="where trainings log besides log.jsonl: log.csv, TensorBoard, Weights & Biases, MLflow"),
    ] = []
    work_dir: Folder = "work"
    results_dir: Folder = "results"
    rehearse: Annotated[
        bool, Field(description="a few batches of everything, in folders `rehearsal` of work_dir and results_dir")
    ] = False
    machine: Machine = Machine()
    runs: Annotated[dict[str, RunChange], Field(description="changes to single runs, by id")] = {}
    sweep: Annotated[Sweep | None, Field(description="a run at every point of a grid, with a table and a figure")] = (
        None
    )
    _where: str = "config.yaml"

    def block(self, name: str) -> Any:
        """The settings of an installed package, by their key; None where it is not installed."""
        return getattr(self, name, None)

    @property
    def where(self) -> str:
        """The file that says all this, for messages."""
        return self._where

    @property
    def networks(self) -> list[str]:
        """Kinds of networks that `runs` names: those outside this package are the user's, and trusted."""
        return [change.network for change in self.runs.values() if change.network]

    @model_validator(mode="after")
    def _keep_folders_apart(self) -> "Config":
        folders = {name: os.path.abspath(getattr(self, name)) for name in FOLDERS}
        for name, folder in folders.items():
            if folder == os.getcwd():
                raise ValueError(f"{name}: is the working folder itself; name a folder in it")
        if len(set(folders.values())) < len(folders):
            raise ValueError(f"{' and '.join(folders)} are one folder; name two")
        return self

    @model_validator(mode="after")
    def _rehearse_elsewhere(self) -> "Config":
        folders = {name: os.path.join(getattr(self, name), "rehearsal") for name in FOLDERS}
        return self.model_copy(update=folders) if self.rehearse else self

    @field_validator("papers_path")
    @classmethod
    def _add_folders(cls, folders: list[str]) -> list[str]:
        if "" in folders:
            raise ValueError("a folder without a name; leave it out")
        try:
            add_folders(folders)
        except NeurouteError as error:
            raise ValueError(str(error)) from None
        return folders

    @field_validator("substitutes")
    @classmethod
    def _are_solvers(cls, substitutes: dict[str, str] | None) -> dict[str, str] | None:
        for name in (part for pair in (substitutes or {}).items() for part in pair):
            if name not in SOLVERS:
                raise ValueError(f"no solver '{name}'; known solvers: {', '.join(SOLVERS)}")
        return substitutes

    @field_validator("papers")
    @classmethod
    def _are_known(cls, papers: list[str] | None) -> list[str] | None:
        if unknown := [key for key in papers or () if key not in paper_folders()]:
            known_papers = sorted(paper_folders())
            meant = did_you_mean(near(unknown[0], known_papers, most=1)) or ";"
            raise ValueError(f"no paper '{unknown[0]}'{meant} known papers: {', '.join(known_papers)}")
        return papers


@cache
def _config() -> type[Config]:
    """The config with the blocks of installed packages, models with defaults that entry points name."""
    models = {name: load(point) for name, point in entries("neuroute.config").items()}
    blocks: dict[str, Any] = {name: (model, model()) for name, model in models.items()}
    return create_model("Config", __base__=Config, __doc__=Config.__doc__, **blocks)


def parse_config(values: dict[str, Any], where: str = "config.yaml") -> Config:
    for name in values.keys() & BESIDE.keys() - _config().model_fields.keys():
        raise NeurouteError(f"{where}: {name}: {how_to_get(name)}")
    config = validate(_config(), with_exponents(values), where)  # Snakemake's YAML leaves 1e2 a text
    config._where = where
    return config


def load_config(path: Path | None = None, changes: Sequence[str] = (), **overrides: Any) -> Config:
    """The config of this process: an explicit file, else what the Snakefile handed down, else ./config.yaml.

    changes: keys with other values, as in `runs.scaling/base_6x128.seed=1`.
    """
    if path is None and CONFIG_ENV in os.environ:
        values, where = parse_yaml(os.environ[CONFIG_ENV]), f"${CONFIG_ENV}"
    else:
        path = path or Path("config.yaml")
        values, where = read_yaml(path), str(path)
    values |= {key: value for key, value in overrides.items() if value is not None}
    for change in changes:
        set_key(values, change)
    if path is None and (root := os.environ.get(ROOT_ENV)):  # a job whose files lie there
        values |= {key: os.path.join(root, os.path.expanduser(values.get(key, name))) for key, name in FOLDERS.items()}
    config = parse_config(values, f"{where} with --set" if changes else where)
    if not where.startswith("$"):  # what the Snakefile hands down was checked, and may lie on another machine
        check_read(config)
    return config


def schemas() -> dict[str, dict[str, Any]]:
    """Name of each schema -> the schema, with the blocks of all known papers: editors read them."""
    blocks: dict[str, Any] = {key: (load_paper(key).scale, None) for key in all_papers()}
    config = _config().model_json_schema()
    config["properties"]["papers"]["items"] = {"type": "string", "examples": all_papers()}
    return {"config": config, "scale": create_model("Scale", __base__=ScaleFile, **blocks).model_json_schema()}


SPECIAL = re.compile(r"[\s'\"\\$&;|<>()*?\[\]{}`]")  # in a path that jobs are started with


def has_gpu() -> bool:
    """Whether an NVIDIA GPU is visible, found without importing torch."""
    return here.count_visible() > 0


def gpus(config: Config) -> int:
    """GPUs that one training job asks Snakemake for."""
    uses_gpu = config.device == "cuda" or (config.device == "auto" and has_gpu())
    return config.gpus_per_run if uses_gpu else 0


def without_gpu(config: Config, command: Iterable[str]) -> str:
    """Say that a command which asks for a GPU (`--resources gpu=1`) gets none; nothing for another one."""
    requests = [word for word in command if re.fullmatch(r"(--res(ources)?=)?gpu=[1-9]\d*", word)]
    if not requests or gpus(config):
        return ""
    why = f"{config.where} says `device: cpu`" if config.device == "cpu" else "this machine shows no GPU"
    return f"{requests[0].rpartition('resources=')[2]}: {why}, so networks run on the CPU"


def check_gpus(config: Config, at_once: int) -> None:
    """Raises NeurouteError if jobs of this machine ask for more GPUs than it has: of the DAG at most `at_once`."""
    per_job = gpus(config)
    if not per_job:
        return
    count = here.count_visible()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    there = f"this machine shows {count} GPU{'' if count == 1 else 's'}" + (
        f" (CUDA_VISIBLE_DEVICES={visible})" if visible is not None else ""
    )
    if config.device == "cuda" and not count:
        raise NeurouteError(f"{config.where} asks for device 'cuda', but {there}; set `device: auto`")
    if per_job > count:
        raise NeurouteError(f"{config.where}: gpus_per_run: {per_job}, but {there}; set it to at most that")
    if 0 < at_once < per_job:
        raise NeurouteError(f"{config.where}: gpus_per_run: {per_job}, but --resources gpu={at_once}; give {per_job}")
    if at_once > (most := count * config.jobs_per_gpu):
        raise NeurouteError(
            f"--resources gpu={at_once}, but {there}; give at most {most}, or let more jobs share one: jobs_per_gpu"
        )


def check_folders(config: Config) -> None:
    """Raises NeurouteError when a folder that config.yaml names is not there, or one cannot be written by jobs."""
    for key in ("work_dir", "results_dir"):
        folder = getattr(config, key)
        if special := SPECIAL.search(folder):
            where = f"{config.where}: {key}: '{folder}'"
            raise NeurouteError(f"{where} contains '{special[0]}', which shells interpret; remove it")
        check_folder(Path(folder))
    check_read(config)


def check_read(config: Config) -> None:
    """Raises NeurouteError when a folder that config.yaml names is not there."""
    read = [("label_caches", folder) for folder in config.label_caches]
    read += [(key, folder) for key in ("benchmarks_dir", "testsets_dir") if (folder := getattr(config, key))]
    for key, folder in read:
        if not Path(folder).is_dir():
            raise NeurouteError(f"{config.where}: {key}: no folder {folder}; correct the path or leave it out")
